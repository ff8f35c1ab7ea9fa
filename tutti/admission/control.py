"""Accept or refuse a new stream, by what is already accepted and what the device has shown. Judging changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Generic, NamedTuple, TypeVar

from tutti.admission.fair_share import FairShare
from tutti.admission.feasibility import (
    NOTHING_REMAINS,
    OWN_UTILISATION,
    Backlog,
    Candidate,
    Demand,
    FutureWork,
    Remaining,
    Work,
)
from tutti.admission.refusals import Asking, Refusals
from tutti.errors import QueueFull

MARGIN = 1.3  # real batches take this many times the seconds of full batches of equal rows
OWN_COSTS = 8.0  # a stream may take this many times its own cost, even past its deadline; larger serves slow devices
MIN_S = 1e-6  # against rounding
BULK_SHARE = 0.5  # share of the queue that bulk jobs may fill
HOPELESS_S = 0.5  # between two looks for jobs that cannot start in time any more; smaller refuses them sooner
REMAINING_STREAMS = 32  # new streams over which what follows their first chunks is averaged; larger reacts later
START_SHARE = 0.8  # of a client's timeout that it may wait to start; the rest is for wrong predictions


Job = TypeVar("Job", bound=Work)


@dataclass(frozen=True, slots=True)
class NewStream:
    """A stream that asks to be accepted."""

    model: str
    caller: str
    deadline_s: float  # of its first audio
    cost_s: float  # predicted seconds of the device for it
    max_start_s: float  # how long it may wait for it; infinite: nothing is refused
    give_up_s: float  # when its client leaves
    asked_s: float | None = None  # what its client says of how long it may wait
    is_bulk: bool = False
    remaining: Remaining = NOTHING_REMAINS


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a new stream waits for before the device begins with it, beside the queue."""

    now: float
    free_s: float  # when the running batches will be done
    delay_s: float = 0.0  # that it loses beside the device, which others do not
    starting_s: float = 0.0  # device seconds of accepted streams that are not queued yet, but will be before it


class Accepted(NamedTuple):
    """How a stream was accepted."""

    deadline_s: float
    starts_late: bool = False
    deprioritised: str | None = None  # the caller that has to make room for it


