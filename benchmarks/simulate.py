"""The real scheduler on a virtual clock: how many streams each policy serves well, on devices made of two numbers.

python -m benchmarks.simulate                   a table, and benchmarks/results/policies-simulated.json; some minutes
python -m benchmarks.simulate --seconds 30     rougher and quicker

A stream is good if its first audio comes within the target and its player never runs dry. Capacity is the highest rate
of new streams (Poisson) of which at least 99 % are good; a stream turned away at the door is not good.
"""

import heapq
import itertools
import json
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tutti.batching.cost import CostModel
from tutti.batching.job import Batch, Job, Key, Priority, StageName
from tutti.batching.layout import Features, RowSizes, SideBySide, row_sizes
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.errors import QueueFull

RESULTS = Path(__file__).parent / "results" / "policies-simulated.json"
TOKENS_PER_S, FRAMES_PER_S = 15, 40  # of audio
MODEL = "kokoro"
AHEAD = 2  # chunks made before the listener needs them
BYPASS_CHUNKS = 2
PART: dict[StageName, float] = {"acoustic": 0.3, "vocoder": 0.7}  # of the cost of a row
PER_S: dict[StageName, int] = {"acoustic": TOKENS_PER_S, "vocoder": FRAMES_PER_S}


def _unchanged(length: int) -> int:
    return length


@dataclass(frozen=True, slots=True)
class Padded:
    """One pass over rows of equal length: lengths are rounded up by `fit`, the number of rows to one of `rows`."""

    fit: Callable[[int], int] = _unchanged
    rows: tuple[int, ...] = ()

    def _rows(self, n: int) -> int:
        place = bisect_left(self.rows, n)
        return self.rows[place] if place < len(self.rows) else n

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


@dataclass(frozen=True, slots=True)
class Device:
    """Seconds of a batch = both stages' parts of (base + slope * seconds of audio, padding included)."""

    name: str
    base_s: float
    per_audio_s: float
    target_s: float  # to first audio
    lanes: int | None = None  # rows side by side instead of padded
    max_rows: int = 64

    def seconds(self, stage: StageName, sizes: Sequence[int]) -> float:
        audio = sum(sizes) if self.lanes else len(sizes) * max(sizes)
        return PART[stage] * (self.base_s + self.per_audio_s * audio / PER_S[stage])

    def cost(self, key: Key) -> CostModel:
        """A cost that saw a warm-up sweep on this device."""
        cost = CostModel(SideBySide(self.lanes) if self.lanes else Padded(), (0.01, 0.0, 1e-5, 1e-5))
        sweep = [[PER_S[key.stage] * s] * rows for s in (1, 3, 10) for rows in (1, 2, 4, 8)]
        cost.seed((sizes, self.seconds(key.stage, sizes)) for sizes in sweep)
        return cost


DEVICES = (
    Device("GPU-like, 15 ms + 0.8 ms/s", 0.015, 0.0008, 0.2),
    Device("slow GPU, 40 + 4", 0.040, 0.004, 0.2),
    Device("CPU, 80 + 60", 0.080, 0.060, 1.5, lanes=1, max_rows=8),
)


@dataclass(slots=True, eq=False)
class Stream:
    """One listener: what was asked for, and how it went."""

    number: int
    arrived_s: float
    chunks: list[float]  # seconds of audio
    priority: Priority = "first"
    caller: str = ""
    rejected: bool = False
    first_s: float | None = None  # when audio began
    made: int = 0
    plays_until_s: float = 0.0
    dry_s: float = 0.0  # silence in the middle
    done_s: float = inf

    @property
    def wait_s(self) -> float:
        return inf if self.first_s is None else self.first_s - self.arrived_s

    def good(self, target_s: float) -> bool:
        return not self.rejected and self.done_s < inf and self.wait_s <= target_s and self.dry_s <= 1e-9


def speech(rng: random.Random) -> list[float]:
    """Chunks of one text: a short one to begin with, a geometric number of longer ones."""
    chunks = [rng.uniform(1.5, 3.5)]
    while rng.random() < 0.75:
        chunks.append(rng.uniform(3.0, 10.0))
    return chunks


