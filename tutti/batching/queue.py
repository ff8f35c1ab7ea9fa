"""The waiting jobs of one key, in the order in which a policy would run them."""

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf

from tutti.batching.cost import CostModel
from tutti.batching.job import Job, Key, Priority


@dataclass(frozen=True, slots=True, eq=False)
class QueueEntry:
    """Jobs that leave the queue together: one row, or part of a failed batch that must run on its own."""

    jobs: tuple[Job, ...]
    arrived_s: float
    alone_s: float  # predicted seconds in a batch of its own
    due_s: float
    is_over_share: bool = False  # its caller used more than its share of the device
    is_of_crowd: bool = False  # its caller has most of all streams, and there are others
    is_isolated: bool = False
    is_bulk: bool = False
    is_first: bool = False  # the first chunk of a stream
    is_continuation: bool = False
    goes_first: bool = False
    waits_to_start: bool = False
    catches_up: bool = False

    def is_in_time(self, now: float) -> bool:
        """Whether its deadline holds if it starts alone after `now`."""
        return now + self.alone_s <= self.due_s

    def binding_s(self, now: float) -> float:
        """The deadline that a batch with it must keep; infinite if it is late anyway."""
        return self.due_s if self.is_in_time(now) else inf


Place = Callable[[QueueEntry, float], tuple[int, float]]  # tier and rank at this time; lower runs sooner
Ranked = tuple[float, int, QueueEntry]  # rank, serial number (arrival order among equal ranks), entry


