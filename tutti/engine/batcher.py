"""The asyncio loop between the scheduler, which decides, and the worker, which runs."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import count
from math import inf

from tutti.admission.loop_budget import ROWS_PER_TURN, LoopBudget
from tutti.admission.refusals import Asking, Refusals
from tutti.admission.start_delay import StartDelay
from tutti.batching.job import Batch, Job, Priority, StageName
from tutti.batching.policies import Policy
from tutti.batching.scheduler import Scheduler
from tutti.engine.device import STAGE_ORDER, BatchCall, Device, Measurement, WarmUp
from tutti.engine.playback import chunk_pace
from tutti.engine.row import CLOSED, TOO_SLOW, Row, RowAudio, RowIndex, new_future
from tutti.engine.stats import BatchStats
from tutti.errors import DeviceFull, ModelFailed, RowsLost, TooSlow, TuttiError, WorkerLost
from tutti.model.protocol import Ran
from tutti.speech import Samples, Timing
from tutti.tasks import Wakeup
from tutti.text.chunk import ChunkPace
from tutti.worker.base import Worker

log = logging.getLogger(__name__)

MAX_LOST = 2  # worker deaths after which a row of the running batch is treated as their cause, and fails


class Batcher:
    """One worker and its queue. A batch is formed when the worker becomes free, so batches grow with the load.

    The next batch is formed earlier (prefetched) if no arrival could change it, so that the worker need not wait.
    Where stages overlap, a batch of each stage runs at the same time.
    """

    def __init__(
        self,
        worker: Worker,
        scheduler: Scheduler,
        stats: BatchStats,
        warm_up: WarmUp | None = None,
        name: str = "0",
        clock: Callable[[], float] = time.monotonic,
        loop_budget: LoopBudget | None = None,
    ) -> None:
        """`loop_budget`: shared with others in the same event loop; none: its own."""
        self.worker, self.scheduler, self._stats = worker, scheduler, stats
        self.warm_up, self.name, self._clock = warm_up, name, clock
        self._ids = count()
        self._rows = RowIndex()
        self._measurements: list[Measurement] = []
        self._audio_streams: set[int] = set()  # streams that get audio in this step
        self.loop_budget = loop_budget or LoopBudget()
        self.start_delay = StartDelay(self.loop_budget, clock)
        self._had_lost_rows = False  # a worker died with rows that may still be here
        self._wakeup = Wakeup(lambda: self._guarded(self._step))
        self._device = Device(worker, self._wakeup.at_once, clock())

    async def start(self) -> None:
        await self.worker.start()
        if self.warm_up is not None:
            await self.warm_up(self.worker)
        self._wakeup.start()

    async def close(self) -> None:
        """Stop; all rows in progress fail, and the worker ends whatever raises."""
        self._wakeup.stop()
        try:
            self._fail_all(WorkerLost(CLOSED))
        finally:
            await self.worker.close()

    @property
    def ready(self) -> bool:
        return self.worker.status.state in ("ready", "busy", "asleep") and not self._device.is_overdue(self._clock())

    @property
    def refusals(self) -> Refusals:
        return self.scheduler.refusals

    @property
    def backlog_s(self) -> float:
        return self.scheduler.backlog_s(self._clock())

    @property
    def busy_ratio(self) -> float:
        """Share of the last seconds in which the worker had a batch."""
        return self._device.busy_ratio(self._clock())

    def speak(self, row: Row) -> asyncio.Future[RowAudio]:
        """Queue a row; return the future of its samples. `cancel` takes it back, with all rows of its stream.

        Raises QueueFull if the row starts a stream that cannot be served in time.
        """
        if self._wakeup.is_stopped:
            raise WorkerLost(CLOSED)
        row.id = next(self._ids)
        job = row.new_job(self.scheduler, self._clock())
        if row.starts_stream:
            with self._stats.counting_refusals(row.priority):
                self.scheduler.admit(job, self._clock(), delay_s=self.start_delay.after_reading_s)
            row.accepted(job)
        self._rows.add_open(row)
        self._guarded(self._add, row, job)
        return row.future

    def cancel(self, stream: int) -> None:
        """Cancel all rows of a stream whose caller has left: from now on no call starts for them."""
        self._guarded(self._cancel, self._rows.open_of(stream))

    def check_wait(self, asking: Asking, target_s: float) -> None:
        """Raise QueueFull if a new stream would be refused, before any work is done for it."""
        if self._rows or self.start_delay.n_starting:  # else nothing waits; `speak` looks at its own costs
            delay_s, n_starting = self.start_delay.seconds, self.start_delay.n_starting
            with self._stats.counting_refusals("first"):
                self.scheduler.check_wait(asking, target_s, self._clock(), delay_s=delay_s, n_starting=n_starting)

    @contextmanager
    def open_stream(self, stream: int, caller: str) -> Iterator[None]:
        """While entered, rows of this stream may come; at the end all that are left are cancelled."""
        self.scheduler.streams.opened(stream, caller)
        try:
            yield
        finally:
            self.scheduler.stream_ended(stream)
            self.cancel(stream)

    def predicted_wait_s(self, checkpoint: str, priority: Priority, target_s: float) -> float:
        """Seconds that a new stream would wait before its work begins, if its first audio is due after `target_s`."""
        delay_s = self.start_delay.seconds
        return self.scheduler.predicted_wait_s(checkpoint, priority, target_s, self._clock(), delay_s=delay_s)

    def chunk_pace(self, checkpoint: str, target_s: float, n_before: int, *, is_incremental: bool) -> ChunkPace:
        """How short the chunks of a new stream must be."""
        delay_s, now = self.start_delay.seconds, self._clock()
        return chunk_pace(self.scheduler, checkpoint, target_s, now, delay_s, n_before, is_incremental=is_incremental)

    def move_deadlines(self, stream: int) -> None:
        """Rank all jobs of a stream again, after its listener started to play."""
        self._rank_again({stream})

    def _rank_again(self, streams: Set[int]) -> None:
        now = self._clock()
        for job, row in self._rows.of_streams(streams):
            if not job.is_continuation:  # a continuation follows what is being played
                self.scheduler.move_deadline(job, row.deadline_s, now)

    def use(self, policy: Policy) -> None:
        """Form batches by this policy from the next one on."""
        self.scheduler.use(policy, self._clock())
        self._wakeup.soon()

    def _add(self, row: Row, job: Job) -> None:
        row.job = job
        self._rows.add(job, row)
        if row.is_isolated:
            self.scheduler.add_again((job,), job.arrived_s, isolated=True)
        else:
            self.scheduler.add(job, job.arrived_s)
        self._wakeup.soon()

    def _cancel(self, rows: Sequence[Row]) -> None:
        for row in rows:
            row.future.cancel()
        for row in rows:
            self._rows.remove_open(row)
            self._unqueue(row)
            self._stats.ended("cancelled")

    def _unqueue(self, row: Row) -> None:
        self.worker.forget([row.id])  # first: no later reset knows this row
        if row.job is not None and self.scheduler.cancel(row.job):
            self._rows.discard(row.job)

    def _fail(self, row: Row, error: TuttiError) -> None:
        failed = self._rows.fail([row], error)
        self._unqueue(row)
        for _ in failed:
            self._stats.ended("failed")

    def _fail_all(self, error: TuttiError) -> None:
        """Fail all rows and start with an empty scheduler. The callers come first: a later step may fail, too."""
        rows = self._rows.open
        failed, self._rows = self._rows.fail(rows, error), RowIndex()
        self._measurements.clear()
        self._device.clear(self._clock())
        self.scheduler = self.scheduler.empty_copy()
        self.worker.forget([row.id for row in rows])
        for _ in failed:
            self._stats.ended("failed")

    def _guarded(self, call: Callable[..., None], *args: object) -> None:
        """After any bug all rows fail, and the work goes on with an empty scheduler: the old one cannot be trusted."""
        try:
            call(*args)
        except (Exception, asyncio.CancelledError):  # cancelled: a result of the worker, from outside
            log.critical("the batcher failed and starts again", exc_info=True)
            self._wakeup.began()  # else a call that was to come, and has come, would count as still to come
            self._fail_all(ModelFailed("the batcher failed, not because of this request; send it again"))

    # -- the loop --------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Apply the results that are there and start what may run; after everything that may change one of them."""
        calls = self._device.ended()
        self._audio_streams.clear()
        for call in calls:
            self._apply(call)
        for job in self.scheduler.hopeless(self._clock()) if self._rows else ():
            self._fail(self._rows[job], TooSlow(TOO_SLOW, retry_after_s=self.backlog_s))
        self._wakeup.began()  # rows that were added until now are seen below
        if self._device.running or not self._rows.all_follow(self._audio_streams):
            self._fill()  # else in the next turn: it would delay the audio that is handed over now
        if calls and not self._device.running:
            self._wakeup.soon()  # let the callers use their samples first; one may bring the next row
        else:
            self._learn()  # while the worker runs the next batch

    def _fill(self) -> None:
        """Send the worker what it may run now and what it may run next; wake up when there may be more."""
        now, can_prefetch = self._clock(), self.scheduler.policy.can_prefetch
        stages: tuple[StageName | None, ...] = (None,)
        if can_prefetch and self.worker.status.stages_overlap:
            # After a death it gets one batch at a time: if it dies again, that one was the cause.
            stages, can_prefetch = ((None,), False) if self._has_lost_rows() else (STAGE_ORDER, True)
        again_s = [self._start(stage, now) for stage in stages]
        if can_prefetch:
            again_s += [self._prefetch(stage, now) for stage in stages]
        self._wakeup.after(min(again_s) - now)

    def _start(self, stage: StageName | None, now: float) -> float:
        """Start a batch of this stage, or of any, if none runs; return when to try again."""
        if self._device.runs(stage):
            return inf
        call = self._device.waits(stage)
        if call is None:
            if stage and self._device.running and (start_s := self.scheduler.start_beside_s(stage, now)) > now:
                return start_s
            call = self._send(self.scheduler.next_batch(now, stage=stage))
        if call is None:
            return inf if (wake_at := self.scheduler.wake_at(now)) is None else wake_at
        self._device.begin(call, now)
        self._stats.started(self.name, call.batch, now)
        if call.result.done():  # it came with the result before it, without a wake-up of its own
            self._wakeup.soon()
        return inf

    def _prefetch(self, stage: StageName | None, now: float) -> float:
        """Send the next batch before the worker is free, if nothing can change it any more; return when to try."""
        running = self._device.runs(stage)
        if running is None or self._device.waits(stage):
            return inf
        if now < running.prefetch_s:
            return running.prefetch_s
        running.prefetch_s = inf
        if call := self._send(self.scheduler.next_batch(now, prefetch=True, stage=stage)):
            self._device.waiting[call.stage] = call
        elif stage == "vocoder" and (last_call_s := self.scheduler.last_call_s(now)) > now:
            running.prefetch_s = last_call_s
        return running.prefetch_s

    def _has_lost_rows(self) -> bool:
        self._had_lost_rows = self._had_lost_rows and any(row.n_lost for row in self._rows.values())
        return self._had_lost_rows

    def _send(self, batch: Batch | None) -> BatchCall | None:
        """Send a batch to the worker."""
        return None if batch is None else self._device.send(batch, [self._rows[job] for job in batch.jobs])

    def _learn(self) -> None:
        """Update the costs and the statistics with the batches that ended."""
        for batch, took_s, device_s, started_s in self._measurements:
            if started_s is not None:
                self._stats.started(self.name, batch, started_s)
            self.scheduler.finished(batch, took_s, self._clock(), device_s / took_s if took_s else 1.0)
            self._stats.finished(self.name, batch, took_s, self.scheduler.cost(batch.key).error)
            self._stats.worker(self.name, self.worker.status)
        self._measurements.clear()

    def _apply(self, call: BatchCall) -> None:
        """Apply the result of a batch that ended."""
        batch, now = call.batch, self._clock()
        device_s = self._device.end(call, now)
        self.scheduler.ended(batch)
        for job in batch.jobs:
            self._rows[job].record_batch(batch, call.started_s, now)
        error = call.result.exception()
        if isinstance(error, WorkerLost):
            self._lost(batch, error)
        elif isinstance(error, TuttiError):
            self._stats.failed(self.name, batch, "failed", self.worker.status, error)
            self._bisect(batch, error)
        else:
            self._done(call, call.result.result(), now - call.started_s, device_s)

    def _done(self, call: BatchCall, ran: Ran, took_s: float, device_s: float) -> None:
        """Pass the rows of a batch on: from the acoustic stage to the vocoder, from there to their callers.

        A call of both stages says how long each of them took, and is accounted for as two batches.
        """
        batch = call.batch
        rows = [self._rows.pop(job) for job in batch.jobs]
        if batch.stages == "both":
            took_s = device_s = ran.acoustic_s
        self._measurements.append(Measurement(batch, took_s, device_s))
        if batch.stages != "vocoder":
            self._rows.acoustic_done(rows, ran.durations, took_s)
            self._rank_again({row.stream for row in rows})  # later chunks are needed sooner or later than estimated
        if batch.stages == "acoustic":
            self._queue_for_vocoder(rows)
            return
        if batch.stages == "both":
            between_s, took_s = call.started_s + ran.acoustic_s, ran.vocoder_s
            second = self.scheduler.second_stage([row.whole_job(self.scheduler, between_s) for row in rows])
            self._measurements.append(Measurement(second, took_s, took_s, between_s))
        self._deliver(deque(zip(rows, ran.samples, strict=True)), took_s, batch.n_rows)

    def _queue_for_vocoder(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.future.done():
                self.worker.forget([row.id])
            else:
                self._add(row, row.vocoder_job(self.scheduler, self._clock()))

    def _deliver(self, audio: deque[tuple[Row, Samples]], took_s: float, n_rows: int) -> None:
        """Answer the callers, the most urgent first, a few in each turn of the event loop."""
        self._audio_streams.update(row.stream for row, _ in audio)
        for _ in range(min(ROWS_PER_TURN, len(audio))):
            row, samples = audio.popleft()
            if not row.future.done():
                self._answer(row, samples, Timing(0.0, row.queue_s, row.acoustic_s, took_s, n_rows))
        if audio:
            asyncio.get_running_loop().call_soon(self._guarded, self._deliver, audio, took_s, n_rows)

    def _answer(self, row: Row, samples: Samples, timing: Timing) -> None:
        """Hand the samples to the caller, and queue the next span if there is one."""
        future, following, loop = row.future, None, asyncio.get_running_loop()
        is_first_span = row.continuation_deadline_s is None
        if row.span_rules and row.span_done(samples, row.frame_s(self.scheduler), self._clock()):
            row.queue_s = row.acoustic_s = 0.0
            following = row.future = new_future()
        else:
            self._rows.remove_open(row)
        future.set_result(RowAudio(samples, row.durations, timing, following))
        if following:
            self._add(row, row.vocoder_job(self.scheduler, self._clock()))
        else:
            self._stats.spoken(row.mode(self.scheduler.limits.max_rows))
        if is_first_span and self._stats.chunk_lines.passes():  # written when the caller has used its samples
            loop.call_soon(row.log_spoken, timing, self.scheduler.limits.max_rows)

    def _bisect(self, batch: Batch, error: TuttiError) -> None:
        """Run the halves of a failed batch again, until the failing row is alone."""
        now = self._clock()
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
        """Start every row again: the worker died with all frames. A row that ran at MAX_LOST deaths fails.

        Where stages overlap, two batches may be lost, one after the other, and either may be the cause.
        """
        now, is_dead = self._clock(), not isinstance(error, RowsLost)
        self._had_lost_rows |= is_dead
        self._stats.failed(self.name, batch, "lost", self.worker.status)
        self.scheduler.lost(batch, now)
        for row in [self._rows[job] for job in batch.jobs]:
            row.n_lost += is_dead
            if is_dead and self.worker.status.stages_overlap:
                row.is_isolated = True  # many ran with it: without them, the next death is its own
            if row.n_lost >= MAX_LOST:
                self._fail(row, error)
        jobs = list(batch.jobs)
        for waiting in self._device.drop_waiting(STAGE_ORDER if is_dead else ("vocoder",)):
            self.scheduler.lost(waiting.batch, now)  # it had not begun, so it does not count as a cause
            jobs += waiting.batch.jobs
        jobs += [job for job in list(self._rows) if job.key.stage == "vocoder" and self.scheduler.cancel(job)]
        rows = [row for row in map(self._rows.pop, jobs) if not row.future.done()]
        log.warning("worker lost, starting rows again worker=%s rows=%d: %s", self.name, len(rows), error)
        self._stats.retried("worker_lost", len(rows))
        for row in rows:
            self._add(row, row.acoustic_job(self.scheduler, self._clock()))
