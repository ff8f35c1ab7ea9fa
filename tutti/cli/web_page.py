"""A web address as a book: the page is fetched once, and only its article is read."""

import io
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tutti.errors import InvalidInput, NothingToSpeak, install_hint

if TYPE_CHECKING:
    from collections.abc import Collection

    from tutti.audiobook.book import Book

TIMEOUT_S = 30.0  # between two parts of an answer
SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.oasis.opendocument.text": ".odt",
}


def is_address(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def read_page(address: str, encoding: str | None, skip: "Collection[str]") -> "Book":
    """The article of a page, or the book that the address leads to."""
    from tutti.audiobook.formats import read_book

    data, suffix = _fetch(address)
    if suffix != ".html":
        return read_book(
            io.BytesIO(data), f"{PurePosixPath(urlsplit(address).path).stem or 'book'}{suffix}", encoding, skip
        )
    return _article(data, address, encoding, skip)


def _fetch(address: str) -> tuple[bytes, str]:
    """What is at an address, and the suffix of a book of that kind."""
    import httpx2

    from tutti import __version__
    from tutti.audiobook.book import MAX_BYTES
    from tutti.audiobook.formats import READERS

    headers = {"user-agent": f"tutti/{__version__}", "accept": ", ".join(SUFFIXES)}
    data = bytearray()
    try:
        with httpx2.stream("GET", address, headers=headers, follow_redirects=True, timeout=TIMEOUT_S) as response:
            response.raise_for_status()
            for part in response.iter_bytes():
                data += part
                if len(data) > MAX_BYTES:
                    raise InvalidInput(f"{address} is larger than {MAX_BYTES:,} bytes", param="book")
    except httpx2.HTTPStatusError as exc:
        raise InvalidInput(f"{address} answered {exc.response.status_code}", param="book") from exc
    except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
        raise InvalidInput(f"cannot fetch {address}: {exc or type(exc).__name__}", param="book") from exc
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    own = PurePosixPath(urlsplit(str(response.url)).path).suffix.lower()
    suffix = SUFFIXES.get(kind) or (own if own in READERS else "")
    if not suffix:
        raise InvalidInput(f"{address} is {kind or 'of an unknown kind'}, not a page or a book", param="book")
    return bytes(data), own if kind == "text/plain" and own in READERS else suffix


def _article(data: bytes, address: str, encoding: str | None, skip: "Collection[str]") -> "Book":
    """The text of an article with its headings; navigation, comments and advertising are left out."""
    from dataclasses import replace

    from tutti.audiobook.about import year_of
    from tutti.audiobook.book import decode_text
    from tutti.audiobook.formats import read_book
    from tutti.audiobook.formats.html import page_metadata

    try:
        import trafilatura
    except ImportError as exc:
        raise InvalidInput(
            f"the article of a web page needs an extra: {install_hint('web')}; or save the page and read the file",
            param="book",
        ) from exc
    markup = decode_text(data, address, encoding) if encoding else data  # it guesses, as browsers do
    text = trafilatura.extract(markup, url=address, output_format="html", include_comments=False)
    if not text:
        raise NothingToSpeak(
            f"{address} has no article that could be found; save the page and read the file", param="book"
        )
    about = trafilatura.extract_metadata(markup, default_url=address)
    title = about.title or urlsplit(address).netloc
    book = read_book(io.BytesIO(text.encode()), f"{title}.html", "utf-8", skip)
    declared = page_metadata(data.decode("utf-8", "replace"))
    return replace(
        book,
        title=title,
        author=about.author or declared.get("author", ""),
        language=declared.get("language", ""),
        year=year_of(about.date or ""),
    )
