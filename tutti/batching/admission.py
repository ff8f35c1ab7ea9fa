"""Accept or refuse a new stream: an EDF feasibility test over predicted costs."""

from collections.abc import Callable
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import Job
from tutti.errors import QueueFull

Column = NDArray[np.float64]

# Share of the time until each deadline that accepted work may fill. Larger accepts more streams, but leaves less time
# for their next chunks.
UTILISATION = 0.6
OWN_UTILISATION = 0.8  # the same for the first audio of the new stream; the rest is for requests that arrive after it
MARGIN = 1.3  # real batches take this many times the seconds of full batches of equal rows
MAX_LATENESS = 8.0  # a stream may take this many times its own cost, even past its deadline; larger serves slow devices
BULK_SHARE = 0.5  # share of the queue that bulk jobs may fill


class AdmissionControl:
    """Tracks the remaining device seconds of every job, and tests whether one more stream keeps all deadlines."""

    def __init__(self, max_waiting: int, max_lateness: float, is_over_share: Callable[[str, float], bool]) -> None:
        self._max_waiting = max_waiting
        self._max_lateness = max_lateness
        self._is_over_share = is_over_share
        self.needed_s = 0.0  # device seconds still to come for all jobs
        self._waiting: dict[Job, tuple[float, float]] = {}  # device seconds of this stage, of the later ones
        self._running: dict[Job, float] = {}  # of the later stages, while this one runs

    def job_queued(self, job: Job, stage_s: float, later_s: float) -> None:
        self._waiting[job] = stage_s, later_s
        self.needed_s += stage_s + later_s

    def job_started(self, job: Job) -> None:
        stage_s, later_s = self._waiting.pop(job)
        self.needed_s -= stage_s
        if later_s:
            self._running[job] = later_s

    def job_ended(self, job: Job) -> None:
        self.needed_s -= sum(self._waiting.pop(job, ())) + self._running.pop(job, 0.0)
        if not self._waiting and not self._running:
            self.needed_s = 0.0  # no rounding error remains

    def admit(self, job: Job, cost_s: float, start_s: float, now: float) -> None:
        """Raise QueueFull if the first job of a new stream would be late or make another late, or the queue is full.

        `cost_s`: device seconds of all its stages; `start_s`: when the running batches will be done.
        """
        n_waiting = len(self._waiting) + len(self._running)
        n_bulk = sum(map(_is_bulk, self._waiting)) if _is_bulk(job) else 0
        if n_waiting >= self._max_waiting or n_bulk >= BULK_SHARE * self._max_waiting:
            raise _full(f"{n_waiting} jobs are waiting; try again later", self.needed_s)
        late_s = self._late_s(job, cost_s, start_s, now)
        if late_s > 0.0:
            raise _full("the audio could not be ready in time; try again later", late_s)

    def _late_s(self, job: Job, cost_s: float, start_s: float, now: float) -> float:
        """By how many seconds the worst deadline would be missed in EDF order; not positive: feasible."""
        latest_s = max(job.deadline_s, now + self._max_lateness * cost_s)
        if _is_bulk(job):
            return start_s + cost_s + self.needed_s - latest_s
        if latest_s == inf:
            return -inf
        over = self._is_over_share(job.caller, now)
        overs, due_s, seconds, n_streams = self._demand(now)
        behind = (overs > over) | ((overs == over) & (due_s > job.deadline_s))
        own_s = cost_s + MARGIN * np.sum(seconds, where=~behind)
        late_s = own_s - OWN_UTILISATION * (latest_s - start_s)
        utilisation = max(UTILISATION, 1 / max(1, n_streams))
        others_s = own_s + MARGIN * np.cumsum(seconds * behind) - utilisation * (due_s - start_s)
        # A job that is late anyway does not count, nor does one over its share against a caller within its own.
        return float(np.max(others_s, initial=late_s, where=behind & (due_s >= start_s) & (overs <= over)))

    def _demand(self, now: float) -> tuple[Column, Column, Column, int]:
        """All jobs but bulk in the order in which they run: over their share, due, device seconds; and their streams.

        Written for speed: a stream is refused in a fraction of a millisecond while hundreds of jobs wait.
        """
        jobs = [job for job in self._waiting if job.priority != "bulk"]
        due, seconds = [job.deadline_s - job.later_s for job in jobs], [sum(self._waiting[job]) for job in jobs]
        running = [job for job in self._running if job.priority != "bulk"]
        jobs += running
        due += [job.deadline_s for job in running]
        seconds += [self._running[job] for job in running]
        over = {caller: float(self._is_over_share(caller, now)) for caller in {job.caller for job in jobs}}
        overs = np.array([over[job.caller] for job in jobs]) if any(over.values()) else np.zeros(len(jobs))
        due_s = np.array(due)
        order = np.lexsort((due_s, overs))
        return overs[order], due_s[order], np.array(seconds)[order], len({job.stream for job in jobs})


def _is_bulk(job: Job) -> bool:
    return job.priority == "bulk"


def _full(reason: str, retry_after_s: float) -> QueueFull:
    return QueueFull(reason, retry_after_s=max(0.1, ceil(10 * retry_after_s) / 10))
