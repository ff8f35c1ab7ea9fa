"""Discrete-event simulation of one device, its scheduler and its listeners. Pure: nothing runs, no time passes."""

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Protocol

from tutti.admission.feasibility import Remaining
from tutti.batching.job import Batch, Job, Key, Priority, StageName
from tutti.batching.layout import Features, RowSizes, row_sizes
from tutti.batching.scheduler import PREFETCH_AT, Scheduler
from tutti.errors import QueueFull

TOKENS_PER_S, FRAMES_PER_S = 15, 40  # of audio
MODEL = "kokoro"
AHEAD = 2  # chunks of a stream on their way at once
WHOLE_AHEAD = 8  # the same of a whole answer
FIRST_CHUNKS = 2  # chunks of a stream that count as first
PER_S: dict[StageName, int] = {"acoustic": TOKENS_PER_S, "vocoder": FRAMES_PER_S}


class SimulatedDevice(Protocol):
    """What a batch really takes, and the target for the first audio."""

    @property
    def target_s(self) -> float: ...

    def seconds(self, stage: StageName, sizes: Sequence[int]) -> float: ...


def _unchanged(length: int) -> int:
    return length


@dataclass(frozen=True, slots=True)
class Padded:
    """One pass over rows of equal length: lengths are rounded up by `fit`, the number of rows to one of `rows`."""

    fit: Callable[[int], int] = _unchanged
    rows: tuple[int, ...] = ()

    def _rows(self, n: int) -> int:
        i = bisect_left(self.rows, n)
        return self.rows[i] if i < len(self.rows) else n

    def in_memory(self, rows: RowSizes) -> int:
        return self._rows(rows.n_rows) * self.fit(rows.longest)

    def padded_size(self, sizes: Sequence[int]) -> int:
        return self.in_memory(row_sizes(sizes))

    def padded_lengths(self, sizes: Sequence[int]) -> list[int]:
        return [self.fit(max(sizes, default=0))] * len(sizes)

    def features(self, rows: RowSizes) -> Features:
        n, length = self._rows(rows.n_rows), self.fit(rows.longest)
        return (1.0, n, n * length, length)

    def lower_bound(self, rows: RowSizes) -> RowSizes | None:
        return None


@dataclass(slots=True, eq=False)
class SimulatedStream:
    """One request and its listener: what it asks for, and how it went."""

    number: int
    arrived_s: float
    chunks: list[float]  # seconds of audio of each
    priority: Priority = "first"
    caller: str = ""
    target_s: float | None = None  # to its first audio; none: that of the device
    max_start_s: float | None = None  # how long it may wait for it; none: as the scheduler says
    is_whole: bool = False  # answered in one piece: its chunks are made as fast as the device can
    rejected: bool = False
    given_up: bool = False  # after it was accepted: its client would have left before its first audio
    first_s: float | None = None  # when the first audio came
    extra_s: float = 0.0  # by how much it may start after its target
    made: int = 0  # chunks so far
    plays_until_s: float = 0.0
    dry_s: float = 0.0  # silence after the first audio
    done_s: float = inf

    @property
    def wait_s(self) -> float:
        return inf if self.first_s is None else self.first_s - self.arrived_s

    @property
    def starts_late(self) -> bool:
        return self.extra_s > 0.0

    def good(self, target_s: float) -> bool:
        return not self.rejected and self.done_s < inf and self.wait_s <= target_s and self.dry_s <= 1e-9


