"""Which batch runs next. Pure: no asyncio, no tensors, and the time is an argument."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from tutti.batching.admission import AdmissionControl
from tutti.batching.cost import CostModel
from tutti.batching.fairness import HOLD_S, FairShare, MinimumShare
from tutti.batching.forming import Forming
from tutti.batching.job import Batch, Job, Key, Priority, StageName
from tutti.batching.layout import Extent
from tutti.batching.policies import BULK, LATE, Choice, Policy
from tutti.batching.queue import JobQueue

LATER = 0.25  # of a batch's cap: how long a row may wait between two stages
FULL = 0.25  # of a batch's cap: rows that may go without waiting for company
SOME = (Extent(1, 100, 100), Extent(16, 200, 2000))  # rows by which one sees that a cost has changed
NEWS = 0.02  # of it: less is none
PATIENCE = 7.0  # by the door's own caution, four who come at once are let in where one alone is hardly in time
RECOVERY = 1.02  # of a cap that was halved, after each batch that went well


@dataclass(frozen=True, slots=True)
class Limits:
    """What no batch and no queue may pass. A single row that is too large goes alone."""

    max_rows: int = 64
    max_padded: Mapping[StageName, int] = field(default_factory=dict)  # tokens or frames in one pass
    max_text: int | None = None  # characters in one batch
    max_waiting: int = 1000
    cap_s: float = inf  # the longest a batch should take; 0.4 x the target for first audio
    patience: float = PATIENCE  # times its own cost alone that a newcomer may need, where its deadline is closer


class Scheduler:
    """Every job that is added leaves in exactly one batch, unless it is cancelled before."""

    def __init__(self, limits: Limits, costs: Callable[[Key], CostModel], policy: Policy) -> None:
        self.limits = limits
        self.policy = policy
        self.door = AdmissionControl(limits.max_waiting)
        self._costs = costs
        self._rooms: dict[Key, JobQueue] = {}
        self._callers = FairShare()
        self._patience = {LATE: MinimumShare(), BULK: MinimumShare()}
        self._max_padded: dict[Key, float] = {}  # of keys whose device was full
        self._free_at: dict[Batch, float] = {}  # running batches: when each should be done
        self._needs_s: dict[tuple[Key, int], float] = {}  # found since a cost or a cap last changed by much
        self._known_s: dict[Key, list[float]] = {}  # what some batches would have cost then

    def emptied(self) -> "Scheduler":
        """One like this, with all that was learned about costs, where nobody waits and nothing runs."""
        return Scheduler(self.limits, self._costs, self.policy)

    # -- the door ------------------------------------------------------------------------------------------------

    def admit(
        self, kind: Priority, caller: str, cost_s: float, deadline_s: float, now: float, *, stream: int | None = None
    ) -> None:
        """Let a new stream in, or raise QueueFull. With its number, its place is kept until its first job comes.

        `cost_s`: device seconds to its first audio. Jobs of a stream that was let in are never refused.
        """
        self._callers.seen(caller, now)
        # A row that runs and has a stage to come will wait again: its place is taken.
        running = sum(job.then_s > 0.0 for batch in self._free_at for job in batch.jobs)
        waiting = sum(map(len, self._rooms.values())) + running
        bulk = sum(room.kinds["bulk"] for room in self._rooms.values())
        # Between its stages it waits a little. And a device that is too slow for the deadline even when idle still
        # serves: then a short line is no reason.
        latest_s = max(deadline_s - self._between_s, now + self.limits.patience * cost_s)
        due_s = deadline_s if latest_s < inf else inf  # who can wait for ever comes before nobody
        self.door.admit(
            kind, cost_s, due_s, latest_s, self._callers.owes_s(caller, now), self.free_at(now), now,
            waiting=waiting, bulk=bulk, stream=stream,
        )  # fmt: skip

    def release(self, stream: int) -> None:
        """A stream that was let in ended before its first job."""
        self.door.keep_promise(stream)

    def allow_s(self, key: Key, size: int) -> float:
        """What to set aside for a stage still to come (`Job.then_s`): its cost alone, and a little of a queue."""
        return self.predict(key, size) + self._between_s

    @property
    def _between_s(self) -> float:
        return LATER * self.limits.cap_s if isfinite(self.limits.cap_s) else 0.0

    # -- the line ------------------------------------------------------------------------------------------------

    def add(self, job: Job, now: float) -> None:
        """A job that must leave sooner or later."""
        self._callers.seen(job.caller, now)
        self.door.keep_promise(job.stream)
        self._room(job.key).add(job, now)
        self._came(job, now)

    def cancel(self, job: Job) -> bool:
        """True if it was still waiting; it will never be in a batch."""
        room = self._rooms.get(job.key)
        if room is None or not room.cancel(job):
            return False
        self.door.left(job)
        return True

    def hasten(self, job: Job, by_s: float, now: float) -> Job:
        """Its samples are needed so much sooner; the job that now waits in its place."""
        other = replace(job, deadline_s=job.deadline_s - by_s)
        room = self._rooms.get(job.key)
        if room is None or not room.swap(job, other, now):
            return job
        self.door.left(job)
        self._came(other, now)
        return other

    def again(self, jobs: Iterable[Job], now: float) -> None:
        """Jobs whose batch was lost wait once more, by their old deadlines and so in front."""
        for job in jobs:
            self._room(job.key).again((job,), now)
            self._came(job, now)

    # -- the decision --------------------------------------------------------------------------------------------

    def next_batch(self, now: float) -> Batch | None:
        """The batch to run now that a device is free; none if nobody's turn has come."""
        choice = self.policy.choose(self._rooms.values(), self._has_turn, now)
        return None if choice is None else self._formed(choice, now)

    def next_batch_ahead(self, now: float) -> Batch | None:
        """The batch after the one that runs, where it will not matter who else comes until then: those who wait fill
        it, and nobody comes back from the running one in more of a hurry.
        """
        choice = self.policy.choose(self._rooms.values(), self._has_turn, now) if self.policy.foresees else None
        if choice is None:
            return None
        back = [job.deadline_s for batch in self._free_at for job in batch.jobs if job.then_s > 0.0]
        if back and (choice.tier or min(back) < choice.rank):
            return None
        room, limits = choice.waiting, self.limits
        full = len(room) >= limits.max_rows or sum(self._need_s(job) for job in room) >= FULL * limits.cap_s
        return self._formed(choice, now) if full else None

    def begun(self, jobs: Sequence[Job], now: float) -> Batch:
        """The batch of rows that never wait: the device went on to them by itself."""
        cost = self._room(jobs[0].key).cost
        batch = Batch(jobs[0].key, tuple(jobs), "free", cost.predict([job.size for job in jobs]), cost.shape)
        self._free_at[batch] = self.free_at(now) + batch.predicted_s
        return batch

    def _formed(self, choice: Choice, now: float) -> Batch:
        limits, max_padded = self.limits, self.max_padded(choice.waiting.key)
        batch = Forming(choice, self.policy, limits.max_rows, limits.max_text, max_padded, now).form()
        for job in batch.jobs:
            self.door.runs(job)
        self._free_at[batch] = self.free_at(now) + batch.predicted_s
        return batch

    def wake_at(self, now: float) -> float | None:
        """When to ask again though nothing new came; none if only an event can change the answer."""
        return self.policy.wake_at(self._rooms.values(), now)

    def use(self, policy: Policy, now: float) -> None:
        """Decide by this policy from the next batch on; whoever waits keeps waiting, under its rules."""
        self.policy = policy
        for room in self._rooms.values():
            room.reorder(policy.place, policy.n_tiers, now)

    # -- what became of a batch ----------------------------------------------------------------------------------

    def finished(self, batch: Batch, took_s: float, now: float) -> None:
        """The device is free, and has taught us something."""
        self.freed(batch, took_s, now)
        self.learn(batch, took_s)

    def freed(self, batch: Batch, took_s: float, now: float) -> None:
        """The device is free, and we know who used it; what it taught us can wait a moment for `learn`."""
        self._free_at.pop(batch, None)
        tiers = {LATE: 0.0, BULK: 0.0}
        total = sum(batch.sizes) or 1
        for job in batch.jobs:
            self.door.left(job)
            share_s = took_s * job.size / total
            self._callers.spent(job.caller, share_s, now)
            if job.kind == "bulk":
                tiers[BULK] += share_s
            elif job.due_s < now:
                tiers[LATE] += share_s
        for tier, seconds in tiers.items():
            if seconds:
                self._patience[tier].ran(seconds, now)

    def learn(self, batch: Batch, took_s: float) -> None:
        """What such a batch costs."""
        room = self._room(batch.key)
        if batch.n_behind:  # a fuller batch was not to be had
            self.door.took(sum(self._need_s(job) for job in batch.jobs), took_s)
        room.cost.learn(batch.sizes, took_s)
        if batch.key in self._max_padded:
            self._max_padded[batch.key] *= RECOVERY
            if self._max_padded[batch.key] >= self._limit(batch.key):
                del self._max_padded[batch.key]
            self._needs_s.clear()
        found_s, known_s = [room.cost.seconds(rows) for rows in SOME], self._known_s.get(batch.key, [0.0] * len(SOME))
        if any(abs(found - known) > NEWS * known for found, known in zip(found_s, known_s, strict=True)):
            self._needs_s.clear()
            self._known_s[batch.key] = found_s

    def failed(self, batch: Batch, now: float) -> None:
        """Somebody in it is bad: both halves wait again, each to run with nobody else, until one bad row is alone."""
        if batch.rows < 2:
            raise ValueError("a batch of one cannot be bisected; its job has failed")
        self.freed(batch, batch.predicted_s, now)
        middle = batch.rows // 2
        for half in (batch.jobs[:middle], batch.jobs[middle:]):
            self._room(batch.key).again(half, now, apart=True)
            for job in half:
                self._came(job, now)

    def device_full(self, batch: Batch, now: float) -> None:
        """Too much for its memory: half as much at once from now on, and the jobs wait again."""
        if batch.rows < 2:
            raise ValueError("a batch of one cannot be made smaller; its job has failed")
        self.freed(batch, batch.predicted_s, now)
        self._max_padded[batch.key] = max(1.0, min(self.max_padded(batch.key), batch.padded) / 2)
        self._needs_s.clear()
        self.again(batch.jobs, now)

    def lost(self, batch: Batch, now: float) -> None:
        """Its worker died: the device is free again. Say with `again` which of its jobs shall run once more."""
        self.freed(batch, batch.predicted_s, now)

    # -- the books -----------------------------------------------------------------------------------------------

    def waiting(self) -> dict[Priority, int]:
        """How many jobs wait, of each class."""
        kinds: tuple[Priority, ...] = ("first", "next", "bulk")
        return {kind: sum(room.kinds[kind] for room in self._rooms.values()) for kind in kinds}

    def backlog_s(self, now: float) -> float:
        """Device seconds until all that wait now would have run."""
        return self.free_at(now) - now + self.door.needed_s

    def free_at(self, now: float) -> float:
        """When the running batches should be done."""
        return max(now, *self._free_at.values()) if self._free_at else now

    def max_padded(self, key: Key) -> float:
        """What one pass may hold at the moment."""
        return self._max_padded.get(key, self._limit(key))

    def predict(self, key: Key, size: int) -> float:
        """Seconds for one row of this size alone."""
        return self._room(key).cost.predict((size,))

    def cost_error(self, key: Key) -> float:
        """How far the predictions for this stage have been off of late, as a share."""
        return self._room(key).cost.error

    @property
    def rooms(self) -> Collection[JobQueue]:
        """Those who wait, by key."""
        return self._rooms.values()

    def callers(self) -> set[str]:
        """Whose work waits or runs."""
        running = {job.caller for batch in self._free_at for job in batch.jobs}
        return running | {job.caller for room in self._rooms.values() for job in room}

    @property
    def n_looked_at(self) -> int:
        """Lots inspected by all decisions so far."""
        return sum(room.n_looked_at for room in self._rooms.values())

    def _has_turn(self, head: Choice, other_s: float, now: float) -> bool:
        """It waited long enough; or its listener sits in silence, and nobody else would."""
        lot = head.lot
        if self._patience[head.tier].exhausted(now, other_s):
            return True
        silent = head.tier == LATE and lot.owes_s == 0.0 and now > lot.due_s + HOLD_S
        return silent and self.door.spares(lot.alone_s, lot.jobs[0].stream, now)

    def _limit(self, key: Key) -> float:
        return self.limits.max_padded.get(key.stage, inf)

    def _room(self, key: Key) -> JobQueue:
        if key not in self._rooms:
            self._rooms[key] = JobQueue(
                key, self._costs(key), self.policy.place, self.policy.n_tiers, self._callers.owes_s
            )
        return self._rooms[key]

    def _came(self, job: Job, now: float) -> None:
        self.door.came(job, self._need_s(job), self._then_s(job), self._callers.owes_s(job.caller, now))

    def _then_s(self, job: Job) -> float:
        """Device seconds of the stages to come, in batches as full as this one's may get."""
        if job.then_s == 0.0:
            return 0.0
        alone_s = max(0.0, job.then_s - self._between_s)
        return alone_s * self._need_s(job) / self.predict(job.key, job.size)

    def _need_s(self, job: Job) -> float:
        """Device seconds of this row in a batch of its like, as full as it may get."""
        found = self._needs_s.get((job.key, job.size))
        if found is None:
            found = self._needs_s[job.key, job.size] = self._at_best_s(job)
        return found

    def _at_best_s(self, job: Job) -> float:
        cost = self._room(job.key).cost
        alone = cost.predict((job.size,))
        best, rows = alone, 2
        while rows <= self.limits.max_rows:
            like = Extent(rows, job.size, job.size * rows)
            seconds = cost.seconds(like)
            if seconds > self.limits.cap_s or cost.padded(like) > self.max_padded(job.key):
                break
            best, rows = min(best, seconds / rows), rows * 2
        return best
