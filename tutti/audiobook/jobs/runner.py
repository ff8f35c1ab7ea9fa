"""Run one job: import its book, speak it, write its files."""

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import BinaryIO, TypeVar

from tutti.audio.loudness import parse_loudness
from tutti.audio.tagged import container
from tutti.audiobook.about import with_reader
from tutti.audiobook.book import Book
from tutti.audiobook.export import CaptionFile, ExportResult, export_book
from tutti.audiobook.fingerprint import fingerprints, voice_hashes
from tutti.audiobook.jobs.book_process import BookFile, BookProcesses, BookSummary
from tutti.audiobook.jobs.job import AudiobookJob, JobSpec, RunningJob
from tutti.audiobook.jobs.store import PRIVATE
from tutti.audiobook.journal import Journal
from tutti.audiobook.narrate import NarrationProgress, SpeechEngine, language_warning, narrate
from tutti.audiobook.passages import Passage
from tutti.audiobook.time_left import TimeLeft
from tutti.errors import StorageFull
from tutti.files import atomic_write
from tutti.speech import Speech, SpeechParams
from tutti.text.language import request_language
from tutti.text.options import find_pauses
from tutti.voices import Voices

Value = TypeVar("Value")
AudioSettings = Callable[[], Mapping[str, object]]
CheckRoom = Callable[[int], None]  # raises StorageFull if so many more bytes do not fit
SAMPLE_BYTES = 2  # in the journal
COMPRESSED = 1 / 3  # most of what a compressed file has of the journal's size; .wav has all of it


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of a job."""

    duration_s: float
    notes: tuple[str, ...]
    has_cover: bool


class _ExportStopped(Exception):
    """The job was cancelled while its files were being written."""


class LimitedJournal(Journal):
    """A journal that checks before each passage whether there is room for it."""

    def __init__(self, path: Path, fingerprint: str, keys: Sequence[str], check_room: CheckRoom) -> None:
        super().__init__(path, fingerprint, keys)
        self._check_room = check_room

    def save(self, n: int, speech: Speech) -> None:
        self._check_room(SAMPLE_BYTES * len(speech.samples))
        super().save(n, speech)


class JobRunner:
    """Owns the processes that parse books and the threads that write files, which would block an event loop."""

    def __init__(
        self,
        engine: SpeechEngine,
        voices: Voices,
        n_threads: int,
        passages_at_once: Callable[[], int],
        audio_settings: AudioSettings,
        check_room: CheckRoom,
    ) -> None:
        """`audio_settings` returns the settings that change the audio; if they change, a job starts over."""
        self._engine = engine
        self._voices = voices
        self._passages_at_once = passages_at_once
        self._audio_settings = audio_settings
        self._check_room = check_room
        self._books = BookProcesses()
        self._threads = ThreadPoolExecutor(n_threads, "books", initializer=_lower_priority)
        self._imports = ThreadPoolExecutor(n_threads, "imports", initializer=_lower_priority)  # no job waits for them
        self._importing = asyncio.Semaphore(n_threads)

    async def import_book(
        self, folder: Path, source: BinaryIO, name: str, spec: JobSpec | AudiobookJob, caller: str
    ) -> BookSummary:
        """Copy a book into the folder of its job, parse and check it; if that fails, the folder is removed."""
        async with self._importing:
            storing = self._imports.submit(self._store, folder, source, name)
            try:
                path = await asyncio.wrap_future(storing)
                return await self._books.check(self._book_file(path, name, spec, caller))
            except BaseException:
                storing.add_done_callback(lambda _: shutil.rmtree(folder, ignore_errors=True))
                raise

    async def check_book(self, job: AudiobookJob, folder: Path) -> BookSummary:
        """Parse and check the stored book of a job."""
        async with self._importing:
            return await self._books.check(self._book_file(folder / job.name, job.name, job, job.caller))

    async def run(
        self, job: AudiobookJob, folder: Path, running: RunningJob, on_change: Callable[[], None]
    ) -> Finished:
        """Speak what is missing and write the files; update `running` and call `on_change` on the way."""
        stored = self._book_file(folder / job.name, job.name, job, job.caller)
        parsed = await self._books.read(stored)
        book, plan = self._with_tags(job, parsed.book), parsed.plan
        audio_settings = await self._in_thread(self._audio_settings)
        used = voice_hashes(job.params, book.chapters, self._voices.seen_by(job.caller).of_model(job.params.model))
        hashing = partial(fingerprints, job.params, book.chapters, plan, audio_settings, used)
        mark, keys = await self._in_thread(hashing)

        estimate = TimeLeft()

        def on_progress(progress: NarrationProgress) -> None:
            running.progress = progress
            running.ends_s = estimate.update(time.time(), progress.n_characters, progress.of_characters)
            on_change()

        async with self._journal(folder, mark, keys) as journal:
            await narrate(
                *(self._engine, book, plan, job.params, journal),
                at_once=self._passages_at_once(), on_progress=on_progress, caller=job.caller,
            )  # fmt: skip
            running.writing = True
            on_change()
            n_bytes = SAMPLE_BYTES * sum(journal.n_samples.values())
            await self._in_thread(partial(self._check_room, round(n_bytes * (job.suffix == ".wav" or COMPRESSED))))
            result = await self._export(job, folder, book, plan, journal)
            await self._in_thread(partial(_save_extras, job, folder, book, result))
            notes = await self._in_thread(partial(_notes, job, journal, result))
            if not job.keep:
                await self._in_thread(journal.remove)
        return Finished(result.duration_s, notes, book.cover is not None)

    async def close(self) -> None:
        await self._books.close()
        self._imports.shutdown(cancel_futures=True)
        self._threads.shutdown(cancel_futures=True)

    def _with_tags(self, job: AudiobookJob, book: Book) -> Book:
        own = {name: getattr(job, name) for name in ("title", "author", "year", "series", "narrator")}
        spoken = self._voices.seen_by(job.caller).of_model(job.params.model).language_of(job.params.voice)
        language = request_language(job.params.language, spoken)[0]
        return with_reader(
            replace(book, **{name: text for name, text in own.items() if text}), job.params.voice, language
        )

    def _book_file(self, path: Path, name: str, spec: JobSpec | AudiobookJob, caller: str) -> BookFile:
        pauses = find_pauses(spec.params.pauses)
        voices = frozenset(self._voices.seen_by(caller).of_model(spec.params.model))
        return BookFile(path, name, spec.encoding, spec.params.voice_names, voices, spec.cast, pauses, spec.skip)

    def _store(self, folder: Path, source: BinaryIO, name: str) -> Path:
        path = folder / stored_name(name)
        try:
            folder.mkdir(PRIVATE)
            with atomic_write(path) as file:
                shutil.copyfileobj(source, file)
        except OSError as exc:
            raise StorageFull(f"the server cannot store this book: {exc.strerror}") from exc
        return path

    @asynccontextmanager
    async def _journal(self, folder: Path, fingerprint: str, keys: Sequence[str]) -> AsyncIterator[Journal]:
        opening = asyncio.ensure_future(
            self._in_thread(partial(LimitedJournal, folder / "reading", fingerprint, keys, self._check_room))
        )
        try:
            journal = await asyncio.shield(opening)
        except asyncio.CancelledError:  # a thread cannot be cancelled
            (await opening).close()
            raise
        try:
            yield journal
        finally:
            journal.close()

    async def _export(
        self, job: AudiobookJob, folder: Path, book: Book, plan: Sequence[Passage], journal: Journal
    ) -> ExportResult:
        """Write the files in a thread, which checks after each passage whether the job was cancelled."""
        cancelled = threading.Event()

        def check(_: int) -> None:
            if cancelled.is_set():
                raise _ExportStopped

        captions = None
        if job.captions:
            captions = CaptionFile(output_path(job, folder, "captions"), job.captions, job.captions_by_word)
        audio = output_path(job, folder, "audio")
        target = parse_loudness(job.loudness) if job.loudness else None
        export = partial(
            export_book, book, plan, journal, audio, container(job.suffix), captions, on_written=check, loudness=target
        )
        writing = asyncio.ensure_future(self._in_thread(export))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.gather(writing, return_exceptions=True)
            raise

    async def _in_thread(self, function: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def new_job(
    id: str, owner: str, caller: str, name: str, spec: JobSpec, book: BookSummary, notes: tuple[str, ...]
) -> AudiobookJob:
    """The job of a book that was stored under `name`."""
    return AudiobookJob(
        id, owner, caller, time.time(), name, spec.encoding, spec.suffix, spec.captions,
        spec.captions_by_word, spec.params, spec.title or book.title, spec.author or book.author,
        book.n_chapters, book.n_characters, notes,
        cast=spec.cast, loudness=spec.loudness, skip=spec.skip,
        year=spec.year, series=spec.series, narrator=spec.narrator, keep=spec.keep,
    )  # fmt: skip


def book_notes(book: BookSummary, params: SpeechParams, voices: Voices) -> tuple[str, ...]:
    """What the caller should know before the book is spoken."""
    warning = language_warning(book.language, params, voices)
    return (*book.notes, *([warning] if warning else []))


def output_path(job: AudiobookJob, folder: Path, which: str) -> Path:
    """The path of a job's "audio", "captions", "cover" or "chapters"."""
    names = {"audio": f"audio{job.suffix}", "captions": f"captions.{job.captions}", "chapters": "chapters.json"}
    return folder / names.get(which, which)