class AdmissionControl(Generic[Job]):
    """Tracks the remaining device seconds of every job, and tests whether one more stream keeps all deadlines."""

    def __init__(self, max_waiting: int, shares: FairShare, refusals: Refusals) -> None:
        self._max_waiting = max_waiting
        self._shares, self._refusals = shares, refusals
        self.needed_s = 0.0  # device seconds still to come for all jobs
        self._bulk_s = 0.0  # of it for bulk
        self._waiting: dict[Job, tuple[float, float]] = {}  # device seconds of this stage, of the later ones
        self._running: dict[Job, float] = {}  # of the later stages, while this one runs
        self._n_bulk = 0  # bulk jobs that wait
        self._backlog = Backlog()  # of all jobs but bulk, as of the last demand
        self._changed: set[Job] = set()  # since then
        self.future = FutureWork()
        self._hopeless_at = -inf  # when to look for hopeless jobs again
        self.typical_remaining = NOTHING_REMAINS  # of a new stream
        self.slower = 1.0  # recent batches took so many times what is predicted for them now

    # -- what was accepted -----------------------------------------------------------------------------------------

    def job_queued(self, job: Job, stage_s: float, later_s: float) -> None:
        self._n_bulk += job.is_bulk and job not in self._waiting
        self._waiting[job] = stage_s, later_s
        self.future.set(job, NOTHING_REMAINS if job.is_bulk else job.spans)
        self._add_seconds(job, stage_s + later_s)
        self._changed.add(job)

    def job_started(self, job: Job) -> None:
        stage_s, later_s = self._waiting.pop(job)
        self._n_bulk -= job.is_bulk
        self._add_seconds(job, -stage_s)
        if later_s:
            self._running[job] = later_s
        self._changed.add(job)

    def job_ended(self, job: Job) -> None:
        self._n_bulk -= job.is_bulk and job in self._waiting
        self._add_seconds(job, -sum(self._waiting.pop(job, ())) - self._running.pop(job, 0.0))
        self._changed.discard(job)
        self._backlog.remove(job)
        self.future.set(job, NOTHING_REMAINS)
        if not self._waiting and not self._running:
            self.needed_s = self._bulk_s = 0.0  # no rounding error remains

    def deadline_moved(self, job: Job) -> None:
        if job in self._waiting or job in self._running:
            self._changed.add(job)

    def learn_remaining(self, remaining: Remaining) -> None:
        """Move the average of what follows the first chunk of a new stream."""
        seconds, share = (
            (new - old) / REMAINING_STREAMS for old, new in zip(self.typical_remaining, remaining, strict=True)
        )
        self.typical_remaining = Remaining(
            self.typical_remaining.seconds + seconds, self.typical_remaining.share + share
        )

    def hopeless(self, start_s: float, now: float) -> list[Job]:
        """The waiting jobs that start a stream too late for its client, even if those before them lose no time."""
        if now < self._hopeless_at:
            return []
        self._hopeless_at, ends_s, found = now + HOPELESS_S, start_s, []
        for job in sorted(self._waiting, key=lambda job: (job.is_bulk, job.starts_late, job.due_s)):
            needed_s = self._speed * sum(self._waiting[job])
            if job.starts_stream and ends_s + MARGIN * needed_s > job.give_up_s:
                found.append(job)
            else:
                ends_s += needed_s
        return found

    # -- the verdict -----------------------------------------------------------------------------------------------

    def accept(self, new: NewStream, ahead: Ahead) -> Accepted:
        """Judge a stream, and keep what follows from it: a refusal for a moment, or who has to make room."""
        now = ahead.now
        self._shares.add_caller(new.caller, now)
        try:
            accepted = self.judge(new, ahead)
        except QueueFull as refusal:
            if not new.is_bulk:
                holds_for = None if self._is_refused_as_all(new.caller, now) else new.caller
                self._refusals.keep(refusal, Asking(new.model, holds_for, new.asked_s), now)
            raise
        if accepted.deprioritised is not None:
            self._shares.deprioritise(accepted.deprioritised, now)
        return accepted

    def _is_refused_as_all(self, caller: str, now: float) -> bool:
        """Whether no caller would be accepted more easily than this one."""
        return not self._shares.is_over(caller, now) and self._dominant(caller) == self._shares.dominant_caller

    def judge(self, new: NewStream, ahead: Ahead) -> Accepted:
        """Accept a stream in time, or to start late but soon enough; else raise QueueFull."""
        self._check_queue(new)
        if new.max_start_s == inf:
            return Accepted(new.deadline_s)
        now, own_s = ahead.now, self._speed * new.cost_s
        new = replace(new, cost_s=own_s + self._margin * ahead.starting_s)
        allowed_s = OWN_COSTS * own_s
        if allowed_s > START_SHARE * (new.give_up_s - now):  # so slow that its client would leave: only if it is alone
            allowed_s = own_s / OWN_UTILISATION + MIN_S
        demand = self._demand(now)
        late_s = self._late_s(new, demand, ahead, allowed_s)
        if late_s <= 0.0:
            return Accepted(new.deadline_s)
        dominant, most_s = self._dominant(new.caller), max(allowed_s, new.max_start_s)
        if dominant is not None and self._has_room(replace(new, cost_s=own_s), dominant, ahead, most_s):
            # It must not be late when the running batch ends: then it would rank behind others that have time.
            in_time_s = ahead.free_s + ahead.delay_s + OWN_COSTS * own_s
            return Accepted(max(new.deadline_s, in_time_s), deprioritised=dominant)
        if now + new.max_start_s > new.deadline_s and not new.is_bulk:
            return self._start_late(new, demand, ahead)
        raise _full("the audio could not be ready in time; try again later", late_s)

    def _check_queue(self, new: NewStream) -> None:
        n_waiting = len(self._waiting) + len(self._running)
        bulk_is_full = new.is_bulk and self._n_bulk >= BULK_SHARE * self._max_waiting
        if n_waiting >= self._max_waiting or bulk_is_full:
            raise _full(f"{n_waiting} jobs are waiting; try again later", self.needed_s)

    def _has_room(self, new: NewStream, dominant: str, ahead: Ahead, allowed_s: float) -> bool:
        """Whether a stream that waits for no other could start soon if those of the dominant caller were late.

        Otherwise one who comes first could fill the device, and nobody else would be served until its streams end.
        """
        over = self._shares.over(ahead.now)
        if new.caller in over or new.is_bulk:
            return False
        demand = self._backlog.demand({*over, dominant})
        return self._late_s(new, demand, ahead, allowed_s) <= 0.0

    def _start_late(self, new: NewStream, demand: Demand, ahead: Ahead) -> Accepted:
        """Due when all that was accepted before it should be done, so that no later stream overtakes it."""
        now, max_start_s = ahead.now, new.max_start_s
        queued_s = self._margin * (self.needed_s - self._bulk_s) + new.cost_s
        wait_s = queued_s + self._margin * self.future.seconds(max_start_s)
        due_s = max(ahead.free_s + ahead.delay_s + wait_s / OWN_UTILISATION + MIN_S, new.deadline_s)
        deadlines_s = [min(due_s, now + max_start_s)]
        if new.asked_s is not None and due_s < demand.last_due_s <= now + max_start_s:
            # Less is waiting than was expected. A client that says how long it waits goes to the end of the queue;
            # others would fill it to the last of the time that all of them may wait.
            deadlines_s.append(demand.last_due_s)
        for deadline_s in deadlines_s:
            late = replace(new, deadline_s=deadline_s)
            late_s = self._late_s(late, demand, ahead, 0.0, starts_late=True)
            if late_s <= 0.0:
                return Accepted(deadline_s, starts_late=True)
        raise _full("the audio could not be ready in time; try again later", late_s)

    def _dominant(self, caller: str) -> str | None:
        """The caller that would have to make room for a new stream of this one, if this one waits for no other."""
        dominant = self._shares.dominant_caller
        return None if caller == dominant or self._backlog.has_jobs_of(caller) else dominant

    def predicted_wait_s(self, new: NewStream, ahead: Ahead) -> float:
        """Seconds until the device would begin with a new stream, in the order in which it would be accepted."""
        ahead = replace(ahead, free_s=ahead.free_s + ahead.delay_s, delay_s=0.0)
        free_in_s = ahead.free_s - ahead.now
        if new.is_bulk:
            return free_in_s + self._margin * self.needed_s
        demand = self._demand(ahead.now)
        is_late = self._late_s(new, demand, ahead, OWN_COSTS * new.cost_s) > 0.0
        if new.max_start_s < inf and is_late:  # it would start behind all that was accepted before it
            return free_in_s + self._margin * (self.needed_s - self._bulk_s)
        return free_in_s + self._margin * demand.seconds(demand.n_ahead(new.deadline_s, late=False))

    def _late_s(
        self, new: NewStream, demand: Demand, ahead: Ahead, allowed_s: float, *, starts_late: bool = False
    ) -> float:
        """By how many seconds the worst deadline would be missed; the stream itself may take `allowed_s`."""
        latest_s = max(new.deadline_s, ahead.now + allowed_s) - ahead.delay_s
        if new.is_bulk:
            return ahead.free_s + new.cost_s + self.needed_s - latest_s
        if latest_s == inf:
            return -inf
        is_over = new.caller in self._shares.over(ahead.now)
        candidate = Candidate(new.deadline_s, latest_s, new.cost_s, new.remaining, is_over, starts_late)
        return demand.late_s(candidate, self.future, ahead.free_s, self._margin)

    @property
    def _margin(self) -> float:
        return MARGIN * self._speed

    @property
    def _speed(self) -> float:
        """By how much predicted seconds are too few at the moment."""
        return max(1.0, self.slower)

    def _demand(self, now: float) -> Demand:
        self._backlog.put([need for job in self._changed if not job.is_bulk for need in self._needs(job)])
        self._changed.clear()
        return self._backlog.demand(self._shares.over(now))

    def _needs(self, job: Job) -> Iterable[tuple[Job, float, float]]:
        """When a job is due and the device seconds that it still needs; nothing if its last stage runs."""
        if job in self._waiting:
            yield job, job.deadline_s - job.later_s, sum(self._waiting[job])
        elif job in self._running:
            yield job, job.deadline_s, self._running[job]
        else:
            self._backlog.remove(job)

    def _add_seconds(self, job: Job, seconds: float) -> None:
        self.needed_s += seconds
        if job.is_bulk:
            self._bulk_s += seconds


def _full(reason: str, retry_after_s: float) -> QueueFull:
    return QueueFull(reason, retry_after_s=max(0.1, ceil(10 * retry_after_s) / 10))
