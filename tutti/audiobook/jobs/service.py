"""Create, run, cancel and resume jobs: at most one running job a caller and AT_ONCE in all, the oldest first.

Several servers may use the same folder: each finds the jobs of all, and a job runs on one of them.
"""

import asyncio
import logging
import shutil
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar
from uuid import uuid4

from tutti.audiobook.jobs.import_turns import ImportTurns
from tutti.audiobook.jobs.job import ENDED, AudiobookJob, Correction, JobSpec, RunningJob
from tutti.audiobook.jobs.limits import JobLimits
from tutti.audiobook.jobs.runner import AudioSettings, JobRunner, book_notes, new_job, output_path, stored_name
from tutti.audiobook.jobs.store import JobStore, locked
from tutti.audiobook.narrate import SpeechEngine
from tutti.engine.request import LexiconChecker, check_params
from tutti.errors import Draining, JobsLocked, StorageFull, TuttiError, UnknownJob, WrongState
from tutti.speech import SpeechParams
from tutti.tasks import cancel_all
from tutti.voices import Voices

if TYPE_CHECKING:
    from filelock import FileLock

AT_ONCE = 4  # jobs that run at a time
POLL_S = 1.0  # between two looks at what other servers changed; larger takes over the jobs of a dead one later
READ_WAIT_S = 5.0  # how long a request waits for the list of jobs before it gets 503
DELETE_WAIT_S = 10.0  # how long a delete waits until another server has stopped the job
NOT_KEPT = "all of it was spoken again: the job had not kept what was spoken (keep)"
log = logging.getLogger(__name__)
Value = TypeVar("Value")


