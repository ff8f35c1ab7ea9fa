"""The JSON of /v1/stats (docs/stats.md), computed from the event log and the queues."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tutti import __version__
from tutti.engine.monitor import PRIORITIES, STAGES, Monitor, StageQueue
from tutti.engine.stats import (
    AudioSent,
    BatchEnded,
    BatchStarted,
    EventCounted,
    FirstAudio,
    LogEvent,
    PolicyChanged,
)
from tutti.percentile import percentile
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME

Json = dict[str, Any]
UPDATES_PER_S = 10  # ticks to each subscriber, at most
WINDOW_S = 10.0  # of the statistics in `lately`
BATCHES_KEPT = 100  # latest batches that a new subscriber gets
MAX_ROWS_PER_TICK = 64  # rows of batches in one tick; more would take the page long to draw, and not be seen
MAX_VALUES = 512  # values kept for percentiles: enough for the 99th, cheap to sort ten times a second
IDLE_TICK_S = 1.0  # between two ticks while nothing changes
COUNTED = {"underruns": "underrun", "rejected": "rejected", "failed": "failed", "cancelled": "cancelled"}


class Sums:
    """Sums over the last `over_s` seconds, by name."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._entries: deque[tuple[float, str, float]] = deque()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._n: Counter[str] = Counter()

    def add(self, at_s: float, name: str, amount: float = 1.0) -> None:
        self._entries.append((at_s, name, amount))
        self._sums[name] += amount
        self._n[name] += 1

    def forget(self, now: float) -> None:
        while self._entries and self._entries[0][0] < now - self._over_s:
            _, name, amount = self._entries.popleft()
            self._sums[name] -= amount
            self._n[name] -= 1
            if not self._n[name]:  # so that no rounding error remains
                del self._sums[name]

    def __getitem__(self, name: str) -> float:
        return self._sums.get(name, 0.0)

    def ratio(self, part: str, whole: str) -> float | None:
        """None if the whole is zero."""
        return self[part] / self[whole] if self[whole] else None


