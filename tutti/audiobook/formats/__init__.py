"""Read EPUB, Word, OpenDocument, FictionBook, PDF, HTML, Markdown and plain text into chapters."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import MAX_TITLE, Book, check_length, check_number
from tutti.audiobook.formats.chapters import MAX_CHAPTERS
from tutti.audiobook.formats.docx import read_docx
from tutti.audiobook.formats.epub import read_epub
from tutti.audiobook.formats.fb2 import read_fb2
from tutti.audiobook.formats.html import read_html
from tutti.audiobook.formats.markdown import read_markdown
from tutti.audiobook.formats.odt import read_odt
from tutti.audiobook.formats.parts import Skipping
from tutti.audiobook.formats.pdf import read_pdf
from tutti.audiobook.formats.plain import read_plain
from tutti.errors import InvalidInput, NothingToSpeak, did_you_mean

# By suffix. A title that a book or a chapter does not have is empty.
READERS: dict[str, Callable[[BinaryIO, str, str | None, Skipping], Book]] = {
    ".epub": read_epub,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".odt": read_odt,
    **dict.fromkeys((".fb2", ".fbz", ".zip"), read_fb2),
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    **dict.fromkeys((".txt", ".text"), read_plain),
}


def read_book(file: BinaryIO, name: str, encoding: str | None = None, skip: Collection[str] = ()) -> Book:
    """Parse a book, in the format of its suffix. Raise InvalidInput with the reason if that fails.

    `skip`: the parts that are left out, as `parse_skip` gives them.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in READERS:
        hint = did_you_mean(suffix, READERS) if suffix else ""
        raise InvalidInput(f"{name} is not a book file; use {' '.join(READERS)}{hint}", param="book")
    skipping = Skipping(frozenset(skip))
    book = skipping.book(READERS[suffix](file, name, encoding, skipping))
    check_length(book.n_characters, name)
    check_number(len(book.chapters), MAX_CHAPTERS, "chapters", name)
    if not any(char.isalnum() for chapter in book.chapters for char in chapter.text):
        raise NothingToSpeak(f"{name} has no text to read" + "".join(f"; {note}" for note in book.notes), param="book")
    return _with_short_titles(_with_titles(book, PurePath(name).stem))


def _with_titles(book: Book, default: str) -> Book:
    """Give untitled chapters a title: that of the book for the first, a number for the others."""
    title = book.title or default
    chapters = tuple(
        replace(chapter, title=chapter.title or (f"{n + 1}" if n else title)) for n, chapter in enumerate(book.chapters)
    )
    return replace(book, title=title, chapters=chapters)


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
