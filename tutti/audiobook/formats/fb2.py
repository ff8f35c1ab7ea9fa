"""Parse FictionBook 2, also inside a ZIP file: chapters by the titles of its sections."""

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from tutti.audio.tagged import CoverImage
from tutti.audiobook.about import series_of, year_of
from tutti.audiobook.book import MAX_BYTES, Book, parse_cover, read_document
from tutti.audiobook.formats.archive import Archive
from tutti.audiobook.formats.blocks import page_blocks, without_skipped
from tutti.audiobook.formats.chapters import chapters
from tutti.audiobook.formats.html import sections_of
from tutti.audiobook.formats.office import END_NOTE, begin_note
from tutti.audiobook.formats.parts import Skipping, note_word
from tutti.audiobook.formats.tokens import Tag
from tutti.audiobook.formats.xml import xml_tokens
from tutti.errors import InvalidInput

MAX_LEVEL = 6
_ELEMENTS = {
    **dict.fromkeys(("p", "subtitle", "text-author", "date"), "p"),
    **dict.fromkeys(("stanza", "annotation", "poem"), "div"),
    **dict.fromkeys(("cite", "epigraph"), "blockquote"),
    **{name: name for name in ("table", "tr", "td", "th", "code", "sup", "sub")},
}


def read_fb2(file: BinaryIO, name: str, encoding: str | None, skipping: Skipping) -> Book:
    data = _unzipped(file, name)
    about = _About()
    for token in xml_tokens(data, name, encoding):
        about.read(token)
    body = _Body()
    found = (converted for token in xml_tokens(data, name, encoding) for converted in body.convert(token))
    _, page = page_blocks(found, note_word(about.language))
    blocks = [block for block in without_skipped(page, skipping) if block.text]
    cover = about.cover()
    notes = ("the cover was ignored: it is neither JPEG nor PNG",) if about.cover_id and cover is None else ()
    authors = ", ".join(dict.fromkeys(about.authors))
    return Book(
        about.title, authors, chapters(sections_of(blocks)), about.language, cover, notes, about.year, about.series
    )


def _unzipped(file: BinaryIO, name: str) -> bytes:
    """The document; a file that begins as a ZIP file has it inside."""
    is_zip = file.read(2) == b"PK"
    file.seek(0)
    if not is_zip:
        return read_document(file, name)
    with Archive(file, name, "a FictionBook") as archive:
        path = next((path for path in archive.paths if path.lower().endswith(".fb2")), None)
        if path is None:
            raise InvalidInput(f"{name} is not a FictionBook: it has no .fb2 file in it", param="book")
        return archive.read(path, MAX_BYTES)


@dataclass(slots=True)
class _About:
    """Title, authors, language and cover."""

    title: str = ""
    authors: list[str] = field(default_factory=list)
    language: str = ""
    cover_id: str = ""
    year: str = ""
    series: str = ""
    _open: list[str] = field(default_factory=list)
    _name: list[str] = field(default_factory=list)  # parts of the name of an author
    _binary: list[str] | None = None  # the cover, while it is read and after that

    def read(self, token: Tag | str) -> None:
        if isinstance(token, str):
            self._text(token)
        elif token.closes:
            self._end(token.name)
        else:
            self._open.append(token.name)
            self._start(token)

    def cover(self) -> CoverImage | None:
        try:
            return parse_cover(b64decode("".join(self._binary or ())))
        except ValueError:
            return None

    def _start(self, tag: Tag) -> None:
        if tag.name == "image" and "coverpage" in self._open and not self.cover_id:
            self.cover_id = tag.attributes.get("href", "").removeprefix("#")
        elif tag.name == "sequence" and "title-info" in self._open and not self.series:
            self.series = series_of(tag.attributes.get("name", ""), tag.attributes.get("number", ""))
        elif tag.name == "binary" and self._binary is None and self.cover_id == tag.attributes.get("id"):
            self._binary = []

    def _text(self, text: str) -> None:
        if "title-info" in self._open and "src-title-info" not in self._open:
            match self._open[-1]:
                case "book-title":
                    self.title = f"{self.title} {text}".strip()
                case "lang":
                    self.language = text.strip()
                case "date":
                    self.year = self.year or year_of(text)
                case "first-name" | "middle-name" | "last-name" | "nickname" if self._open[-2] == "author":
                    self._name.append(text.strip())
        elif self._open[-1:] == ["binary"] and self._binary is not None:
            self._binary.append(text)

    def _end(self, name: str) -> None:
        self._open.pop()
        if name == "author" and self._name:
            self.authors.append(" ".join(filter(None, self._name)))
            self._name = []


