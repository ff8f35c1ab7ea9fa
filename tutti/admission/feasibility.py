"""An EDF feasibility test over predicted seconds: what is queued, what is still to come, and one stream more."""

from collections.abc import Collection
from itertools import count
from math import frexp, inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Share of the time until each deadline that accepted work may fill. Larger accepts more streams, but leaves less time
# for their next chunks.
UTILISATION = 0.6
# The same for the first audio of the new stream, and of those that were accepted to start late, since for them the rest
# of all texts is counted. What is left is for requests that arrive after it.
OWN_UTILISATION = 0.8
MIN_SLOTS = 64  # below this memory is not given back; larger wastes a few kilobytes
NO_CALLER = -1


class Remaining(NamedTuple):
    """What follows the chunks of one stream that were queued, or the queued span of a row."""

    seconds: float = 0.0  # of the device
    share: float = 0.0  # of the device, while it is spoken as fast as it is heard


NOTHING_REMAINS = Remaining()


class FutureWork:
    """What was accepted and is not queued yet: what remains of texts and rows comes at the pace of the listeners.

    Each comes at its own pace until it ends: a long one must not use the pace of short ones. Those that last about as
    long, within a factor of two, are added up.
    """

    def __init__(self) -> None:
        self._remaining: dict[object, Remaining] = {}  # of the text of a stream, of the row of a job
        self._sums: dict[int, tuple[int, Remaining]] = {}  # by how long they last: how many, and their sum

    def set(self, of: object, remaining: Remaining) -> None:
        """Note what is left of the text of a stream, or of the row of a job."""
        before = self._remaining.pop(of, NOTHING_REMAINS)
        if before.seconds > 0.0:
            self._add(before, -1)
        if remaining.seconds > 0.0:
            self._remaining[of] = remaining
            self._add(remaining, 1)

    def _add(self, remaining: Remaining, n: int) -> None:
        _, lasts = frexp(remaining.seconds / remaining.share)
        n_added, (seconds, share) = self._sums.pop(lasts, (0, NOTHING_REMAINS))
        if n_added + n:  # else no rounding error remains
            self._sums[lasts] = n_added + n, Remaining(seconds + n * remaining.seconds, share + n * remaining.share)

    def seconds(self, within_s: float) -> float:
        """Device seconds that are needed within this time, at most."""
        return max(0.0, sum(min(seconds, share * within_s) for _, (seconds, share) in self._sums.values()))

    def seconds_each(self, within_s: Column, new: Remaining) -> Column:
        """The same for each of these times, with those of a new stream."""
        times_s, needed_s = np.maximum(within_s, 0.0), np.zeros(len(within_s))
        if len(times_s):
            for seconds, share in (new, *(remaining for _, remaining in self._sums.values())):
                needed_s += np.minimum(seconds, share * times_s)
        return needed_s


class Candidate(NamedTuple):
    """A stream that asks to be accepted, as the test sees it."""

    due_s: float  # its place in the order
    latest_s: float  # by when its first audio must be there, as far as the device makes it
    seconds: float  # of the device for it
    remaining: Remaining = NOTHING_REMAINS  # that follows
    is_over: bool = False  # its caller is over its share
    starts_late: bool = False


