"""One job's work: its book taken in, read aloud, and written down."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import BinaryIO, TypeVar

from tutti.audio.tagged import container
from tutti.audiobook import Captions, Finished, Journal, Passage, Progress, Speaker, finish, passages, read
from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.jobs.job import Job, Run
from tutti.audiobook.params import fingerprint
from tutti.audiobook.passages import check_marks
from tutti.captions import CaptionFormat
from tutti.errors import StorageFull
from tutti.speech import SpeechParams

Value = TypeVar("Value")
Sound = Callable[[], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller wants of a book."""

    params: SpeechParams
    suffix: str
    captions: CaptionFormat | None = None
    captions_by_word: bool = False
    encoding: str | None = None
    title: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What a job came to."""

    duration_s: float
    notes: tuple[str, ...]


class Stopped(Exception):
    """A thread was told to leave its work."""


class Studio:
    """Owns the threads in which books are opened and audio files written: both are long for an event loop."""

    def __init__(self, engine: Speaker, n_threads: int, passages_at_once: Callable[[], int], sound: Sound) -> None:
        """`sound` tells what else makes the sound: when it changes, a job that was begun starts over."""
        self._engine = engine
        self._passages_at_once = passages_at_once
        self._sound = sound
        self._threads = ThreadPoolExecutor(n_threads, "books", initializer=_step_back)

    async def take(self, place: Path, source: BinaryIO, name: str, wish: Wish) -> Book:
        """The book, checked, and copied into the folder of its job."""
        return await self._aside(partial(_taken, place, source, name, wish))

    async def make(self, job: Job, place: Path, run: Run, tell: Callable[[], None]) -> Made:
        """Reads what is not yet read and writes the files; `run` knows how far it is, `tell` says that it changed."""
        book = await self._aside(partial(_book, place, job))
        plan = list(passages(book.chapters))

        def told(progress: Progress) -> None:
            run.told(progress)
            tell()

        async with self._journal(place, fingerprint(job.params, book.chapters, plan, self._sound())) as journal:
            at_once = self._passages_at_once()
            await read(self._engine, book, plan, job.params, journal, at_once=at_once, told=told, caller=job.caller)
            run.writing = True
            tell()
            finished = await self._written(job, place, book, plan, journal)
            notes = await self._aside(partial(_notes, job, journal, finished))
            await self._aside(journal.remove)
        return Made(finished.duration_s, notes)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    @asynccontextmanager
    async def _journal(self, place: Path, kept: str) -> AsyncIterator[Journal]:
        opening = asyncio.ensure_future(self._aside(partial(Journal, place / "reading", kept)))
        try:
            journal = await asyncio.shield(opening)
        except asyncio.CancelledError:  # a thread cannot be stopped from outside
            (await opening).close()
            raise
        try:
            yield journal
        finally:
            journal.close()

    async def _written(self, job: Job, place: Path, book: Book, plan: Sequence[Passage], journal: Journal) -> Finished:
        """The files; the thread that writes them asks after each passage whether it shall go on."""
        leave = threading.Event()

        def check(_: int) -> None:
            if leave.is_set():
                raise Stopped

        captions = None
        if job.captions:
            captions = Captions(file_of(job, place, "captions"), job.captions, job.captions_by_word)
        audio = file_of(job, place, "audio")
        write = partial(finish, book, plan, journal, audio, container(job.suffix), captions, told=check)
        writing = asyncio.ensure_future(self._aside(write))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            leave.set()
            await asyncio.gather(writing, return_exceptions=True)
            raise

    async def _aside(self, act: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, act)


def file_of(job: Job, place: Path, what: str) -> Path:
    """Where the audio or the captions of a job lie."""
    return place / (f"captions.{job.captions}" if what == "captions" else f"audio{job.suffix}")


def kept_name(name: str) -> str:
    """What a book is kept under: nothing of its caller's name for it but the suffix."""
    return f"book{PurePath(name).suffix.lower()}"


def _taken(place: Path, source: BinaryIO, name: str, wish: Wish) -> Book:
    book = read_book(source, name, wish.encoding)
    check_marks(book.chapters, wish.params.voice_names)
    source.seek(0)
    try:
        place.mkdir()
        with (place / kept_name(name)).open("wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        shutil.rmtree(place, ignore_errors=True)
        raise StorageFull(f"the server cannot keep this book: {exc.strerror}") from exc
    return book


def _book(place: Path, job: Job) -> Book:
    with (place / job.name).open("rb") as file:
        book = read_book(file, job.name, job.encoding)
    return replace(book, title=job.title, author=job.author)


def _notes(job: Job, journal: Journal, finished: Finished) -> tuple[str, ...]:
    """What its caller should know about the result."""
    notes = [*job.notes, *finished.notes]
    if journal.started_over:
        notes.append(f"started over: {journal.started_over}")
    if dropped := journal.dropped():
        shown = ", ".join(f"{symbol} ×{n}" for symbol, n in dropped.most_common(12))
        notes.append(f"{dropped.total()} symbols could not be said: {shown}")
    return tuple(notes)


def _step_back() -> None:
    """Nobody waits for these threads: on Linux a thread can have a low priority of its own."""
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
