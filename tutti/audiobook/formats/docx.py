"""Parse .docx (Word): chapters by heading styles; notes are read after the paragraph that refers to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from tutti.audiobook.book import MAX_BYTES, Book
from tutti.audiobook.formats.archive import Archive
from tutti.audiobook.formats.office import END_NOTE, Paragraph, begin_note, office_book, properties
from tutti.audiobook.formats.parts import Skipping, note_word
from tutti.audiobook.formats.tokens import Tag
from tutti.audiobook.formats.xml import xml_tokens
from tutti.errors import InvalidInput

DOCUMENT = "word/document.xml"
MAX_LEVEL = 6
OFF = ("0", "false", "off", "none")
_HIDDEN = frozenset({"del", "moveFrom", "Fallback", "instrText", "delText", "rt", "rubyPr", "sectPr"})


@dataclass(frozen=True, slots=True)
class Style:
    """What a paragraph style is based on, and the level of its headings, 0 if it is not for headings."""

    name: str = ""
    base: str = ""
    level: int = 0
    list_id: str = ""


def read_docx(file: BinaryIO, name: str, encoding: str | None, skipping: Skipping) -> Book:
    with Archive(file, name, "a Word document (.docx)") as archive:
        if DOCUMENT not in archive:
            raise InvalidInput(f"{name} is not a Word document (.docx): it has no {DOCUMENT}", param="book")
        about = properties(archive, "docProps/core.xml")
        styles = _styles(archive)
        numbered = _numbered_lists(archive)
        notes = {kind: _notes(archive, f"word/{kind}s.xml", kind, styles, numbered) for kind in ("footnote", "endnote")}
        document = _WordDocument(styles, numbered, notes)
        stream = document.tokens(xml_tokens(archive.read(DOCUMENT, MAX_BYTES), DOCUMENT))
        return office_book(stream, about, note_word(about.get("language", "")), skipping)


def _tokens(archive: Archive, path: str) -> Iterator[Tag | str]:
    """The tokens of a member, none if it is not there."""
    return xml_tokens(archive.read(path, MAX_BYTES), path) if path in archive else iter(())


def _styles(archive: Archive) -> dict[str, Style]:
    """The paragraph styles, by id."""
    styles: dict[str, Style] = {}
    id, fields = "", dict[str, str]()
    for token in _tokens(archive, "word/styles.xml"):
        if isinstance(token, str):
            continue
        value = token.attributes.get("val", "")
        match token.name:
            case "style" if not token.closes:
                id, fields = token.attributes.get("styleId", ""), {}
            case "style":
                styles[id] = Style(
                    fields.get("name", "").lower(), fields.get("basedOn", ""),
                    _outline_level(fields.get("outlineLvl", "")), fields.get("numId", ""),
                )  # fmt: skip
            case "name" | "basedOn" | "outlineLvl" | "numId" if not token.closes:
                fields[token.name] = value
    return styles


def _outline_level(value: str) -> int:
    """1 to 6 for an outline level of 0 to 8; 9 is the body text."""
    return min(int(value) + 1, MAX_LEVEL) if value in tuple("012345678") else 0


def _numbered_lists(archive: Archive) -> dict[tuple[str, str], bool]:
    """Whether the items of a list are numbered, by its id and level."""
    kinds: dict[tuple[str, str], bool] = {}  # by abstract list and level
    lists: dict[str, str] = {}
    abstract = level = number = ""
    for token in _tokens(archive, "word/numbering.xml"):
        if isinstance(token, str) or token.closes:
            continue
        match token.name:
            case "abstractNum":
                abstract = token.attributes.get("abstractNumId", "")
            case "lvl":
                level = token.attributes.get("ilvl", "")
            case "numFmt":
                kinds.setdefault((abstract, level), token.attributes.get("val") not in ("bullet", "none"))
            case "num":
                number = token.attributes.get("numId", "")
            case "abstractNumId" if number:
                lists[number] = token.attributes.get("val", "")
    return {
        (number, level): numbered
        for number, abstract in lists.items()
        for (other, level), numbered in kinds.items()
        if other == abstract
    }


def _notes(
    archive: Archive, path: str, kind: str, styles: Mapping[str, Style], numbered: Mapping[tuple[str, str], bool]
) -> dict[str, list[Tag | str]]:
    """The tokens of each note, by its id; those of the lines between text and notes are empty."""
    notes: dict[str, list[Tag | str]] = {}
    document = _WordDocument(styles, numbered, {})
    id = ""
    for token in _tokens(archive, path):
        if isinstance(token, Tag) and token.name == kind:
            id = "" if token.closes else token.attributes.get("id", "")
        elif id:
            notes.setdefault(id, []).extend(document.convert(token))
    return notes


@dataclass(slots=True)
class _WordDocument:
    """Turns the tokens of WordprocessingML into those of an HTML page."""

    styles: Mapping[str, Style]
    numbered: Mapping[tuple[str, str], bool]
    notes: Mapping[str, Mapping[str, list[Tag | str]]]  # by kind and id
    _open: list[Paragraph] = field(default_factory=list)  # one in another is a text box
    _hidden_in: str = ""
    _n_hidden: int = 0
    _in_text: bool = False
    _in_run: bool = False
    _run_hidden: bool = False
    _n_tables: int = 0
    _waiting: list[Tag | str] = field(default_factory=list)  # notes, up to the end of the paragraph or table
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)  # of the items of numbered lists
    _n_notes: int = 0

    def tokens(self, stream: Iterator[Tag | str]) -> Iterator[Tag | str]:
        for token in stream:
            yield from self.convert(token)
        yield from self._waiting

    def convert(self, token: Tag | str) -> Iterator[Tag | str]:
        if isinstance(token, str):
            if self._in_text and not self._hidden_in and not self._run_hidden:
                yield from self._say(token)
        elif self._hidden_in:
            self._n_hidden += (-1 if token.closes else 1) if token.name == self._hidden_in else 0
            self._hidden_in = self._hidden_in if self._n_hidden else ""
        elif token.closes:
            yield from self._end(token.name)
        else:
            yield from self._start(token)

    def _start(self, tag: Tag) -> Iterator[Tag | str]:
        value = tag.attributes.get("val", "")
        match tag.name:
            case name if name in _HIDDEN:
                self._hidden_in, self._n_hidden = name, 1
            case "p":
                self._open.append(Paragraph())
            case "pStyle" if self._open:
                self._open[-1].style = value
            case "outlineLvl" if self._open:
                self._open[-1].level = _outline_level(value)
            case "ilvl" if self._open:
                self._open[-1].list_level = value
            case "numId" if self._open:
                self._open[-1].list_id = value
            case "r":
                self._in_run, self._run_hidden = True, False
            case "vanish" if self._in_run:
                self._run_hidden = value not in OFF
            case "t":
                self._in_text = True
            case "tab" | "ptab" if self._in_run:
                yield from self._say(" ")
            case "br" | "cr":
                yield from self._say(Tag("br"))
            case "noBreakHyphen":
                yield from self._say("-")
            case "docPr" if alt := tag.attributes.get("descr", ""):
                yield from self._say(Tag("img", {"alt": alt}))
            case "footnoteReference" | "endnoteReference" if not self._run_hidden:
                self._refer(tag.name.removesuffix("Reference"), tag.attributes.get("id", ""))
            case "tbl" | "tr" | "tc":
                self._n_tables += tag.name == "tbl"
                yield Tag({"tbl": "table", "tc": "td"}.get(tag.name, "tr"))

    def _end(self, name: str) -> Iterator[Tag | str]:
        match name:
            case "p" if self._open:
                yield from self._open.pop().end()
            case "r":
                self._in_run = self._run_hidden = False
            case "t":
                self._in_text = False
            case "tbl" | "tr" | "tc":
                self._n_tables -= name == "tbl"
                yield Tag({"tbl": "table", "tc": "td"}.get(name, "tr"), closes=True)
        if name in ("p", "tbl") and not self._open and not self._n_tables:
            yield from self._waiting
            self._waiting.clear()

    def _say(self, content: Tag | str) -> Iterator[Tag | str]:
        if self._open:
            paragraph = self._open[-1]
            if not paragraph.is_open:
                self._resolve(paragraph)
            yield from paragraph.say(content)

    def _resolve(self, paragraph: Paragraph) -> None:
        """Look up the style of a paragraph, and those that it is based on."""
        id, seen = paragraph.style, set[str]()
        while (style := self.styles.get(id)) and id not in seen:
            seen.add(id)
            paragraph.level = paragraph.level or style.level or (1 if style.name == "title" else 0)
            paragraph.list_id = paragraph.list_id or style.list_id
            if style.name.startswith("toc"):
                paragraph.part = "doc-toc"
            id = style.base
        key = (paragraph.list_id, paragraph.list_level)
        if not paragraph.level and key in self.numbered:
            self._counts[key] = self._counts.get(key, 0) + 1
            for other in [other for other in self._counts if other[0] == key[0] and other[1] > key[1]]:
                del self._counts[other]
            paragraph.bullet = f"{self._counts[key]}. " if self.numbered[key] else "• "

    def _refer(self, kind: str, id: str) -> None:
        """Keep a note for the end of the paragraph that refers to it."""
        if note := self.notes.get(kind, {}).get(id):
            self._n_notes += 1
            self._waiting += (begin_note(str(self._n_notes)), *note, END_NOTE)