class Demand(NamedTuple):
    """All jobs but bulk, in the order in which they run: first those in time, then the late ones, each by deadline."""

    due_s: Column
    ends_s: Column  # device seconds of all jobs up to this one
    n_in_time: int  # the others rank behind: over their caller's share, or accepted to start late
    over: Mask  # over its caller's share
    n_streams: int
    catching_up_s: Column  # of `ends_s` what goes on with streams that started late

    @property
    def last_due_s(self) -> float:
        """When the last of all jobs is due that rank behind those in time."""
        due_s = self.due_s[self.n_in_time :]
        return float(np.max(due_s[np.isfinite(due_s)], initial=-inf))

    def n_ahead(self, due_s: float, *, late: bool) -> int:
        """How many jobs run before a new one that is due then."""
        if late:
            return self.n_in_time + int(self.due_s[self.n_in_time :].searchsorted(due_s, "right"))
        return int(self.due_s[: self.n_in_time].searchsorted(due_s, "right"))

    def seconds(self, n_ahead: int) -> float:
        """Device seconds of the first so many jobs."""
        return float(self.ends_s[n_ahead - 1]) if n_ahead else 0.0

    def seconds_before_late_start(self, n_ahead: int) -> float:
        """The same for a stream that starts late: batches also take what goes on with others, due later or not."""
        before_s = float(self.catching_up_s[n_ahead - 1]) if n_ahead else 0.0
        return self.seconds(n_ahead) + (float(self.catching_up_s[-1]) - before_s if len(self.catching_up_s) else 0.0)

    def late_s(self, new: Candidate, future: FutureWork, start_s: float, margin: float) -> float:
        """By how many seconds the worst deadline would be missed with a new stream; not positive: feasible.

        `margin`: times the seconds that the jobs here take.
        """
        late = new.is_over or new.starts_late
        n_ahead = self.n_ahead(new.due_s, late=late)
        if late:  # all that goes on before it
            ahead_s = self.seconds_before_late_start(n_ahead) + future.seconds(new.latest_s - start_s)
        else:
            ahead_s = self.seconds(n_ahead)
        own_late_s = new.seconds + margin * ahead_s - OWN_UTILISATION * (new.latest_s - start_s)
        if not self.n_streams:  # there is nobody else
            return own_late_s
        utilisation = max(UTILISATION, 1 / self.n_streams)
        due_s = self.due_s[n_ahead:]
        behind = slice(max(0, self.n_in_time - n_ahead), None)  # late, so the rest of all texts may come before them
        late_s = new.seconds + margin * self.ends_s[n_ahead:]
        late_s[behind] += margin * future.seconds_each(due_s[behind] - start_s, new.remaining)
        share = np.full(len(due_s), utilisation)
        share[behind] = max(utilisation, OWN_UTILISATION)
        late_s -= share * (due_s - start_s)
        # A job that is late anyway does not count, nor does one over its share against a caller within its own. But a
        # stream in time must not make streams wait even longer that were accepted to start late.
        counts = due_s >= start_s
        if not late:
            counts[behind] = True
        if not new.is_over:
            counts &= ~self.over[n_ahead:]
        return float(np.max(late_s[counts], initial=own_late_s))


NO_DEMAND = Demand(np.zeros(0), np.zeros(0), 0, np.zeros(0, bool), 0, np.zeros(0))


class Work(Protocol):
    """What is known of a job beside its seconds."""

    stream: int
    caller: str
    deadline_s: float
    later_s: float  # predicted seconds after the stage that it waits for
    starts_stream: bool  # nothing of its stream was heard before
    starts_late: bool
    give_up_s: float  # when the client of its stream leaves
    spans: Remaining  # of its row, which are queued one by one

    @property
    def due_s(self) -> float: ...

    @property
    def is_bulk(self) -> bool: ...

    @property
    def catches_up(self) -> bool:
        """Whether it goes on with a stream that started late."""


