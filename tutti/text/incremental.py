"""Text that arrives while it is being written: what later text cannot change is released, to be spoken at once."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from tutti.errors import InvalidInput
from tutti.text.chunker import PARAGRAPH_PAUSE_S
from tutti.text.clean import clean
from tutti.text.marks import carry, check
from tutti.text.split import LONGEST_SENTENCE, LONGEST_WORD, sentences
from tutti.text.ssml import is_ssml

Delta = str | None  # a piece of text; none: say all that has come, the author will be a while
Text = str | AsyncIterable[Delta]
FIRST_WORDS = 5  # a clause of so many is worth an early beginning
FIRST_WIDE = 10  # the same in characters, where words are not parted
MOST_WAITING = 2 * LONGEST_SENTENCE
WINDOW = 16_000  # characters of a whole text that are looked at together
GROWTH = 32  # after a look in vain the text grows by this part before the next: many small pieces cost no more than few


@dataclass(frozen=True, slots=True)
class Segment:
    """Text that can be spoken by itself, its place in the whole, and the pause that parts it from the one before."""

    text: str
    at: int = 0
    pause_s: float = 0.0
    marks: str = ""  # of earlier stretches, still in force: [rate:1.2]
    more: bool = False  # of the same text follows

    @property
    def said(self) -> str:
        """What is to be read; its places are those of the whole, less `shift`."""
        return self.marks + self.text

    @property
    def shift(self) -> int:
        return self.at - len(self.marks)


class Intake:
    """Takes pieces of any size in, gives stretches out; joined, they are the text. Pure: told the time.

    No word, number, abbreviation, address or mark is parted: a sentence leaves once the word after it is whole, the
    very first clause earlier. A flush lets everything go; so does, up to the last whole word, a pause in the text.
    """

    def __init__(self, pause_s: float | None = None) -> None:
        self.n_characters = 0
        self._pause_s = pause_s
        self._waiting = ""
        self._seen = 0  # so far no word ended that was not looked at
        self._look_from = 0  # a shorter text has been looked at in vain
        self._flushed = 0  # so far everything may go
        self._came_s: float | None = None  # since when the text pauses
        self._gap_s = 0.0
        self._marks: dict[str, str] = {}

    def add(self, delta: str, now: float = 0.0) -> None:
        whole = _paired(self._waiting[-1:] + delta) if "\ud800" <= self._waiting[-1:] <= "\udbff" else None
        self._waiting = self._waiting + delta if whole is None else self._waiting[:-1] + whole
        self.n_characters += len(delta) if whole is None else len(whole) - 1
        if delta:
            self._came_s = now

    def flush(self) -> None:
        """All that has come may be said, wherever it stops."""
        self._flushed = len(self._waiting)

    @property
    def wake_s(self) -> float | None:
        """When the text will have paused for long enough."""
        return None if self._pause_s is None or self._came_s is None else self._came_s + self._pause_s

    def take(self, now: float = 0.0) -> Segment | None:
        """Everything that can be said now, or none."""
        end = self._flushed or self._safe_end()
        if self.wake_s is not None and now >= self.wake_s:
            end = max(end, _whole_words(self._waiting))
            self._came_s = None
        if end == 0:
            return None
        text, self._waiting = self._waiting[:end], self._waiting[end:]
        at = self.n_characters - len(self._waiting) - len(text)
        stretch = Segment(text, at, self._gap_s if text.strip() else 0.0, "".join(self._marks.values()))
        if text.strip():
            self._gap_s = PARAGRAPH_PAUSE_S if _PARAGRAPH_END.search(text) else 0.0
        carry(self._marks, text)
        self._seen = self._look_from = self._flushed = 0
        return stretch

    def _safe_end(self) -> int:
        text, n = self._waiting, len(self._waiting)
        if n < self._look_from or _DOCUMENT.match(text):
            return 0
        # A border shows where a word ends; nothing else is worth another look.
        ended = _WORD_END.search(text, self._seen)
        self._seen = n - 1 if ended else n
        if not ended:
            return 0
        end = next(_sentence_ends(text), 0) if _BORDER.search(text) else 0
        if end == 0 and self.n_characters == n:
            end = _first_clause(text)
        if end == 0 and n > MOST_WAITING:
            end = _whole_words(text, open_too=True)
        self._look_from = n + n // GROWTH
        return end


def parted(text: str) -> Iterator[Segment]:
    """A whole text in stretches, each as long as a few pages; joined, they are the text. A wrong mark raises at once.

    Cut between paragraphs where there are any, else between sentences, else between words.
    """
    if len(text) <= WINDOW or is_ssml(text):
        yield Segment(text)
        return
    check(text)
    marks: dict[str, str] = {}
    at = 0
    while at < len(text):
        end = at + _window(text[at : at + WINDOW]) if len(text) - at > WINDOW else len(text)
        yield Segment(text[at:end], at, marks="".join(marks.values()), more=_WORD.search(text, end) is not None)
        carry(marks, text[at:end])
        at = end


def _window(text: str) -> int:
    """How much of a window may be read by itself."""
    if text.isspace():
        return len(text)
    # Not before a mark without a word between: a pause takes the place of the one between paragraphs.
    for match in reversed(list(_BLANK_LINE.finditer(text, len(text) // 2))):
        if _WORD_BEFORE_MARK.match(text, match.end()) and _safe(text, match.end()):
            return match.end()
    end = 0
    if _MAY_END.search(text):
        ends = (end for end in _sentence_ends(text) if _WORD_BEFORE_MARK.match(text, end))
        end = next(ends, 0) or _whole_words(text)
    if end == 0:
        open_ = _OPEN.search(text, max(0, len(text) - 2000))
        end = open_.start() if open_ else len(text.rstrip("<[&"))
    return end or _whole_words(text, open_too=True) or len(text)


async def segments(text: Text, most: int, pause_s: float | None = None) -> AsyncGenerator[Segment]:
    """The text in stretches, each as soon as it can be spoken; a text that is whole is one stretch."""
    if isinstance(text, str):
        yield Segment(text)
        return
    intake = Intake(pause_s)
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def read() -> None:
        try:
            async for delta in text:
                if delta is None:
                    intake.flush()
                else:
                    intake.add(delta, loop.time())
                if intake.n_characters > most:
                    raise InvalidInput(f"the text has over {most} characters; no more fit in one go", param="input")
                changed.set()
        finally:
            changed.set()
            if isinstance(text, AsyncGenerator):
                await text.aclose()  # an author who writes too much is told so, and stops

    reading = asyncio.create_task(read())
    try:
        while True:
            if reading.done():
                reading.result()
                intake.flush()
            if stretch := intake.take(loop.time()):
                yield stretch
            elif reading.done():
                return
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(intake.wake_s):
                        await changed.wait()
                changed.clear()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


_DOCUMENT = re.compile(r"\ufeff?\s*<(?:speak|\?xml|!--)")  # SSML is read as a whole
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)\s*")
_WORD = re.compile(r"\w")
_WORD_BEFORE_MARK = re.compile(r"[^\w\[]{0,200}\w")
_MAY_END = re.compile(r"\s|[。！？｡।॥]")  # without these no sentence and no word ends
_STOPS = ".!?…‽。！？｡।॥"
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*\Z|\r\n[ \t]*\r\n\s*\Z")
_BORDER = re.compile(rf"[{_STOPS}][^\w\s]*\s|[。！？｡।॥]|\n\s*\n|\n[ \t]*(?:[-*+•]|\d{{1,3}}[.)])[ \t]|<")  # or none
_WORD_END = re.compile(rf"[\s{_STOPS}、，；：]")
# What may begin a stretch in the middle of a line, where a sign would turn into one that begins a line.
_PLAIN_START = re.compile(r"(?:\[[^\[\]\n]{0,200}\]\s*+)*+[*_]{0,3}[\"'“‘(¿¡«「『]*[*_]{0,3}[^\W_]")
_WHOLE_LINE = re.compile(r"[ \t]*[`~|#]")  # fences, table rows and headings are read to the end of their line
_OPEN = re.compile(
    r"\[[^\[\]\n]{0,300}\Z"  # a mark
    r"|\]\([^()\n]{0,1600}(?:\([^()\n]{0,200}\)?[^()\n]{0,200})?\Z"  # the target of a link, the phonemes of a word
    r"|<[/!?A-Za-z][^<>]{0,400}\Z"  # a tag
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")
_CLAUSE = re.compile(r"[^\W\d_]{2,}[\"'”’)]?[,;:—]\s+(?=([^\W\d_]+)\s)|(?<=[^\W\d_])[，、；：](?=[^\W\d_])")


def _sentence_ends(text: str) -> Iterator[int]:
    """Where later text changes nothing on either side, the last such place first."""
    spans = [sentence.spoken.span() for sentence in sentences(clean(text).spoken)]
    for (_, end), (start, _) in reversed(list(pairwise(spans))):
        cut = _between(text, end, start)
        if cut and _ended(text, end, cut) and _next_word_is_whole(text, cut) and _safe(text, cut):
            yield cut


def _between(text: str, end: int, start: int) -> int:
    """The place between two sentences before the signs that belong to the second; 0 where there is none."""
    gap = text[end:start]
    if (newline := gap.rfind("\n")) >= 0:
        return end + newline + 1
    spaces = [i for i, char in enumerate(gap) if char.isspace()]
    return end + spaces[-1] + 1 if spaces else start if not gap else 0


def _ended(text: str, end: int, cut: int) -> bool:
    """A stop, a paragraph's end, a list's next line; a mere line break may prove to be the wrapping of a long line."""
    if text[:end].rstrip("\"'”’)]»」』】）*_")[-1:] in tuple(_STOPS):
        return True
    n_breaks = text.count("\n", end, cut)
    return n_breaks > 1 or (n_breaks == 1 and _ITEM.match(text, cut) is not None)


def _next_word_is_whole(text: str, cut: int) -> bool:
    """Whether a full stop ended a sentence shows in the whole word that follows."""
    if text[cut - 1] in _STOPS:  # no word needed
        return cut < len(text)
    rest = text[cut:].lstrip()
    return any(map(str.isspace, rest)) or len(rest) > LONGEST_WORD


def _safe(text: str, cut: int) -> bool:
    """Whether each side, read alone, is read as in the whole."""
    line = text.rfind("\n", 0, cut) + 1
    at_line_start = line == cut
    if not at_line_start and (not _PLAIN_START.match(text, cut) or _WHOLE_LINE.match(text, line)):
        return False
    if "|" in text[:cut] and not _PARAGRAPH_END.search(text[:cut]):  # a table's line may follow its head
        return False
    return not _OPEN.search(text, max(0, cut - 2000), cut)


def _first_clause(text: str) -> int:
    """A clause of plain small words before another: no date, number or name reaches across."""
    for match in _CLAUSE.finditer(text):
        cut, wide = match.end(), match[1] is None
        enough = cut > FIRST_WIDE if wide else len(text[:cut].split()) >= FIRST_WORDS
        plain = wide or (match[1].islower() and text[match.start()].islower())
        if enough and plain and _safe(text, cut):
            return cut
    return 0


def _whole_words(text: str, *, open_too: bool = False) -> int:
    """All words but one that may go on; a mark that is open may not be parted, save where it never ends."""
    ends = text[-1:].isspace() or (text.rstrip("\"'”’)")[-1:] in tuple(".!?…") and not text[-2:-1].isdigit())
    end = len(text) if ends else max((match.end() for match in re.finditer(r"\s", text)), default=0)
    return end if open_too or _safe(text + "a", end) else 0


def _paired(text: str) -> str:
    """The two halves of a character, come one after the other, as one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
