"""Accept or refuse a new stream: an EDF feasibility test over predicted costs."""

from math import ceil, inf

import numpy as np

from tutti.batching.backlog import Backlog, Demand
from tutti.batching.fairness import FairShare
from tutti.batching.job import NO_REST, Job, Rest
from tutti.batching.limits import START_SHARE
from tutti.batching.open_streams import OpenStreams
from tutti.batching.unqueued import UnqueuedWork
from tutti.batching.verdicts import Question
from tutti.errors import QueueFull

# Share of the time until each deadline that accepted work may fill. Larger accepts more streams, but leaves less time
# for their next chunks.
UTILISATION = 0.6
# The same for the first audio of the new stream, and of those that were accepted to start late, since for them the rest
# of all texts is counted. What is left is for requests that arrive after it.
OWN_UTILISATION = 0.8
MARGIN = 1.3  # real batches take this many times the seconds of full batches of equal rows
OWN_COSTS = 8.0  # a stream may take this many times its own cost, even past its deadline; larger serves slow devices
MIN_S = 1e-6  # against rounding
ROOM_COSTS = 5.0  # times its cost until which a stream that others made room for is in time; larger ranks it later
BULK_SHARE = 0.5  # share of the queue that bulk jobs may fill
HOPELESS_S = 0.5  # between two looks for jobs that cannot start in time any more; smaller refuses them sooner
REST_STREAMS = 32  # new streams over which what follows their first chunks is averaged; larger reacts later


