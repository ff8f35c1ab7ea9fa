"""When a batch runs and which jobs are in it: four interchangeable policies without state.

`deadline` (default): as soon as the device is free, the most urgent job first, no batch longer than a cap.
`fifo`: as soon as the device is free, in the order of arrival, as many jobs as fit.
`window`: waits until the oldest job has waited long enough or enough jobs wait.
`bypass`: the first chunks of a stream run at once and alone, the rest as in `window`.

All rules of `deadline`, with their experiments and tests: docs/architecture.md.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple, Protocol

from tutti.batching.job import Reason
from tutti.batching.queue import JobQueue, QueueEntry


class Head(NamedTuple):
    """The entry with which the next batch starts, and why now."""

    rank: float
    queue: JobQueue
    tier: int
    entry: QueueEntry
    reason: Reason
    alone: bool = False


class Due(NamedTuple):
    """When a batch must be done."""

    batch_s: float  # the earliest deadline of its rows that can still be met
    own_s: float = inf  # the deadline of an earlier chunk in it, of the same stream as the row that would join


# Whether the minimum share of a later tier is due: its head, seconds of the batch that would run instead, now.
HasTurn = Callable[[Head, float, float], bool]


class Policy(Protocol):
    """The decisions that differ; limits, retries and statistics are the scheduler's."""

    @property
    def n_tiers(self) -> int: ...

    @property
    def skips_misfits(self) -> bool:
        """Whether jobs behind one that does not fit may still join."""

    @property
    def can_prefetch(self) -> bool:
        """Whether a batch may be formed while another runs."""

    def place(self, entry: QueueEntry, now: float) -> tuple[int, float]:
        """Tier and rank of an entry."""

    def choose(self, queues: Collection[JobQueue], has_turn: HasTurn, now: float) -> Head | None:
        """The entry to start a batch with; none if none may run yet."""

    def fill_from(self, tier: int) -> tuple[int, ...]:
        """The tiers whose entries may join a batch that started in this one, in order."""

    def refuses(
        self, head: QueueEntry, entry: QueueEntry, before_s: float, after_s: float, due: "Due", now: float
    ) -> Reason | None:
        """Why an entry may not join; none if it may.

        With it the batch of `head` takes `after_s` instead of `before_s` seconds.
        """

    def wake_at(self, queues: Collection[JobQueue], now: float) -> float | None:
        """When a job may run though nothing new arrives; none if only an event changes that."""


IN_TIME, CATCHING_UP, LATE, BULK = range(4)
SHARED = 2.0  # a batch may take this many times its first row alone, even past the cap; larger shares long rows more
NEAR = 4.0  # a deadline within this many caps is near: the next stage, and a wait for it, must still fit before it
NEAR_CAP = 0.5  # caps that a batch with a near deadline may take; larger: more rows, smaller: streams start sooner
# A chunk shares a pass with an earlier one of its stream only if that would be in time at so many times the predicted
# seconds. Larger: fewer gaps on a device whose speed changes, smaller: fuller batches where few listen.
OWN_SLACK = 3.0
# A stream that started late goes before those that wait to start when it is due within so many caps: both stages, each
# behind a batch of others. Larger: fewer gaps of it, but more of streams in time; smaller: streams start sooner.
SOON = 2.0
# Work in time that need not start within so many seconds lets what became late go first. Larger: a gap is longer, while
# others are served ahead; smaller: those may be late themselves.
HAS_TIME_S = 2.0
OVER_SHARE_CAP = 0.15  # caps that a batch with a row over its caller's share may take; larger delays other callers