class Backlog:
    """Columns with a slot for each job, kept up to date, so that one demand takes a few passes over arrays.

    A free slot looks like a job that takes no time and is never due. The last order is kept: few jobs have come and
    gone since, and a nearly sorted column is sorted in a fraction of the time.
    """

    def __init__(self) -> None:
        self._slots: dict[Work, int] = {}
        self._streams: dict[int, int] = {}  # jobs of each stream
        self._callers: dict[str, int] = {}  # the number of each caller
        self._n_jobs: dict[str, int] = {}  # of each caller
        self._caller_numbers = count()
        self._free: list[int] = []
        self._left: list[int] = []  # of jobs that were removed, to be cleared
        self._due_s: Column = np.zeros(0)
        self._seconds: Column = np.zeros(0)
        self._starts_late: Mask = np.zeros(0, bool)
        self._catches_up: Mask = np.zeros(0, bool)
        self._caller: NDArray[np.int64] = np.zeros(0, np.int64)
        self._order: NDArray[np.intp] = np.zeros(0, np.intp)
        self._resize(MIN_SLOTS)

    def put(self, needs: Collection[tuple[Work, float, float]]) -> None:
        """Add or change jobs: when each is due, and the device seconds that it needs."""
        self._clear_left()
        if not needs:
            return
        jobs, due_s, seconds = zip(*needs, strict=True)
        new = [job for job in jobs if job not in self._slots]
        while len(new) > len(self._free):
            self._resize(2 * len(self._due_s))
        for job in new:
            self._add(job)
        slots = [self._slots[job] for job in jobs]
        self._due_s[slots], self._seconds[slots] = due_s, seconds

    def remove(self, job: Work) -> None:
        """Remove a job if it is there."""
        slot = self._slots.pop(job, None)
        if slot is not None:
            self._left.append(slot)
            _count_down(self._streams, job.stream)
            if not _count_down(self._n_jobs, job.caller):
                del self._callers[job.caller]

    def has_jobs_of(self, caller: str) -> bool:
        return caller in self._n_jobs

    def demand(self, over_share: Collection[str]) -> Demand:
        """The jobs in order; `over_share` names the callers that are over their share."""
        if not self._slots:
            return NO_DEMAND
        self._clear_left()
        order = self._order
        over = self._is_over(over_share)
        if over.any():  # last among equals
            order = np.concatenate([order[~over[order]], order[over[order]]])
        self._order = order = order[np.argsort(self._due_s[order], kind="stable")]
        late = (self._starts_late | over)[order]
        n_late = int(np.count_nonzero(late))
        if n_late:
            order = np.concatenate([order[~late], order[late]])
        seconds = self._seconds[order]
        catching_up_s = np.cumsum(seconds * self._catches_up[order])
        return Demand(
            self._due_s[order], np.cumsum(seconds), len(order) - n_late, over[order], len(self._streams), catching_up_s
        )

    def _is_over(self, over_share: Collection[str]) -> Mask:
        over = np.zeros(len(self._due_s), bool)
        for caller in over_share:
            if caller in self._callers:
                over |= self._caller == self._callers[caller]
        return over

    def _clear_left(self) -> None:
        """Free the slots of jobs that were removed."""
        if not self._left:
            return
        self._due_s[self._left], self._seconds[self._left], self._starts_late[self._left] = inf, 0.0, False
        self._caller[self._left], self._catches_up[self._left] = NO_CALLER, False
        self._free += self._left
        self._left = []
        if len(self._due_s) > MIN_SLOTS and 4 * len(self._slots) < len(self._due_s):
            self._resize(max(MIN_SLOTS, 2 * len(self._slots)))

    def _add(self, job: Work) -> None:
        slot = self._slots[job] = self._free.pop()
        if job.caller not in self._callers:
            self._callers[job.caller] = next(self._caller_numbers)
        self._streams[job.stream] = self._streams.get(job.stream, 0) + 1
        self._n_jobs[job.caller] = self._n_jobs.get(job.caller, 0) + 1
        self._starts_late[slot], self._caller[slot] = job.starts_late, self._callers[job.caller]
        self._catches_up[slot] = job.catches_up

    def _resize(self, n_slots: int) -> None:
        """Move all jobs into the first slots of columns of this length; no slot must be left to be cleared."""
        old, n_jobs = list(self._slots.values()), len(self._slots)

        def moved(column: NDArray[np.generic], empty: float) -> NDArray[np.generic]:
            return np.concatenate([column[old], np.full(n_slots - n_jobs, empty, column.dtype)])

        self._due_s, self._seconds = moved(self._due_s, inf), moved(self._seconds, 0.0)  # type: ignore[assignment]
        self._starts_late = moved(self._starts_late, False)  # type: ignore[assignment]
        self._catches_up = moved(self._catches_up, False)  # type: ignore[assignment]
        self._caller = moved(self._caller, NO_CALLER)  # type: ignore[assignment]
        self._slots = {job: slot for slot, job in enumerate(self._slots)}
        self._free = list(range(n_jobs, n_slots))
        self._order = np.arange(n_slots)


def _count_down(counts: dict[Any, int], item: object) -> int:
    left = counts[item] - 1
    if left:
        counts[item] = left
    else:
        del counts[item]
    return left
