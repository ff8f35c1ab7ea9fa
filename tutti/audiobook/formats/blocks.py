"""The visible text of an HTML page as blocks: paragraphs, list items, table rows, headings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tutti.audiobook.book import check_number
from tutti.audiobook.formats.chapters import MAX_HEADINGS
from tutti.audiobook.formats.parts import COVER_TEXT, OF_TYPE, Skipping
from tutti.audiobook.formats.tokens import Tag, tokens

MAX_BLOCKS = 200_000  # of one page; a long novel has about 20,000


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list item or table row."""

    text: str
    level: int = 0  # of a heading, 1 to 6; 0 = text
    ids: tuple[str, ...] = ()  # anchors that point here
    compact: bool = False  # list item or table row: no blank line between two of them
    parts: tuple[str, ...] = ()  # of the book, in which it is: "copyright", "note"


def parse_blocks(markup: str, note: str = "Note") -> tuple[str, list[Block]]:
    """The title of a page, and its visible blocks in order. `note`: the word before a note."""
    return page_blocks(tokens(markup), note)


def page_blocks(stream: Iterable[Tag | str], note: str = "Note") -> tuple[str, list[Block]]:
    """The same of the tokens of a page."""
    page = _PageParser(note)
    for token in stream:
        if isinstance(token, str):
            page.text(token)
        elif token.closes:
            page.end(token.name)
        else:
            page.start(token)
    page.end_block()
    return page.title, page.blocks


def without_skipped(blocks: Iterable[Block], skipping: Skipping) -> list[Block]:
    """Empty the blocks that are left out of the book; their anchors stay."""
    return [replace(block, text="", level=0) if skipping.skips(block.text, block.parts) else block for block in blocks]


def join_blocks(blocks: list[Block]) -> str:
    """Join blocks into the text of a chapter."""
    spoken = [block for block in blocks if block.text]
    return "".join(
        ("" if n == 0 else "\n" if block.compact and spoken[n - 1].compact else "\n\n") + block.text
        for n, block in enumerate(spoken)
    )


TAIL = 100  # characters of a cell in which the end of a sentence is looked for


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BREAKS = _names(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu ol optgroup option p pre section "
    "select summary table tbody tfoot thead tr ul"
)
_HIDDEN = _names(
    "script style template head noscript noframes noembed iframe object video audio canvas svg datalist rt rp nav "
    "textarea"
)
_IMPLIED_END = _names("p li dt dd td th tr option rt rp")  # HTML closes an open one when the next begins
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NOTE_TYPES = _names("noteref pagebreak doc-noteref doc-pagebreak doc-backlink backlink")
_NOTE_REFERENCE = re.compile(r"\W{0,2}(?:\d{1,4}|[*†‡§¶↩↑^]{1,2})\W{0,2}")
_NOTE_NUMBER = re.compile(r"[\[(]?(?P<number>\d{1,4}|[*†‡§]{1,3})(?:[\])][.:]?|[.:])\s+(?=\S)|[.:)\]]+\s+")
_FILE_NAME = re.compile(r"\S+\.(?:jpe?g|png|gif|svg|webp|bmp|tiff?)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?…:;,。！？]\W*\Z")
# Marks and SSML on a page are content, not commands: they are changed so that they are spoken.
_MARK = re.compile(r"\[(?=/?(?:pause|rate|pitch|volume|emphasis|voice|lang|emotion)\s*[:\]])", re.IGNORECASE)
_PHONEMES = re.compile(r"\]\((?=/[^/()\n]{1,200}/\))")
_SSML = re.compile(r"<(?=/?(?:speak|voice)\b)", re.IGNORECASE)


@dataclass(slots=True)
class _List:
    numbered: bool
    n: int = 0


@dataclass(slots=True)
class _OpenPart:
    """An open element that is a part of the book."""

    element: str
    name: str
    n_open: int = 1  # elements of that name in each other


