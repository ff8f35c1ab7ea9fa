"""Count what the batching does: for people, for the log, for Prometheus, and in a ring buffer for the dashboard."""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from time import monotonic
from typing import Any, Literal, NamedTuple

from tutti.admission.ticket import Delivery
from tutti.batching.job import Batch, Priority
from tutti.errors import QueueFull
from tutti.metrics import CHUNK_MODES, ChunkMode, Metrics
from tutti.worker.messages import Status

log = logging.getLogger(__name__)

LINES_PER_S = 50  # of each kind; larger makes the log longer, and costs 20 microseconds a line
LATEST = 100  # vocoder batches whose mean size is `avg_batch_size`; larger reacts later to a change of load
Outcome = Literal["done", "failed", "lost"]
Event = Literal["spoken", "failed", "cancelled", "rejected", "underrun", "retried"]
LENGTH = 2048  # events; a batch of 64 rows takes some 13 kB, one of a CPU below 1 kB


class BatchStarted(NamedTuple):
    """A batch was started."""

    at_s: float
    number: int
    worker: str
    batch: Batch


class BatchEnded(NamedTuple):
    """A batch ended; without seconds if it failed."""

    at_s: float
    number: int
    took_s: float | None
    outcome: Outcome


class FirstAudio(NamedTuple):
    """The first audio of a stream was handed over."""

    at_s: float
    after_s: float
    in_time: bool


class AudioSent(NamedTuple):
    """Audio of a chunk was handed over."""

    at_s: float
    audio_s: float
    in_time: bool


class EventCounted(NamedTuple):
    """An event that is only counted."""

    at_s: float
    event: Event
    n: int


class PolicyChanged(NamedTuple):
    """The policy was changed."""

    at_s: float
    before: str
    policy: str


LogEvent = BatchStarted | BatchEnded | FirstAudio | AudioSent | EventCounted | PolicyChanged


