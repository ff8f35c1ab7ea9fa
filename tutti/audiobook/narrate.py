"""Speak a book into its journal: several passages at a time, each stored when it is done."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Protocol

from tutti.admission.ticket import Ticket
from tutti.audiobook.book import Book, Chapter
from tutti.audiobook.journal import Journal
from tutti.audiobook.passages import Passage
from tutti.engine.request import StreamRequest
from tutti.engine.word_times import join, shift_source, silence
from tutti.errors import (
    DeviceFull,
    Draining,
    G2PUnavailable,
    InvalidInput,
    NothingToSpeak,
    NotReady,
    TuttiError,
    UnknownLanguage,
    WorkerLost,
)
from tutti.speech import SAMPLE_RATE, Speech, SpeechParams
from tutti.tasks import cause, with_retries
from tutti.text.language import find_language, request_language
from tutti.voices import Voices

MAX_PASSAGE_S = 1200.0  # of audio; a passage of 1,000 characters has one minute, at a quarter of the speed four
NOT_THE_TEXT = (WorkerLost, DeviceFull, G2PUnavailable, NotReady)  # the engine fails: the passage is tried again


class SpeechEngine(Protocol):
    """The part of an engine that narration needs."""

    @property
    def stream(self) -> Callable[..., AsyncGenerator[Speech]]: ...


@dataclass(frozen=True, slots=True)
class NarrationProgress:
    """How much of a book is spoken."""

    n_characters: int
    of_characters: int
    n_passages: int
    of_passages: int
    spoken_s: float  # audio, without the pauses between passages


OnProgress = Callable[[NarrationProgress], None]


def language_warning(written: str, params: SpeechParams, voices: Voices) -> str:
    """A warning if a book is written in another language than it will be read in, else an empty string."""
    if not written:
        return ""
    code = request_language(params.language, voices.language_of(params.voice))[0]
    declared = written.lower()
    with suppress(UnknownLanguage):
        declared = find_language(declared).code
    if declared[:2] == code[:2]:
        return ""
    return f"the book declares language {written[:20]!r}, but is read as {code}; choose a voice or a language"


async def narrate(
    engine: SpeechEngine,
    book: Book,
    plan: Sequence[Passage],
    params: SpeechParams,
    journal: Journal,
    *,
    at_once: int,
    on_progress: OnProgress = lambda _: None,
    caller: str = "",
) -> None:
    """Speak every passage of the plan that is not in the journal yet, as bulk work: listeners come first."""
    missing = iter([n for n in range(len(plan)) if n not in journal.n_samples])
    counter = _ProgressCounter(plan, journal)
    on_progress(counter.progress())
    with ThreadPoolExecutor(1, "journal") as disk:

        async def speak_missing() -> None:
            for n in missing:
                speech = await _speak_with_retries(engine, book.chapters, plan[n], params, caller)
                await asyncio.get_running_loop().run_in_executor(disk, journal.save, n, speech)
                counter.add(n)
                on_progress(counter.progress())

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(speak_missing())
        except BaseExceptionGroup as group_error:
            raise cause(group_error) from None


class _ProgressCounter:
    """Keeps the sums over the passages in the journal."""

    def __init__(self, plan: Sequence[Passage], journal: Journal) -> None:
        self._lengths = [passage.end - passage.start for passage in plan]
        self._of_characters = sum(self._lengths)
        self._journal = journal
        self._n_characters = sum(self._lengths[n] for n in journal.n_samples)
        self._n_samples = sum(journal.n_samples.values())

    def add(self, n: int) -> None:
        self._n_characters += self._lengths[n]
        self._n_samples += self._journal.n_samples[n]

    def progress(self) -> NarrationProgress:
        n_passages, spoken_s = len(self._journal.n_samples), self._n_samples / SAMPLE_RATE
        return NarrationProgress(self._n_characters, self._of_characters, n_passages, len(self._lengths), spoken_s)


async def _speak_with_retries(
    engine: SpeechEngine, chapters: Sequence[Chapter], passage: Passage, params: SpeechParams, caller: str
) -> Speech:
    """Speak one passage; wait while the queue is full, retry if the engine fails. An error of the text names it."""
    try:
        return await with_retries(lambda: _speak(engine, chapters, passage, params, caller), NOT_THE_TEXT)
    except (*NOT_THE_TEXT, Draining):
        raise
    except TuttiError as exc:
        exc.message = f"chapter {passage.chapter + 1} ({chapters[passage.chapter].title}): {exc.message}"
        raise


async def _speak(
    engine: SpeechEngine, chapters: Sequence[Chapter], passage: Passage, params: SpeechParams, caller: str
) -> Speech:
    """The speech of one passage; its words are placed in its text, without the marks in force."""
    text = passage.text(chapters)
    try:
        request = StreamRequest(text, params, Ticket(caller, "bulk"))
        async with aclosing(engine.stream(request)) as stream:
            speech = join([speech async for speech in _limited(stream)])
    except NothingToSpeak as silent:  # a row of stars between two scenes, a line of emoji, another script
        return Speech(silence(0), (), (0, 0), silent.dropped, notices=silent.notices)
    return shift_source(speech, -len(passage.marks))


async def _limited(stream: AsyncGenerator[Speech]) -> AsyncGenerator[Speech]:
    """The speech of a passage; raise if a lexicon or marks make it so long that it fills the memory."""
    duration_s = 0.0
    async for speech in stream:
        duration_s += speech.duration_s
        if duration_s > MAX_PASSAGE_S:
            raise InvalidInput(f"a passage has more than {MAX_PASSAGE_S / 60:.0f} minutes of audio", param="lexicon")
        yield speech