class Spread:
    """The values of the last `over_s` seconds, at most the last 512."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._values: deque[tuple[float, float]] = deque(maxlen=MAX_VALUES)

    def add(self, at_s: float, value: float) -> None:
        self._values.append((at_s, value))

    def forget(self, now: float) -> None:
        while self._values and self._values[0][0] < now - self._over_s:
            self._values.popleft()

    def values(self) -> list[float]:
        """In ascending order."""
        return sorted(value for _, value in self._values)


@dataclass(slots=True)
class BatchRecord:
    """A batch, and its end once that is known."""

    started: BatchStarted
    policy: str
    ended: BatchEnded | None = None


class Dashboard:
    """Follows the event log. It is created for the first client that watches, so that it costs nothing before."""

    def __init__(self, monitor: Monitor, models: Sequence[str]) -> None:
        self._monitor = monitor
        self._models = list(models)
        self._events = monitor.batch_stats.events
        self._n_seen = 0
        self._start_s = self._events.started_s
        self._batches: dict[int, BatchRecord] = {}
        self._changed: dict[int, None] = {}  # batches that began or ended since the last tick
        self._last_tick_s = float("-inf")
        self._reset()

    def hello(self, trial: Json | None) -> Json:
        self._update()
        return {"type": "hello", **self._settings(trial), "batches": self._batch_list(self._batches)}

    def tick(self, trial: Json | None, *, at_once: bool = False) -> Json | None:
        """Return what changed; None if nothing did and the last tick is less than a second old."""
        self._update()
        now = self._events.clock()
        queues = self._monitor.queues()
        idle = not self._changed and not self._running() and not any(queue.oldest for queue in queues.values())
        if idle and not at_once and now < self._last_tick_s + IDLE_TICK_S:
            return None
        self._last_tick_s = now
        numbers, n_rows = list[int](), 0
        for number in reversed(self._changed):
            n_rows += self._batches[number].started.batch.n_rows
            if numbers and n_rows > MAX_ROWS_PER_TICK:
                break
            numbers.append(number)
        left_out = len(self._changed) - len(numbers)
        self._changed.clear()
        batches = self._batch_list(reversed(numbers))
        return {"type": "tick", **self._now(now, queues, trial), "batches": batches, "left_out": left_out}

    def stats(self, trial: Json | None) -> Json:
        self._update()
        now = self._now(self._events.clock(), self._monitor.queues(), trial)
        return {"type": "stats", **self._settings(trial), **now, "batches": self._batch_list(self._batches)}

    # -- the event log -------------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._batches.clear()
        self._changed.clear()
        self._sums = Sums(WINDOW_S)
        self._first_audio, self._waits = Spread(WINDOW_S), Spread(WINDOW_S)

    def _update(self) -> None:
        events = self._events.since(self._n_seen)
        if len(events) < self._events.n_added - self._n_seen:  # the log has dropped some in between
            self._reset()
            self._start_s = events[0].at_s
        self._n_seen = self._events.n_added
        policy = next((event.before for event in events if isinstance(event, PolicyChanged)), self._monitor.policy)
        for event in events:
            if isinstance(event, PolicyChanged):
                policy = event.policy
            self._apply(event, policy)
        for number in list(self._batches)[:-BATCHES_KEPT]:
            del self._batches[number]
            self._changed.pop(number, None)

    def _apply(self, event: LogEvent, policy: str) -> None:
        match event:
            case BatchStarted(at_s, number, _, batch):
                self._batches[number] = BatchRecord(event, policy)
                self._changed[number] = None
                for job in batch.jobs:
                    self._waits.add(at_s, at_s - job.arrived_s)
            case BatchEnded(_, number, _, _) if number in self._batches:
                self._batches[number].ended = event
                self._changed[number] = None
                self._add_to_sums(self._batches[number].started, event)
            case FirstAudio(at_s, after_s, in_time):
                self._first_audio.add(at_s, after_s)
                self._sums.add(at_s, "first")
                self._sums.add(at_s, "first in time", float(in_time))
            case AudioSent(at_s, audio_s, in_time):
                self._sums.add(at_s, "audio", audio_s)
                self._sums.add(at_s, "good audio", audio_s if in_time else 0.0)
            case EventCounted(at_s, name, n):
                self._sums.add(at_s, name, n)

    def _add_to_sums(self, started: BatchStarted, ended: BatchEnded) -> None:
        at_s, batch, add = ended.at_s, started.batch, self._sums.add
        stage = batch.key.stage
        add(at_s, f"batches {stage}")
        add(at_s, f"rows {stage}", batch.n_rows)
        add(at_s, f"padded {stage}", batch.padded)
        add(at_s, f"waste {stage}", batch.padded - sum(batch.sizes))
        add(at_s, f"seconds {stage}", at_s - started.at_s)
        add(at_s, f"busy {started.worker}", at_s - started.at_s)

    def _running(self) -> list[int]:
        return [number for number, record in self._batches.items() if record.ended is None]

    # -- as JSON -------------------------------------------------------------------------------------------------

    def _settings(self, trial: Json | None) -> Json:
        monitor = self._monitor
        return {
            "version": __version__,
            "t": self._t(self._events.clock()),
            "unix": round(time.time(), 3),
            "policy": monitor.policy,
            "policies": list(monitor.policies),
            "trial": trial,
            "settings": monitor.settings(),
            "stages": list(STAGES),
            "units": {"acoustic": "tokens", "vocoder": "frames"},
            "frame_ms": 1000 * SAMPLES_PER_FRAME / SAMPLE_RATE,
            "classes": list(PRIORITIES),
            "workers": list(monitor.worker_names),
            "models": self._models,
            "updates_per_s": UPDATES_PER_S,
            "window_s": WINDOW_S,
        }

    def _now(self, now: float, queues: dict[Any, StageQueue], trial: Json | None) -> Json:
        return {
            "t": self._t(now),
            "policy": self._monitor.policy,
            "trial": trial,
            "queue": {
                stage: {**queue.n_by_priority, "jobs": _oldest_jobs(queue, now)} for stage, queue in queues.items()
            },
            "waiting": sum(n for queue in queues.values() for n in queue.n_by_priority.values()),
            "backlog_ms": _ms(max(0.0, self._monitor.backlog_s())),
            "expected_wait_ms": _ms(self._monitor.expected_wait_s()),
            "running": self._running(),
            "lately": self._recent(now),
            "totals": self._totals(),
        }

    def _batch_list(self, numbers: Iterable[int]) -> list[Json]:
        return [self._batch(number, self._batches[number]) for number in numbers]

    def _batch(self, number: int, record: BatchRecord) -> Json:
        started, ended, batch = record.started, record.ended, record.started.batch
        took_s = ended and ended.took_s
        return {
            "id": number,
            "stage": batch.key.stage,
            "worker": started.worker,
            "model": batch.key.checkpoint,
            "policy": record.policy,
            "reason": batch.reason,
            "outcome": ended.outcome if ended else "running",
            "start": self._t(started.at_s),
            "ms": None if took_s is None else _ms(took_s),
            "predicted_ms": _ms(batch.predicted_s),
            "padded": batch.padded,
            "padding": round(batch.waste, 4),
            "rows": [
                {
                    "stream": job.stream,
                    "class": job.priority,
                    "size": job.size,
                    "padded": padded,
                    "waited_ms": _ms(started.at_s - job.arrived_s),
                }
                for job, padded in zip(batch.jobs, batch.padded_lengths, strict=True)
            ],
        }

    def _recent(self, now: float) -> Json:
        sums = self._sums
        for window in (sums, self._first_audio, self._waits):
            window.forget(now)
        over_s = max(1.0, min(WINDOW_S, now - self._start_s))
        return {
            "over_s": round(over_s, 1),
            "batches": {stage: round(sums[f"batches {stage}"]) for stage in STAGES},
            "rows_per_batch": {stage: _ratio(sums, f"rows {stage}", f"batches {stage}") for stage in STAGES},
            "padding": {stage: _ratio(sums, f"waste {stage}", f"padded {stage}") for stage in STAGES},
            "batch_ms": {stage: _ratio(sums, f"seconds {stage}", f"batches {stage}", 1000) for stage in STAGES},
            "busy": {name: round(min(1.0, sums[f"busy {name}"] / over_s), 4) for name in self._monitor.worker_names},
            "first_audio_ms": _percentiles(self._first_audio.values()),
            "queue_ms": _percentiles(self._waits.values()),
            "audio_per_s": round(sums["audio"] / over_s, 3),
            "good_audio_per_s": round(sums["good audio"] / over_s, 3),
            "first_in_time": _ratio(sums, "first in time", "first"),
            **{name: round(sums[event]) for name, event in COUNTED.items()},
        }

    def _totals(self) -> Json:
        totals = self._monitor.batch_stats.as_dict()
        outcomes = totals["outcomes"]
        return {
            "batches": sum(totals["batches_by_stage"].values()),
            "rows": outcomes.get("spoken", 0),
            "audio_s": round(totals["audio_s"], 2),
            **{name: outcomes.get(event, 0) for name, event in COUNTED.items()},
            "retried": outcomes.get("retried", 0),
            "chunks": totals["chunks_by_mode"],
        }

    def _t(self, at_s: float) -> float:
        return round(at_s - self._events.started_s, 4)


def _oldest_jobs(queue: StageQueue, now: float) -> list[Json]:
    return [
        {
            "stream": job.stream,
            "class": job.priority,
            "size": job.size,
            "age_ms": int(1000 * (now - job.arrived_s)),
            "due_ms": int(1000 * (job.due_s - now)),
        }
        for job in queue.oldest
    ]


def _ms(seconds: float) -> float:
    """Round to a tenth. `round` takes five times as long, and this runs for every row."""
    return int(10_000 * seconds + 0.5) / 10


def _ratio(sums: Sums, part: str, whole: str, times: float = 1.0) -> float | None:
    ratio = sums.ratio(part, whole)
    return None if ratio is None else round(times * ratio, 4)


def _percentiles(ordered: Sequence[float]) -> Json:
    """Return percentiles of seconds, in milliseconds."""
    seconds = {f"p{p}": percentile(ordered, p) for p in (50, 95, 99)}
    return {"n": len(ordered), **{name: None if s is None else _ms(s) for name, s in seconds.items()}}
