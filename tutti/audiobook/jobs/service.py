"""Jobs from their making to their end: one of each caller at a time, a few at once, each from where it was left."""

import asyncio
import logging
import shutil
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from uuid import uuid4

from tutti.audio.tagged import container
from tutti.audiobook import Speaker
from tutti.audiobook.jobs.job import ENDED, Job, Run
from tutti.audiobook.jobs.runner import Sound, Studio, Wish, file_of, kept_name
from tutti.audiobook.jobs.store import Ledger
from tutti.audiobook.params import other_language
from tutti.engine.params import check_params
from tutti.errors import Draining, StorageFull, TooManyJobs, TuttiError, UnknownJob, WrongState

AT_ONCE = 4  # jobs
BYTES_A_CHARACTER = 4_500  # of the journal and the audio: about 15 characters are said in a second of 48 kB
log = logging.getLogger(__name__)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the jobs of a server may take."""

    max_jobs: int  # of one owner, whatever their state
    max_bytes: float  # of all


class Jobs:
    """Owns the ledger and the jobs under way. Start it when the engine is warm, close it before the engine."""

    def __init__(
        self, engine: Speaker, folder: Path, limits: Limits, *, passages_at_once: Callable[[], int], sound: Sound = dict
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._studio = Studio(engine, AT_ONCE, passages_at_once, sound)
        self._ledger: Ledger | None = None
        self._opening = asyncio.Lock()
        self._jobs: dict[str, Job] = {}
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._closing = False
        self._desk = ThreadPoolExecutor(1, "jobs")  # the ledger's calls keep their order

    async def start(self) -> None:
        """Goes on with what was under way when the server last went down."""
        if (self._folder / "jobs.sqlite").exists():
            try:
                await self._opened()
            except TuttiError as exc:
                log.error("jobs are off: %s", exc.message)
            self._pump()

    async def close(self) -> None:
        """Stops the work; what was under way is under way again at the next start."""
        self._closing = True
        for event in self._news.values():
            event.set()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._studio.close()
        if self._ledger is not None:
            await self._at_desk(self._ledger.close)
        self._desk.shutdown()

    # -- what callers ask ----------------------------------------------------------------------------------------

    async def create(
        self, owner: str, caller: str, source: BinaryIO, name: str, wish: Wish, admit: Callable[[int], None]
    ) -> Job:
        """Takes a book in. Whatever is wrong with it shows now, not in the middle of the night.

        `admit` is told how many characters it has, and raises where its caller may not ask for so many.
        """
        if self._closing:
            raise Draining("the server is going down and takes no new work")
        ledger = await self._opened()
        container(wish.suffix)
        check_params(wish.params)
        await self._check_room(ledger, owner)
        id = uuid4().hex
        book = await self._studio.take(ledger.place(id), source, name, wish)
        try:
            admit(book.n_characters)
            await self._check_disk(ledger, book.n_characters)
            warning = other_language(book, wish.params)
            job = Job(
                id, owner, caller, time.time(), kept_name(name), wish.encoding, wish.suffix, wish.captions,
                wish.captions_by_word, wish.params, wish.title or book.title, wish.author or book.author,
                len(book.chapters), book.n_characters, (*book.notes, *([warning] if warning else [])),
            )  # fmt: skip
            await self._save(job)
        except BaseException:
            shutil.rmtree(ledger.place(id), ignore_errors=True)
            raise
        self._pump()
        return self._jobs[id]

    def all(self, owner: str) -> list[Job]:
        """The jobs of one owner, the newest first."""
        return [job for job in reversed(self._jobs.values()) if job.owner == owner]

    def get(self, owner: str, id: str) -> Job:
        job = self._jobs.get(id)
        if job is None or job.owner != owner:
            raise UnknownJob(f"no job {id[:40]!r}", param="id")
        return job

    def run(self, id: str) -> Run | None:
        """How a job under way is doing."""
        return self._runs.get(id)

    async def cancel(self, owner: str, id: str) -> Job:
        """Stops a job; what was spoken stays until it is deleted, so that it can be gone on with."""
        job = self.get(owner, id)
        if job.state == "done":
            raise WrongState("the job is done; delete it if it is not wanted", param="id")
        # First of all, so that nobody starts it again.
        self._jobs[id] = job = replace(job, state="cancelled", error=None)
        await self._stop(id)
        return await self._save(job)

    async def resume(self, owner: str, id: str) -> Job:
        """Goes on with a job that was paused, cancelled or failed, from the last passage that was kept."""
        job = self.get(owner, id)
        if job.state == "done":
            raise WrongState("the job is done; nothing is left to do", param="id")
        if job.state in ENDED:
            await self._save(replace(job, state="queued", error=None))
            self._pump()
        return self._jobs[id]

    async def delete(self, owner: str, id: str) -> None:
        """The job and its files."""
        self._jobs[id] = replace(self.get(owner, id), state="cancelled")
        await self._stop(id)
        self._jobs.pop(id, None)
        ledger = await self._opened()
        await self._at_desk(partial(ledger.remove, id))
        self._tell(id)

    def file(self, owner: str, id: str, what: str) -> Path:
        """The finished audio or captions."""
        job = self.get(owner, id)
        if job.state != "done":
            raise WrongState(f"the job is {job.state}; its files are there when it is done", param="id")
        if what == "captions" and job.captions is None:
            raise UnknownJob("this job was asked for no captions; ask with captions=srt, vtt or json", param="id")
        assert self._ledger is not None
        return file_of(job, self._ledger.place(id), what)

    async def watch(self, owner: str, id: str) -> AsyncGenerator[Job]:
        """The job now and after each change, until it has ended, is deleted, or the server goes down."""
        self.get(owner, id)
        while (job := self._jobs.get(id)) is not None:
            event = self._news.setdefault(id, asyncio.Event())
            yield job
            if job.state in ENDED or self._closing:
                return
            await event.wait()

    # -- one job -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Starts what may start: the oldest of each caller, as long as there is room."""
        busy = {self._jobs[id].caller for id in self._tasks if id in self._jobs}
        for job in list(self._jobs.values()):
            if self._closing or len(self._tasks) >= AT_ONCE:
                return
            if job.state in ("queued", "running") and job.id not in self._tasks and job.caller not in busy:
                busy.add(job.caller)
                self._tasks[job.id] = asyncio.create_task(self._worked(job.id))

    async def _worked(self, id: str) -> None:
        run = self._runs[id] = Run(time.monotonic())
        try:
            job = await self._save(replace(self._jobs[id], state="running", error=None))
            place = (await self._opened()).place(id)
            made = await self._studio.make(job, place, run, partial(self._tell, id))
            await self._save(replace(job, state="done", duration_s=made.duration_s, notes=made.notes))
        except (StorageFull, Draining) as exc:
            await self._ended(replace(self._jobs[id], state="paused", error=(exc.code, exc.message)))
        except TuttiError as exc:
            await self._ended(replace(self._jobs[id], state="failed", error=(exc.code, exc.message)))
        except Exception:
            log.exception("job failed id=%s", id)
            error = ("internal_error", "the server failed on this job; its log says more under the job's id")
            await self._ended(replace(self._jobs[id], state="failed", error=error))
        finally:
            self._tasks.pop(id, None)
            self._runs.pop(id, None)
            self._tell(id)
            self._pump()

    async def _stop(self, id: str) -> None:
        task = self._tasks.get(id)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _ended(self, job: Job) -> None:
        log.warning("job %s id=%s code=%s", job.state, job.id, job.error[0] if job.error else "-")
        try:
            await self._save(job)
        except StorageFull:
            self._jobs[job.id] = job  # not on a disk that is full, but whoever asks is told

    # -- the ledger and the disk ---------------------------------------------------------------------------------

    async def _opened(self) -> Ledger:
        async with self._opening:
            if self._ledger is None:
                ledger = await self._at_desk(partial(Ledger, self._folder))
                self._jobs = {job.id: job for job in await self._at_desk(ledger.all)}
                self._ledger = ledger
        return self._ledger

    async def _save(self, job: Job) -> Job:
        ledger = await self._opened()
        await self._at_desk(partial(ledger.save, job))
        self._jobs[job.id] = job
        self._tell(job.id)
        return job

    async def _check_room(self, ledger: Ledger, owner: str) -> None:
        n_jobs = sum(job.owner == owner for job in self._jobs.values())
        if n_jobs >= self._limits.max_jobs:
            raise TooManyJobs(f"{n_jobs} jobs are kept for you, the most there may be; delete some (TUTTI_MAX_JOBS)")
        n_bytes = await self._at_desk(ledger.n_bytes)
        if n_bytes >= self._limits.max_bytes:
            raise TooManyJobs(
                f"all jobs hold {n_bytes / 1e9:.1f} GB, the most they may; delete some (TUTTI_MAX_JOBS_GB)"
            )

    async def _check_disk(self, ledger: Ledger, n_characters: int) -> None:
        needed, free = n_characters * BYTES_A_CHARACTER, await self._at_desk(ledger.free_bytes)
        if needed > free:
            raise StorageFull(
                f"this book needs about {needed / 1e9:.1f} GB on the server's disk, which has {free / 1e9:.1f} GB left"
            )

    async def _at_desk(self, act: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._desk, act)

    def _tell(self, id: str) -> None:
        if event := self._news.pop(id, None):
            event.set()
