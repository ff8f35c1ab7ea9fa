"""Parse .odt (LibreOffice): chapters by headings; notes are read after the paragraph that refers to them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from tutti.audiobook.book import MAX_BYTES, Book
from tutti.audiobook.formats.archive import Archive
from tutti.audiobook.formats.office import END_NOTE, Paragraph, begin_note, office_book, properties
from tutti.audiobook.formats.parts import Skipping, note_word
from tutti.audiobook.formats.tokens import Tag
from tutti.audiobook.formats.xml import elements, xml_tokens
from tutti.errors import InvalidInput

MAX_LEVEL = 6
MAX_SPACES = 100  # of one element that stands for several
_HIDDEN = frozenset(
    {
        *("tracked-changes", "annotation", "forms", "note-citation", "ruby-text", "hidden-text", "hidden-paragraph"),
        *("page-number", "page-count", "script"),
    }
)
_CELLS = {"table": "table", "table-row": "tr", "table-cell": "td"}


def read_odt(file: BinaryIO, name: str, encoding: str | None, skipping: Skipping) -> Book:
    kind = "an OpenDocument text (.odt)"
    with Archive(file, name, kind) as archive:
        if "content.xml" not in archive:
            raise InvalidInput(f"{name} is not {kind}: it has no content.xml", param="book")
        _refuse_password(archive, name)
        about = properties(archive, "meta.xml")
        stream = _TextDocument().tokens(xml_tokens(archive.read("content.xml", MAX_BYTES), "content.xml"))
        return office_book(stream, about, note_word(about.get("language", "")), skipping)


def _refuse_password(archive: Archive, name: str) -> None:
    path = "META-INF/manifest.xml"
    if path in archive and any(
        each.name == "encryption-data" for each in elements(archive.read(path, MAX_BYTES), path)
    ):
        raise InvalidInput(f"{name} is protected with a password; save it without one", param="book")


@dataclass(slots=True)
class _OpenList:
    style: str
    n_items: int = 0


@dataclass(slots=True)
class _TextDocument:
    """Turns the tokens of OpenDocument into those of an HTML page."""

    _open: list[Paragraph] = field(default_factory=list)  # one in another is a text box
    _hidden: list[str] = field(default_factory=list)  # the element that hides its content, and those of its name in it
    _in_body: bool = False
    _titles: set[str] = field(default_factory=set)  # styles that are made of that of the title
    _numbered: dict[str, set[int]] = field(default_factory=dict)  # levels of lists with numbers, by style
    _list_style: str = ""
    _lists: list[_OpenList] = field(default_factory=list)
    _bullet: str = ""
    _n_tables: int = 0
    _contents: list[str] = field(default_factory=list)  # open tables of contents
    _notes: list[list[Tag | str]] = field(default_factory=list)  # that are open: a note may not be inside another
    _outside: list[list[Paragraph]] = field(default_factory=list)  # the paragraphs around them
    _waiting: list[Tag | str] = field(default_factory=list)  # notes, up to the end of the paragraph or table
    _n_notes: int = 0
    _alt: list[str] | None = None  # the description of a picture, while it is read

    def tokens(self, stream: Iterator[Tag | str]) -> Iterator[Tag | str]:
        for token in stream:
            for converted in self._convert(token):
                if self._notes:
                    self._notes[-1].append(converted)
                else:
                    yield converted
        yield from self._waiting

    def _convert(self, token: Tag | str) -> Iterator[Tag | str]:
        if isinstance(token, str):
            if self._alt is not None:
                self._alt.append(token)
            elif self._open and not self._hidden:
                yield from self._say(token)
        elif self._hidden:
            if token.name == self._hidden[0]:
                self._hidden = self._hidden[:-1] if token.closes else [*self._hidden, token.name]
        elif not self._in_body:
            self._read_style(token)
        elif token.closes:
            yield from self._end(token.name)
        else:
            yield from self._start(token)

    def _read_style(self, tag: Tag) -> None:
        """Styles stand before the body."""
        if tag.closes:
            return
        name = tag.attributes.get("name", "")
        match tag.name:
            case "body":
                self._in_body = True
            case "style" if tag.attributes.get("parent-style-name") == "Title":
                self._titles.add(name)
            case "list-style":
                self._list_style = name
            case "list-level-style-number" if tag.attributes.get("num-format", ""):
                level = tag.attributes.get("level", "1")
                self._numbered.setdefault(self._list_style, set()).add(int(level) if level.isdecimal() else 1)

    def _start(self, tag: Tag) -> Iterator[Tag | str]:
        match tag.name:
            case "desc" | "title" if self._open:
                self._alt = []
            case name if name in _HIDDEN:
                self._hidden = [name]
            case "section" if tag.attributes.get("display") == "none":
                self._hidden = ["section"]
            case "p" | "h":
                self._open.append(self._paragraph(tag))
            case "s":
                n = tag.attributes.get("c", "1")
                yield from self._say(" " * min(int(n) if n.isdecimal() else 1, MAX_SPACES))
            case "tab":
                yield from self._say(" ")
            case "line-break":
                yield from self._say(Tag("br"))
            case "list":
                style = tag.attributes.get("style-name") or (self._lists[-1].style if self._lists else "")
                self._lists.append(_OpenList(style))
            case "list-item" if self._lists:
                self._lists[-1].n_items += 1
                numbered = len(self._lists) in self._numbered.get(self._lists[-1].style, ())
                self._bullet = f"{self._lists[-1].n_items}. " if numbered else "• "
            case "table" | "table-row" | "table-cell":
                self._n_tables += tag.name == "table"
                yield Tag(_CELLS[tag.name])
            case "table-of-content":
                self._contents.append(tag.name)
            case "note-body":
                self._begin_note()

    def _end(self, name: str) -> Iterator[Tag | str]:
        match name:
            case "desc" | "title" if self._alt is not None:
                yield from self._say(Tag("img", {"alt": "".join(self._alt)}))
                self._alt = None
            case "p" | "h" if self._open:
                yield from self._open.pop().end()
            case "list" if self._lists:
                self._lists.pop()
            case "list-item":
                self._bullet = ""
            case "table" | "table-row" | "table-cell":
                self._n_tables -= name == "table"
                yield Tag(_CELLS[name], closes=True)
            case "table-of-content" if self._contents:
                self._contents.pop()
            case "note-body" if self._notes:
                self._waiting += (*self._notes.pop(), END_NOTE)
                self._open = self._outside.pop()
        if name in ("p", "h", "table") and not (self._open or self._n_tables or self._notes):
            yield from self._waiting
            self._waiting = []

    def _paragraph(self, tag: Tag) -> Paragraph:
        style, level = tag.attributes.get("style-name", ""), tag.attributes.get("outline-level", "1")
        paragraph = Paragraph(style, part="doc-toc" if self._contents else "")
        if tag.name == "h":
            paragraph.level = min(max(1, int(level) if level.isdecimal() else 1), MAX_LEVEL)
        elif style == "Title" or style in self._titles:
            paragraph.level = 1
        else:
            paragraph.bullet, self._bullet = self._bullet, ""
        return paragraph

    def _begin_note(self) -> None:
        self._n_notes += 1
        self._notes.append([begin_note(str(self._n_notes))])
        self._outside.append(self._open)
        self._open = []

    def _say(self, content: Tag | str) -> Iterator[Tag | str]:
        if self._open:
            yield from self._open[-1].say(content)
