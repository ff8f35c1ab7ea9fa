"""When a batch goes and who is in it: four interchangeable rules without state.

`deadline` (default): at once when the device is free, the most urgent first, no batch longer than the cap.
`fifo`: at once when the device is free, in the order of arrival, as many as fit.
`window`: a batch waits for company until its oldest row has waited long enough, or enough rows wait.
`bypass`: the first chunks of a stream go at once and alone, the rest as in `window`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple, Protocol

from tutti.batching.job import Reason
from tutti.batching.layout import Extent
from tutti.batching.queue import JobQueue, Lot


class Choice(NamedTuple):
    """Where the next batch starts, and why now."""

    rank: float
    waiting: JobQueue
    tier: int
    lot: Lot
    reason: Reason
    alone: bool = False


@dataclass(slots=True)
class Draft:
    """A batch so far."""

    head: Lot
    rows: Extent
    predicted_s: float
    due_s: float  # the earliest deadline in it that can still be met


HasTurn = Callable[[Choice, float, float], bool]  # a later tier's head, seconds of who would run instead, now


class Policy(Protocol):
    """The decisions that differ; limits, retries and the books are the scheduler's."""

    @property
    def n_tiers(self) -> int: ...

    @property
    def passes_over(self) -> bool:
        """Whether a row that does not fit lets those behind it try."""

    @property
    def foresees(self) -> bool:
        """Whether a batch may be formed while another runs, where it will not matter who else comes."""

    def place(self, lot: Lot, now: float) -> tuple[int, float]:
        """Tier and rank among those who wait."""

    def choose(self, rooms: Collection[JobQueue], has_turn: HasTurn, now: float) -> Choice | None:
        """Whose turn it is; none if nobody's is."""

    def fill_from(self, tier: int) -> tuple[int, ...]:
        """The tiers whose lots may join a batch that started in this one, in order."""

    def refuses(self, draft: Draft, lot: Lot, then_s: float, due_s: float, now: float) -> Reason | None:
        """Why this lot may not join, besides the limits; none if it may. With it the batch would take `then_s`, and
        would have to be done by `due_s`.
        """

    def wake_at(self, rooms: Collection[JobQueue], now: float) -> float | None:
        """When somebody's turn comes with nothing new; none if that needs an event."""


FEASIBLE, LATE, BULK = range(3)
URGENT = 2.0  # caps that a batch may take for rows that would be too late in the next one
SOON = 4.0  # caps until the first deadline of a batch: its rows are in a hurry
HURRIED = 0.5  # caps that such a batch may take: its rows wait for one before it and need one more after it
COMPANY = 2.0  # times its first row alone that a batch may take in any case: where a pass costs much, it must be shared
RIDE = 0.1  # of its cost alone: what a bulk row may add to a batch of others
OWING = 0.3  # the same of a row whose caller owes, in a batch of one who does not
OWED = 0.25  # caps that a batch may take for such a row: whoever keeps to a fair share waits for it


@dataclass(frozen=True, slots=True)
class Deadline:
    """Earliest deadline first, and no batch longer than `cap_s`, so that nobody new waits longer than that.

    Where one row alone takes longer, newcomers wait in any case; then a batch takes no longer than two such rows.
    """

    cap_s: float = inf
    thrift: float = 1.0  # of its cost alone: what a row may add to a batch
    foresees: bool = False
    n_tiers: int = 3
    passes_over: bool = True

    def place(self, lot: Lot, now: float) -> tuple[int, float]:
        in_time = now + lot.alone_s <= lot.due_s
        tier = BULK if lot.bulk else FEASIBLE if in_time or lot.apart or lot.goes_on else LATE
        return tier, lot.due_s + lot.owes_s

    def choose(self, rooms: Collection[JobQueue], has_turn: HasTurn, now: float) -> Choice | None:
        heads = [_soonest(rooms, tier, now) for tier in (FEASIBLE, LATE, BULK)]
        chosen = next((head for head in heads if head), None)
        if chosen is None:
            return None
        other_s = max(COMPANY * chosen.lot.alone_s, self.cap_s if isfinite(self.cap_s) else 0.0)
        for head in (heads[BULK], heads[LATE]):
            if head and head.tier > chosen.tier and has_turn(head, other_s, now):
                return head
        return chosen

    def fill_from(self, tier: int) -> tuple[int, ...]:
        return (tier, *(other for other in (FEASIBLE, LATE, BULK) if other != tier))

    def refuses(self, draft: Draft, lot: Lot, then_s: float, due_s: float, now: float) -> Reason | None:
        owing = lot.owes_s > draft.head.owes_s == 0.0
        stretch = RIDE if lot.bulk and not draft.head.bulk else OWING if owing else self.thrift
        if then_s - draft.predicted_s > lot.alone_s * stretch:
            return "cost"
        if now + then_s > due_s:
            return "deadline"
        in_time, in_time_later = now + lot.alone_s <= lot.due_s, now + draft.predicted_s + lot.alone_s <= lot.due_s
        hurried = due_s - now < SOON * self.cap_s
        caps = URGENT if in_time and not in_time_later else HURRIED if hurried else 1.0
        caps, company = (OWED, 1.0) if lot.owes_s > 0.0 else (caps, COMPANY)
        return "cost" if then_s > max(caps * self.cap_s, company * draft.head.alone_s) else None

    def wake_at(self, rooms: Collection[JobQueue], now: float) -> float | None:
        return None