class JobService:
    """Owns the job store and the running jobs. Start it when the engine is warm, close it before the engine."""

    def __init__(
        self,
        engine: SpeechEngine,
        voices: Voices,
        folder: Path,
        limits: JobLimits,
        *,
        passages_at_once: Callable[[], int],
        audio_settings: AudioSettings = dict,
    ) -> None:
        self._folder = folder
        self._voices = voices
        self._limits = limits
        self._runner = JobRunner(engine, voices, AT_ONCE, passages_at_once, audio_settings, self._check_room)
        self._lexicons = LexiconChecker()
        self._store: JobStore | None = None
        self._opening = asyncio.Lock()
        self._jobs: dict[str, AudiobookJob] = {}
        self._running: dict[str, RunningJob] = {}  # of this server
        self._version = 0  # of the store, when it was read last
        self._elsewhere: dict[str, RunningJob] = {}  # the same of other servers, as they last wrote it
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changes: dict[str, asyncio.Event] = {}
        self._turns = ImportTurns()
        self._n_importing: Counter[str] = Counter()  # books of an owner that are read and not stored yet
        self._closing = False
        self._following: asyncio.Task[None] | None = None
        self._work = asyncio.Event()  # a job may be started
        self._disk = ThreadPoolExecutor(1, "jobs")  # one thread: calls of the store keep their order

    async def start(self) -> None:
        """Run the jobs that wait, also those that ran when their server stopped; follow what other servers change."""
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop all jobs; the next start resumes them."""
        self._closing = True
        if self._following is not None:
            await cancel_all([self._following])
        for event in self._changes.values():
            event.set()
        await cancel_all(self._tasks.values())
        await self._runner.close()
        if self._store is not None:
            await self._on_disk(self._store.close)
        self._disk.shutdown()

    # -- requests ------------------------------------------------------------------------------------------------

    async def create(
        self, owner: str, caller: str, source: BinaryIO, name: str, spec: JobSpec, admit: Callable[[int], None]
    ) -> AudiobookJob:
        """Check and store a book, and queue its job.

        `admit` gets the number of characters, and raises if the caller may not request that many.
        """
        store = await self._open_for_books()
        voices = await self._check_params(spec.params, caller)
        async with self._turns.turn(caller), self._place(store, owner):
            id = uuid4().hex
            book = await self._runner.import_book(store.job_folder(id), source, name, spec, caller)
            try:
                admit(book.n_characters)
                await self._on_disk(partial(self._limits.check_disk, store, book, spec.params.speed))
                notes = (*spec.notes, *book_notes(book, spec.params, voices))
                await self._save(new_job(id, owner, caller, stored_name(name), spec, book, notes))
            except BaseException:
                shutil.rmtree(store.job_folder(id), ignore_errors=True)
                raise
        self._work.set()
        return self._jobs[id]

    async def correct(
        self, owner: str, caller: str, id: str, change: Correction, admit: Callable[[int], None]
    ) -> AudiobookJob:
        """Change a job that has ended, and queue it again: of what it has kept, only what differs is spoken."""
        store = await self._open_for_books()
        async with self._turns.turn(caller):
            job = self._ended(owner, id)
            params = replace(job.params, lexicon={**job.params.lexicon, **change.lexicon})
            new = replace(job, params=params, state="queued", error=None, duration_s=None, **change.fields)
            voices = await self._check_params(params, job.caller)
            folder, incoming = store.job_folder(id), store.job_folder(uuid4().hex)
            try:
                if change.book is None:
                    book = await self._runner.check_book(new, folder)
                else:
                    new = replace(new, name=stored_name(change.name))
                    book = await self._runner.import_book(incoming, change.book, change.name, new, job.caller)
                admit(book.n_characters)
                await self._on_disk(partial(self._limits.check_disk, store, book, params.speed, folder))
                if self._ended(owner, id) != job:
                    raise WrongState("the job was changed meanwhile; try again", param="id")
                if change.book is not None:
                    (incoming / new.name).replace(folder / new.name)
                notes = book_notes(book, params, voices) + ((NOT_KEPT,) if job.state == "done" and not job.keep else ())
                await self._save(replace(new, n_chapters=book.n_chapters, n_characters=book.n_characters, notes=notes))
                if new.name != job.name:
                    (folder / job.name).unlink(missing_ok=True)
            finally:
                shutil.rmtree(incoming, ignore_errors=True)
        self._work.set()
        return self._jobs[id]

    def _ended(self, owner: str, id: str) -> AudiobookJob:
        job = self.get(owner, id)
        if job.state not in ENDED:
            raise WrongState(f"the job is {job.state}; wait until it is done, or cancel it", param="id")
        return job

    async def _open_for_books(self) -> JobStore:
        if self._closing:
            raise Draining("the server is shutting down and accepts no new jobs")
        return await self._open()

    async def _check_params(self, params: SpeechParams, caller: str) -> Voices:
        """Return the voices that a caller may use with these parameters; raise if the parameters are wrong."""
        voices = self._voices.seen_by(caller).of_model(params.model)
        check_params(params, voices)
        await self._lexicons.build(params.lexicon)
        return voices

    @asynccontextmanager
    async def _place(self, store: JobStore, owner: str) -> AsyncIterator[None]:
        """Reserve a place among the jobs of an owner while its book is read; raise if there is none."""
        await self._on_disk(partial(self._limits.check_bytes, store))
        # Last: nothing may come between it and the reservation.
        self._limits.check_number(sum(job.owner == owner for job in self._jobs.values()) + self._n_importing[owner])
        self._n_importing[owner] += 1
        try:
            yield
        finally:
            self._n_importing[owner] -= 1

    def all(self, owner: str) -> list[AudiobookJob]:
        """The jobs of one owner, the newest first."""
        return [job for job in reversed(self._jobs.values()) if job.owner == owner]

    def get(self, owner: str, id: str) -> AudiobookJob:
        job = self._jobs.get(id)
        if job is None or job.owner != owner:
            raise UnknownJob(f"no job {id[:40]!r}", param="id")
        return job

    def running(self, id: str) -> RunningJob | None:
        """The progress of a job, if it runs."""
        return self._running.get(id) or self._elsewhere.get(id)

    async def cancel(self, owner: str, id: str) -> AudiobookJob:
        """Stop a job; spoken passages stay, so that it can be resumed."""
        job = self.get(owner, id)
        if job.state == "done":
            raise WrongState("the job is done; delete it if you do not need it", param="id")
        job = await self._save(replace(job, state="cancelled", error=None))  # first, so that it is not started again
        await self._stop(id)
        return job

    async def resume(self, owner: str, id: str) -> AudiobookJob:
        """Queue a paused, cancelled or failed job again; stored passages are not spoken again."""
        job = self.get(owner, id)
        if job.state == "done":
            raise WrongState("the job is done; there is nothing to resume", param="id")
        if job.state in ENDED:
            await self._save(replace(job, state="queued", error=None))
            self._work.set()
        return self._jobs[id]

    async def delete(self, owner: str, id: str) -> None:
        """Stop a job, and delete it with its files. Raises WrongState if another server does not stop it in time."""
        await self._save(replace(self.get(owner, id), state="cancelled"))
        await self._stop(id)
        store = await self._open()
        until_s = time.monotonic() + DELETE_WAIT_S
        while (claim := await self._on_disk(partial(store.claim, id))) is None:
            if time.monotonic() > until_s:
                raise WrongState("the job is still being stopped; try again in a moment", param="id")
            await asyncio.sleep(POLL_S / 4)
        await self._on_disk(partial(store.remove, id))
        await self._on_disk(claim.release)
        self._jobs.pop(id, None)
        self._notify(id)

    def file(self, owner: str, id: str, which: str) -> Path:
        """The path of the finished "audio", "captions", "cover" or "chapters"."""
        job = self.get(owner, id)
        if job.state != "done":
            raise WrongState(f"the job is {job.state}; its files exist once it is done", param="id")
        if which == "captions" and job.captions is None:
            raise UnknownJob("this job has no captions; create it with captions=srt, vtt or json", param="id")
        assert self._store is not None
        path = output_path(job, self._store.job_folder(id), which)
        if which in ("cover", "chapters") and not path.exists():
            raise UnknownJob(f"this job has no {which}", param="id")
        return path

    async def watch(self, owner: str, id: str) -> AsyncGenerator[AudiobookJob]:
        """Yield the job now and after each change, until it has ended or is deleted, or the server stops."""
        self.get(owner, id)
        while (job := self._jobs.get(id)) is not None:
            event = self._changes.setdefault(id, asyncio.Event())
            yield job
            if job.state in ENDED or self._closing:
                return
            await event.wait()

    # -- running -------------------------------------------------------------------------------------------------

    async def refresh_soon(self) -> None:
        """Read what other servers changed; raise JobsLocked if another program does not let it in time."""
        try:
            async with asyncio.timeout(READ_WAIT_S):
                await self.refresh()
        except TimeoutError as exc:
            raise locked() from exc

    async def refresh(self) -> None:
        """Read what other servers changed."""
        if self._store is None:
            if (self._folder / "jobs.sqlite").exists():
                await self._open()
            return
        changes = await self._on_disk(partial(self._store.changes, self._version))
        if changes is None:
            return
        before = self._jobs, self._elsewhere
        self._version, jobs, self._elsewhere = changes
        self._jobs = {job.id: job for job in jobs}
        for id in set(before[0]) | set(self._jobs):
            if (before[0].get(id), before[1].get(id)) != (self._jobs.get(id), self._elsewhere.get(id)):
                self._notify(id)
        for id, task in self._tasks.items():
            if id not in self._jobs or self._jobs[id].state == "cancelled":
                task.cancel()

    async def _follow(self) -> None:
        """Start jobs that wait, and tell other servers how far they are, until the server stops."""
        failure = ""
        while True:
            self._work.clear()
            try:
                await self.refresh()
                await self._start_jobs()
                await self._save_progress()
                failure = ""
            except TuttiError as exc:  # the disk is full, or gone
                if exc.message != failure:
                    log.error("jobs are off in %s: %s", self._folder, exc.message)
                failure = exc.message
            except Exception:  # a bug must not end all jobs
                log.exception("looking for jobs failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._work.wait()

    async def _start_jobs(self) -> None:
        """Start the oldest waiting job of each caller that no server runs, while fewer than AT_ONCE run here."""
        store = self._store
        busy = {self._jobs[id].caller for id in self._tasks if id in self._jobs}
        for job in list(self._jobs.values()) if store else ():
            if len(self._tasks) >= AT_ONCE:
                return
            if store is None or job.state not in ("queued", "running") or job.id in self._tasks or job.caller in busy:
                continue
            busy.add(job.caller)
            claim = await self._on_disk(partial(store.claim, job.id))
            if claim is not None:
                self._tasks[job.id] = asyncio.create_task(self._run(job.id, store, claim))

    async def _save_progress(self) -> None:
        if self._running and self._store is not None:
            runs = {id: running.to_json() for id, running in self._running.items()}
            await self._on_disk(partial(self._store.save_running, runs))

    async def _run(self, id: str, store: JobStore, claim: "FileLock") -> None:
        """Run a job that this server has claimed."""
        running = RunningJob(time.time())
        try:
            stored = await self._on_disk(partial(store.get, id))
            if stored is None or stored.state not in ("queued", "running"):
                return  # another server was faster
            self._running[id] = running
            job = await self._save(replace(stored, state="running", error=None))
            await self._speak(job, store.job_folder(id), running)
        finally:
            self._running.pop(id, None)
            try:
                await asyncio.shield(self._on_disk(partial(store.release, id, claim)))
            finally:
                self._tasks.pop(id, None)
                self._notify(id)
                self._work.set()

    async def _speak(self, job: AudiobookJob, folder: Path, running: RunningJob) -> None:
        try:
            result = await self._runner.run(job, folder, running, partial(self._notify, job.id))
            await self._save(
                replace(job, state="done", duration_s=result.duration_s, notes=result.notes, has_cover=result.has_cover)
            )
        except (StorageFull, JobsLocked, Draining) as exc:
            await self._stopped(replace(job, state="paused", error=(exc.code, exc.message)))
        except TuttiError as exc:
            await self._stopped(replace(job, state="failed", error=(exc.code, exc.message)))
        except Exception:  # a bug: the job must not stay in state running
            log.exception("job failed id=%s", job.id)
            error = ("internal_error", "the server failed on this job; see its log for the job's id")
            await self._stopped(replace(job, state="failed", error=error))

    async def _stop(self, id: str) -> None:
        task = self._tasks.get(id)
        if task is not None:
            await cancel_all([task])

    async def _stopped(self, job: AudiobookJob) -> None:
        """Record a job that was paused or failed."""
        log.warning("job %s id=%s code=%s", job.state, job.id, job.error[0] if job.error else "-")
        try:
            await self._save(job)
        except TuttiError:
            self._jobs[job.id] = job  # the disk is full, or the list cannot be written; clients still see the state

    # -- disk ----------------------------------------------------------------------------------------------------

    async def _open(self) -> JobStore:
        async with self._opening:
            if self._store is None:
                store = await self._on_disk(partial(JobStore, self._folder))
                self._jobs = {job.id: job for job in await self._on_disk(store.all)}
                self._elsewhere = await self._on_disk(store.running)
                self._store = store
        return self._store

    async def _save(self, job: AudiobookJob) -> AudiobookJob:
        store = await self._open()
        await self._on_disk(partial(store.save, job))
        self._jobs[job.id] = job
        self._notify(job.id)
        return job

    def _check_room(self, n_bytes: int) -> None:
        """Raise StorageFull if a running job may not write so much more. Called from threads."""
        if self._store is not None:
            self._limits.check_room(self._store, n_bytes)

    async def _on_disk(self, function: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._disk, function)

    def _notify(self, id: str) -> None:
        """Wake all watchers of this job."""
        if event := self._changes.pop(id, None):
            event.set()