@dataclass
class Simulation:
    """Discrete-event simulation of one device, its scheduler and the players of all streams."""

    device: SimulatedDevice
    scheduler: Scheduler
    admission: bool = True
    safety_s: float = 0.0
    ahead: int = AHEAD  # chunks of a stream on their way at once
    is_paced: bool = True  # the next chunk is asked for when one starts to play; else as soon as one is there
    fuses: bool = False  # both stages run in one call if no other row is there, as in the engine
    busy_s: float = 0.0  # of the device so far
    free_s: float = 0.0  # when its last batch ended
    batches: list[tuple[float, Batch]] = field(default_factory=list)  # with their start
    most_waiting: int = 0

    def run(self, streams: Sequence[SimulatedStream], until_s: float = inf) -> None:
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._serial = itertools.count()
        self._busy = False
        self._wake_s = inf
        self._prefetched: Batch | None = None
        self._jobs: dict[Job, tuple[SimulatedStream, int]] = {}
        for stream in streams:
            self._at(stream.arrived_s, partial(self._arrive, stream))
        while self._events:
            now, _, event = heapq.heappop(self._events)
            if now > until_s:
                break
            event(now)
            if not self._events or self._events[0][0] > now:  # all events of one instant come before the decision
                self._decide(now)

    def _at(self, at_s: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._serial), event))

    def _arrive(self, stream: SimulatedStream, now: float) -> None:
        self.scheduler.streams.opened(stream.number, stream.caller)
        first = self._job(stream, 0, "acoustic", now)
        if self.admission:
            try:
                self.scheduler.admit(first, now)
            except QueueFull:
                stream.rejected = True
                self.scheduler.stream_ended(stream.number)
                return
            if first.starts_late:
                stream.extra_s = first.deadline_s - now - self._target(stream)
        self._add(first, stream, 0, now)
        for i in range(1, min(self._ahead(stream), len(stream.chunks))):
            self._submit(stream, i, "acoustic", now)

    def _target(self, stream: SimulatedStream) -> float:
        target_s = self.device.target_s if stream.target_s is None else stream.target_s
        return target_s + stream.extra_s if stream.priority != "bulk" else 3600.0

    def _ahead(self, stream: SimulatedStream) -> int:
        return WHOLE_AHEAD if stream.is_whole else self.ahead

    def _submit(self, stream: SimulatedStream, i: int, stage: StageName, now: float) -> None:
        self._add(self._job(stream, i, stage, now), stream, i, now)

    def _job(self, stream: SimulatedStream, i: int, stage: StageName, now: float) -> Job:
        starts_s = stream.arrived_s + self._target(stream) if stream.first_s is None else stream.first_s + stream.dry_s
        deadline_s = starts_s + sum(stream.chunks[:i]) - (self.safety_s if i else 0.0)
        priority: Priority = stream.priority if stream.priority == "bulk" else "first" if i < FIRST_CHUNKS else "next"
        later_s = 0.0
        if stage == "acoustic":
            later_s = self.scheduler.predict(Key(MODEL, "vocoder"), self._size(stream, i, "vocoder"))
        size = self._size(stream, i, stage)
        return Job(
            Key(MODEL, stage), stream.number, priority, size, deadline_s, later_s, stream.caller, 0, now,
            starts_stream=i == 0, starts_late=stream.starts_late, max_start_s=stream.max_start_s,
            remaining=self._rest(stream, i) if stage == "acoustic" else None,
        )  # fmt: skip

    def _rest(self, stream: SimulatedStream, i: int) -> Remaining:
        return self.scheduler.remaining_of_text(MODEL, round(TOKENS_PER_S * sum(stream.chunks[i + 1 :])))

    def _add(self, job: Job, stream: SimulatedStream, i: int, now: float) -> None:
        self._jobs[job] = stream, i
        self.scheduler.add(job, now)
        self.most_waiting = max(self.most_waiting, sum(self.scheduler.waiting().values()))

    def _playback_started(self, stream: SimulatedStream, earlier_s: float, now: float) -> None:
        """Move all deadlines of this stream forward by so many seconds."""
        for job in [job for job, (other, _) in self._jobs.items() if other is stream]:
            self.scheduler.move_deadline(job, job.deadline_s - earlier_s, now)

    def _size(self, stream: SimulatedStream, i: int, stage: StageName) -> int:
        return max(1, round(stream.chunks[i] * PER_S[stage]))

    def _decide(self, now: float) -> None:
        if self._busy:
            return
        batch, self._prefetched = self._prefetched or self.scheduler.next_batch(now), None
        if batch is None:
            wake_s = self.scheduler.wake_at(now)
            if wake_s is not None and wake_s != self._wake_s:
                self._wake_s = wake_s
                self._at(wake_s, lambda now: None)
            return
        self._busy = True
        self.batches.append((now, batch))
        took_s = self.device.seconds(batch.key.stage, [job.size for job in batch.jobs])
        later_s = 0.0
        if self.fuses and batch.stages == "both":
            later_s = self.device.seconds("vocoder", [self._size(*self._jobs[job], "vocoder") for job in batch.jobs])
        self.busy_s += took_s + later_s
        self._at(now + took_s + later_s, lambda end: self._finish(batch, took_s, later_s, end))
        if self.scheduler.policy.can_prefetch:
            self._at(now + PREFETCH_AT * batch.predicted_s, lambda now: self._prefetch(batch, now))

    def _prefetch(self, running: Batch, now: float) -> None:
        """Form the next batch while this one runs, if no arrival could change it."""
        if self._busy and self.batches[-1][1] is running and self._prefetched is None:
            self._prefetched = self.scheduler.next_batch(now, prefetch=True)

    def _finish(self, batch: Batch, took_s: float, later_s: float, now: float) -> None:
        self._busy, self.free_s = False, now
        self.scheduler.finished(batch, took_s, now)
        rows = [self._jobs.pop(job) for job in batch.jobs]
        if later_s:
            jobs = [self._job(stream, i, "vocoder", now) for stream, i in rows]
            self.scheduler.finished(self.scheduler.second_stage(jobs), later_s, now)
        for stream, i in rows:
            if batch.key.stage == "acoustic" and not later_s:
                self._submit(stream, i, "vocoder", now)
            else:
                self._play(stream, i, now)
        for job in self.scheduler.hopeless(now):
            self._give_up(self._jobs[job][0])

    def _give_up(self, stream: SimulatedStream) -> None:
        stream.given_up = True
        self.scheduler.stream_ended(stream.number)
        for job in [job for job, (other, _) in self._jobs.items() if other is stream and self.scheduler.cancel(job)]:
            del self._jobs[job]

    def _play(self, stream: SimulatedStream, i: int, now: float) -> None:
        """Append chunk i to the audio of its player, and submit one more chunk when it starts to play."""
        if stream.first_s is None:
            stream.first_s = stream.plays_until_s = now
            earlier_s = stream.arrived_s + self._target(stream) + self.safety_s - now
            if not stream.is_whole:
                self._playback_started(stream, earlier_s, now)
        stream.made += 1
        stream.dry_s += max(0.0, now - stream.plays_until_s)
        starts_s = max(now, stream.plays_until_s)
        stream.plays_until_s = starts_s + stream.chunks[i]
        if stream.made == len(stream.chunks):
            stream.done_s = now
            self.scheduler.stream_ended(stream.number)
        elif (following := i + self._ahead(stream)) < len(stream.chunks):
            is_paced = self.is_paced and not stream.is_whole and stream.priority != "bulk"
            self._at(starts_s if is_paced else now, lambda now: self._submit(stream, following, "acoustic", now))
