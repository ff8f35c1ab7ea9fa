"""Accept or refuse a new stream: an EDF feasibility test over predicted costs."""

from collections.abc import Callable
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import Job
from tutti.errors import QueueFull

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Share of the time until each deadline that accepted work may fill. Larger accepts more streams, but leaves less time
# for their next chunks.
UTILISATION = 0.6
OWN_UTILISATION = 0.8  # the same for the first audio of the new stream; the rest is for requests that arrive after it
MARGIN = 1.3  # real batches take this many times the seconds of full batches of equal rows
OWN_COSTS = 8.0  # a stream may take this many times its own cost, even past its deadline; larger serves slow devices
MIN_S = 1e-6  # against rounding
BULK_SHARE = 0.5  # share of the queue that bulk jobs may fill


class Demand(NamedTuple):
    """All jobs but bulk, in the order in which they run."""

    late: Mask  # ranks behind those in time: over its caller's share, or accepted to start late
    over: Mask  # over its caller's share
    due_s: Column
    seconds: Column  # of the device
    n_streams: int


class AdmissionControl:
    """Tracks the remaining device seconds of every job, and tests whether one more stream keeps all deadlines."""

    def __init__(self, max_waiting: int, is_over_share: Callable[[str, float], bool]) -> None:
        self._max_waiting = max_waiting
        self._is_over_share = is_over_share
        self.needed_s = 0.0  # device seconds still to come for all jobs
        self._bulk_s = 0.0  # of it for bulk
        self._waiting: dict[Job, tuple[float, float]] = {}  # device seconds of this stage, of the later ones
        self._running: dict[Job, float] = {}  # of the later stages, while this one runs

    def job_queued(self, job: Job, stage_s: float, later_s: float) -> None:
        self._waiting[job] = stage_s, later_s
        self._add_seconds(job, stage_s + later_s)

    def job_started(self, job: Job) -> None:
        stage_s, later_s = self._waiting.pop(job)
        self._add_seconds(job, -stage_s)
        if later_s:
            self._running[job] = later_s

    def job_ended(self, job: Job) -> None:
        self._add_seconds(job, -sum(self._waiting.pop(job, ())) - self._running.pop(job, 0.0))
        if not self._waiting and not self._running:
            self.needed_s = self._bulk_s = 0.0  # no rounding error remains

    def admit(
        self, job: Job, cost_s: float, max_start_s: float, start_s: float, now: float, delay_s: float = 0.0
    ) -> None:
        """Accept the first job of a new stream in time, or to start late but soon enough; else raise QueueFull.

        `cost_s`: device seconds of all its stages; `start_s`: when the running batches will be done; `delay_s`: what
        this stream loses beside the device, which others do not.
        """
        n_waiting = len(self._waiting) + len(self._running)
        n_bulk = sum(map(_is_bulk, self._waiting)) if _is_bulk(job) else 0
        if n_waiting >= self._max_waiting or n_bulk >= BULK_SHARE * self._max_waiting:
            raise _full(f"{n_waiting} jobs are waiting; try again later", self.needed_s)
        if max_start_s == inf:
            return
        target_s, demand = job.deadline_s, self._demand(now)
        late_s = self._late_s(job, demand, OWN_COSTS * cost_s, cost_s, start_s, now, delay_s)
        if late_s > 0.0 and now + max_start_s > target_s and not _is_bulk(job):
            # Due when all that was accepted before it should be done, so that no later stream overtakes it.
            due_s = start_s + delay_s + self.expected_wait_s(cost_s, start_s, start_s) / OWN_UTILISATION + MIN_S
            job.starts_late, job.deadline_s = True, min(max(due_s, target_s), now + max_start_s)
            late_s = self._late_s(job, demand, 0.0, cost_s, start_s, now, delay_s)
        if late_s > 0.0:
            job.starts_late, job.deadline_s = False, target_s
            raise _full("the audio could not be ready in time; try again later", late_s)

    def expected_wait_s(self, cost_s: float, start_s: float, now: float) -> float:
        """Seconds until the first audio of a new stream of this cost, if it waits for all that was accepted before."""
        return start_s - now + MARGIN * (self.needed_s - self._bulk_s) + cost_s

    def predicted_wait_s(self, job: Job, cost_s: float, max_start_s: float, start_s: float, now: float) -> float:
        """Seconds until the device would begin with a new stream, by the order that `admit` would give it."""
        if _is_bulk(job):
            return start_s - now + MARGIN * self.needed_s
        demand = self._demand(now)
        if max_start_s < inf and self._late_s(job, demand, OWN_COSTS * cost_s, cost_s, start_s, now, 0.0) > 0.0:
            # It would start late, behind all that was accepted before it.
            return self.expected_wait_s(0.0, start_s, now)
        ahead = ~demand.late & (demand.due_s <= job.deadline_s)
        return start_s - now + MARGIN * float(np.sum(demand.seconds, where=ahead))

    def _late_s(
        self, job: Job, demand: Demand, allowed_s: float, cost_s: float, start_s: float, now: float, delay_s: float
    ) -> float:
        """By how many seconds the worst deadline would be missed in EDF order; not positive: feasible.

        The new stream itself may take `allowed_s`, even past its deadline.
        """
        latest_s = max(job.deadline_s, now + allowed_s) - delay_s
        if _is_bulk(job):
            return start_s + cost_s + self.needed_s - latest_s
        if latest_s == inf:
            return -inf
        over = self._is_over_share(job.caller, now)
        late = over or job.starts_late
        behind = (demand.late > late) | ((demand.late == late) & (demand.due_s > job.deadline_s))
        own_s = cost_s + MARGIN * np.sum(demand.seconds, where=~behind)
        late_s = own_s - OWN_UTILISATION * (latest_s - start_s)
        utilisation = max(UTILISATION, 1 / max(1, demand.n_streams))
        others_s = own_s + MARGIN * np.cumsum(demand.seconds * behind) - utilisation * (demand.due_s - start_s)
        # A job that is late anyway does not count, nor does one over its share against a caller within its own. But a
        # stream in time must not make streams wait even longer that were accepted to start late.
        counts = demand.due_s >= start_s if late else (demand.due_s >= start_s) | (demand.late & ~demand.over)
        counts &= behind & (demand.over <= over)
        return float(np.max(others_s, initial=late_s, where=counts))

    def _demand(self, now: float) -> Demand:
        """Written for speed: a stream is judged in a fraction of a millisecond while hundreds of jobs wait."""
        rows = [
            (job.deadline_s - job.later_s, stage_s + later_s, job.starts_late, job.caller, job.stream)
            for job, (stage_s, later_s) in self._waiting.items()
            if job.priority != "bulk"
        ]
        rows += [
            (job.deadline_s, later_s, job.starts_late, job.caller, job.stream)
            for job, later_s in self._running.items()
            if job.priority != "bulk"
        ]
        due, seconds, starts_late, callers, streams = zip(*rows, strict=True) if rows else ((),) * 5
        is_over = {caller: self._is_over_share(caller, now) for caller in set(callers)}
        over = np.zeros(len(rows), bool)
        if any(is_over.values()):
            over = np.array([is_over[caller] for caller in callers], bool)
        late, due_s = over | np.array(starts_late, bool), np.array(due, float)
        order = np.lexsort((due_s, late))
        return Demand(late[order], over[order], due_s[order], np.array(seconds, float)[order], len(set(streams)))

    def _add_seconds(self, job: Job, seconds: float) -> None:
        self.needed_s += seconds
        if job.priority == "bulk":
            self._bulk_s += seconds


def _is_bulk(job: Job) -> bool:
    return job.priority == "bulk"


def _full(reason: str, retry_after_s: float) -> QueueFull:
    return QueueFull(reason, retry_after_s=max(0.1, ceil(10 * retry_after_s) / 10))
