"""What those who watch are shown, as docs/stats.md words it: drawn from the tape and from who waits now."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tutti import __version__
from tutti.batching.job import Job
from tutti.engine.event_log import Began, Ended, First, Happened, Heard, Moment, Turned
from tutti.engine.monitor import CLASSES, STAGES, Monitor, Queue
from tutti.engine.rolling import Spread, Sums
from tutti.percentile import percentile
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME

Drawn = dict[str, Any]
UPDATES_PER_S = 10
WINDOW_S = 10.0  # of which `lately` tells
KEPT = 100  # batches
ROWS_AT_ONCE = 64  # of the batches in one tick; nobody could see more, and somebody would have to draw them
STILL_S = 1.0  # between two ticks while nothing happens
COUNTED = {"underruns": "underrun", "rejected": "rejected", "failed": "failed", "cancelled": "cancelled"}


@dataclass(slots=True)
class Told:
    """A batch, and what is known of it by now."""

    began: Began
    policy: str
    ended: Ended | None = None


class Picture:
    """Reads the tape on, and draws; made when the first one looks, so it costs nothing before."""

    def __init__(self, podium: Monitor, models: Sequence[str]) -> None:
        self._podium = podium
        self._models = list(models)
        self._tape = podium.batch_stats.events
        self._n_read = 0
        self._from_s = self._tape.began_s
        self._batches: dict[int, Told] = {}
        self._fresh: dict[int, None] = {}  # batches that began or ended since the last tick
        self._last_tick_s = float("-inf")
        self._forget_all()

    def hello(self, trial: Drawn | None) -> Drawn:
        self._read()
        return {"type": "hello", **self._standing(trial), "batches": self._drawn(self._batches)}

    def tick(self, trial: Drawn | None, *, at_once: bool = False) -> Drawn | None:
        """What is new; none where that is nothing and was said less than a second ago."""
        self._read()
        now = self._tape.clock()
        queues = self._podium.queues()
        still = not self._fresh and not self._running() and not any(queue.oldest for queue in queues.values())
        if still and not at_once and now < self._last_tick_s + STILL_S:
            return None
        self._last_tick_s = now
        shown, n_rows = list[int](), 0
        for number in reversed(self._fresh):
            n_rows += self._batches[number].began.batch.rows
            if shown and n_rows > ROWS_AT_ONCE:
                break
            shown.append(number)
        left_out = len(self._fresh) - len(shown)
        self._fresh.clear()
        batches = self._drawn(reversed(shown))
        return {"type": "tick", **self._now(now, queues, trial), "batches": batches, "left_out": left_out}

    def stats(self, trial: Drawn | None) -> Drawn:
        self._read()
        now = self._now(self._tape.clock(), self._podium.queues(), trial)
        return {"type": "stats", **self._standing(trial), **now, "batches": self._drawn(self._batches)}

    # -- the tape ------------------------------------------------------------------------------------------------

    def _forget_all(self) -> None:
        self._batches.clear()
        self._fresh.clear()
        self._sums = Sums(WINDOW_S)
        self._first_audio, self._waits = Spread(WINDOW_S), Spread(WINDOW_S)

    def _read(self) -> None:
        moments = self._tape.since(self._n_read)
        if len(moments) < self._tape.n_noted - self._n_read:  # what came between is gone
            self._forget_all()
            self._from_s = moments[0].at_s
        self._n_read = self._tape.n_noted
        policy = next((moment.before for moment in moments if isinstance(moment, Turned)), self._podium.policy)
        for moment in moments:
            if isinstance(moment, Turned):
                policy = moment.policy
            self._take(moment, policy)
        for number in list(self._batches)[:-KEPT]:
            del self._batches[number]
            self._fresh.pop(number, None)

    def _take(self, moment: Moment, policy: str) -> None:
        match moment:
            case Began(at_s, number, _, batch, _):
                self._batches[number] = Told(moment, policy)
                self._fresh[number] = None
                for job in batch.jobs:
                    self._waits.add(at_s, at_s - job.arrived_s)
            case Ended(_, number, _, _) if number in self._batches:
                self._batches[number].ended = moment
                self._fresh[number] = None
                self._add_up(self._batches[number].began, moment)
            case First(at_s, after_s, in_time):
                self._first_audio.add(at_s, after_s)
                self._sums.add(at_s, "first")
                self._sums.add(at_s, "first in time", float(in_time))
            case Heard(at_s, audio_s, in_time):
                self._sums.add(at_s, "audio", audio_s)
                self._sums.add(at_s, "good audio", audio_s if in_time else 0.0)
            case Happened(at_s, event, n):
                self._sums.add(at_s, event, n)

    def _add_up(self, began: Began, ended: Ended) -> None:
        at_s, batch, add = ended.at_s, began.batch, self._sums.add
        stage = batch.key.stage
        add(at_s, f"batches {stage}")
        add(at_s, f"rows {stage}", batch.rows)
        add(at_s, f"padded {stage}", batch.padded)
        add(at_s, f"waste {stage}", batch.padded - sum(batch.sizes))
        add(at_s, f"seconds {stage}", at_s - began.at_s)
        add(at_s, f"busy {began.worker}", at_s - began.at_s)

    def _running(self) -> list[int]:
        return [number for number, told in self._batches.items() if told.ended is None]

    # -- in words ------------------------------------------------------------------------------------------------

    def _standing(self, trial: Drawn | None) -> Drawn:
        podium = self._podium
        return {
            "version": __version__,
            "t": self._t(self._tape.clock()),
            "unix": round(time.time(), 3),
            "policy": podium.policy,
            "policies": list(podium.policies),
            "trial": trial,
            "settings": podium.settings(),
            "stages": list(STAGES),
            "units": {"acoustic": "tokens", "vocoder": "frames"},
            "frame_ms": 1000 * SAMPLES_PER_FRAME / SAMPLE_RATE,
            "classes": list(CLASSES),
            "workers": list(podium.workers),
            "models": self._models,
            "updates_per_s": UPDATES_PER_S,
            "window_s": WINDOW_S,
        }

    def _now(self, now: float, queues: dict[Any, Queue], trial: Drawn | None) -> Drawn:
        return {
            "t": self._t(now),
            "policy": self._podium.policy,
            "trial": trial,
            "queue": {
                stage: {**queue.kinds, "jobs": [_job(job, stream, now) for job, stream in queue.oldest]}
                for stage, queue in queues.items()
            },
            "waiting": sum(n for queue in queues.values() for n in queue.kinds.values()),
            "backlog_ms": _ms(max(0.0, self._podium.backlog_s())),
            "running": self._running(),
            "lately": self._lately(now),
            "totals": self._totals(),
        }

    def _drawn(self, numbers: Iterable[int]) -> list[Drawn]:
        return [self._batch(number, self._batches[number]) for number in numbers]

    def _batch(self, number: int, told: Told) -> Drawn:
        began, ended, batch = told.began, told.ended, told.began.batch
        took_s = ended and ended.took_s
        return {
            "id": number,
            "stage": batch.key.stage,
            "worker": began.worker,
            "model": batch.key.checkpoint,
            "policy": told.policy,
            "reason": batch.reason,
            "outcome": ended.outcome if ended else "running",
            "start": self._t(began.at_s),
            "ms": None if took_s is None else _ms(took_s),
            "predicted_ms": _ms(batch.predicted_s),
            "padded": batch.padded,
            "padding": round(batch.waste, 4),
            "rows": [
                {
                    "stream": stream,
                    "class": job.kind,
                    "size": job.size,
                    "padded": padded,
                    "waited_ms": _ms(began.at_s - job.arrived_s),
                }
                for job, stream, padded in zip(batch.jobs, began.streams, batch.lengths, strict=True)
            ],
        }

    def _lately(self, now: float) -> Drawn:
        sums = self._sums
        for window in (sums, self._first_audio, self._waits):
            window.forget(now)
        over_s = max(1.0, min(WINDOW_S, now - self._from_s))
        return {
            "over_s": round(over_s, 1),
            "batches": {stage: round(sums[f"batches {stage}"]) for stage in STAGES},
            "rows_per_batch": {stage: _ratio(sums, f"rows {stage}", f"batches {stage}") for stage in STAGES},
            "padding": {stage: _ratio(sums, f"waste {stage}", f"padded {stage}") for stage in STAGES},
            "batch_ms": {stage: _ratio(sums, f"seconds {stage}", f"batches {stage}", 1000) for stage in STAGES},
            "busy": {name: round(min(1.0, sums[f"busy {name}"] / over_s), 4) for name in self._podium.workers},
            "first_audio_ms": _percentiles(self._first_audio.values()),
            "queue_ms": _percentiles(self._waits.values()),
            "audio_per_s": round(sums["audio"] / over_s, 3),
            "good_audio_per_s": round(sums["good audio"] / over_s, 3),
            "first_in_time": _ratio(sums, "first in time", "first"),
            **{name: round(sums[event]) for name, event in COUNTED.items()},
        }

    def _totals(self) -> Drawn:
        told = self._podium.batch_stats.as_dict()
        outcomes = told["outcomes"]
        return {
            "batches": sum(told["batches_by_stage"].values()),
            "rows": outcomes.get("spoken", 0),
            "audio_s": round(told["audio_s"], 2),
            **{name: outcomes.get(event, 0) for name, event in COUNTED.items()},
            "retried": outcomes.get("retried", 0),
        }

    def _t(self, at_s: float) -> float:
        return round(at_s - self._tape.began_s, 4)


def _job(job: Job, stream: int, now: float) -> Drawn:
    return {
        "stream": stream,
        "class": job.kind,
        "size": job.size,
        "age_ms": int(1000 * (now - job.arrived_s)),
        "due_ms": int(1000 * (job.due_s - now)),
    }


def _ms(seconds: float) -> float:
    """To a tenth; `round` would take five times as long, and this is done for every row."""
    return int(10_000 * seconds + 0.5) / 10


def _ratio(sums: Sums, part: str, whole: str, times: float = 1.0) -> float | None:
    found = sums.ratio(part, whole)
    return None if found is None else round(times * found, 4)


def _percentiles(ordered: Sequence[float]) -> Drawn:
    """Of seconds, in milliseconds."""
    found = {f"p{p}": percentile(ordered, p) for p in (50, 95, 99)}
    return {"n": len(ordered), **{name: None if s is None else _ms(s) for name, s in found.items()}}
