"""The straight line from a book to a journal full of speech: several passages at a time, each kept when it is done."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tutti.audiobook.book import Book, Chapter
from tutti.audiobook.journal import Journal, Kept
from tutti.audiobook.passages import Passage
from tutti.errors import (
    DeviceFull,
    Draining,
    G2PUnavailable,
    NothingToSpeak,
    NotReady,
    QueueFull,
    TuttiError,
    WorkerLost,
)
from tutti.speech import SAMPLE_RATE, Speech, SpeechParams
from tutti.text.clean import clean

TRIES = 5  # where the engine, and not the text, is at fault
WAIT_S = 1.0  # before the second try, then twice as long each time
LONGEST_WAIT_S = 30.0
log = logging.getLogger(__name__)


class Speaker(Protocol):
    """What reading needs of an engine."""

    @property
    def stream(self) -> Callable[..., AsyncGenerator[Speech]]: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reading has come."""

    n_characters: int
    of_characters: int
    n_passages: int
    of_passages: int
    spoken_s: float  # of audio, pauses between passages not counted


Told = Callable[[Progress], None]


async def read(
    engine: Speaker,
    book: Book,
    plan: Sequence[Passage],
    params: SpeechParams,
    journal: Journal,
    *,
    at_once: int,
    told: Told = lambda _: None,
    caller: str = "",
) -> None:
    """Returns when every passage of the plan is in the journal; those that are there already are not spoken again.

    Whatever ends it, what was kept stays kept. It is bulk work: listeners come first.
    """
    missing = iter([n for n in range(len(plan)) if n not in journal.n_samples])
    tally = _Tally(plan, journal)
    told(tally.progress())
    with ThreadPoolExecutor(1, "journal") as disk:

        async def reader() -> None:
            for n in missing:
                kept = await _spoken(engine, book.chapters, plan[n], params, caller)
                await asyncio.get_running_loop().run_in_executor(disk, journal.keep, n, kept)
                tally.add(n)
                told(tally.progress())

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(reader())
        except BaseExceptionGroup as failed:
            raise _first(failed) from None


class _Tally:
    """Counts what is in the journal."""

    def __init__(self, plan: Sequence[Passage], journal: Journal) -> None:
        self._lengths = [passage.end - passage.start for passage in plan]
        self._all = sum(self._lengths)
        self._journal = journal
        self._n_characters = sum(self._lengths[n] for n in journal.n_samples)
        self._n_samples = sum(journal.n_samples.values())

    def add(self, n: int) -> None:
        self._n_characters += self._lengths[n]
        self._n_samples += self._journal.n_samples[n]

    def progress(self) -> Progress:
        n_kept = len(self._journal.n_samples)
        return Progress(self._n_characters, self._all, n_kept, len(self._lengths), self._n_samples / SAMPLE_RATE)


async def _spoken(
    engine: Speaker, chapters: Sequence[Chapter], passage: Passage, params: SpeechParams, caller: str
) -> Kept:
    """One passage; a queue that is full is waited for, an engine that stumbles is asked again."""
    tries = 0
    while True:
        try:
            return await _said(engine, chapters, passage, params, caller)
        except QueueFull as full:
            await asyncio.sleep(min(full.retry_after_s, LONGEST_WAIT_S))
        except Draining:
            raise
        except (WorkerLost, DeviceFull, G2PUnavailable, NotReady) as exc:
            tries += 1
            if tries == TRIES:
                raise
            log.warning("passage again chapter=%d code=%s try=%d", passage.chapter + 1, exc.code, tries + 1)
            await asyncio.sleep(min(WAIT_S * 2 ** (tries - 1), LONGEST_WAIT_S))
        except TuttiError as exc:
            exc.message = f"chapter {passage.chapter + 1} ({chapters[passage.chapter].title}): {exc.message}"
            raise


async def _said(
    engine: Speaker, chapters: Sequence[Chapter], passage: Passage, params: SpeechParams, caller: str
) -> Kept:
    text = passage.said(chapters)
    shift = passage.start - len(passage.marks)
    speeches: list[Speech] = []
    try:
        async with aclosing(engine.stream(text, params, caller=caller, delivery="bulk")) as stream:
            async for speech in stream:
                speeches.append(speech)
    except NothingToSpeak:  # a row of stars between two scenes, a line of emoji
        return Kept(np.zeros(0, np.float32), (), clean(text).dropped)
    words = (
        replace(word, span=(word.span[0] + shift, word.span[1] + shift)) for each in speeches for word in each.words
    )
    dropped = tuple(symbol for each in speeches for symbol in each.dropped)
    return Kept(np.concatenate([each.samples for each in speeches]), tuple(words), dropped)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong, out of whatever went wrong at the same time: a full disk before its consequences."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, TuttiError)), leaves[0])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each