class EventLog:
    """A ring buffer: the newest event replaces the oldest."""

    def __init__(self, length: int = LENGTH, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.started_s = clock()
        self.n_added = 0
        self._events: deque[LogEvent] = deque(maxlen=length)

    def add(self, event: LogEvent) -> None:
        self.n_added += 1
        self._events.append(event)

    def since(self, n: int) -> list[LogEvent]:
        """The events after the first `n` ever added, oldest first, as far as they are still kept."""
        n_new = min(self.n_added - n, len(self._events))
        return list(islice(reversed(self._events), n_new))[::-1]


class LogRate:
    """Lets so many lines a second pass, so that the log is readable and cheap; reports how many it left out."""

    def __init__(self, kind: str, clock: Callable[[], float], per_s: int = LINES_PER_S) -> None:
        self._kind = kind
        self._per_s = per_s
        self._clock = clock
        self._second = 0
        self._n_lines = 0

    def passes(self) -> bool:
        """Whether one more line may be logged now."""
        second = int(self._clock())
        if second != self._second:
            left_out = self._n_lines - self._per_s
            self._second, self._n_lines = second, 0
            if left_out > 0:
                log.info("%s lines left out=%d in one second", self._kind, left_out)
        self._n_lines += 1
        return self._n_lines <= self._per_s


class BatchStats:
    """Statistics of one engine."""

    def __init__(self, metrics: Metrics | None = None, events: EventLog | None = None) -> None:
        self.metrics = metrics or Metrics()
        self.events = events or EventLog()
        self._batch_lines = LogRate("batch", self.events.clock)
        self.chunk_lines = LogRate("chunk", self.events.clock)
        # Finding the child of a metric by its labels costs more than counting: keep those that every row needs.
        self._queue_wait = cache(self.metrics.queue_wait.labels)
        self._rows = cache(self.metrics.rows.labels)
        self._n_started = 0
        self._running: dict[Batch, int] = {}  # the numbers of batches that started and have not ended
        self.reset()

    def reset(self) -> None:
        """Clear what `as_dict` shows; Prometheus counters never go back."""
        self._sizes: Counter[int] = Counter()  # rows of vocoder batches; a row in spans is in several
        self._latest_sizes: deque[int] = deque(maxlen=LATEST)
        self._chunks: Counter[ChunkMode] = Counter()
        self._reasons: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._batches: Counter[str] = Counter()
        self._batch_outcomes: Counter[Outcome] = Counter()
        self._busy_s: defaultdict[str, float] = defaultdict(float)
        self._waits_s, self._n_waits, self._max_wait_s = 0.0, 0, 0.0
        self._used, self._padded = 0, 0
        self._audio_s = 0.0

    def started(self, worker: str, batch: Batch, now: float) -> None:
        stage = batch.key.stage
        if self._batch_lines.passes():
            log.info(
                "batch started worker=%s stage=%s rows=%d reason=%s checkpoint=%s",
                worker, stage, batch.n_rows, batch.reason, batch.key.checkpoint,
            )  # fmt: skip
        self._n_started += 1
        self._running[batch] = self._n_started
        self.events.add(BatchStarted(now, self._n_started, worker, batch))
        self._batches[stage] += 1
        self._reasons[batch.reason] += 1
        if stage == "vocoder":
            self._sizes[batch.n_rows] += 1
            self._latest_sizes.append(batch.n_rows)
            self._used += sum(job.size for job in batch.jobs)
            self._padded += batch.padded
        for job in batch.jobs:
            waited_s = now - job.arrived_s
            self._waits_s += waited_s
            self._n_waits += 1
            self._max_wait_s = max(self._max_wait_s, waited_s)
            self._queue_wait(job.priority).observe(waited_s)
        self.metrics.batch_rows.labels(stage).observe(batch.n_rows)
        self.metrics.batch_padded.labels(stage).observe(batch.padded)
        self.metrics.padding.labels(stage).observe(batch.waste)
        self.metrics.fires.labels(stage, batch.reason).inc()

    def finished(self, worker: str, batch: Batch, took_s: float, cost_error: float) -> None:
        stage = batch.key.stage
        if self._batch_lines.passes():
            log.info(
                "batch completed worker=%s stage=%s ok=%d/%d checkpoint=%s padded=%d waste=%.0f%% took=%.1fms",
                worker, stage, batch.n_rows, batch.n_rows, batch.key.checkpoint,
                batch.padded, 100 * batch.waste, 1000 * took_s,
            )  # fmt: skip
        self._batch_ended(worker, batch, took_s, "done")
        self._busy_s[stage] += took_s
        self.metrics.batch_seconds.labels(stage).observe(took_s)
        self.metrics.cost_error.labels(*batch.key).set(cost_error)

    def failed(
        self, worker: str, batch: Batch, outcome: Outcome, status: Status, error: Exception | None = None
    ) -> None:
        """The batch of this worker had no result; `error`: of the model."""
        if error is not None:
            then = "its row fails" if batch.n_rows == 1 else "its halves run apart"
            log.warning(
                "batch failed, %s worker=%s stage=%s ok=0/%d checkpoint=%s: %s",
                then, worker, batch.key.stage, batch.n_rows, batch.key.checkpoint, error,
            )  # fmt: skip
        self._batch_ended(worker, batch, None, outcome)
        self.worker(worker, status)

    def queue(self, waiting: Mapping[Priority, int], backlog_s: float) -> None:
        for priority, n in waiting.items():
            self.metrics.waiting.labels(priority).set(n)
        self.metrics.backlog.set(backlog_s)

    def load(self, predicted_wait_s: Mapping[Delivery, float], busy_ratio: float) -> None:
        for delivery, seconds in predicted_wait_s.items():
            self.metrics.predicted_wait.labels(delivery).set(seconds)
        self.metrics.busy_ratio.set(busy_ratio)

    def worker(self, name: str, status: Status) -> None:
        """Memory and restarts of a worker."""
        self.metrics.worker_bytes.labels(name, "resident").set(status.memory.resident_bytes)
        self.metrics.worker_bytes.labels(name, "device").set(status.memory.device_bytes)
        self.metrics.worker_restarts.labels(name).set(status.restarts)

    def spoken(self, mode: ChunkMode) -> None:
        """The audio of a row is complete."""
        self._chunks[mode] += 1
        self.metrics.chunks.labels(mode).inc()
        self.ended("spoken")

    def ended(self, outcome: Literal["spoken", "failed", "cancelled"]) -> None:
        self._count(outcome)
        self._rows(outcome).inc()

    @contextmanager
    def counting_refusals(self, priority: Priority) -> Iterator[None]:
        try:
            yield
        except QueueFull:
            self.rejected(priority)
            raise

    def rejected(self, priority: Priority) -> None:
        self._count("rejected")
        self.metrics.rejected.labels(priority).inc()

    def first_audio(self, after_s: float, *, in_time: bool = True) -> None:
        self.events.add(FirstAudio(self.events.clock(), after_s, in_time))
        self.metrics.first_audio.observe(after_s)
        self.metrics.first_late.inc(not in_time)

    def audio_sent(self, audio_s: float, *, in_time: bool, met_target: bool = True) -> None:
        """Audio was handed to its caller: without a gap (`in_time`), and if it was the first, before its target."""
        self.events.add(AudioSent(self.events.clock(), audio_s, in_time and met_target))
        self._audio_s += audio_s
        self.metrics.audio.inc(audio_s)
        self.metrics.good_audio.inc(audio_s if in_time and met_target else 0.0)
        if not in_time:
            self._count("underrun")
            self.metrics.underruns.inc()

    def retried(self, reason: str, n_rows: int) -> None:
        self._count("retried", n_rows)
        self.metrics.retried.labels(reason).inc(n_rows)

    def as_dict(self) -> dict[str, Any]:
        """All figures, with the field names of the HTTP API."""
        n_batches, n_rows = self._sizes.total(), sum(rows * n for rows, n in self._sizes.items())
        latest = self._latest_sizes
        return {
            "total_batches": n_batches,
            "total_requests": self._outcomes["spoken"],
            "avg_batch_size": sum(latest) / len(latest) if latest else 0.0,
            "avg_batch_size_since_start": n_rows / n_batches if n_batches else 0.0,
            "max_batch_size": max(self._sizes, default=0),
            "batch_size_histogram": {str(rows): n for rows, n in sorted(self._sizes.items())},
            "batches_by_stage": dict(self._batches),
            "batches_by_outcome": dict(self._batch_outcomes),
            "busy_s_by_stage": dict(self._busy_s),
            "fires": dict(self._reasons),
            "timeout_fires": self._reasons["window"],
            "early_fires": self._reasons["early"],
            "avg_queue_wait_ms": 1000 * self._waits_s / self._n_waits if self._n_waits else 0.0,
            "max_queue_wait_ms": 1000 * self._max_wait_s,
            "padding_ratio": 1 - self._used / self._padded if self._padded else 0.0,
            "outcomes": dict(self._outcomes),
            "chunks_by_mode": {mode: self._chunks[mode] for mode in CHUNK_MODES},
            "audio_s": self._audio_s,
        }

    def _batch_ended(self, worker: str, batch: Batch, took_s: float | None, outcome: Outcome) -> None:
        self._batch_outcomes[outcome] += 1
        self.metrics.batches.labels(batch.key.stage, outcome).inc()
        self.events.add(BatchEnded(self.events.clock(), self._running.pop(batch, 0), took_s, outcome))

    def _count(self, event: Event, n: int = 1) -> None:
        self._outcomes[event] += n
        self.events.add(EventCounted(self.events.clock(), event, n))
