"""The thin loop between the scheduler, which decides, and the worker, which runs."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import Batch, Job, Key, StageName
from tutti.batching.policies import Policy
from tutti.batching.scheduler import Scheduler
from tutti.engine.row import Ask, Row, Take
from tutti.engine.stats import BatchStats
from tutti.engine.warmup import WarmUp
from tutti.errors import DeviceFull, ModelFailed, TuttiError, WorkerLost
from tutti.model.onnx.incremental.spans import MIN_FRAMES
from tutti.speech import Samples, Timing
from tutti.worker.base import Worker

log = logging.getLogger(__name__)

MAX_LOST = 2  # workers that may die under a row before the row is taken for the cause
LOOK = 0.5  # of the predicted seconds of a batch: then comes the next one's turn to be formed, where that is clear
AT_ONCE = 4  # rows of a batch that are handed out in one turn of the event loop
LESSON_S = 0.002  # where nobody waits for the worker: what a batch teaches is learned after those who hear it went on
HANG = 10.0  # times the predicted seconds: a batch that takes longer hangs
HANG_S = 30.0  # but never less than this: a busy machine is no hang

Found = Sequence[NDArray[np.int64]] | Sequence[Samples]  # durations of each row, or its sound


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A batch that left the line."""

    batch: Batch
    rows: Sequence[Row]
    on: bool  # the worker begins with the second stage unasked
    answer: asyncio.Future[Found]