class AdmissionControl:
    """Tracks the remaining device seconds of every job, and tests whether one more stream keeps all deadlines."""

    def __init__(self, max_waiting: int, shares: FairShare) -> None:
        self._max_waiting = max_waiting
        self._shares = shares
        self.needed_s = 0.0  # device seconds still to come for all jobs
        self._bulk_s = 0.0  # of it for bulk
        self._waiting: dict[Job, tuple[float, float]] = {}  # device seconds of this stage, of the later ones
        self._running: dict[Job, float] = {}  # of the later stages, while this one runs
        self._n_bulk = 0  # bulk jobs that wait
        self._backlog = Backlog()  # of all jobs but bulk, as of the last demand
        self._changed: set[Job] = set()  # since then
        self.unqueued = UnqueuedWork()
        self.streams = OpenStreams()
        self._hopeless_at = -inf  # when to look for hopeless jobs again
        self.usual_rest = NO_REST  # of a new stream
        self.slower = 1.0  # recent batches took so many times what is predicted for them now

    def job_queued(self, job: Job, stage_s: float, later_s: float) -> None:
        job.goes_first = job.starts_stream and not _is_bulk(job) and self.streams.is_newcomer(job.caller)
        self._n_bulk += _is_bulk(job) and job not in self._waiting
        self._waiting[job] = stage_s, later_s
        self.unqueued.set(job, NO_REST if _is_bulk(job) else job.spans)
        self._add_seconds(job, stage_s + later_s)
        self._changed.add(job)

    def job_started(self, job: Job) -> None:
        stage_s, later_s = self._waiting.pop(job)
        self._n_bulk -= _is_bulk(job)
        self._add_seconds(job, -stage_s)
        if later_s:
            self._running[job] = later_s
        self._changed.add(job)

    def deadline_moved(self, job: Job) -> None:
        if job in self._waiting or job in self._running:
            self._changed.add(job)

    @property
    def _margin(self) -> float:
        return MARGIN * self._speed

    @property
    def _speed(self) -> float:
        """By how much predicted seconds are too few at the moment."""
        return max(1.0, self.slower)

    def hopeless(self, start_s: float, now: float) -> list[Job]:
        """The waiting jobs that start a stream too late for its client, even if those before them lose no time."""
        if now < self._hopeless_at:
            return []
        self._hopeless_at, ends_s, found = now + HOPELESS_S, start_s, []
        for job in sorted(self._waiting, key=lambda job: (_is_bulk(job), job.starts_late, job.due_s)):
            needed_s = self._speed * sum(self._waiting[job])
            if job.starts_stream and ends_s + MARGIN * needed_s > job.give_up_s:
                found.append(job)
            else:
                ends_s += needed_s
        return found

    def job_ended(self, job: Job) -> None:
        self._n_bulk -= _is_bulk(job) and job in self._waiting
        self._add_seconds(job, -sum(self._waiting.pop(job, ())) - self._running.pop(job, 0.0))
        self._changed.discard(job)
        self._backlog.remove(job)
        self.unqueued.set(job, NO_REST)
        if not self._waiting and not self._running:
            self.needed_s = self._bulk_s = 0.0  # no rounding error remains

    def admit(
        self,
        job: Job,
        cost_s: float,
        max_start_s: float,
        start_s: float,
        now: float,
        delay_s: float = 0.0,
        starting_s: float = 0.0,
    ) -> None:
        """Accept the first job of a new stream in time, or to start late but soon enough; else raise QueueFull.

        `cost_s`: device seconds of all its stages; `start_s`: when the running batches will be done; `delay_s`: what
        this stream loses beside the device, which others do not; `starting_s`: device seconds of accepted streams that
        are not queued yet, but will be before it.
        """
        if job.rest is not None:
            self.usual_rest = _moved(self.usual_rest, job.rest)
        cost_s *= self._speed
        n_waiting = len(self._waiting) + len(self._running)
        bulk_is_full = _is_bulk(job) and self._n_bulk >= BULK_SHARE * self._max_waiting
        if n_waiting >= self._max_waiting or bulk_is_full:
            raise _full(f"{n_waiting} jobs are waiting; try again later", self.needed_s)
        if max_start_s == inf:
            return
        target_s, demand = job.deadline_s, self._demand(now)
        allowed_s = OWN_COSTS * cost_s
        if allowed_s > START_SHARE * (job.give_up_s - now):  # so slow that its client would leave: only if it is alone
            allowed_s = cost_s / OWN_UTILISATION + MIN_S
        own_s = cost_s
        cost_s += self._margin * starting_s
        late_s = self._late_s(job, demand, allowed_s, cost_s, start_s, now, delay_s)
        if late_s > 0.0 and self._make_room(job, max(allowed_s, max_start_s), own_s, start_s, now, delay_s):
            return
        if late_s > 0.0 and now + max_start_s > target_s and not _is_bulk(job):
            # Due when all that was accepted before it should be done, so that no later stream overtakes it.
            wait_s = self.expected_wait_s(cost_s, start_s, start_s) + self._margin * float(
                self.unqueued.seconds(max_start_s)
            )
            due_s = max(start_s + delay_s + wait_s / OWN_UTILISATION + MIN_S, target_s)
            job.starts_late, job.deadline_s = True, min(due_s, now + max_start_s)
            late_s = self._late_s(job, demand, 0.0, cost_s, start_s, now, delay_s)
            if late_s > 0.0 and job.max_start_s is not None and due_s < demand.last_due_s <= now + max_start_s:
                # Less is waiting than was expected. A client that says how long it waits goes to the end of the queue;
                # others would fill it to the last of the time that all of them may wait.
                job.deadline_s = demand.last_due_s
                late_s = self._late_s(job, demand, 0.0, cost_s, start_s, now, delay_s)
        if late_s > 0.0:
            job.starts_late, job.deadline_s = False, target_s
            raise _full("the audio could not be ready in time; try again later", late_s)

    def _make_room(self, job: Job, allowed_s: float, cost_s: float, start_s: float, now: float, delay_s: float) -> bool:
        """Let the streams of a caller with many of them become late, if one that waits for none can then start soon.

        Otherwise one who comes first could fill the device, and nobody else would be served until its streams end.
        """
        over, crowding = self._shares.over(now), self._crowding(job.caller)
        if crowding is None or job.caller in over or _is_bulk(job):
            return False
        demand = self._backlog.demand({*over, crowding})
        if self._late_s(job, demand, allowed_s, cost_s, start_s, now, delay_s) > 0.0:
            return False
        self._shares.demote(crowding, now)
        # It must not be late when the running batch ends: then it would rank behind others that have time.
        job.deadline_s = max(job.deadline_s, start_s + delay_s + ROOM_COSTS * cost_s)
        return True

    def question(self, checkpoint: str, max_start_s: float | None, caller: str, now: float) -> Question:
        """What the answer to a new stream of this caller depends on."""
        return Question(checkpoint, max_start_s, self._shares.is_over(caller, now), self._crowding(caller))

    def is_crowding(self, caller: str) -> bool:
        """Whether a caller has most of all streams, and others were here in the last half minute."""
        return self.streams.crowding() == caller and self._shares.n_callers > 1

    def _crowding(self, caller: str) -> str | None:
        """The caller that would have to make room for a new stream of this one, if this one waits for no other."""
        crowding = self.streams.crowding()
        return None if caller == crowding or self._backlog.has_jobs_of(caller) else crowding

    def expected_wait_s(self, cost_s: float, start_s: float, now: float) -> float:
        """Seconds until the first audio of a new stream of this cost, if it waits for all that was accepted before."""
        return start_s - now + self._margin * (self.needed_s - self._bulk_s) + cost_s

    def predicted_wait_s(self, job: Job, cost_s: float, max_start_s: float, start_s: float, now: float) -> float:
        """Seconds until the device would begin with a new stream, by the order that `admit` would give it."""
        if _is_bulk(job):
            return start_s - now + self._margin * self.needed_s
        demand = self._demand(now)
        if max_start_s < inf and self._late_s(job, demand, OWN_COSTS * cost_s, cost_s, start_s, now, 0.0) > 0.0:
            # It would start late, behind all that was accepted before it.
            return self.expected_wait_s(0.0, start_s, now)
        return start_s - now + self._margin * demand.seconds(demand.n_ahead(job.deadline_s, late=False))

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
        over = job.caller in self._shares.over(now)
        late = over or job.starts_late
        n_ahead = demand.n_ahead(job.deadline_s, late=late)
        if late:  # all that goes on before it
            ahead_s = demand.seconds_before_late_start(n_ahead) + self.unqueued.seconds(latest_s - start_s)
        else:
            ahead_s = demand.seconds(n_ahead)
        own_s = cost_s + self._margin * ahead_s
        late_s = own_s - OWN_UTILISATION * (latest_s - start_s)
        if not demand.n_streams:  # there is nobody else
            return late_s
        utilisation = max(UTILISATION, 1 / max(1, demand.n_streams))
        due_s, over_behind = demand.due_s[n_ahead:], demand.over[n_ahead:]
        behind = slice(max(0, demand.n_in_time - n_ahead), None)  # late, so the rest of all texts may come before them
        others_s = cost_s + self._margin * demand.ends_s[n_ahead:]
        others_s[behind] += self._margin * self.unqueued.seconds_each(due_s[behind] - start_s, job.rest_of_stream)
        share = np.full(len(due_s), utilisation)
        share[behind] = max(utilisation, OWN_UTILISATION)
        others_s -= share * (due_s - start_s)
        # A job that is late anyway does not count, nor does one over its share against a caller within its own. But a
        # stream in time must not make streams wait even longer that were accepted to start late.
        counts = due_s >= start_s
        if not late:
            counts[demand.n_in_time - n_ahead :] = True
        if not over:
            counts &= ~over_behind
        return float(np.max(others_s[counts], initial=late_s))

    def _demand(self, now: float) -> Demand:
        needs = []
        for job in self._changed:
            if job.priority == "bulk":
                continue
            if job in self._waiting:
                needs.append((job, job.deadline_s - job.later_s, sum(self._waiting[job])))
            elif job in self._running:
                needs.append((job, job.deadline_s, self._running[job]))
            else:
                self._backlog.remove(job)
        self._changed.clear()
        self._backlog.put(needs)
        return self._backlog.demand(self._shares.over(now))

    def _add_seconds(self, job: Job, seconds: float) -> None:
        self.needed_s += seconds
        if job.priority == "bulk":
            self._bulk_s += seconds


def _moved(usual: Rest, rest: Rest) -> Rest:
    """The average with one stream more."""
    seconds, share = ((new - old) / REST_STREAMS for old, new in zip(usual, rest, strict=True))
    return Rest(usual.seconds + seconds, usual.share + share)


def _is_bulk(job: Job) -> bool:
    return job.priority == "bulk"


def _full(reason: str, retry_after_s: float) -> QueueFull:
    return QueueFull(reason, retry_after_s=max(0.1, ceil(10 * retry_after_s) / 10))
