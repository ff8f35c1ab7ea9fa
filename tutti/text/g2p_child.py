"""In the G2P process: read the texts that are open, a few chunks of one at a time."""

import heapq
import itertools
import os
import re
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import c_longlong
from dataclasses import dataclass, field

from tutti import text as front
from tutti.decaying_sum import DecayingSum
from tutti.errors import TuttiError
from tutti.process.link import ChildEnd
from tutti.text.chunk import Chunk
from tutti.text.chunker import ChunkSizes
from tutti.text.g2p_messages import Answer, ChunkBatch, CloseText, NextChunks, OpenText

NICE = 5  # added to the niceness of the process; larger yields more to the process that speaks
MAX_PULL_S = 0.02  # of computing for one answer; the rest of the chunks comes with the next one
MAX_CHUNKS_AT_ONCE = 4  # of one text; a larger batch makes other texts wait longer
MAX_WAIT_S = 5.0  # after which a text without a listener goes before later ones; larger is better for listeners
MIN_AUDIO_S = 20.0  # seconds of audio that a second of computing should make; larger slows texts that make less
MEMORY_S = 2.0  # time constant with which the computing for a caller is forgotten; larger remembers a burst longer
BEHIND = 2.0  # seconds by which a caller's texts rank later for each second of it; larger is fairer to other callers
TAIL = 32  # characters without a word that are read with the chunk before them: mostly nothing, so the text has ended
MAX_CALLERS = 100  # whose computing is remembered though none of their texts waits
NO_TEXT = -1
_WORD = re.compile(r"\w")


def rank_s(due_s: float, asked_s: float, opened_s: float, used_s: float) -> float:
    """The time by which requests are ordered, the earliest first; a later request has a later one in the end.

    It is when the audio is needed, but at most MAX_WAIT_S from now. A text ranks as if each second of computing since
    it was opened had made MIN_AUDIO_S of audio: one that makes hardly any gets at most 1 / MIN_AUDIO_S of the process,
    as long as others wait.
    """
    return max(min(due_s, asked_s + MAX_WAIT_S), opened_s + MIN_AUDIO_S * used_s)


@dataclass(slots=True)
class ReadingText:
    """An open text: how far it has been read, and when more of it is needed."""

    request: OpenText
    chunks: Iterator[Chunk]
    opened_s: float
    due_s: float  # when the audio of the next chunk is needed
    n_to_skip: int
    asked_s: float = 0.0  # when its next answer was requested
    used_s: float = 0.0  # seconds of computing
    used_before_s: float = 0.0  # of them before its last answer
    batch: list[Chunk] = field(default_factory=list)  # for its next answer
    is_first: bool = True  # nothing of it was answered yet


class PullQueue:
    """The texts from which chunks are requested, the one with the earliest rank first.

    The texts of a caller rank later, the more was computed for it in the last seconds: otherwise one that sends a
    hundred texts at once would make all others wait until each of them has begun.
    """

    def __init__(self) -> None:
        self._heaps: dict[str, list[tuple[float, int, int]]] = {}  # of a caller: rank, serial number, text
        self._computing: dict[str, DecayingSum] = {}  # computing for a caller
        self._serial = itertools.count()  # decides among equals

    def __bool__(self) -> bool:
        return bool(self._heaps)

    def add(self, number: int, rank_s: float, caller: str = "") -> None:
        heapq.heappush(self._heaps.setdefault(caller, []), (rank_s, next(self._serial), number))

    def pop(self, now: float) -> int:
        caller = min(self._heaps, key=lambda each: (self._heaps[each][0][0] + BEHIND * self._used_s(each, now), each))
        heap = self._heaps[caller]
        number = heapq.heappop(heap)[2]
        if not heap:
            del self._heaps[caller]
        return number

    def charge(self, caller: str, seconds: float, now: float) -> None:
        """Note computing for this caller; those without texts are forgotten with what was computed for them."""
        self._computing.setdefault(caller, DecayingSum(MEMORY_S)).add(seconds, now)
        if len(self._computing) > 2 * len(self._heaps) + MAX_CALLERS:
            self._computing = {each: total for each, total in self._computing.items() if now - total.at_s < MEMORY_S}

    def _used_s(self, caller: str, now: float) -> float:
        total = self._computing.get(caller)
        return total.at(now) if total else 0.0


