"""The door: who is told at once that there is no room, instead of waiting in vain."""

from math import ceil

import numpy as np

from tutti.batching.job import Job, Priority
from tutti.batching.needs import Need, Needs
from tutti.errors import QueueFull

BULK_ROOM = 0.5  # of the queue: bulk is turned away first
PROMISE = 0.6  # of the time until a deadline: streams that were accepted will ask for more, the more the more they are
OWN = 0.8  # of the time until its first audio is due: a newcomer is not the last to come
HEADROOM = 1.1  # what the batches took against what was needed at best, to begin with
LEARN = 0.05  # of the difference, with each batch that left somebody behind


class AdmissionControl:
    """Knows what was promised to whom: by rank, the device seconds of every job that waits or will come."""

    def __init__(self, max_waiting: int) -> None:
        self.needed_s = 0.0
        self._max_waiting = max_waiting
        self._needs = Needs()  # of first and next
        self._jobs: dict[Job, Need | float] = {}  # bulk: only the seconds
        self._promised: dict[int, Need] = {}  # streams let in whose first job is still to come
        self._headroom = HEADROOM

    def admit(
        self, kind: Priority, cost_s: float, due_s: float, latest_s: float, owes_s: float, start_s: float, now: float,
        *, waiting: int, bulk: int, stream: int | None,
    ) -> None:  # fmt: skip
        """Raises QueueFull if the queue is full, this would come after `latest_s`, or one let in before too late.

        Its turn is by `due_s`, as its job's will be.
        """
        self._forget_broken_promises(now)
        waiting += len(self._promised)
        late_s = self._late_s(kind, cost_s, due_s, latest_s, owes_s, start_s)
        if waiting >= self._max_waiting or (kind == "bulk" and bulk >= BULK_ROOM * self._max_waiting):
            raise _full(f"{waiting} jobs wait already; try again later", max(self.needed_s, late_s))
        if late_s > 0.0:
            raise _full("the audio could not be ready in time; try again later", late_s)
        if stream is not None:
            self._promised[stream] = self._note(due_s, owes_s, cost_s, stream)

    def keep_promise(self, stream: int) -> None:
        """The first job of this stream is there, or will never be."""
        need = self._promised.pop(stream, None)
        if need is not None:
            self._strike(need)

    def came(self, job: Job, need_s: float, then_s: float, owes_s: float) -> None:
        """It waits, and needs this much of the device for itself and for its later stages."""
        if job.kind == "bulk":
            self._jobs[job] = need_s + then_s
            self.needed_s += need_s + then_s
        else:
            self._jobs[job] = self._note(job.due_s, owes_s, need_s + then_s, job.stream, then_s)

    def runs(self, job: Job) -> None:
        """It waits no more; what is left to be had is its later stages."""
        need = self.left(job)
        if need is not None and need.then_s > 0.0:
            self._jobs[job] = self._note(job.deadline_s, need.owes_s, need.then_s, job.stream, need.then_s)

    def left(self, job: Job) -> Need | None:
        """Nothing of it is to come; what was, unless it is bulk."""
        need = self._jobs.pop(job, None)
        if isinstance(need, Need):
            self._strike(need)
            return need
        self.needed_s -= need or 0.0
        return None

    def spares(self, seconds: float, stream: int, now: float) -> bool:
        """Whether the device could work so long for this stream, and all others who can still be in time would be."""
        needs = self._needs.columns()
        others = (needs.due_s >= now) & (needs.streams != stream)
        done_s = now + self._headroom * (seconds + np.cumsum(needs.seconds * others))
        return not np.any(others & (done_s > needs.due_s))

    def took(self, needed_s: float, took_s: float) -> None:
        """How far from the best a batch was: its rows were not all alike, or it had too few."""
        if needed_s > 0.0:
            self._headroom += LEARN * (min(max(took_s / needed_s, 1.0), 4.0) - self._headroom)

    def _late_s(
        self, kind: Priority, cost_s: float, due_s: float, latest_s: float, owes_s: float, start_s: float
    ) -> float:
        """By how much the worst deadline from this one on would be missed, if the device kept to the ranks."""
        if kind == "bulk":
            return start_s + cost_s + self._headroom * self.needed_s - latest_s
        needs = self._needs.columns()
        behind = needs.rank_s > due_s + owes_s
        done_s = start_s + cost_s + self._headroom * np.sum(needs.seconds, where=~behind)
        late_s = done_s - (start_s + OWN * (latest_s - start_s))
        then_s = done_s + self._headroom * np.cumsum(needs.seconds * behind)
        promise = max(PROMISE, 1 / max(1, len(np.unique(needs.streams))))
        # Who is late anyway counts no more, and who owes cannot shut the door to who does not.
        heard = behind & (needs.due_s >= start_s) & ((owes_s > 0.0) | (needs.rank_s == needs.due_s))
        later_s = then_s - (start_s + promise * (needs.due_s - start_s))
        return float(np.max(later_s, initial=late_s, where=heard))

    def _note(self, due_s: float, owes_s: float, seconds: float, stream: int, then_s: float = 0.0) -> Need:
        self.needed_s += seconds
        return self._needs.note(due_s, owes_s, seconds, stream, then_s)

    def _strike(self, need: Need) -> None:
        self.needed_s -= need.seconds
        self._needs.strike(need)

    def _forget_broken_promises(self, now: float) -> None:
        for stream in [stream for stream, need in self._promised.items() if need.due_s < now]:
            self.keep_promise(stream)


def _full(why: str, retry_after_s: float) -> QueueFull:
    return QueueFull(why, retry_after_s=max(0.1, ceil(10 * retry_after_s) / 10))