@dataclass(frozen=True, slots=True)
class Deadline:
    """Earliest deadline first, no batch longer than `cap_s`, so that no new request waits longer than that."""

    cap_s: float = inf
    can_prefetch: bool = False
    n_tiers: int = 4
    skips_misfits: bool = True

    def place(self, entry: QueueEntry, now: float) -> tuple[int, float]:
        in_time = (entry.is_in_time(now) and not entry.is_over_share) or entry.is_continuation
        if entry.is_bulk:
            tier = BULK
        elif entry.is_isolated:
            tier = IN_TIME
        elif entry.waits_to_start or not in_time:
            tier = LATE
        else:
            tier = CATCHING_UP if entry.catches_up else IN_TIME
        return tier, entry.arrived_s if entry.goes_first else entry.due_s

    def choose(self, queues: Collection[JobQueue], has_turn: HasTurn, now: float) -> Head | None:
        def has_earlier_chunk(entry: QueueEntry) -> bool:
            job = entry.jobs[0]
            return not entry.is_isolated and any(queue.due_before(job.stream, job.deadline_s) for queue in queues)

        heads = [_earliest(queues, tier, now, has_earlier_chunk) for tier in (IN_TIME, CATCHING_UP, LATE)]
        heads.append(_earliest(queues, BULK, now))
        chosen = self._first(heads, now)
        if chosen is None:
            return None
        before_s = max(SHARED * chosen.entry.alone_s, self.cap_s if isfinite(self.cap_s) else 0.0)
        for head in (heads[BULK], heads[LATE]):
            if head and head.tier > chosen.tier and has_turn(head, before_s, now):
                return head
        return chosen

    def _first(self, heads: list[Head | None], now: float) -> Head | None:
        """Of the heads of all tiers the one to run; `CATCHING_UP` competes with `IN_TIME` if it is due soon."""
        in_time, catching_up, late, bulk = heads
        has_time = in_time is not None and _has_time_s(in_time, now) > HAS_TIME_S
        if has_time and late and not (late.entry.is_over_share or late.entry.waits_to_start):
            return late
        is_soon = catching_up is not None and _has_time_s(catching_up, now) < SOON * self.cap_s
        groups = ((in_time, catching_up), (late,)) if is_soon else ((in_time,), (catching_up, late))
        present = ([head for head in group if head] for group in (*groups, (bulk,)))
        return min(next(filter(None, present), []), key=lambda head: head.rank, default=None)

    def fill_from(self, tier: int) -> tuple[int, ...]:
        return (tier, *(other for other in range(self.n_tiers) if other != tier))

    def refuses(
        self, head: QueueEntry, entry: QueueEntry, before_s: float, after_s: float, due: Due, now: float
    ) -> Reason | None:
        is_capped = isfinite(self.cap_s)  # else only the total time counts: full batches are best
        if is_capped and after_s - before_s > entry.alone_s:
            return "cost"
        if now + after_s > due.batch_s or (is_capped and now + OWN_SLACK * after_s > due.own_s):
            return "deadline"
        if entry.is_over_share:
            return "cost" if after_s > max(OVER_SHARE_CAP * self.cap_s, head.alone_s) else None
        cap_s = NEAR_CAP * self.cap_s if due.batch_s - now < NEAR * self.cap_s else self.cap_s
        # Past the cap only listeners share: neither bulk work, nor more of one stream, nor streams of one caller that
        # has most of them, make others wait for longer.
        is_of_one = entry.jobs[0].stream == head.jobs[0].stream or (entry.is_of_crowd and head.is_of_crowd)
        is_shared = not (head.is_bulk or entry.is_bulk or is_of_one)
        return "cost" if after_s > max(cap_s, (SHARED if is_shared else 1.0) * head.alone_s) else None

    def wake_at(self, queues: Collection[JobQueue], now: float) -> float | None:
        return None


@dataclass(frozen=True, slots=True)
class Fifo:
    """Work-conserving: in the order of arrival, as many as fit."""

    can_prefetch: bool = False
    n_tiers: int = 1
    skips_misfits: bool = False

    def place(self, entry: QueueEntry, now: float) -> tuple[int, float]:
        return 0, entry.arrived_s

    def choose(self, queues: Collection[JobQueue], has_turn: HasTurn, now: float) -> Head | None:
        return _earliest(queues, 0, now)

    def fill_from(self, tier: int) -> tuple[int, ...]:
        return (tier,)

    def refuses(
        self, head: QueueEntry, entry: QueueEntry, before_s: float, after_s: float, due: Due, now: float
    ) -> Reason | None:
        return None

    def wake_at(self, queues: Collection[JobQueue], now: float) -> float | None:
        return None