@dataclass(frozen=True, slots=True)
class Fifo:
    """Work-conserving: whoever came first, and as many as fit."""

    foresees: bool = False
    n_tiers: int = 1
    passes_over: bool = False

    def place(self, lot: Lot, now: float) -> tuple[int, float]:
        return 0, lot.came_s

    def choose(self, rooms: Collection[JobQueue], has_turn: HasTurn, now: float) -> Choice | None:
        return _soonest(rooms, 0, now)

    def fill_from(self, tier: int) -> tuple[int, ...]:
        return (tier,)

    def refuses(self, draft: Draft, lot: Lot, then_s: float, due_s: float, now: float) -> Reason | None:
        return None

    def wake_at(self, rooms: Collection[JobQueue], now: float) -> float | None:
        return None


@dataclass(frozen=True, slots=True)
class Window(Fifo):
    """Wait for company: the oldest `max_wait_s`, unless `early_rows` wait, or one alone has for `min_wait_s`."""

    max_wait_s: float = 0.05
    min_wait_s: float = 0.002
    early_rows: int = 4

    def choose(self, rooms: Collection[JobQueue], has_turn: HasTurn, now: float) -> Choice | None:
        ready = [choice for room in rooms if (choice := self._ready(room, now))]
        return min(ready, key=lambda choice: choice.rank, default=None)

    def wake_at(self, rooms: Collection[JobQueue], now: float) -> float | None:
        return min((at for room in rooms if (at := self._ready_at(room, now)) is not None), default=None)

    def _ready(self, room: JobQueue, now: float) -> Choice | None:
        head = room.head(self.n_tiers - 1, now)
        if head is None:
            return None
        rank, _, lot = head
        rows = self._rows(room)
        reason: Reason
        if lot.apart:
            reason = "retry"
        elif rows >= self.early_rows:
            reason = "early"
        elif now >= lot.came_s + self.max_wait_s:
            reason = "window"
        elif rows == 1 and now >= room.last_came_s + self.min_wait_s:
            reason = "quiet"
        else:
            return None
        return Choice(rank, room, self.n_tiers - 1, lot, reason)

    def _ready_at(self, room: JobQueue, now: float) -> float | None:
        head = room.head(self.n_tiers - 1, now)
        if head is None:
            return None
        lot = head[2]
        if lot.apart or self._rows(room) >= self.early_rows:
            return now
        full = lot.came_s + self.max_wait_s
        return max(now, min(full, room.last_came_s + self.min_wait_s) if self._rows(room) == 1 else full)

    def _rows(self, room: JobQueue) -> int:
        return len(room)


@dataclass(frozen=True, slots=True)
class Bypass(Window):
    """The first chunks of a stream pass all others, each alone; the rest wait for company."""

    n_tiers: int = 2

    def place(self, lot: Lot, now: float) -> tuple[int, float]:
        return 0 if lot.first else 1, lot.came_s

    def choose(self, rooms: Collection[JobQueue], has_turn: HasTurn, now: float) -> Choice | None:
        first = _soonest(rooms, 0, now)
        if first is not None:
            return first._replace(reason="retry" if first.lot.apart else "bypass", alone=True)
        return Window.choose(self, rooms, has_turn, now)

    def wake_at(self, rooms: Collection[JobQueue], now: float) -> float | None:
        return now if _soonest(rooms, 0, now) else Window.wake_at(self, rooms, now)

    def _rows(self, room: JobQueue) -> int:
        return len(room) - room.kinds["first"]


def _soonest(rooms: Collection[JobQueue], tier: int, now: float) -> Choice | None:
    """The head with the lowest rank of all keys."""
    heads = ((room, head) for room in rooms if (head := room.head(tier, now)))
    found = min(heads, key=lambda pair: pair[1][0], default=None)
    if found is None:
        return None
    room, (rank, _, lot) = found
    return Choice(rank, room, tier, lot, "retry" if lot.apart else "free")