@dataclass(slots=True)
class _PageParser:
    """Collects blocks, and keeps track of the open elements that matter."""

    note: str = "Note"
    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _ids: list[str] = field(default_factory=list)
    _level: int = 0
    _n_headings: int = 0
    _bullet: str = ""
    _lists: list[_List] = field(default_factory=list)
    _n_pre: int = 0
    _hidden_in: str = ""  # the element that hides its content
    _n_hidden: int = 0  # how many elements of that name are open
    _in_title: bool = False
    _in_row: bool = False
    _link: int | None = None  # index in _pieces where the text of an open link begins
    _parts: list[_OpenPart] = field(default_factory=list)
    _begins_note: bool = False  # the next block is announced
    _note_number: str = ""  # of the note that begins, from its link back to the text

    def text(self, text: str) -> None:
        if self._in_title:
            self.title = self.title or _SPACE.sub(" ", text).strip()
        elif not self._hidden_in:
            self._pieces.append(text if self._n_pre else _SPACE.sub(" ", text))

    def start(self, tag: Tag) -> None:
        name = tag.name
        self._in_title = name == "title" and (self._hidden_in in ("", "head"))
        if self._hidden_in:
            self._start_hidden(tag)
            return
        if name in _BREAKS:
            self.end_block()
        self._start_part(tag)
        if anchor := tag.attributes.get("id") or (tag.attributes.get("name") if name == "a" else None):
            self._ids.append(anchor)
        if _hidden(tag):
            if not tag.empty:
                self._hidden_in, self._n_hidden = name, 1
            return
        match name:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._level = int(name[1])
            case "br":
                self._pieces.append("\n")
            case "img":
                self._image(_SPACE.sub(" ", tag.attributes.get("alt", "")).strip())
            case "pre":
                self._n_pre += not tag.empty
            case "ul" | "menu" | "ol":
                first = tag.attributes.get("start", "1")
                self._lists.append(_List(name == "ol", int(first) - 1 if re.fullmatch(r"-?\d{1,6}", first) else 0))
            case "li":
                self._bullet = tag.attributes.get("data-bullet") or self._next_bullet()
                self._begins_note = self._begins_note or "notes" in self._part_names()
            case "tr":
                self._in_row, self._bullet = True, "• "
            case "td" | "th":
                self._cell()
            case "a" if "#" in tag.attributes.get("href", ""):
                self._link = len(self._pieces)

    def end(self, name: str) -> None:
        if name == "title":
            self._in_title = False
        if self._hidden_in:
            if name == self._hidden_in or (self._hidden_in == "head" and name == "html"):
                self._n_hidden -= 1
                if self._n_hidden == 0:
                    self._hidden_in = ""
            return
        if name in _BREAKS:
            self.end_block()
        self._end_part(name)
        match name:
            case "pre":
                self._n_pre = max(0, self._n_pre - 1)
            case "ul" | "ol" | "menu" if self._lists:
                self._lists.pop()
            case "tr" | "table":
                self._in_row = False
            case "a":
                self._end_link()

    def end_block(self) -> None:
        """Turn the collected text into a block, unless it is empty."""
        lines = "".join(self._pieces).split("\n")
        text = "\n".join(line.strip() for line in lines) if not self._n_pre else "\n".join(lines)
        text = re.sub(r"\n{3,}", "\n\n", text.strip("\n ,"))
        self._pieces, self._link = [], None
        if text.strip():
            text = _SSML.sub("‹", _PHONEMES.sub("] (", _MARK.sub("(", text)))
            if self._in_row and not _SENTENCE_END.search(text):
                text += "."
            compact = bool(self._bullet)
            text = self._announced(self._bullet + text) if self._begins_note else self._bullet + text
            self.blocks.append(Block(text, self._level, tuple(self._ids), compact, self._part_names()))
            self._ids, self._bullet = [], ""
            self._n_headings += self._level > 0
            check_number(self._n_headings, MAX_HEADINGS, "headings")
            check_number(len(self.blocks), MAX_BLOCKS, "paragraphs", "a page of the book")
        self._level = 0

    def _part_names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self._parts)

    def _start_part(self, tag: Tag) -> None:
        """Note that a part of the book begins, by what its author calls it."""
        if self._parts and self._parts[-1].element == tag.name:
            if tag.name in _IMPLIED_END:
                self._leave_part()
            elif not tag.empty:
                self._parts[-1].n_open += 1
        name = next((OF_TYPE[kind] for kind in _kinds(tag) if kind in OF_TYPE), "")
        if name and not tag.empty:
            self.end_block()
            self._parts.append(_OpenPart(tag.name, name))
            self._begins_note, self._note_number = name == "note", tag.attributes.get("data-number", "")

    def _end_part(self, element: str) -> None:
        if self._parts and self._parts[-1].element == element:
            self._parts[-1].n_open -= 1
            if not self._parts[-1].n_open:
                self._leave_part()

    def _leave_part(self) -> None:
        self.end_block()
        self._parts.pop()
        self._begins_note = False

    def _announced(self, text: str) -> str:
        """The first words of a note with the word that says so, and its number."""
        bare = text.removeprefix("• ")
        found = _NOTE_NUMBER.match(bare)
        number = self._note_number or (found["number"] if found else "") or ""
        self._begins_note, self._note_number = False, ""
        return f"{self.note} {number}".rstrip(" *†‡§") + ". " + bare[found.end() if found else 0 :]

    def _start_hidden(self, tag: Tag) -> None:
        if tag.name == "body" and self._hidden_in == "head":  # a head that was not closed
            self._hidden_in = ""
            self.start(tag)
        elif tag.name == self._hidden_in and not tag.empty and tag.name not in _IMPLIED_END:
            self._n_hidden += 1
        elif tag.name == self._hidden_in and tag.name in _IMPLIED_END:
            self._hidden_in = ""
            self.start(tag)

    def _image(self, alt: str) -> None:
        """Read the description: a drop capital as part of its word, anything else as a block of its own."""
        if not any(map(str.isalnum, alt)) or _FILE_NAME.fullmatch(alt):
            return
        if len(alt) <= 2:
            self._pieces.append(alt)
            return
        if COVER_TEXT.fullmatch(alt.rstrip(".")):
            self.end_block()
            self.blocks.append(Block(alt, parts=("cover",)))
            return
        if self._level:
            self._pieces.append(alt)
            return
        self.end_block()
        self._pieces.append(alt if _SENTENCE_END.search(alt) else f"{alt}.")
        self.end_block()

    def _cell(self) -> None:
        """Separate the cells of a row with commas."""
        while self._pieces and not (last := self._pieces[-1].rstrip()):
            self._pieces.pop()
        if self._pieces:
            # Only the end is looked at: all that is before would take quadratic time.
            self._pieces[-1:] = [last if _SENTENCE_END.search(last[-TAIL:]) else f"{last},", " "]

    def _next_bullet(self) -> str:
        if not self._lists or not self._lists[-1].numbered:
            return "• "
        self._lists[-1].n += 1
        return f"{self._lists[-1].n}. "

    def _end_link(self) -> None:
        """Drop a link whose text is a number or a sign: it refers to a note."""
        reference = "" if self._link is None else "".join(self._pieces[self._link :]).strip()
        if _NOTE_REFERENCE.fullmatch(reference):
            if self._begins_note and not "".join(self._pieces[: self._link]).strip():
                self._note_number = "".join(filter(str.isdigit, reference))
            del self._pieces[self._link :]
        self._link = None


def _kinds(tag: Tag) -> list[str]:
    return f"{tag.attributes.get('epub:type', '')} {tag.attributes.get('role', '')}".split()


def _hidden(tag: Tag) -> bool:
    """Whether a browser would hide this element, or a listener would not want it."""
    attributes = tag.attributes
    return (
        tag.name in _HIDDEN
        or "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))
        or not _NOTE_TYPES.isdisjoint(_kinds(tag))
    )
