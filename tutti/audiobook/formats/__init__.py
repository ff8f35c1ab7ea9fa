"""Read EPUB, PDF, HTML, Markdown and plain text into chapters."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import MAX_TITLE, Book, check_length
from tutti.audiobook.formats.chapters import check_chapters
from tutti.errors import InvalidInput, NothingToSpeak, did_you_mean

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
    check_length(book.n_characters, name)
    check_chapters(len(book.chapters), name)
    if not any(char.isalnum() for chapter in book.chapters for char in chapter.text):
        raise NothingToSpeak(f"{name} has no text to read" + "".join(f"; {note}" for note in book.notes), param="book")
    return _with_short_titles(book)


def _with_short_titles(book: Book) -> Book:
    """Shorten titles that are no titles, and note it; the headings in the text stay whole."""
    titles = (book.title, book.author, *(chapter.title for chapter in book.chapters))
    if all(len(title) <= MAX_TITLE for title in titles):
        return book
    chapters = tuple(replace(chapter, title=_short(chapter.title)) for chapter in book.chapters)
    note = f"titles of more than {MAX_TITLE} characters were shortened"
    return replace(
        book, title=_short(book.title), author=_short(book.author), chapters=chapters, notes=(*book.notes, note)
    )


def _short(title: str) -> str:
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"


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