class Batcher:
    """One worker and its queue. A batch is formed when the worker is free, so load makes the batches by itself.

    Or a little before, where that is clear: then the worker goes on to it at once.
    """

    def __init__(
        self,
        worker: Worker,
        scheduler: Scheduler,
        stats: BatchStats,
        warm_up: WarmUp | None = None,
        name: str = "0",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.worker = worker
        self.scheduler = scheduler
        self._stats = stats
        self._warm_up = warm_up
        self.name = name
        self._clock = clock
        self._ids = count()
        self._rows: dict[Job, Row] = {}  # that wait
        self._running: Run | None = None
        self._ahead: Run | None = None  # what the worker does next, where it knows that already
        self._work = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.worker.start()
        if self._warm_up is not None:
            await self._warm_up(self.worker)
        self._loop = asyncio.create_task(self._run(), name="tutti-batcher")

    async def close(self) -> None:
        """Whoever still waits is told that the worker is gone."""
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop
        self._fail_all(WorkerLost("the engine was closed"))
        await self.worker.close()

    @property
    def ready(self) -> bool:
        return self.worker.status.state in ("ready", "busy")

    @property
    def backlog_s(self) -> float:
        return self.scheduler.backlog_s(self._clock())

    def admit(self, ask: Ask) -> None:
        """Lets a new stream in by its first row, or raises QueueFull."""
        now = self._clock()
        reading_s = self.scheduler.predict(Key(ask.checkpoint, "acoustic"), len(ask.utterance.tokens))
        sounding_s = self.scheduler.predict(Key(ask.checkpoint, "vocoder"), ask.first_frames)
        try:
            self.scheduler.admit(ask.kind, ask.caller, reading_s + sounding_s, ask.deadline_s, now, stream=ask.stream)
        except TuttiError:
            self._stats.rejected(ask.kind)
            raise

    async def say(self, ask: Ask) -> Take:
        """The row's samples. Cancelled, it is forgotten wherever it is."""
        row = Row(next(self._ids), ask, asyncio.get_running_loop().create_future())
        self._read(row)
        try:
            return await row.answer
        except asyncio.CancelledError:
            self._forget(row)
            raise

    def hasten(self, stream: int, by_s: float) -> None:
        """Its listener began to hear so much sooner than was thought, and will need all the rest sooner."""
        now = self._clock()
        running = [row for run in (self._running, self._ahead) if run for row in run.rows]
        waiting = [(job, row) for job, row in self._rows.items() if row.ask.stream == stream]
        for job, row in waiting:
            if not job.goes_on:  # its time was known
                del self._rows[job]
                row.job = self.scheduler.hasten(job, by_s, now)
                self._rows[row.job] = row
        for row in (*running, *(row for _, row in waiting)):
            if row.ask.stream == stream:
                row.ask = replace(row.ask, deadline_s=row.ask.deadline_s - by_s)

    def use(self, policy: Policy) -> None:
        """Form batches by this policy from the next one on."""
        self.scheduler.use(policy, self._clock())
        self._work.set()  # somebody's turn may have come with it

    def stream_of(self, job: Job) -> int:
        """Whose a job that waits is; its own number differs where it is a later stretch of a row."""
        return self._rows[job].ask.stream if job in self._rows else job.stream

    # -- from arrival to answer ----------------------------------------------------------------------------------

    def _read(self, row: Row) -> None:
        """The row waits for the acoustic stage."""
        then_s = self.scheduler.allow_s(Key(row.ask.checkpoint, "vocoder"), row.ask.first_frames)
        self._add(self._job(row, "acoustic", len(row.ask.utterance.tokens), then_s))

    def _sound(self, row: Row) -> Job:
        """The row is for the vocoder, its true length known; if it may, stretch by stretch."""
        if not row.spans:
            whole_s = self.scheduler.predict(Key(row.ask.checkpoint, "vocoder"), row.n_frames)
            row.cut(whole_s, self._a_frame_s(row), self.scheduler.limits.cap_s, self._clock())
        return self._job(row, "vocoder", row.n_worked, 0.0, row.heard_until_s)

    def _job(self, row: Row, stage: StageName, size: int, then_s: float, due_s: float | None = None) -> Job:
        now, ask = self._clock(), row.ask
        key = Key(ask.checkpoint, stage)
        # A later stretch must not wait behind the next chunk of its own stream: its deadline alone says when.
        # And it goes on in its turn though it may be late: whoever listens has begun.
        goes_on = due_s is not None
        stream, deadline_s = (-1 - row.id, due_s) if due_s is not None else (ask.stream, ask.deadline_s)
        job = Job(key, stream, ask.kind, size, deadline_s, then_s, ask.caller, ask.n_characters, now, goes_on)
        row.job = job
        self._rows[job] = row
        return job

    def _add(self, job: Job) -> None:
        self.scheduler.add(job, job.arrived_s)
        self._work.set()

    def _forget(self, row: Row) -> None:
        self._unqueue(row)
        self._stats.ended("cancelled")

    def _unqueue(self, row: Row) -> None:
        if row.job is not None and self.scheduler.cancel(row.job):
            del self._rows[row.job]
        self.worker.forget([row.id])

    def _fail(self, row: Row, exc: TuttiError) -> None:
        if not row.answer.done():
            row.answer.set_exception(exc)
            self._stats.ended("failed")
        self.worker.forget([row.id])

    def _fail_all(self, exc: TuttiError) -> None:
        running, self._running = self._running.rows if self._running else (), None
        for row in (*running, *self._recalled(), *self._rows.values()):
            self._fail(row, exc)
        self._rows.clear()

    # -- the loop ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except Exception:  # noqa: BLE001 - whatever it was, all who wait are told
                self._begin_anew()

    async def _turn(self) -> None:
        """One batch, or a wait until there may be one."""
        run = self._ahead or self._form(self.scheduler.next_batch(self._clock()))
        self._ahead = None
        self._stats.queue(self.scheduler.waiting(), self.scheduler.backlog_s(self._clock()))
        if run is not None:
            await self._do(run)
            return
        now = self._clock()
        wake_at = self.scheduler.wake_at(now)
        await self._somebody(None if wake_at is None else max(0.0, wake_at - now))

    async def _somebody(self, most_s: float | None) -> None:
        """Until somebody comes, but no longer than that."""
        self._work.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._work.wait()

    def _begin_anew(self) -> None:
        """A defect of ours: nobody knows any more who waits for what, so all are told, and others can come."""
        log.critical("the batching failed and begins anew", exc_info=True)
        self.scheduler = self.scheduler.emptied()  # first of all: the old one may fail at anything
        self._fail_all(ModelFailed("the batching failed, not for anything in this request; ask again"))

    def _form(self, batch: Batch | None) -> Run | None:
        """The batch with its rows, which wait no longer: the worker has them."""
        if batch is None:
            return None
        rows = [self._rows[job] for job in batch.jobs]
        for job in batch.jobs:
            del self._rows[job]
        on = batch.key.stage == "acoustic" and not self._rows and not any(row.ask.early for row in rows)
        return Run(batch, rows, on, self._ask(batch, rows, on))

    def _ask(self, batch: Batch, rows: Sequence[Row], on: bool) -> asyncio.Future[Any]:
        timeout_s = max(HANG_S, HANG * batch.predicted_s)
        if batch.key.stage == "acoustic":
            asked = [(row.id, row.ask.utterance) for row in rows]
            return self.worker.acoustic(batch.key.checkpoint, asked, timeout_s, on=on)
        spans = {row.id: row.span for row in rows if row.span}
        return self.worker.vocoder(batch.key.checkpoint, [row.id for row in rows], timeout_s, spans)

    async def _do(self, run: Run) -> None:
        """One batch through its stage, and what became of it."""
        self._running, started_s = run, self._clock()
        for job, row in zip(run.batch.jobs, run.rows, strict=True):
            row.queue_s += started_s - job.arrived_s
        self._stats.started(self.name, run.batch, started_s, [row.ask.stream for row in run.rows])
        looking = asyncio.get_running_loop().call_later(LOOK * run.batch.predicted_s, self._look_ahead)
        try:
            found = await run.answer
        except WorkerLost as exc:
            self._stats.broke(self.name, "lost")
            self._lost(run, exc)
        except TuttiError as exc:
            self._stats.broke(self.name, "failed")
            self._broke(run.batch, run.rows, exc)
        else:
            took_s = self._clock() - started_s
            self._pass(run, found, took_s)
            self.scheduler.freed(run.batch, took_s, self._clock())
            self._stats.finished(self.name, run.batch, took_s, self.scheduler.cost_error(run.batch.key))
            if not self._rows and self._ahead is None:
                await self._somebody(LESSON_S)
            self.scheduler.learn(run.batch, took_s)
        finally:
            looking.cancel()
        self._stats.worker(self.name, self.worker.status)

    def _look_ahead(self) -> None:
        """If it is clear what runs next, the worker is told before it is free, and need not wait for us."""
        if self._running and self._running.on:
            return  # it goes on by itself
        try:
            self._ahead = self._form(self.scheduler.next_batch_ahead(self._clock()))
        except Exception:  # noqa: BLE001 - as above
            self._begin_anew()

    def _pass(self, run: Run, found: Found, took_s: float) -> None:
        """The rows go on: to the vocoder, to which the worker may have gone on with them, or to whoever asked."""
        batch, rows = run.batch, run.rows
        if batch.key.stage == "vocoder":
            self._hand_out(deque(zip(rows, cast(Sequence[Samples], found), strict=True)), took_s, batch.rows)
            return
        read = []
        for row, frames in zip(rows, found, strict=True):
            if row.answer.done():
                self.worker.forget([row.id])
                continue
            row.durations, row.acoustic_s = cast(NDArray[np.int64], frames), took_s
            read.append(self._sound(row))
        if run.on and read:
            self._ahead = self._form(self.scheduler.begun(read, self._clock()))
        else:
            for job in read:
                self._add(job)

    def _hand_out(self, sounds: deque[tuple[Row, Samples]], took_s: float, n_rows: int) -> None:
        """The most urgent first, a few at a time: what their listeners do with it must not keep the worker waiting."""
        for _ in range(min(AT_ONCE, len(sounds))):
            row, samples = sounds.popleft()
            if not row.answer.done():
                self._heard(row, samples, Timing(0.0, row.queue_s, row.acoustic_s, took_s, n_rows))
        if sounds:
            asyncio.get_running_loop().call_soon(self._hand_out, sounds, took_s, n_rows)

    def _heard(self, row: Row, samples: Samples, timing: Timing) -> None:
        """Answers whoever waits; a row with stretches left goes on."""
        answer = row.answer
        if not row.sounded(samples, self._a_frame_s(row), self._clock()):
            answer.set_result(Take(samples, row.durations, timing))
            self._stats.ended("spoken")
            return
        row.queue_s = row.acoustic_s = 0.0
        row.answer = asyncio.get_running_loop().create_future()
        row.answer.add_done_callback(lambda then: self._forget(row) if then.cancelled() else then.exception())
        answer.set_result(Take(samples, row.durations, timing, row.answer))
        self._add(self._sound(row))

    def _broke(self, batch: Batch, rows: Sequence[Row], exc: TuttiError) -> None:
        """One bad row must not cost the others: halves run again, down to the row that is to blame."""
        now = self._clock()
        if batch.rows == 1:
            self.scheduler.lost(batch, now)
            self._fail(rows[0], exc)
            return
        log.warning("batch failed, its halves run apart stage=%s rows=%d: %s", batch.key.stage, batch.rows, exc)
        self._stats.retried("device_full" if isinstance(exc, DeviceFull) else "bisected", batch.rows)
        self._rows.update(zip(batch.jobs, rows, strict=True))
        if isinstance(exc, DeviceFull):
            self.scheduler.device_full(batch, now)
        else:
            self.scheduler.failed(batch, now)
        for row in rows:
            if row.answer.done():  # its caller left while the batch ran
                self._unqueue(row)

    def _lost(self, run: Run, exc: WorkerLost) -> None:
        """The worker died with all it held: every row starts again, those of this batch once."""
        self.scheduler.lost(run.batch, self._clock())
        for row in run.rows:
            row.n_lost += 1
            if row.n_lost >= MAX_LOST:
                self._fail(row, exc)
        between = [job for job in self._rows if job.key.stage == "vocoder"]
        for job in between:
            self.scheduler.cancel(job)
        again = [row for row in (*run.rows, *self._recalled(), *map(self._rows.pop, between)) if not row.answer.done()]
        log.warning("worker lost, rows start again rows=%d: %s", len(again), exc)
        self._stats.retried("worker_lost", len(again))
        for row in again:
            self._read(row)

    def _recalled(self) -> Sequence[Row]:
        """The rows of the batch that the worker would have run next; they are not to blame for its end."""
        run, self._ahead = self._ahead, None
        if run is None:
            return ()
        run.answer.cancel()
        self.scheduler.lost(run.batch, self._clock())
        return run.rows

    def _a_frame_s(self, row: Row) -> float:
        """What the vocoder takes for a frame of a long row."""
        return self.scheduler.predict(Key(row.ask.checkpoint, "vocoder"), MIN_FRAMES) / MIN_FRAMES
