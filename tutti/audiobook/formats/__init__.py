"""Read EPUB, PDF, HTML, Markdown and plain text into chapters."""

from collections.abc import Callable
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import Book
from tutti.errors import InvalidInput, NothingToSpeak, did_you_mean

MAX_CHARACTERS = 20_000_000  # of a whole book; a long novel has about one million

SUFFIXES = {
    **dict.fromkeys((".epub",), "epub"),
    **dict.fromkeys((".pdf",), "pdf"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".txt", ".text"), "plain"),
}


def read_book(file: BinaryIO, name: str, encoding: str | None = None) -> Book:
    """Parse a book, in the format of its suffix. Raise InvalidInput with the reason if that fails."""
    book = _parser(name)(file, name, encoding)
    if book.n_characters > MAX_CHARACTERS:
        raise InvalidInput(
            f"{name} has {book.n_characters:,} characters; the limit is {MAX_CHARACTERS:,}", param="book"
        )
    if not any(char.isalnum() for chapter in book.chapters for char in chapter.text):
        raise NothingToSpeak(f"{name} has no text to read" + "".join(f"; {note}" for note in book.notes), param="book")
    return book


def _parser(name: str) -> Callable[[BinaryIO, str, str | None], Book]:
    suffix = PurePath(name).suffix.lower()
    match SUFFIXES.get(suffix):
        case "epub":
            from tutti.audiobook.formats.epub import read_epub

            return read_epub
        case "pdf":
            from tutti.audiobook.formats.pdf import read_pdf

            return read_pdf
        case "html":
            from tutti.audiobook.formats.html import read_html

            return read_html
        case "markdown":
            from tutti.audiobook.formats.markdown import read_markdown

            return read_markdown
        case "plain":
            from tutti.audiobook.formats.plain import read_plain

            return read_plain
    hint = did_you_mean(suffix, SUFFIXES) if suffix else ""
    raise InvalidInput(f"{name} is not a book file; use {' '.join(SUFFIXES)}{hint}", param="book")