@dataclass(frozen=True, slots=True)
class Window(Fifo):
    """Run when the oldest job waited `max_wait_s`, `early_rows` jobs wait, or one waits alone for `min_wait_s`."""

    max_wait_s: float = 0.05
    min_wait_s: float = 0.002
    early_rows: int = 4

    def choose(self, queues: Collection[JobQueue], has_turn: HasTurn, now: float) -> Head | None:
        ready = [head for queue in queues if (head := self._ready(queue, now))]
        return min(ready, key=lambda head: head.rank, default=None)

    def wake_at(self, queues: Collection[JobQueue], now: float) -> float | None:
        return min((at for queue in queues if (at := self._ready_at(queue, now)) is not None), default=None)

    def _ready(self, queue: JobQueue, now: float) -> Head | None:
        ranked = queue.head(self.n_tiers - 1, now)
        if ranked is None:
            return None
        rank, _, entry = ranked
        rows = self._rows(queue)
        reason: Reason
        if entry.is_isolated:
            reason = "retry"
        elif rows >= self.early_rows:
            reason = "early"
        elif now >= entry.arrived_s + self.max_wait_s:
            reason = "window"
        elif rows == 1 and now >= queue.last_arrival_s + self.min_wait_s:
            reason = "quiet"
        else:
            return None
        return Head(rank, queue, self.n_tiers - 1, entry, reason)

    def _ready_at(self, queue: JobQueue, now: float) -> float | None:
        ranked = queue.head(self.n_tiers - 1, now)
        if ranked is None:
            return None
        entry = ranked[2]
        if entry.is_isolated or self._rows(queue) >= self.early_rows:
            return now
        at = entry.arrived_s + self.max_wait_s
        return max(now, min(at, queue.last_arrival_s + self.min_wait_s) if self._rows(queue) == 1 else at)

    def _rows(self, queue: JobQueue) -> int:
        return len(queue)


@dataclass(frozen=True, slots=True)
class Bypass(Window):
    """The first chunks of a stream run before all others, each alone; the rest waits as in `Window`."""

    n_tiers: int = 2

    def place(self, entry: QueueEntry, now: float) -> tuple[int, float]:
        return 0 if entry.is_first else 1, entry.arrived_s

    def choose(self, queues: Collection[JobQueue], has_turn: HasTurn, now: float) -> Head | None:
        first = _earliest(queues, 0, now)
        if first is not None:
            return first._replace(reason="retry" if first.entry.is_isolated else "bypass", alone=True)
        return Window.choose(self, queues, has_turn, now)

    def wake_at(self, queues: Collection[JobQueue], now: float) -> float | None:
        return now if _earliest(queues, 0, now) else Window.wake_at(self, queues, now)

    def _rows(self, queue: JobQueue) -> int:
        return len(queue) - queue.n_by_priority["first"]


def _has_time_s(head: Head, now: float) -> float:
    """Seconds until it must start."""
    return head.rank - head.entry.alone_s - now


def _earliest(
    queues: Collection[JobQueue], tier: int, now: float, skips: Callable[[QueueEntry], bool] | None = None
) -> Head | None:
    """The head with the lowest rank over all keys."""
    heads = ((queue, ranked) for queue in queues if (ranked := queue.head(tier, now, skips)))
    earliest = min(heads, key=lambda pair: pair[1][0], default=None)
    if earliest is None:
        return None
    queue, (rank, _, entry) = earliest
    return Head(rank, queue, tier, entry, "retry" if entry.is_isolated else "free")
