"""The door: who is told at once that there is no room, instead of waiting in vain."""

import itertools
from bisect import bisect_left, insort
from math import ceil
from typing import NamedTuple

from tutti.batching.job import Class, Job
from tutti.errors import QueueFull

BULK_ROOM = 0.5  # of the queue: bulk is turned away first
PROMISE = 0.3  # of the time until a deadline: streams that were accepted will ask for more, the more the more they are
OWN = 0.8  # of the time until its first audio is due: a newcomer is not the last to come
HEADROOM = 1.1  # what the batches took against what was needed at best, to begin with
LEARN = 0.05  # of the difference, with each batch that left somebody behind


class Need(NamedTuple):
    """Device seconds that somebody is waiting for."""

    rank_s: float  # its deadline, later by what its caller owes: who comes before whom
    serial: int
    seconds: float
    due_s: float
    stream: int


class Door:
    """Knows what was promised to whom: by rank, the device seconds of every job that waits or will come."""

    def __init__(self, max_waiting: int) -> None:
        self.needed_s = 0.0
        self._max_waiting = max_waiting
        self._needs: list[Need] = []  # of first and next
        self._jobs: dict[Job, Need | float] = {}  # bulk: only the seconds
        self._promised: dict[int, Need] = {}  # streams let in whose first job is still to come
        self._serial = itertools.count()
        self._headroom = HEADROOM

    def admit(
        self, kind: Class, cost_s: float, due_s: float, owes_s: float, start_s: float, now: float, *,
        waiting: int, bulk: int, stream: int | None,
    ) -> None:  # fmt: skip
        """Raises QueueFull if the queue is full, or this or anyone let in before would come too late."""
        self._forget_broken_promises(now)
        waiting += len(self._promised)
        late_s = self._late_s(kind, cost_s, due_s, owes_s, start_s)
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

    def came(self, job: Job, need_s: float, owes_s: float) -> None:
        """It waits, and needs this much of the device, later stages included."""
        if job.kind == "bulk":
            self._jobs[job] = need_s
            self.needed_s += need_s
        else:
            self._jobs[job] = self._note(job.due_s, owes_s, need_s, job.stream)

    def left(self, job: Job, then_s: float = 0.0) -> None:
        """It waits no more; its later stages still need this much."""
        need = self._jobs.pop(job, None)
        if isinstance(need, Need):
            self._strike(need)
            if then_s > 0.0:
                self._jobs[job] = self._note(job.deadline_s, need.rank_s - need.due_s, then_s, job.stream)
        elif need is not None:
            self.needed_s -= need

    def spares(self, seconds: float, stream: int, now: float) -> bool:
        """Whether the device could work so long for this stream, and all others who can still be in time would be."""
        headroom, done_s = self._headroom, now + self._headroom * seconds
        for _, _, need_s, due_s, whose in self._needs:
            if due_s >= now and whose != stream:
                done_s += headroom * need_s
                if done_s > due_s:
                    return False
        return True

    def took(self, needed_s: float, took_s: float) -> None:
        """How far from the best a batch was: its rows were not all alike, or it had too few."""
        if needed_s > 0.0:
            self._headroom += LEARN * (min(max(took_s / needed_s, 1.0), 4.0) - self._headroom)

    def _late_s(self, kind: Class, cost_s: float, due_s: float, owes_s: float, start_s: float) -> float:
        """By how much the worst deadline from this one on would be missed, if the device kept to the ranks."""
        if kind == "bulk":
            return start_s + self._headroom * (self.needed_s + cost_s) - due_s
        at = bisect_left(self._needs, (due_s + owes_s,))
        done_s = start_s + self._headroom * (sum(need.seconds for need in self._needs[:at]) + cost_s)
        late_s = done_s - (start_s + OWN * (due_s - start_s))
        promise = max(PROMISE, 1 / max(1, len({need.stream for need in self._needs})))
        for need in self._needs[at:]:
            done_s += self._headroom * need.seconds
            late_anyway = need.due_s < start_s  # and who owes cannot shut the door to who does not
            if not late_anyway and (owes_s > 0.0 or need.rank_s == need.due_s):
                late_s = max(late_s, done_s - (start_s + promise * (need.due_s - start_s)))
        return late_s

    def _note(self, due_s: float, owes_s: float, seconds: float, stream: int) -> Need:
        need = Need(due_s + owes_s, next(self._serial), seconds, due_s, stream)
        insort(self._needs, need)
        self.needed_s += seconds
        return need

    def _strike(self, need: Need) -> None:
        del self._needs[bisect_left(self._needs, need)]
        self.needed_s -= need.seconds

    def _forget_broken_promises(self, now: float) -> None:
        for stream in [stream for stream, need in self._promised.items() if need.due_s < now]:
            self.keep_promise(stream)


def _full(why: str, retry_after_s: float) -> QueueFull:
    return QueueFull(why, retry_after_s=max(0.1, ceil(10 * retry_after_s) / 10))
