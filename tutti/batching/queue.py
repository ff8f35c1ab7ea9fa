"""The jobs of one key that wait, in the order in which a policy would take them."""

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tutti.batching.cost import CostModel
from tutti.batching.job import Job, Key, Priority


@dataclass(frozen=True, slots=True, eq=False)
class Lot:
    """Jobs that are taken as one: a row that may share its batch, or part of a failed batch that must not."""

    jobs: tuple[Job, ...]
    came_s: float
    alone_s: float  # predicted, with nobody else
    due_s: float
    owes_s: float = 0.0  # its caller, beyond its share, when it came forward
    apart: bool = False
    bulk: bool = False
    goes_on: bool = False
    first: bool = False


Place = Callable[[Lot, float], tuple[int, float]]  # at this time: tier and rank, the lower the sooner
Entry = tuple[float, int, Lot]  # rank; among equals, who came first


class JobQueue:
    """A heap for each tier. Who is cancelled is skipped when met; who fell to a later tier is moved when met."""

    def __init__(
        self, key: Key, cost: CostModel, place: Place, n_tiers: int, owes_s: Callable[[str, float], float]
    ) -> None:
        self.key = key
        self.cost = cost
        self.last_came_s = float("-inf")
        self.kinds: Counter[Priority] = Counter()
        self.n_looked_at = 0  # lots inspected so far: the work that decisions did
        self._place = place
        self._owes_s = owes_s
        self._tiers: list[list[Entry]] = [[] for _ in range(n_tiers)]
        self._lots: dict[Job, Lot | None] = {}  # every job that waits; no lot while one of its stream is before it
        self._came_s: dict[Job, float] = {}  # of those without a lot
        self._first: dict[int, Job] = {}  # of each stream, the one that can be taken
        self._behind: dict[int, deque[Job]] = {}
        self._serial = itertools.count()

    def __len__(self) -> int:
        return len(self._lots)

    def __contains__(self, job: Job) -> bool:
        return job in self._lots

    def __iter__(self) -> Iterator[Job]:
        return iter(self._lots)

    def add(self, job: Job, now: float) -> None:
        """Behind those of its own stream, else where the policy places it."""
        self.last_came_s = now
        self.kinds[job.kind] += 1
        if job.stream in self._first:
            self._lots[job] = None
            self._came_s[job] = now
            self._behind.setdefault(job.stream, deque()).append(job)
        else:
            self._first[job.stream] = job
            self._put((job,), now, now)

    def again(self, jobs: Iterable[Job], now: float, *, apart: bool = False) -> None:
        """Jobs that had left and must run once more; `apart`: together, but with nobody else."""
        for lot in [tuple(jobs)] if apart else [(job,) for job in jobs]:
            self.kinds.update(job.kind for job in lot)
            self._put(lot, min(job.arrived_s for job in lot), now, apart=apart)

    def cancel(self, job: Job) -> bool:
        """True if it was still waiting; it will not be met again."""
        if job not in self._lots:
            return False
        self._leave(job)
        if sum(map(len, self._tiers)) > 2 * len(self._lots) + 64:
            self._sweep()
        return True

    def swap(self, job: Job, other: Job, now: float) -> bool:
        """The other waits in its place, as when only the deadline differs; False if it must stay as it is."""
        lot = self._lots.get(job)
        if job not in self._lots or (lot is not None and lot.apart):
            return False
        del self._lots[job]
        if self._first.get(job.stream) is job:
            self._first[job.stream] = other
        if lot is not None:
            self._put((other,), lot.came_s, now)
        else:
            self._lots[other] = None
            self._came_s[other] = self._came_s.pop(job)
            behind = self._behind[job.stream]
            behind[behind.index(job)] = other
        return True

    def reorder(self, place: Place, n_tiers: int, now: float) -> None:
        """As another policy would take them; who came before whom in a stream stays."""
        entries = sorted((serial, lot) for heap in self._tiers for _, serial, lot in heap if self.alive(lot))
        self._place = place
        self._tiers = [[] for _ in range(n_tiers)]
        for _, lot in entries:
            self._push(lot, now)

    def head(self, tier: int, now: float) -> Entry | None:
        """Who is next in this tier."""
        heap = self._tiers[tier]
        while heap:
            self.n_looked_at += 1
            entry = heap[0]
            lot = entry[2]
            alive = self.alive(lot)
            if alive and self._place(lot, now)[0] <= tier:
                return entry
            heapq.heappop(heap)
            if alive:
                self._push(lot, now)
        return None

    def take(self, tier: int, now: float, suits: Callable[[Lot], bool | None]) -> None:
        """Offer the lots of a tier in order: True takes one out, False passes it over, None ends."""
        heap, passed = self._tiers[tier], []
        while (head := self.head(tier, now)) is not None:
            lot = head[2]
            answer = suits(lot)
            if answer is None:
                break
            heapq.heappop(heap)
            if answer:
                for job in self.alive(lot):
                    self._leave(job)
            else:
                passed.append(head)
        for entry in passed:
            heapq.heappush(heap, entry)

    def alive(self, lot: Lot) -> tuple[Job, ...]:
        """Those of the lot who still wait."""
        if len(lot.jobs) == 1:
            return lot.jobs if self._lots.get(lot.jobs[0]) is lot else ()
        return tuple([job for job in lot.jobs if self._lots.get(job) is lot])

    def _put(self, jobs: tuple[Job, ...], came_s: float, now: float, *, apart: bool = False) -> None:
        alone_s = self.cost.predict([job.size for job in jobs])
        lot = Lot(
            jobs,
            came_s,
            alone_s,
            min(job.due_s for job in jobs),
            self._owes_s(jobs[0].caller, now),
            apart,
            bulk=all(job.kind == "bulk" for job in jobs),
            goes_on=any(job.goes_on for job in jobs),
            first=any(job.kind == "first" for job in jobs),
        )
        for job in jobs:
            self._lots[job] = lot
        self._push(lot, now)

    def _push(self, lot: Lot, now: float) -> None:
        tier, rank = self._place(lot, now)
        heapq.heappush(self._tiers[tier], (rank, next(self._serial), lot))

    def _leave(self, job: Job) -> None:
        """Out of the line; the next of its stream comes forward."""
        del self._lots[job]
        self._came_s.pop(job, None)
        self.kinds[job.kind] -= 1
        if self._first.get(job.stream) is not job:
            return
        behind = self._behind.get(job.stream)
        while behind:
            following = behind.popleft()
            if following in self._lots:
                self._first[job.stream] = following
                came_s = self._came_s.pop(following)
                self._put((following,), came_s, came_s)
                return
        self._first.pop(job.stream)
        self._behind.pop(job.stream, None)

    def _sweep(self) -> None:
        """Drop what was cancelled but not yet met, so that memory follows those who wait."""
        for heap in self._tiers:
            heap[:] = [entry for entry in heap if self.alive(entry[2])]
            heapq.heapify(heap)
