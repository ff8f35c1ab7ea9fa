"""Parse PDF files: lines become paragraphs, running heads are left out, chapters come from the outline."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from tutti.audiobook.book import Book, check_number, read_document
from tutti.audiobook.formats.chapters import Section, chapters
from tutti.audiobook.formats.parts import Skipping
from tutti.audiobook.formats.plain import plain_sections
from tutti.errors import InvalidInput

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_PAGES = 5000
EDGE_LINES = 2  # at the top and at the bottom of a page that may be a running head
HEAD_PAGES = 3  # a line at the edge of so many pages is a running head
HEAD_SHARE = 0.2  # and of this share of the pages: heads of left and right pages differ, and change with the chapter
FULL_LINE = 0.8  # of a long line; a shorter one that ends a sentence ends its paragraph
MAX_HEADING_LINES = 3
BULLETS = "•▪◦‣–"  # a line that starts with one is a paragraph of its own
LIGATURES = {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb06": "st"}


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading of the outline, and where it stands: its line among the lines of the whole book."""

    title: str
    level: int  # 1 is the top
    line: int


def read_pdf(file: BinaryIO, name: str, encoding: str | None, _: Skipping) -> Book:
    from pypdf import PdfReader

    with _pdf_errors(name):
        reader = PdfReader(io.BytesIO(read_document(file, name)))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidInput(f"{name} is protected by a password; remove it first", param="book")
        check_number(len(reader.pages), MAX_PAGES, "pages", name)
        pages = [_lines(page.extract_text()) for page in reader.pages]
        properties: Mapping[str, object] = reader.metadata or {}
        title, author = (str(properties.get(key) or "").strip() for key in ("/Title", "/Author"))
        bookmarks = list(_bookmarks(reader, reader.outline, 1))
    body, heads = without_running_heads(pages)
    lines = [line for page in body for line in page]
    starts = [0]
    for page in body:
        starts.append(starts[-1] + len(page))
    entries = [_locate(entry, page, body, starts) for entry, page in bookmarks]
    sections = _outline_sections(lines, entries) if entries else plain_sections(paragraphs(lines))
    notes = []
    if n_empty := sum(not page for page in pages):
        notes.append(f"pages without text, perhaps pictures: {n_empty} of {len(pages)}")
    if heads:
        notes.append(f"lines left out as running heads or page numbers: {heads}")
    return Book(title, author, chapters(sections), notes=tuple(notes))


def without_running_heads(pages: Sequence[Sequence[str]]) -> tuple[list[list[str]], int]:
    """Return the pages without page numbers and lines that pages repeat at an edge, and how many lines those are."""
    counts = Counter(pattern for page in pages for pattern in {_pattern(page[n]) for n in _edges(page)})
    enough = max(HEAD_PAGES, HEAD_SHARE * len(pages))
    body, n_removed = [], 0
    for page in pages:
        edges = _edges(page)
        removed = {n for n in edges if counts[_pattern(page[n])] >= enough}
        removed |= {n for n in (edges[:1] + edges[-1:]) if _PAGE_NUMBER.fullmatch(page[n])}
        body.append([line for n, line in enumerate(page) if n not in removed])
        n_removed += len(removed)
    return body, n_removed


def paragraphs(lines: Sequence[str]) -> str:
    """Join lines to paragraphs, with blank lines between them; words that were divided are whole again."""
    lengths = sorted(map(len, lines))
    full = FULL_LINE * lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0
    parts: list[str] = []
    ended = True
    for line in lines:
        if ended or line[0] in BULLETS:
            parts.append("\n\n")
        elif _DIVIDED.search(parts[-1]) and line[:1].islower():
            parts[-1] = parts[-1][:-1]
        else:
            parts.append(" ")
        parts.append(line)
        ended = len(line) < full and (_SENTENCE_END.search(line) is not None or _is_heading(line))
    return "".join(parts[1:])


def _lines(text: str) -> list[str]:
    for ligature, letters in LIGATURES.items():
        text = text.replace(ligature, letters)
    return [
        line
        for raw in text.replace("\u00ad\n", "").replace("\u00ad", "").split("\n")
        if (line := " ".join(raw.split()))
    ]


def _edges(page: Sequence[str]) -> list[int]:
    """The lines at the top and at the bottom."""
    n = len(page)
    return sorted({*range(min(EDGE_LINES, n)), *range(max(0, n - EDGE_LINES), n)})


def _pattern(line: str) -> str:
    return re.sub(r"\d+", "#", line.lower())


def _is_heading(line: str) -> bool:
    """Whether a short line stands alone: few words, no comma at its end, a capital or a digit at its start."""
    return len(line.split()) <= 8 and (line[0].isupper() or line[0].isdigit()) and line[-1] not in ",;-–—"


def _bookmarks(reader: "PdfReader", outline: Any, level: int) -> Iterator[tuple[OutlineEntry, int]]:
    """The entries of the outline with their pages; a list is one level deeper than the entry before it."""
    for entry in outline:
        if isinstance(entry, list):
            yield from _bookmarks(reader, entry, min(level + 1, 6))
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and (title := " ".join(str(entry.title or "").split())):
            yield OutlineEntry(title, level, 0), page


def _locate(entry: OutlineEntry, page: int, body: Sequence[Sequence[str]], starts: Sequence[int]) -> OutlineEntry:
    """Find the line of the heading on its page; the first line of the page if it is written in another way."""
    title = _letters(entry.title)
    for n, _ in enumerate(body[page]):
        for n_lines in range(1, MAX_HEADING_LINES + 1):
            if title and _letters(" ".join(body[page][n : n + n_lines])) == title:
                return OutlineEntry(entry.title, entry.level, starts[page] + n)
    return OutlineEntry(entry.title, entry.level, starts[page])


def _outline_sections(lines: Sequence[str], entries: Sequence[OutlineEntry]) -> list[Section]:
    """Cut the lines where the entries stand; entries that stand at the same line are one."""
    deepest_first = sorted(entries, key=lambda entry: (entry.line, -entry.level))
    ordered = list({entry.line: entry for entry in deepest_first}.values())  # of several, the highest
    first = ordered[0].line
    sections = [Section("", 0, paragraphs(lines[:first]))] if first else []
    for entry, until in zip(ordered, [*(entry.line for entry in ordered[1:]), len(lines)], strict=True):
        sections.append(_section(entry, lines[entry.line : until]))
    return sections


def _section(entry: OutlineEntry, lines: Sequence[str]) -> Section:
    """The heading as a paragraph of its own, then the text."""
    title = _letters(entry.title)
    n_heading = next((n for n in range(1, MAX_HEADING_LINES + 1) if _letters(" ".join(lines[:n])) == title), 0)
    heading, text = " ".join(lines[:n_heading]), paragraphs(lines[n_heading:])
    return Section(entry.title, entry.level, "\n\n".join(part for part in (heading, text) if part), not text)


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


@contextmanager
def _pdf_errors(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput:
        raise
    except Exception as exc:  # the library raises almost anything for a damaged file
        raise InvalidInput(f"{name} is not a PDF file that can be read: {str(exc)[:200]}", param="book") from exc


_PAGE_NUMBER = re.compile(r"\W*(?:page\s*)?(?:\d{1,4}|[ivxlc]{1,7})\W*(?:(?:of|/)\s*\d{1,4})?\W*", re.IGNORECASE)
_DIVIDED = re.compile(r"[^\W\d_]-\Z")
_SENTENCE_END = re.compile(r"[.!?:…][\"”’»)\]]*\Z")