def _save_extras(job: AudiobookJob, folder: Path, book: Book, result: ExportResult) -> None:
    """Write what players want beside the audio: the cover, and the chapters as podcasts have them.

    Files that the job had before a correction, and has no more, are deleted.
    """
    chapters = [{"startTime": round(mark.start_s, 3), "title": mark.title} for mark in result.chapters]
    with atomic_write(folder / "chapters.json") as file:
        file.write(json.dumps({"version": "1.2.0", "chapters": chapters}).encode())
    if book.cover:
        with atomic_write(folder / "cover") as file:
            file.write(book.cover.data)
    written = {output_path(job, folder, which) for which in ("audio", "captions", *(["cover"] if book.cover else []))}
    for path in {*folder.glob("audio.*"), *folder.glob("captions.*"), folder / "cover"} - written:
        path.unlink(missing_ok=True)


def stored_name(name: str) -> str:
    """The name a book is stored under: only the suffix comes from the caller."""
    return f"book{PurePath(name).suffix.lower()}"


def _notes(job: AudiobookJob, journal: Journal, result: ExportResult) -> tuple[str, ...]:
    """What the caller should know about the result."""
    notes = [*job.notes, *result.notes]
    if journal.change:
        notes.append(journal.change)
    if journal.restart_reason:
        notes.append(f"started over: {journal.restart_reason}")
    if journal.repair:
        notes.append(journal.repair)
    if dropped := journal.dropped():
        symbols = ", ".join(f"{symbol} ×{n}" for symbol, n in dropped.most_common(12))
        notes.append(f"{dropped.total()} symbol{'s' * (dropped.total() > 1)} could not be spoken: {symbols}")
    notes += journal.notices()
    return tuple(notes)


def _lower_priority() -> None:
    """Run this thread at nice 10; only Linux has a priority for each thread."""
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