@dataclass(slots=True)
class _Body:
    """Turns the tokens of FictionBook into those of an HTML page."""

    _n_sections: int = 0  # that are open
    _in_body: bool = False
    _in_notes: bool = False
    _title: list[str] | None = None  # the lines of a title that is open
    _note_waits: bool = False  # a note has begun, and its number may follow
    _in_reference: bool = False

    def convert(self, token: Tag | str) -> Iterator[Tag | str]:
        if isinstance(token, str):
            yield from self._text(token)
        elif token.name == "body":
            yield from self._body(token)
        elif self._in_body and self._title is not None:
            yield from self._in_title(token)
        elif self._in_body:
            yield from self._end(token.name) if token.closes else self._start(token)

    def _text(self, text: str) -> Iterator[str]:
        if self._title is not None:
            self._title[-1:] = ["".join((*self._title[-1:], text))]
        elif self._in_body and not self._in_reference:
            yield text

    def _body(self, tag: Tag) -> Iterator[Tag]:
        self._in_body, self._n_sections = not tag.closes, 0
        if not tag.closes:
            self._in_notes = tag.attributes.get("name", "") in ("notes", "footnotes", "comments")
        if self._in_notes:
            yield Tag("section", {"role": "doc-footnotes"}, closes=tag.closes)

    def _in_title(self, tag: Tag) -> Iterator[Tag | str]:
        if tag.name == "title":
            lines, self._title = [line for line in self._title or () if line.strip()], None
            yield from self._titled(lines)
        elif tag.name == "p" and not tag.closes and self._title is not None:
            self._title.append("")

    def _titled(self, lines: list[str]) -> Iterator[Tag | str]:
        """A heading; in notes, the title of a section is the number of the note."""
        if self._note_waits:
            self._note_waits = False
            number = "".join(lines).strip("[]() .")
            yield begin_note(number) if number.isdecimal() else begin_note("")
            yield from () if number.isdecimal() else (" ".join(lines), Tag("br"))
            return
        name = f"h{min(max(1, self._n_sections), MAX_LEVEL)}"
        yield Tag(name)
        for n, line in enumerate(lines):
            yield from (Tag("br"), line) if n else (line,)
        yield Tag(name, closes=True)

    def _start(self, tag: Tag) -> Iterator[Tag | str]:
        if tag.name == "title":
            self._title = []
            return
        if self._note_waits and tag.name != "section":
            self._note_waits = False
            yield begin_note("")
        match tag.name:
            case "section":
                self._n_sections += 1
                self._note_waits = self._in_notes
            case "image" if alt := tag.attributes.get("alt", ""):
                yield Tag("img", {"alt": alt})
            case "a":
                self._in_reference = tag.attributes.get("type") == "note"
            case name if name in _ELEMENTS:
                yield Tag(_ELEMENTS[name])

    def _end(self, name: str) -> Iterator[Tag | str]:
        match name:
            case "section":
                self._n_sections -= 1
                if self._in_notes:
                    yield END_NOTE
            case "v":
                yield Tag("br")
            case "a":
                self._in_reference = False
            case _ if name in _ELEMENTS:
                yield Tag(_ELEMENTS[name], closes=True)
