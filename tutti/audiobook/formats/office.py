"""What .docx and .odt have in common: paragraphs as tokens of an HTML page, properties, and the book made of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tutti.audiobook.book import MAX_BYTES, Book
from tutti.audiobook.formats.archive import Archive
from tutti.audiobook.formats.blocks import join_blocks, page_blocks, without_skipped
from tutti.audiobook.formats.chapters import chapters
from tutti.audiobook.formats.html import sections_of
from tutti.audiobook.formats.parts import Skipping
from tutti.audiobook.formats.plain import plain_sections
from tutti.audiobook.formats.tokens import Tag
from tutti.audiobook.formats.xml import elements

PROPERTIES = ("title", "creator", "initial-creator", "language")
END_NOTE = Tag("aside", closes=True)


def begin_note(number: str) -> Tag:
    """Begin a note, which is announced with its number."""
    return Tag("aside", {"role": "doc-footnote", "data-number": number})


@dataclass(slots=True)
class Paragraph:
    """A paragraph that is being read: it is opened by its first content, when its properties are known."""

    style: str = ""
    level: int = 0  # of a heading
    list_id: str = ""
    list_level: str = "0"
    bullet: str = ""
    part: str = ""  # a role of HTML
    is_open: bool = False

    def say(self, content: Tag | str) -> Iterator[Tag | str]:
        if not self.is_open:
            self.is_open = True
            yield Tag(self._element, {"role": self.part, "data-bullet": self.bullet})
        yield content

    def end(self) -> Iterator[Tag | str]:
        if self.is_open:
            yield Tag(self._element, closes=True)

    @property
    def _element(self) -> str:
        return f"h{self.level}" if self.level else "li" if self.bullet else "p"


def properties(archive: Archive, path: str) -> dict[str, str]:
    """Title, author and language of a document, if it has them."""
    if path not in archive:
        return {}
    found = (each for each in elements(archive.read(path, MAX_BYTES), path) if each.name in PROPERTIES)
    return {element.name: element.text for element in found if element.text}


def office_book(stream: Iterable[Tag | str], about: dict[str, str], note: str, skipping: Skipping) -> Book:
    """The book of the tokens of a page; without headings, lines such as "Chapter 12" begin the chapters."""
    _, page = page_blocks(stream, note)
    blocks = [block for block in without_skipped(page, skipping) if block.text]
    has_headings = any(block.level for block in blocks)
    sections = sections_of(blocks) if has_headings else plain_sections(join_blocks(blocks))
    author = about.get("initial-creator") or about.get("creator", "")
    return Book(about.get("title", ""), author, chapters(sections), about.get("language", ""))