class JobQueue:
    """A heap for each tier. Cancelled entries, and those that fell to a later tier, are cleared when they come up."""

    def __init__(
        self,
        key: Key,
        cost: CostModel,
        place: Place,
        n_tiers: int,
        is_over_share: Callable[[str, float], bool],
        is_crowding: Callable[[str], bool],
    ) -> None:
        self.key = key
        self.cost = cost
        self.last_arrival_s = float("-inf")
        self.n_by_priority: Counter[Priority] = Counter()
        self.n_inspected = 0  # entries inspected so far: the work that decisions did
        self._place = place
        self._is_over_share, self._is_crowding = is_over_share, is_crowding
        self._tiers: list[list[Ranked]] = [[] for _ in range(n_tiers)]
        self._entries: dict[Job, QueueEntry | None] = {}  # every waiting job; none while another of its stream is first
        self._first: dict[int, Job] = {}  # the job of each stream that may run
        self._continuations: dict[int, list[Job]] = {}  # the later spans of each stream that wait beside it
        self._behind: dict[int, deque[tuple[Job, float]]] = {}  # the others with their arrival, in order
        self._serial = itertools.count()
        self._now = float("-inf")  # the latest time that is known here

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job: Job) -> bool:
        return job in self._entries

    def __iter__(self) -> Iterator[Job]:
        return iter(self._entries)

    def add(self, job: Job, now: float) -> None:
        """Add a job behind those of its own stream, else where the policy places it."""
        self.last_arrival_s = now
        self.n_by_priority[job.priority] += 1
        if job.is_continuation:
            self._continuations.setdefault(job.stream, []).append(job)
            self._put((job,), now, now)
        elif job.stream in self._first:
            self._entries[job] = None
            self._behind.setdefault(job.stream, deque()).append((job, now))
        else:
            self._first[job.stream] = job
            self._put((job,), now, now)

    def add_again(self, jobs: Iterable[Job], now: float, *, isolated: bool = False) -> None:
        """Add jobs that had left; `isolated`: together, and with no others."""
        for group in [tuple(jobs)] if isolated else [(job,) for job in jobs]:
            self.n_by_priority.update(job.priority for job in group)
            self._put(group, min(job.arrived_s for job in group), now, isolated=isolated)

    def cancel(self, job: Job) -> bool:
        """Remove a job; False if it does not wait."""
        if job not in self._entries:
            return False
        self._remove(job)
        if sum(map(len, self._tiers)) > 2 * len(self._entries) + 64:
            self._compact()
        return True

    def rerank(self, job: Job, now: float) -> None:
        """Rank a waiting job by its present deadline."""
        entry = self._entries.get(job)
        if entry is not None and not entry.is_isolated:
            self._put((job,), entry.arrived_s, now)

    def reorder(self, place: Place, n_tiers: int, now: float) -> None:
        """Rank all entries by another policy; the order inside a stream stays."""
        entries = sorted((serial, entry) for heap in self._tiers for _, serial, entry in heap if self.waiting(entry))
        self._place = place
        self._tiers = [[] for _ in range(n_tiers)]
        for _, entry in entries:
            self._push(entry, now)

    def head(self, tier: int, now: float, skips: Callable[[QueueEntry], bool] | None = None) -> Ranked | None:
        """The next entry of a tier that `skips` does not reject."""
        self._now, heap, skipped, found = now, self._tiers[tier], [], None
        while heap and found is None:
            self.n_inspected += 1
            ranked = heap[0]
            entry = ranked[2]
            waiting = self.waiting(entry)
            if not waiting or self._place(entry, now)[0] > tier:
                heapq.heappop(heap)
                if waiting:
                    self._push(entry, now)
            elif skips is not None and skips(entry):
                skipped.append(heapq.heappop(heap))
            else:
                found = ranked
        for ranked in skipped:
            heapq.heappush(heap, ranked)
        return found

    def due_before(self, stream: int, deadline_s: float) -> bool:
        """Whether a job of this stream with an earlier deadline waits here."""
        first = self._first.get(stream)
        if first is not None and first.deadline_s < deadline_s:
            return True
        return any(job.deadline_s < deadline_s for job in self._continuations.get(stream, ()))

    def take_entry(self, entry: QueueEntry) -> tuple[Job, ...]:
        """Take the waiting jobs of an entry out of the queue."""
        jobs = self.waiting(entry)
        for job in jobs:
            self._remove(job)
        return jobs

    def take(self, tier: int, now: float, offer: Callable[[QueueEntry], bool | None]) -> None:
        """Offer the entries of a tier in order: True takes one out, False skips it, None ends."""
        heap, skipped = self._tiers[tier], []
        while (ranked := self.head(tier, now)) is not None:
            entry = ranked[2]
            answer = offer(entry)
            if answer is None:
                break
            heapq.heappop(heap)
            if answer:
                self.take_entry(entry)
            else:
                skipped.append(ranked)
        for ranked in skipped:
            heapq.heappush(heap, ranked)

    def waiting(self, entry: QueueEntry) -> tuple[Job, ...]:
        """The jobs of an entry that still wait."""
        if len(entry.jobs) == 1:
            return entry.jobs if self._entries.get(entry.jobs[0]) is entry else ()
        return tuple([job for job in entry.jobs if self._entries.get(job) is entry])

    def _put(self, jobs: tuple[Job, ...], arrived_s: float, now: float, *, isolated: bool = False) -> None:
        alone_s = self.cost.predict([job.size for job in jobs])
        entry = QueueEntry(
            jobs,
            arrived_s,
            alone_s,
            min(job.due_s for job in jobs),
            self._is_over_share(jobs[0].caller, now),
            self._is_crowding(jobs[0].caller),
            isolated,
            is_bulk=all(job.priority == "bulk" for job in jobs),
            is_first=any(job.priority == "first" for job in jobs),
            is_continuation=any(job.is_continuation for job in jobs),
            goes_first=any(job.goes_first for job in jobs),
            waits_to_start=all(job.waits_to_start for job in jobs),
            catches_up=all(job.catches_up for job in jobs),
        )
        for job in jobs:
            self._entries[job] = entry
        self._push(entry, now)

    def _push(self, entry: QueueEntry, now: float) -> None:
        tier, rank = self._place(entry, now)
        heapq.heappush(self._tiers[tier], (rank, next(self._serial), entry))

    def _remove(self, job: Job) -> None:
        """Remove a job; the next of its stream may run."""
        del self._entries[job]
        self.n_by_priority[job.priority] -= 1
        continuations = self._continuations.get(job.stream, [])
        if job in continuations:
            continuations.remove(job)
            if not continuations:
                del self._continuations[job.stream]
        if self._first.get(job.stream) is not job:
            return
        behind = self._behind.get(job.stream)
        while behind:
            following, arrived_s = behind.popleft()
            if following in self._entries:
                self._first[job.stream] = following
                self._put((following,), arrived_s, max(arrived_s, self._now))
                return
        self._first.pop(job.stream)
        self._behind.pop(job.stream, None)

    def _compact(self) -> None:
        """Drop cancelled entries, so that memory is bounded by the number of waiting jobs."""
        for heap in self._tiers:
            heap[:] = [ranked for ranked in heap if self.waiting(ranked[2])]
            heapq.heapify(heap)