class TextReader:
    """Turns texts into chunks, the most urgent first."""

    def __init__(
        self,
        pronounce: front.Pronounce,
        sizes: ChunkSizes | None,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._pronounce = pronounce
        self._sizes = sizes
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._texts: dict[int, ReadingText] = {}
        self._queue = PullQueue()

    @property
    def has_work(self) -> bool:
        return bool(self._queue)

    def receive(self, message: OpenText | NextChunks | CloseText) -> None:
        match message:
            case CloseText(number):
                self._texts.pop(number, None)
            case NextChunks(number, due_s):
                if text := self._texts.get(number):
                    text.due_s = due_s
                self._ask(number)
            case OpenText():
                chunks = message.chunks(self._pronounce, self._sizes)
                text = ReadingText(message, chunks, self._clock(), message.due_s, message.n_done)
                self._texts[message.number] = text
                self._ask(message.number)

    def next_number(self) -> int:
        """The text to be read next; call `read` with it."""
        return self._queue.pop(self._clock())

    def read(self, number: int) -> Answer | None:
        """Make one chunk of this text; none if more are to be made before it is answered, between those of others."""
        text = self._texts.get(number)
        if text is None:
            return Answer(number, None)
        started_s = self._cpu_clock()
        try:
            has_ended = self._advance(text)
        except Exception as exc:  # noqa: BLE001 - raised by the parent
            del self._texts[number]
            return Answer(number, as_tutti_error(exc))
        took_s = self._cpu_clock() - started_s
        text.used_s += took_s
        self._queue.charge(text.request.caller, took_s, self._clock())
        n_chunks = 1 if text.is_first else MAX_CHUNKS_AT_ONCE
        took_long = bool(text.batch) and text.used_s > text.used_before_s + MAX_PULL_S
        if not has_ended and len(text.batch) < n_chunks and not took_long:
            self._put(number)
            return None
        return Answer(number, self._batch(text, has_ended))

    def _advance(self, text: ReadingText) -> bool:
        """Make one chunk, or skip some that a lost process had made; tell whether the text has ended."""
        stop_s = self._cpu_clock() + MAX_PULL_S
        while text.n_to_skip:
            chunk = next(text.chunks, None)
            text.n_to_skip -= not (chunk and chunk.is_empty)
            if self._cpu_clock() > stop_s:
                return False
        while (chunk := next(text.chunks, None)) is not None:
            if chunk.is_empty:
                return False  # others have their turn
            text.batch.append(chunk)
            if not _is_tail(text.request.text, chunk):
                return False
        return True

    def _batch(self, text: ReadingText, has_ended: bool) -> ChunkBatch:
        """The chunks that were made since the last answer; the rest of a text that has just begun is requested."""
        chunks, text.batch, text.used_before_s = text.batch, [], text.used_s
        has_sequel, text.is_first = text.is_first and not has_ended, False
        if has_ended:
            del self._texts[text.request.number]
        elif has_sequel:
            text.due_s += sum(_audio_s(chunk, text.request.symbol_s) for chunk in chunks)
            self._ask(text.request.number)
        return ChunkBatch(chunks, has_ended, has_sequel)

    def _ask(self, number: int) -> None:
        """Note that more of this text is requested now."""
        if text := self._texts.get(number):
            text.asked_s = self._clock()
        self._put(number)

    def _put(self, number: int) -> None:
        text = self._texts.get(number)
        rank = rank_s(text.due_s, text.asked_s, text.opened_s, text.used_s) if text else self._clock()
        self._queue.add(number, rank, text.request.caller if text else "")


def _audio_s(chunk: Chunk, symbol_s: float) -> float:
    """The estimated seconds of audio of a chunk, by those of a symbol at the speed of the request."""
    return len(chunk.phonemes) * symbol_s / chunk.rate + chunk.pause_s


def _is_tail(text: str, last: Chunk) -> bool:
    """Whether next to nothing follows this chunk, so that looking for more takes no time."""
    end = last.source[1]
    return end > 0 and len(text) <= end + TAIL and not _WORD.search(text, end)


def main(
    end: socket.socket,
    pronounce: front.Pronounce,
    warm: tuple[str, ...],
    sizes: ChunkSizes | None,
    current: c_longlong,
) -> None:
    """Answer requests until the parent closes the connection; `current` tells it which text is being read."""
    os.nice(NICE)
    channel, reader = ChildEnd(end), TextReader(pronounce, sizes)
    with suppress(EOFError, ConnectionError):
        channel.send(Answer(NO_TEXT, _warm_up(pronounce, warm)))
        while True:
            while message := channel.receive(wait=not reader.has_work):
                reader.receive(message)
            current.value = number = reader.next_number()
            answer = reader.read(number)
            current.value = NO_TEXT
            if answer:
                channel.send(answer)


def _warm_up(pronounce: front.Pronounce, warm: tuple[str, ...]) -> TuttiError | None:
    try:
        for code in warm:
            list(front.chunks("1", code, pronounce))
    except Exception as exc:  # noqa: BLE001 - raised by the parent
        return as_tutti_error(exc)
    return None


def as_tutti_error(exc: Exception) -> TuttiError:
    if isinstance(exc, TuttiError):
        return exc
    error = TuttiError(f"the text front end failed: {type(exc).__name__}: {exc}")
    error.add_note("".join(traceback.format_exception(exc)))
    return error