AUDIO_S = 2.5 + 3 * 6.5  # the mean of these


def poisson(
    rate: float, n: int, seed: int = 1, chunks: Callable[[random.Random], list[float]] = speech
) -> list[Stream]:
    rng = random.Random(seed)
    times = itertools.accumulate(rng.expovariate(rate) for _ in range(n))
    return [Stream(i, at, chunks(rng)) for i, at in enumerate(times)]


@dataclass
class Simulation:
    """Streams arrive, jobs wait, one device works, players play."""

    device: Device
    scheduler: Scheduler
    admission: bool = True
    safety_s: float = 0.0
    batches: list[tuple[float, Batch]] = field(default_factory=list)  # when each began
    most_waiting: int = 0

    def run(self, streams: Sequence[Stream], until_s: float = inf) -> None:
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._serial = itertools.count()
        self._busy = False
        self._woken_at = inf
        self._jobs: dict[Job, tuple[Stream, int]] = {}
        for stream in streams:
            self._at(stream.arrived_s, lambda now, stream=stream: self._arrive(stream, now))
        while self._events:
            now, _, happen = heapq.heappop(self._events)
            if now > until_s:
                break
            happen(now)
            if not self._events or self._events[0][0] > now:  # all that happens at one time happens before a decision
                self._decide(now)

    def _at(self, when: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (when, next(self._serial), happen))

    def _arrive(self, stream: Stream, now: float) -> None:
        first = self._job(stream, 0, "acoustic", now)
        if self.admission:
            try:
                self.scheduler.admit(first, now)
            except QueueFull:
                stream.rejected = True
                return
        self._add(first, stream, 0, now)
        for i in range(1, min(AHEAD, len(stream.chunks))):
            self._submit(stream, i, "acoustic", now)

    def _target(self, stream: Stream) -> float:
        return self.device.target_s if stream.priority != "bulk" else 3600.0

    def _submit(self, stream: Stream, i: int, stage: StageName, now: float) -> None:
        self._add(self._job(stream, i, stage, now), stream, i, now)

    def _job(self, stream: Stream, i: int, stage: StageName, now: float) -> Job:
        begin = stream.arrived_s + self._target(stream) if stream.first_s is None else stream.first_s + stream.dry_s
        deadline = begin + sum(stream.chunks[:i]) - (self.safety_s if i else 0.0)
        priority: Priority = stream.priority if stream.priority == "bulk" else "first" if i < BYPASS_CHUNKS else "next"
        later_s = 0.0
        if stage == "acoustic":
            later_s = self.scheduler.predict(Key(MODEL, "vocoder"), self._size(stream, i, "vocoder"))
        size = self._size(stream, i, stage)
        return Job(Key(MODEL, stage), stream.number, priority, size, deadline, later_s, stream.caller, 0, now)

    def _add(self, job: Job, stream: Stream, i: int, now: float) -> None:
        self._jobs[job] = stream, i
        self.scheduler.add(job, now)
        self.most_waiting = max(self.most_waiting, sum(self.scheduler.waiting().values()))

    def _playback_started(self, stream: Stream, by_s: float, now: float) -> None:
        """Everything made for this listener is needed sooner by so much."""
        for job in [job for job, (whose, _) in self._jobs.items() if whose is stream]:
            self.scheduler.move_deadline(job, job.deadline_s - by_s, now)

    def _size(self, stream: Stream, i: int, stage: StageName) -> int:
        return max(1, round(stream.chunks[i] * PER_S[stage]))

    def _decide(self, now: float) -> None:
        if self._busy:
            return
        batch = self.scheduler.next_batch(now)
        if batch is None:
            wake = self.scheduler.wake_at(now)
            if wake is not None and wake != self._woken_at:
                self._woken_at = wake
                self._at(wake, lambda now: None)
            return
        self._busy = True
        self.batches.append((now, batch))
        took_s = self.device.seconds(batch.key.stage, [job.size for job in batch.jobs])
        self._at(now + took_s, lambda end: self._finish(batch, took_s, end))

    def _finish(self, batch: Batch, took_s: float, now: float) -> None:
        self._busy = False
        self.scheduler.finished(batch, took_s, now)
        for job in batch.jobs:
            stream, i = self._jobs.pop(job)
            if job.key.stage == "acoustic":
                self._submit(stream, i, "vocoder", now)
            else:
                self._play(stream, i, now)

    def _play(self, stream: Stream, i: int, now: float) -> None:
        """Chunk i is there: it sounds when those before it have; then one more may be made."""
        if stream.first_s is None:
            stream.first_s = stream.plays_until_s = now
            self._playback_started(stream, stream.arrived_s + self._target(stream) + self.safety_s - now, now)
        stream.made += 1
        stream.dry_s += max(0.0, now - stream.plays_until_s)
        begins = max(now, stream.plays_until_s)
        stream.plays_until_s = begins + stream.chunks[i]
        if stream.made == len(stream.chunks):
            stream.done_s = now
        elif i + AHEAD < len(stream.chunks):
            at = now if stream.priority == "bulk" else begins
            self._at(at, lambda now: self._submit(stream, i + AHEAD, "acoustic", now))


