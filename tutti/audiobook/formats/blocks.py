"""What a reader sees of a page, in blocks: paragraphs, list items, table rows, headings with their level."""

import re
from dataclasses import dataclass, field

from tutti.audiobook.formats.tokens import Tag, tokens


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text that stands by itself."""

    text: str
    level: int = 0  # of a heading, 1 to 6; 0 = text
    ids: tuple[str, ...] = ()  # names of the places that begin here
    close: bool = False  # follows the block before it without a blank line: list items, table rows


def blocks(markup: str) -> tuple[str, list[Block]]:
    """The title of a page and its visible blocks in order."""
    page = _Page()
    for token in tokens(markup):
        if isinstance(token, str):
            page.text(token)
        elif token.closes:
            page.end(token.name)
        else:
            page.start(token)
    page.end_block()
    return page.title, page.blocks


def joined(made: list[Block]) -> str:
    """The blocks as the text of a chapter."""
    return "".join(
        ("" if n == 0 else "\n" if block.close and made[n - 1].close else "\n\n") + block.text
        for n, block in enumerate(made)
        if block.text
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BREAKS = _names(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu ol optgroup option p pre section "
    "select summary table tbody tfoot thead tr ul"
)
_UNSEEN = _names(
    "script style template head noscript noframes noembed iframe object video audio canvas svg datalist rt rp nav "
    "textarea"
)
_IMPLIED_END = _names("p li dt dd td th tr option rt rp")  # another of these ends one that is open
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NOTE_TYPES = _names("noteref pagebreak doc-noteref doc-pagebreak doc-backlink backlink")
_NOTE_MARK = re.compile(r"\W{0,2}(?:\d{1,4}|[*†‡§¶↩↑^]{1,2})\W{0,2}")
_FILE_NAME = re.compile(r"\S+\.(?:jpe?g|png|gif|svg|webp|bmp|tiff?)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_ENDED = re.compile(r"[.!?…:;,。！？]\W*\Z")
# A page that writes about marks does not give any: what looks like one is said, and not obeyed.
_MARK = re.compile(r"\[(?=/?(?:pause|rate|pitch|voice|lang)\s*[:\]])", re.IGNORECASE)
_GIVEN = re.compile(r"\]\((?=/[^/()\n]{1,200}/\))")
_SSML = re.compile(r"<(?=/?(?:speak|voice)\b)", re.IGNORECASE)


@dataclass(slots=True)
class _List:
    numbered: bool
    n: int = 0


@dataclass(slots=True)
class _Page:
    """What has been seen so far, and the elements that are open as far as they matter."""

    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _ids: list[str] = field(default_factory=list)
    _level: int = 0
    _bullet: str = ""
    _lists: list[_List] = field(default_factory=list)
    _n_pre: int = 0
    _unseen: str = ""  # the element that hides its content, and how many of its name are open inside it
    _n_unseen: int = 0
    _in_title: bool = False
    _in_row: bool = False
    _link: int | None = None  # where the text of a link to a note would begin

    def text(self, text: str) -> None:
        if self._in_title:
            self.title = self.title or _SPACE.sub(" ", text).strip()
        elif not self._unseen:
            self._pieces.append(text if self._n_pre else _SPACE.sub(" ", text))

    def start(self, tag: Tag) -> None:
        name = tag.name
        self._in_title = name == "title" and (self._unseen in ("", "head"))
        if self._unseen:
            self._inside_unseen(tag)
            return
        if name in _BREAKS:
            self.end_block()
        if place := tag.attributes.get("id") or (tag.attributes.get("name") if name == "a" else None):
            self._ids.append(place)
        if _hidden(tag):
            if not tag.empty:
                self._unseen, self._n_unseen = name, 1
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
                self._bullet = self._next_bullet()
            case "tr":
                self._in_row, self._bullet = True, "• "
            case "td" | "th":
                self._cell()
            case "a" if "#" in tag.attributes.get("href", ""):
                self._link = len(self._pieces)

    def end(self, name: str) -> None:
        if name == "title":
            self._in_title = False
        if self._unseen:
            if name == self._unseen or (self._unseen == "head" and name == "html"):
                self._n_unseen -= 1
                if self._n_unseen == 0:
                    self._unseen = ""
            return
        if name in _BREAKS:
            self.end_block()
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
        """What was gathered becomes a block, if there is anything to see in it."""
        lines = "".join(self._pieces).split("\n")
        text = "\n".join(line.strip() for line in lines) if not self._n_pre else "\n".join(lines)
        text = re.sub(r"\n{3,}", "\n\n", text.strip("\n ,"))
        self._pieces, self._link = [], None
        if text.strip():
            text = _SSML.sub("‹", _GIVEN.sub("] (", _MARK.sub("(", text)))
            if self._in_row and not _ENDED.search(text):
                text += "."
            listed = bool(self._bullet)
            self.blocks.append(Block(self._bullet + text, self._level, tuple(self._ids), listed))
            self._ids, self._bullet = [], ""
        self._level = 0

    def _inside_unseen(self, tag: Tag) -> None:
        if tag.name == "body" and self._unseen == "head":  # a head that nobody closed
            self._unseen = ""
            self.start(tag)
        elif tag.name == self._unseen and not tag.empty and tag.name not in _IMPLIED_END:
            self._n_unseen += 1
        elif tag.name == self._unseen and tag.name in _IMPLIED_END:
            self._unseen = ""
            self.start(tag)

    def _image(self, alt: str) -> None:
        """Its description: a drop capital belongs to its word, all else stands by itself."""
        if not any(map(str.isalnum, alt)) or _FILE_NAME.fullmatch(alt):
            return
        if len(alt) <= 2:
            self._pieces.append(alt)
            return
        if self._level:
            self._pieces.append(alt)
            return
        self.end_block()
        self._pieces.append(alt if _ENDED.search(alt) else f"{alt}.")
        self.end_block()

    def _cell(self) -> None:
        """Cells of a row are told apart by commas."""
        so_far = "".join(self._pieces).rstrip()
        if so_far:
            self._pieces = [so_far if _ENDED.search(so_far) else f"{so_far},", " "]

    def _next_bullet(self) -> str:
        if not self._lists or not self._lists[-1].numbered:
            return "• "
        self._lists[-1].n += 1
        return f"{self._lists[-1].n}. "

    def _end_link(self) -> None:
        """A link whose text is a number or a sign leads to a note, and is not read."""
        if self._link is not None:
            said = "".join(self._pieces[self._link :])
            if _NOTE_MARK.fullmatch(said.strip()):
                del self._pieces[self._link :]
        self._link = None


def _hidden(tag: Tag) -> bool:
    """Whether a reader would not see what is inside."""
    about = tag.attributes
    kinds = f"{about.get('epub:type', '')} {about.get('role', '')}".split()
    return (
        tag.name in _UNSEEN
        or "hidden" in about
        or about.get("aria-hidden", "").lower() == "true"
        or bool(_HIDDEN_STYLE.search(about.get("style", "")))
        or not _NOTE_TYPES.isdisjoint(kinds)
    )
