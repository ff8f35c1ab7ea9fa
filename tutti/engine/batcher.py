"""The asyncio loop between the scheduler, which decides, and the worker, which runs."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from tutti.batching.job import Batch, Job, Key, Priority
from tutti.batching.policies import Policy
from tutti.batching.scheduler import PREFETCH_AT, Scheduler
from tutti.engine.rolling import BusyShare
from tutti.engine.row import MIN_SPLIT_S, Row, RowAudio
from tutti.engine.send_batch import send_batch
from tutti.engine.start_delay import StartDelay
from tutti.engine.stats import BatchStats
from tutti.engine.warmup import WarmUp
from tutti.errors import DeviceFull, ModelFailed, QueueFull, RowsLost, TuttiError, WorkerLost
from tutti.speech import Samples, Timing
from tutti.worker.base import Worker
from tutti.worker.messages import BothStages

log = logging.getLogger(__name__)

MAX_LOST = 2  # worker deaths after which a row of the running batch is treated as their cause, and fails
ROWS_PER_TURN = 4  # rows delivered in one turn of the event loop: their listeners must not keep the worker waiting
LONG_FRAMES = 200  # a row of this length tells what a frame costs
BUSY_OVER_S = 10.0  # time constant of the busy share; larger is smoother, and reacts later

Started = tuple[Batch, asyncio.Future[Any]]  # a batch that the worker has, and its result


class Batcher:
    """One worker and its queue. A batch is formed when the worker becomes free, so batches grow with the load.

    The next batch is formed earlier (prefetched) if no arrival could change it, so that the worker need not wait.
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
        self.warm_up = warm_up
        self.name = name
        self._clock = clock
        self._ids = count()
        self._rows: dict[Job, Row] = {}  # of the jobs that wait or run
        # Batches that ended and were not learned from: their seconds, and when they started if that was not recorded.
        self._finished: list[tuple[Batch, float, float | None]] = []
        self._prefetched: Started | None = None  # the batch that the worker runs next
        self.start_delay = StartDelay()
        self._busy = BusyShare(BUSY_OVER_S, clock())
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.worker.start()
        if self.warm_up is not None:
            await self.warm_up(self.worker)
        self._loop = asyncio.create_task(self._run(), name="tutti-batcher")
        self.start_delay.start()

    async def close(self) -> None:
        """Stop; all rows in progress fail."""
        self.start_delay.stop()
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop
        self._fail_all(WorkerLost("the engine was closed"))
        await self.worker.close()

    @property
    def ready(self) -> bool:
        return self.worker.status.state in ("ready", "busy", "asleep")

    @property
    def backlog_s(self) -> float:
        return self.scheduler.backlog_s(self._clock())

    @property
    def busy_ratio(self) -> float:
        """Share of the last seconds in which the worker had a batch."""
        return self._busy.ratio(self._clock())

    def speak(self, row: Row) -> asyncio.Future[RowAudio]:
        """Queue a row; return the future of its samples. Cancelling the future cancels the row.

        Raises QueueFull if the row starts a stream that cannot be served in time.
        """
        row.id = next(self._ids)
        job = self._acoustic_job(row)
        if row.starts_stream:
            with self._admission(row.priority):
                self.scheduler.admit(job, self._clock())
            if job.starts_late:
                row.playback.start_late(job.deadline_s)
        self._watch(row)
        self._add(row, job)
        return row.future

    def check_wait(self, checkpoint: str, target_s: float, max_start_s: float | None, caller: str) -> None:
        """Raise QueueFull if a new stream would be refused, before any work is done for it."""
        with self._admission("first"):
            self.scheduler.check_wait(checkpoint, target_s, max_start_s, caller, self._clock())

    @contextmanager
    def _admission(self, priority: Priority) -> Iterator[None]:
        """Tell the scheduler what a stream loses beside the device, and count a refusal."""
        self.scheduler.start_delay_s = self.start_delay.seconds
        try:
            yield
        except QueueFull:
            self._stats.rejected(priority)
            raise

    def predicted_wait_s(self, checkpoint: str, priority: Priority, target_s: float) -> float:
        """Seconds that a new stream would wait before its work begins, if its first audio is due after `target_s`."""
        self.scheduler.start_delay_s = self.start_delay.seconds
        return self.scheduler.predicted_wait_s(checkpoint, priority, target_s, self._clock())

    def move_deadlines(self, stream: int) -> None:
        """Rank all jobs of a stream again, after its listener started to play."""
        now = self._clock()
        for job, row in self._rows.items():
            if row.stream == stream and not job.is_continuation:  # a continuation follows what is being played
                self.scheduler.move_deadline(job, row.deadline_s, now)

    def use(self, policy: Policy) -> None:
        """Form batches by this policy from the next one on."""
        self.scheduler.use(policy, self._clock())
        self._wake.set()

    # -- rows and jobs ---------------------------------------------------------------------------------------------

    def _acoustic_job(self, row: Row) -> Job:
        later_s = self.scheduler.predict(Key(row.checkpoint, "vocoder"), row.first_audio_frames)
        key, size = Key(row.checkpoint, "acoustic"), len(row.utterance.tokens)
        return self._job(row, key, size, row.deadline_s, later_s)

    def _vocoder_job(self, row: Row) -> Job:
        """The job for the next span of a row, or for all of it, now that its length is known."""
        key = Key(row.checkpoint, "vocoder")
        if not row.spans and row.span_rules is None:
            row.spans.append((0, row.n_frames))
        elif not row.spans:
            whole_s = self.scheduler.predict(key, row.n_frames)
            row.plan_spans(whole_s, self._frame_s(row), self.scheduler.limits.cap_s, self._clock())
        continuation_s = row.continuation_deadline_s
        job = self._job(row, key, row.span_cost_frames, row.deadline_s if continuation_s is None else continuation_s)
        job.is_continuation = continuation_s is not None
        return job

    def _job(self, row: Row, key: Key, size: int, deadline_s: float, later_s: float = 0.0) -> Job:
        now = self._clock()
        return Job(
            key, row.stream, row.priority, size, deadline_s, later_s, row.caller, row.n_characters, now,
            starts_stream=row.starts_stream, starts_late=row.playback.starts_late, max_start_s=row.max_start_s,
        )  # fmt: skip

    def _add(self, row: Row, job: Job) -> None:
        row.job = job
        self._rows[job] = row
        self.scheduler.add(job, job.arrived_s)
        self._wake.set()

    def _watch(self, row: Row) -> None:
        """Cancel the row when its future is cancelled."""
        row.future.add_done_callback(lambda future: self._cancel(row) if future.cancelled() else future.exception())

    def _cancel(self, row: Row) -> None:
        self._unqueue(row)
        self._stats.ended("cancelled")

    def _unqueue(self, row: Row) -> None:
        if row.job is not None and self.scheduler.cancel(row.job):
            del self._rows[row.job]
        self.worker.forget([row.id])

    def _fail(self, row: Row, error: TuttiError) -> None:
        if not row.future.done():
            row.future.set_exception(error)
            self._stats.ended("failed")
        self.worker.forget([row.id])

    def _fail_all(self, error: TuttiError) -> None:
        if self._prefetched:
            self._prefetched[1].cancel()
            self._prefetched = None
        self._finished.clear()
        rows, self._rows = self._rows, {}
        for row in rows.values():
            self._fail(row, error)

    def _may_split(self, row: Row) -> bool:
        """Whether the row may be worth cutting, before its length is known, or was cut before its worker died."""
        if row.spans or row.span_rules is None:
            return bool(row.spans)
        return self.scheduler.predict(Key(row.checkpoint, "vocoder"), row.estimated_frames) >= MIN_SPLIT_S / 2

    def _frame_s(self, row: Row) -> float:
        """Predicted seconds of the vocoder for a frame of a long row."""
        return self.scheduler.predict(Key(row.checkpoint, "vocoder"), LONG_FRAMES) / LONG_FRAMES

    # -- the loop --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except Exception:  # noqa: BLE001 - after any bug, all waiting rows must fail and the loop must continue
                self._reset()

    async def _turn(self) -> None:
        """Run one batch, or wait until there may be one."""
        started = self._next()
        if started is None and self._finished:
            await asyncio.sleep(0)  # let the callers use their samples first; one may bring the next row
            started = self._next()
        started_s = self._clock()
        self._busy.set(started_s, busy=started is not None)
        self._learn()  # while the worker runs the next batch
        if started is not None:
            await self._finish(*started, started_s)
            return
        now = self._clock()
        wake_at = self.scheduler.wake_at(now)
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if wake_at is None else max(0.0, wake_at - now)):
                await self._wake.wait()

    def _next(self) -> Started | None:
        """Send the next batch to the worker, unless it has it already; none if no job may run."""
        started, self._prefetched = self._prefetched, None
        return started or self._start(self.scheduler.next_batch(self._clock()))

    def _learn(self) -> None:
        """Update the costs and the statistics with the batches that ended."""
        for batch, took_s, started_s in self._finished:
            if started_s is not None:
                self._stats.started(self.name, batch, started_s)
            self.scheduler.finished(batch, took_s, self._clock())
            self._stats.finished(self.name, batch, took_s, self.scheduler.cost_error(batch.key))
        self._finished.clear()

    def _reset(self) -> None:
        """Start again with an empty scheduler after a bug: the state of the old one cannot be trusted."""
        log.critical("the batcher failed and starts again", exc_info=True)
        self.scheduler = self.scheduler.empty_copy()  # first: anything else may fail with the old one
        self._fail_all(ModelFailed("the batcher failed, not because of this request; send it again"))

    def _start(self, batch: Batch | None) -> Started | None:
        """Send a batch to the worker; both stages in one call if no other row waits for one of them."""
        if batch is None:
            return None
        rows = [self._rows[job] for job in batch.jobs]
        is_alone = len(self._rows) == len(rows) and not any(self._may_split(row) for row in rows)
        return batch, send_batch(self.worker, batch, rows, both_stages=is_alone)

    async def _finish(self, batch: Batch, result: asyncio.Future[Any], started_s: float) -> None:
        """Wait for a batch and apply its result."""
        self._stats.started(self.name, batch, started_s)
        prefetch = asyncio.get_running_loop().call_later(PREFETCH_AT * batch.predicted_s, self._prefetch)
        try:
            value = await result
        except TuttiError as exc:
            value = exc
        finally:
            prefetch.cancel()
        if batch.jobs[0] not in self._rows:
            return  # the batcher was reset meanwhile
        for job in batch.jobs:
            self._rows[job].record_batch(batch, started_s, self._clock())
        if isinstance(value, WorkerLost):
            self._stats.failed(self.name, batch, "lost")
            self._lost(batch, value)
        elif isinstance(value, TuttiError):
            self._stats.failed(self.name, batch, "failed")
            self._bisect(batch, value)
        elif isinstance(value, BothStages):
            self._both_stages_done(batch, value, started_s)
        else:
            self._stage_done(batch, value, self._clock() - started_s)
        self._stats.worker(self.name, self.worker.status)

    def _prefetch(self) -> None:
        """Send the next batch before the worker is free, if nothing can change it any more."""
        try:
            self._prefetched = self._start(self.scheduler.next_batch(self._clock(), prefetch=True))
        except Exception:  # noqa: BLE001 - as in `_run`
            self._reset()

    def _stage_done(self, batch: Batch, values: Sequence[Any], took_s: float) -> None:
        """Pass the rows of a batch on: from the acoustic stage to the vocoder, from there to their callers."""
        rows = [self._rows.pop(job) for job in batch.jobs]
        if batch.key.stage == "vocoder":
            self._deliver(deque(zip(rows, values, strict=True)), took_s, batch.n_rows)
        else:
            for row, durations in zip(rows, values, strict=True):
                row.acoustic_done(durations, took_s)
                if row.future.done():
                    self.worker.forget([row.id])
                else:
                    self._add(row, self._vocoder_job(row))
        self._finished.append((batch, took_s, None))

    def _both_stages_done(self, batch: Batch, value: BothStages, started_s: float) -> None:
        """Deliver the rows of a call that ran both stages, and account for each stage."""
        rows = [self._rows.pop(job) for job in batch.jobs]
        for row, durations in zip(rows, value.durations, strict=True):
            row.acoustic_done(durations, value.acoustic_s)
        jobs = [self._vocoder_job(row) for row in rows]
        self._deliver(deque(zip(rows, value.samples, strict=True)), value.vocoder_s, batch.n_rows)
        for job in jobs:
            job.arrived_s = started_s + value.acoustic_s
        vocoder = self.scheduler.fused_batch(jobs, self._clock())
        self._finished += [(batch, value.acoustic_s, None), (vocoder, value.vocoder_s, jobs[0].arrived_s)]

    def _deliver(self, audio: deque[tuple[Row, Samples]], took_s: float, n_rows: int) -> None:
        """Answer the callers, the most urgent first, a few in each turn of the event loop."""
        for _ in range(min(ROWS_PER_TURN, len(audio))):
            row, samples = audio.popleft()
            if not row.future.done():
                self._answer(row, samples, Timing(0.0, row.queue_s, row.acoustic_s, took_s, n_rows))
        if audio:
            asyncio.get_running_loop().call_soon(self._deliver, audio, took_s, n_rows)

    def _answer(self, row: Row, samples: Samples, timing: Timing) -> None:
        """Hand the samples to the caller, and queue the next span if there is one."""
        future = row.future
        if row.continuation_deadline_s is None and self._stats.chunk_lines.passes():  # once, with its first span
            row.log_spoken(timing, is_batching=self.scheduler.limits.max_rows > 1)
        if row.span_rules is None or not row.span_done(samples, self._frame_s(row), self._clock()):
            future.set_result(RowAudio(samples, row.durations, timing))
            self._stats.ended("spoken")
            return
        row.queue_s = row.acoustic_s = 0.0
        row.future = asyncio.get_running_loop().create_future()
        self._watch(row)
        future.set_result(RowAudio(samples, row.durations, timing, row.future))
        self._add(row, self._vocoder_job(row))

    # -- failures --------------------------------------------------------------------------------------------------

    def _bisect(self, batch: Batch, error: TuttiError) -> None:
        """Run the halves of a failed batch again, until the failing row is alone."""
        now = self._clock()
        then = "its row fails" if batch.n_rows == 1 else "its halves run apart"
        log.warning(
            "batch failed, %s worker=%s stage=%s ok=0/%d checkpoint=%s: %s",
            then, self.name, batch.key.stage, batch.n_rows, batch.key.checkpoint, error,
        )  # fmt: skip
        if batch.n_rows == 1:
            self.scheduler.lost(batch, now)
            self._fail(self._rows.pop(batch.jobs[0]), error)
            return
        self._stats.retried("device_full" if isinstance(error, DeviceFull) else "bisected", batch.n_rows)
        if isinstance(error, DeviceFull):
            self.scheduler.device_full(batch, now)
        else:
            self.scheduler.failed(batch, now)
        for row in [self._rows[job] for job in batch.jobs]:
            if row.future.done():  # cancelled while the batch ran
                self._unqueue(row)

    def _lost(self, batch: Batch, error: WorkerLost) -> None:
        """Start every row again: the worker died with all frames. A row that ran at MAX_LOST deaths fails."""
        self.scheduler.lost(batch, self._clock())
        for job in batch.jobs:
            row = self._rows[job]
            row.n_lost += not isinstance(error, RowsLost)
            if row.n_lost >= MAX_LOST:
                self._fail(row, error)
        lost = list(batch.jobs)
        if self._prefetched:  # it had not started, so it does not count as a cause
            next_batch, result = self._prefetched
            self._prefetched = None
            result.cancel()
            self.scheduler.lost(next_batch, self._clock())
            lost += next_batch.jobs
        for job in [job for job in self._rows if job.key.stage == "vocoder"]:
            if self.scheduler.cancel(job):
                lost.append(job)
        rows = [row for row in map(self._rows.pop, lost) if not row.future.done()]
        log.warning("worker lost, starting rows again worker=%s rows=%d: %s", self.name, len(rows), error)
        self._stats.retried("worker_lost", len(rows))
        for row in rows:
            self._add(row, self._acoustic_job(row))