def scheduler(device: Device, policy: Policy, max_rows: int | None = None, max_waiting: int = 100_000) -> Scheduler:
    limits = Limits(max_rows or device.max_rows, max_waiting=max_waiting, cap_s=0.4 * device.target_s)
    return Scheduler(limits, device.cost, policy)


def policies(device: Device) -> Iterator[tuple[str, Policy, int]]:
    """Every rule with every setting that somebody might choose: name, policy, rows."""
    for rows, so_many in ((4, "4 rows"), (device.max_rows, "most rows")):
        for wait_ms in (10, 50):
            window = {"max_wait_s": wait_ms / 1000, "early_rows": max(1, int(0.8 * rows))}
            yield f"window {wait_ms} ms, {so_many}", Window(**window), rows
            yield f"bypass, window {wait_ms} ms, {so_many}", Bypass(**window), rows
        yield f"fifo, {so_many}", Fifo(), rows
    yield "deadline without cap", Deadline(), device.max_rows
    yield "deadline", Deadline(0.4 * device.target_s), device.max_rows


def share_good(device: Device, policy: Policy, rows: int, rate: float, seconds: float, admission: bool) -> float:
    streams = poisson(rate, max(300, int(rate * seconds)))
    Simulation(device, scheduler(device, policy, rows), admission).run(streams)
    return sum(stream.good(device.target_s) for stream in streams) / len(streams)


def capacity(device: Device, policy: Policy, rows: int, seconds: float, admission: bool = False) -> float:
    """The highest rate, to 3 %, at which 99 % of the streams are good; 0 if it is below a fiftieth of the device."""
    high = 1.0 / (device.per_audio_s * AUDIO_S)  # if batches had no fixed cost and no padding
    low = high / 50
    if share_good(device, policy, rows, low, seconds, admission) < 0.99:
        return 0.0
    while high > 1.03 * low:
        middle = sqrt(low * high)
        if share_good(device, policy, rows, middle, seconds, admission) >= 0.99:
            low = middle
        else:
            high = middle
    return low


def main(seconds: Annotated[float, typer.Option(help="of arrivals in each run")] = 90.0) -> None:
    """Capacity of every policy on every device."""
    console = Console()
    table = Table("policy", *(device.name for device in DEVICES))
    found: dict[str, dict[str, float]] = {}
    for device in DEVICES:
        for name, policy, rows in policies(device):
            found.setdefault(name, {})[device.name] = capacity(device, policy, rows, seconds)
            console.print(f"{device.name}: {name}: {found[name][device.name]:.3g} streams/s")
    for name, rates in found.items():
        table.add_row(name, *(f"{rates[device.name]:.3g}" if device.name in rates else "" for device in DEVICES))
    console.print(table)
    RESULTS.write_text(json.dumps({"seconds": seconds, "capacity": found}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
