"""Split text into segments while it is being written: what later text cannot change is released at once."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from tutti.errors import InvalidInput
from tutti.tasks import cancel_all
from tutti.text import latex
from tutti.text.clean import clean
from tutti.text.code_blocks import open_block, update_code_mark
from tutti.text.marks import MAX_MARK, check_marks, update_marks
from tutti.text.options import DEFAULT_PAUSES, Pauses
from tutti.text.split import MAX_SENTENCE, MAX_WORD, is_silent, pause_after, sentences
from tutti.text.ssml import is_ssml

Delta = str | None  # a piece of text; None flushes: speak everything so far
Text = str | AsyncIterable[Delta]
MIN_CLAUSE_WORDS = 5  # words a first clause needs to be released before its sentence ends; fewer start sooner
MIN_CLAUSE_CHARACTERS = 10  # the same in characters, for scripts without spaces
MAX_BUFFERED = 2 * MAX_SENTENCE  # characters; a longer buffer is cut between words
CHECKED_AT_ONCE = 50_000  # characters whose marks are checked without a break; more delays other texts
WINDOW = 8_000  # characters of a complete text that are processed together; more makes other texts wait for longer
RESCAN_GROWTH = 32  # after a failed scan, scan again when the buffer has grown by 1/32: amortised linear time


@dataclass(frozen=True, slots=True)
class Segment:
    """Text that can be spoken by itself, its place in the whole text, and the pause before it."""

    text: str
    at: int = 0  # where it starts in the whole text
    pause_s: float = 0.0
    marks: str = ""  # of earlier segments, still in force: [rate:1.2]
    has_more: bool = False  # more words of the same text follow

    @property
    def marked_text(self) -> str:
        """The text with the marks in force in front of it."""
        return self.marks + self.text

    @property
    def offset(self) -> int:
        """What to add to a position in `marked_text` for the position in the whole text."""
        return self.at - len(self.marks)


class Segmenter:
    """Take deltas of any size, return segments; joined, they are the text. Pure: the time is passed in.

    No word, number, abbreviation, address or mark is cut: a sentence is released once the word after it is complete,
    the very first clause earlier. A flush releases everything; `pause_s` without a delta, all complete words.
    """

    def __init__(self, pause_s: float | None = None, pauses: Pauses = DEFAULT_PAUSES) -> None:
        self.n_characters = 0
        self._pause_s = pause_s
        self._pauses = pauses
        self._buffer = ""
        self._scanned = 0  # up to here every word end was scanned
        self._scan_from = 0  # a scan of a shorter buffer would fail
        # Up to here the buffer is looked at: a regular expression over a million characters holds all threads, and a
        # hundred texts that arrive together are looked at in the same turn of the event loop.
        self._visible = MAX_BUFFERED
        self._flush_end = 0  # end of what a flush releases
        self._last_delta_s: float | None = None  # when the last delta arrived; None after its pause was used
        self._next_pause_s = 0.0
        self._marks: dict[str, str] = {}

    def add(self, delta: str, now: float = 0.0) -> None:
        """Append text that arrived at `now`."""
        n_before = len(self._buffer)
        if _HALF.search(last := self._buffer[-1:] + delta):
            self._buffer = self._buffer[:-1] + _join_surrogates(last)
        else:
            self._buffer += delta
        self.n_characters += len(self._buffer) - n_before
        if delta:
            self._last_delta_s = now

    @property
    def n_buffered(self) -> int:
        """Characters that are not released yet."""
        return len(self._buffer)

    def flush(self) -> None:
        """Release everything that has arrived, wherever it stops."""
        self._flush_end = len(self._buffer)

    @property
    def wake_s(self) -> float | None:
        """When a pause in the text releases its complete words."""
        return None if self._pause_s is None or self._last_delta_s is None else self._last_delta_s + self._pause_s

    def take(self, now: float = 0.0) -> Segment | None:
        """Return everything that can be spoken now, or None."""
        end = self._flush_end or self._safe_end()
        if self._flush_end > WINDOW and not _SSML_START.match(self._buffer):
            end = _window_end(self._buffer[:WINDOW])  # the rest is released by the next calls
        while end == 0 and self._visible < len(self._buffer):
            self._visible *= 2
            end = self._safe_end()
        is_seen_whole = self._visible >= len(self._buffer)
        if is_seen_whole and self.wake_s is not None and now >= self.wake_s:
            end = max(end, _complete_words(self._buffer))
            self._last_delta_s = None
        if end == 0:
            return None
        text, self._buffer = self._buffer[:end], self._buffer[end:]
        at = self.n_characters - len(self._buffer) - len(text)
        segment = Segment(text, at, self._next_pause_s if text.strip() else 0.0, "".join(self._marks.values()))
        if text.strip():
            self._next_pause_s = pause_after(text, self._pauses)
        update_code_mark(self._marks, text)
        update_marks(self._marks, text)
        self._scanned = self._scan_from = 0
        self._visible = MAX_BUFFERED
        self._flush_end = max(0, self._flush_end - end)
        return segment

    def _safe_end(self) -> int:
        text = self._buffer[: self._visible]
        n = len(text)
        if n < self._scan_from or _SSML_START.match(text):
            return 0
        # Only a new word end can reveal the end of a sentence or clause.
        word_end = _WORD_END.search(text, self._scanned)
        self._scanned = n - 1 if word_end else n
        if not word_end:
            return 0
        end = next(_sentence_ends(text), 0) if _SENTENCE_BREAK.search(text) else 0
        if end == 0 and self.n_characters == len(self._buffer):
            end = _first_clause(text)
        if end == 0 and n > MAX_BUFFERED:
            block = open_block(text)  # a block of code is processed as a whole
            end = _complete_words(text, ignore_marks=True) if block < 0 else block
        self._scan_from = n + n // RESCAN_GROWTH
        return end


def split_text(text: str) -> Iterator[Segment]:
    """Yield a complete text in segments of a few pages; joined, they are the text. A wrong mark raises before any text.

    Cuts are between paragraphs if possible, else between sentences, else between words.
    """
    if len(text) <= WINDOW or is_ssml(text):
        yield Segment(text)
        return
    for start in range(0, len(text), CHECKED_AT_ONCE):
        check_marks(text[start : start + CHECKED_AT_ONCE + MAX_MARK])
        yield Segment("")  # the caller may stop here: a text may have fifty thousand marks
    marks: dict[str, str] = {}
    at = 0
    next_word = 0  # where the next word begins, or the end of the text: looked for again only behind it
    while at < len(text):
        end = at + _window_end(text[at : at + WINDOW]) if len(text) - at > WINDOW else len(text)
        if next_word < end:
            word = _WORD.search(text, end)
            next_word = word.start() if word else len(text)
        yield Segment(text[at:end], at, marks="".join(marks.values()), has_more=next_word < len(text))
        update_code_mark(marks, text[at:end])
        update_marks(marks, text[at:end])
        at = end


def _window_end(text: str) -> int:
    """Return how much of a window can be processed by itself."""
    if text.isspace():
        return len(text)
    if is_silent(text):
        return text.rfind("\n") + 1 or len(text)
    # Not where a mark comes before the next word: a pause mark replaces the pause between paragraphs.
    for match in reversed(list(_BLANK_LINE.finditer(text, len(text) // 2))):
        if _WORD_BEFORE_MARK.match(text, match.end()) and _is_safe_cut(text, match.end()):
            return match.end()
    end = 0
    if _WORD_OR_SENTENCE_END.search(text):
        ends = (end for end in _sentence_ends(text) if _WORD_BEFORE_MARK.match(text, end))
        end = (next(ends, 0) if _SENTENCE_BREAK.search(text) else 0) or _complete_words(text)
    if end == 0:
        open_ = _OPEN_MARK.search(text, max(0, len(text) - 2000))
        end = open_.start() if open_ else len(text.rstrip("<[&"))
    return end or _complete_words(text, ignore_marks=True) or len(text)


async def segments(
    text: Text, max_characters: int, pause_s: float | None = None, pauses: Pauses = DEFAULT_PAUSES
) -> AsyncGenerator[Segment]:
    """Yield the text in segments, each as soon as it can be spoken; a complete text is one segment."""
    if isinstance(text, str):
        yield Segment(text)
        return
    segmenter = Segmenter(pause_s, pauses)
    using = asyncio.Lock()  # of the segmenter
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def read() -> None:
        try:
            async for delta in text:
                async with using:
                    if delta is None:
                        segmenter.flush()
                    else:
                        segmenter.add(delta, loop.time())
                if segmenter.n_characters > max_characters:
                    raise InvalidInput(
                        f"the text has over {max_characters} characters; that is the limit of one request",
                        param="input",
                    )
                arrived.set()
        finally:
            arrived.set()
            if isinstance(text, AsyncGenerator):
                await text.aclose()  # so that a source that sends too much stops

    reader = asyncio.create_task(read())
    try:
        while True:
            if reader.done():
                reader.result()
                segmenter.flush()
            async with using:
                if segmenter.n_buffered > WINDOW:  # else it would hold the event loop for too long
                    segment = await asyncio.to_thread(segmenter.take, loop.time())
                else:
                    segment = segmenter.take(loop.time())
            if segment:
                yield segment
            elif reader.done():
                return
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(segmenter.wake_s):
                        await arrived.wait()
                arrived.clear()
    finally:
        await cancel_all([reader])


_SSML_START = re.compile(r"\ufeff?\s*<(?:speak|\?xml|!--)")  # SSML is parsed as a whole
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)\s*")
_WORD = re.compile(r"\w")
_WORD_BEFORE_MARK = re.compile(r"[^\w\[]{0,200}\w")
_WORD_OR_SENTENCE_END = re.compile(r"\s|[。！？｡।॥]")  # without these no sentence and no word ends
_STOPS = ".!?…‽。！？｡।॥"
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*\Z|\r\n[ \t]*\r\n\s*\Z")
_SENTENCE_BREAK = re.compile(rf"[{_STOPS}][^\w\s]*\s|[。！？｡।॥]|\n\s*\n|\n[ \t]*(?:[-*+•]|\d{{1,3}}[.)])[ \t]|<")
_WORD_END = re.compile(rf"[\s{_STOPS}、，；：]")
# What may start a segment in the middle of a line: not a sign that means something else at the start of a line.
_SAFE_START = re.compile(r"(?:\[[^\[\]\n]{0,200}\]\s*+)*+[*_]{0,3}[\"'“‘(¿¡«「『]*[*_]{0,3}[^\W_]")
_LINE_MARKUP = re.compile(r"[ \t]*[`~|#]")  # fences, table rows and headings reach to the end of their line
_OPEN_MARK = re.compile(
    r"\[[^\[\]\n]{0,300}\Z"  # a mark
    r"|\]\([^()\n]{0,1600}(?:\([^()\n]{0,200}\)?[^()\n]{0,200})?\Z"  # the target of a link, the phonemes of a word
    r"|<[/!?A-Za-z][^<>]{0,400}\Z"  # a tag
)
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")
_CLAUSE = re.compile(r"[^\W\d_]{2,}[\"'”’)]?[,;:—]\s+(?=([^\W\d_]+)\s)|(?<=[^\W\d_])[，、；：](?=[^\W\d_])")


def _sentence_ends(text: str) -> Iterator[int]:
    """Yield the sentence ends that later text cannot change, the last one first."""
    sources = [sentence.aligned.source() for sentence in sentences(clean(text).aligned)]
    for (_, end), (start, _) in reversed(list(pairwise(sources))):
        cut = _cut_between(text, end, start)
        if cut and _sentence_is_over(text, end, cut) and _next_word_is_complete(text, cut) and _is_safe_cut(text, cut):
            yield cut


def _cut_between(text: str, end: int, start: int) -> int:
    """Return the cut between two sentences, before signs that belong to the second; 0 if there is none."""
    gap = text[end:start]
    if (newline := gap.rfind("\n")) >= 0:
        return end + newline + 1
    spaces = [i for i, char in enumerate(gap) if char.isspace()]
    return end + spaces[-1] + 1 if spaces else start if not gap else 0


def _sentence_is_over(text: str, end: int, cut: int) -> bool:
    """Tell whether a stop, a paragraph or a list item ends here; a mere line break may be the wrapping of a line."""
    if text[:end].rstrip("\"'”’)]»」』】）*_")[-1:] in tuple(_STOPS):
        return True
    n_breaks = text.count("\n", end, cut)
    return n_breaks > 1 or (n_breaks == 1 and _LIST_ITEM.match(text, cut) is not None)


def _next_word_is_complete(text: str, cut: int) -> bool:
    """Tell whether the word is complete which shows if the full stop before it ended a sentence."""
    if text[cut - 1] in _STOPS:  # these stops need no word after them
        return cut < len(text)
    rest = text[cut:].lstrip()
    return any(map(str.isspace, rest)) or len(rest) > MAX_WORD


def _is_safe_cut(text: str, cut: int) -> bool:
    """Tell whether each side of a cut, processed alone, gives the same as in the whole text."""
    line = text.rfind("\n", 0, cut) + 1
    at_line_start = line == cut
    if not at_line_start and (not _SAFE_START.match(text, cut) or _LINE_MARKUP.match(text, line)):
        return False
    if open_block(text, cut) >= 0 or latex.is_open(text, cut):
        return False
    if "|" in text[:cut] and not _PARAGRAPH_END.search(text[:cut]):  # the line below a table's head may follow
        return False
    return not _OPEN_MARK.search(text, max(0, cut - 2000), cut)


def _first_clause(text: str) -> int:
    """Return the end of a first clause between lower-case words, so that no date, number or name is cut; or 0."""
    for match in _CLAUSE.finditer(text):
        cut, spaceless = match.end(), match[1] is None
        enough = cut > MIN_CLAUSE_CHARACTERS if spaceless else len(text[:cut].split()) >= MIN_CLAUSE_WORDS
        plain = spaceless or (match[1].islower() and text[match.start()].islower())
        if enough and plain and _is_safe_cut(text, cut):
            return cut
    return 0


def _complete_words(text: str, *, ignore_marks: bool = False) -> int:
    """Return the end of the last complete word; inside an open mark 0, unless it is to be ignored."""
    ends = text[-1:].isspace() or (text.rstrip("\"'”’)")[-1:] in tuple(".!?…") and not text[-2:-1].isdigit())
    end = len(text) if ends else max((match.end() for match in re.finditer(r"\s", text)), default=0)
    return end if ignore_marks or _is_safe_cut(text + "a", end) else 0


_HALF = re.compile("[\ud800-\udbff]")  # the first half of a character, of which the second may follow


def _join_surrogates(text: str) -> str:
    """Join the surrogate halves of one character that arrived separately."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
