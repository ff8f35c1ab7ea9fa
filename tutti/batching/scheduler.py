"""Which batch runs next. Pure: no asyncio, no tensors, and the time is an argument."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import inf

from tutti.admission.control import AdmissionControl, Ahead, NewStream
from tutti.admission.fair_share import FairShare
from tutti.admission.feasibility import NOTHING_REMAINS, Remaining
from tutti.admission.refusals import Asking, Refusals
from tutti.batching.cost import CostModel, slower_than_predicted
from tutti.batching.job import PRIORITIES, Batch, Job, Key, Priority, Reason, StageName, may_run_both
from tutti.batching.layout import RowSizes, row_sizes
from tutti.batching.limits import Limits as Limits
from tutti.batching.minimum_share import MinimumShare
from tutti.batching.policies import BULK, LATE, Due, Head, Policy
from tutti.batching.queue import JobQueue, QueueEntry
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Stages

PREFETCH_FULL = 0.25  # caps of waiting work from which on a batch may be formed early; smaller forms smaller batches
RECOVERY = 1.02  # growth of a halved memory limit after each successful batch; larger risks another full device
SENTENCE: dict[StageName, int] = {"acoustic": 60, "vocoder": 174}  # tokens and frames of a typical one
SENTENCE_S = SENTENCE["vocoder"] * SAMPLES_PER_FRAME / SAMPLE_RATE  # its length
PREFETCH_AT = 0.5  # share of a batch's predicted seconds after which the next one may be formed
BESIDE = 1.25  # times its seconds before the vocoder is free that an acoustic batch starts; larger: smaller batches
OVERLAP_BATCHES = 50  # that the overlap of stages is averaged over; larger reacts later to a change of the load
NEW_CALLER = "\0"  # one that has no stream; none has this name
MAX_SKIPPED = 8  # jobs that do not fit, after which a batch is closed; larger fills batches, and takes longer to decide


class Scheduler:
    """Every job that is added leaves in exactly one batch, unless it is cancelled before."""

    def __init__(
        self, limits: Limits, costs: Callable[[Key], CostModel], policy: Policy, refusals: Refusals | None = None
    ) -> None:
        """`refusals`: shared with others; none: its own."""
        self.limits, self._costs, self.policy, self.refusals = limits, costs, policy, refusals or Refusals()
        self._queues: dict[Key, JobQueue] = {}
        self._fair_share = FairShare()
        self._minimum_share = {LATE: MinimumShare(), BULK: MinimumShare()}
        self._admission: AdmissionControl[Job] = AdmissionControl(limits.max_waiting, self._fair_share, self.refusals)
        self.streams = self._fair_share
        self._max_padded: dict[Key, float] = {}  # of keys whose device was full
        self._free_at: dict[Batch, float] = {}  # running batches: when each should be done
        self._device_share = 1.0  # of the time that batches take: less where two run at the same time

    def empty_copy(self) -> "Scheduler":
        """A new scheduler with all that was learned about the device, without jobs and running batches."""
        copy = Scheduler(self.limits, self._costs, self.policy, self.refusals)
        copy._max_padded, copy._device_share = dict(self._max_padded), self._device_share
        return copy

    def admit(self, job: Job, now: float, *, delay_s: float = 0.0) -> None:
        """Raise QueueFull if the new stream of this first job cannot be served; else `add` the job at once.

        A stream that starts late gets another deadline. `delay_s`: what it loses beside the device. A refusal holds
        for a moment, see `check_wait`.
        """
        cost_s = self.predict(job.key, job.size) + job.later_s
        if job.remaining is not None:
            self._admission.learn_remaining(job.remaining)
        new = self._new_stream(job.key.checkpoint, job.deadline_s, now, job.caller, job.max_start_s)
        new = replace(new, cost_s=cost_s, is_bulk=job.is_bulk, remaining=job.remaining_of_stream)
        accepted = self._admission.accept(new, Ahead(now, self.free_at(now), delay_s))
        job.deadline_s, job.starts_late, job.give_up_s = accepted.deadline_s, accepted.starts_late, new.give_up_s

    def check_wait(
        self, asking: Asking, target_s: float, now: float, *, delay_s: float = 0.0, n_starting: int = 0
    ) -> None:
        """Raise QueueFull if a stream of a typical sentence would be refused: a quick test before any other work.

        The `n_starting` streams that have passed it count, so that none is refused only when its text has been read.
        For a moment after a refusal the next costs nothing.
        """
        if known := self.refusals.known(asking, now):
            raise known
        new = self._new_stream(asking.model, now + target_s, now, asking.caller or "", asking.max_start_s)
        key, size = Key(asking.model, "acoustic"), SENTENCE["acoustic"]
        needs_s = self._device_share * self._row_s(key, size) * new.cost_s / self.predict(key, size)
        self._admission.accept(new, Ahead(now, self.free_at(now), delay_s, n_starting * needs_s))

    def _new_stream(
        self, checkpoint: str, deadline_s: float, now: float, caller: str = NEW_CALLER, asked_s: float | None = None
    ) -> NewStream:
        """One of a typical sentence."""
        limits, sentence_s, remaining = self.limits, self.sentence_s(checkpoint), self._admission.typical_remaining
        max_start_s, give_up_s = limits.start_s(asked_s, sentence_s), now + limits.give_up_s(asked_s)
        return NewStream(
            checkpoint, caller, deadline_s, sentence_s, max_start_s, give_up_s, asked_s, remaining=remaining
        )

    def predicted_wait_s(
        self, checkpoint: str, priority: Priority, target_s: float, now: float, *, delay_s: float = 0.0
    ) -> float:
        """Seconds until the device would begin with a new stream of a typical sentence, due after `target_s`."""
        new = replace(self._new_stream(checkpoint, now + target_s, now), is_bulk=priority == "bulk")
        return self._admission.predicted_wait_s(new, Ahead(now, self.free_at(now), delay_s))

    def sentence_s(self, checkpoint: str) -> float:
        """Predicted seconds of a typical sentence alone."""
        return sum(self.predict(Key(checkpoint, stage), size) for stage, size in SENTENCE.items())

    def remaining_of_text(self, checkpoint: str, n_characters: int) -> Remaining:
        """Predict so much text by typical sentences in full batches."""
        if n_characters <= 0:
            return NOTHING_REMAINS
        share = self._share_of_listener(checkpoint)
        return Remaining(n_characters / SENTENCE["acoustic"] * SENTENCE_S * share, share)

    def remaining_of_row(self, checkpoint: str, n_frames: int) -> Remaining:
        """Predict spans of so many frames in full batches."""
        if n_frames <= 0:
            return NOTHING_REMAINS
        row_s = self._device_share * self._row_s(Key(checkpoint, "vocoder"), n_frames)
        return Remaining(row_s, self._share_of_listener(checkpoint))

    def _share_of_listener(self, checkpoint: str) -> float:
        """Share of the device that a stream takes, in full batches, while it is spoken as fast as it is heard."""
        sentence_s = sum(self._row_s(Key(checkpoint, stage), size) for stage, size in SENTENCE.items())
        return self._device_share * sentence_s / SENTENCE_S

    def add(self, job: Job, now: float) -> None:
        """Queue a job. Jobs of a stream that was admitted are never refused."""
        self._fair_share.add_caller(job.caller, now)
        self._count(job)
        self._queue(job.key).add(job, now)
        if job.remaining is not None:
            self._admission.future.set(job.stream, job.remaining)

    def _count(self, job: Job) -> None:
        """Tell admission control of a job that is queued."""
        job.goes_first = job.starts_stream and not job.is_bulk and self._fair_share.is_newcomer(job.caller)
        self._admission.job_queued(job, *self._needs_s(job))

    def stream_ended(self, stream: int) -> None:
        """Nothing more of this stream will be added."""
        self.streams.ended(stream)
        self._admission.future.set(stream, NOTHING_REMAINS)

    def hopeless(self, now: float) -> list[Job]:
        """Waiting jobs of streams that can no longer start before their clients give up; looked for now and then."""
        return self._admission.hopeless(self.free_at(now), now)

    def add_again(self, jobs: Sequence[Job], now: float, *, isolated: bool = False) -> None:
        """Queue jobs of a lost batch; their old deadlines put them in front. `isolated`: in a batch of their own."""
        self._queue(jobs[0].key).add_again(jobs, now, isolated=isolated)
        for job in jobs:
            self._count(job)

    def cancel(self, job: Job) -> bool:
        """Remove a waiting job; False if it does not wait."""
        queue = self._queues.get(job.key)
        if queue is None or not queue.cancel(job):
            return False
        self._admission.job_ended(job)
        return True

    def move_deadline(self, job: Job, deadline_s: float, now: float) -> None:
        """Change when the samples of a job are needed, and rank it again if it waits."""
        job.deadline_s = deadline_s
        self._admission.deadline_moved(job)
        if job.key in self._queues:
            self._queues[job.key].rerank(job, now)

    def next_batch(self, now: float, *, prefetch: bool = False, stage: StageName | None = None) -> Batch | None:
        """Form the batch to run now that the device is free; none if no job may run yet.

        `prefetch`: the device is still busy. Form a batch only if waiting until it is free could not make it better:
        the waiting jobs fill it, and no row of the running batch comes back with an earlier deadline.
        `stage`: stages overlap; decide for the batches of this one, which do not wait for those of the other.
        """
        if prefetch and not self.policy.can_prefetch:
            return None
        head = self.policy.choose(self._queues_of(stage), self._has_turn, now)
        if head is None or (prefetch and not self._is_settled(head, stage, now)):
            return None
        batch = self._fill_batch(head, now)
        for job in batch.jobs:
            self._admission.job_started(job)
        self._free_at[batch] = self.free_at(now, stage) + batch.predicted_s
        return batch

    def start_beside_s(self, stage: StageName, now: float) -> float:
        """When a batch of this stage should start beside one of the other that runs; infinite if no job waits.

        An acoustic batch, unless full, so that it ends when the vocoder is free: more join it, and none loses time.
        """
        queues = [queue for queue in self._queues_of(stage) if len(queue)]
        n_rows, size = max(map(len, queues), default=0), SENTENCE[stage]
        if not n_rows or stage == "vocoder" or n_rows >= self.limits.max_rows:
            return now if n_rows else inf
        predicted_s = max(queue.cost.seconds(RowSizes(n_rows, size, n_rows * size)) for queue in queues)
        return self.free_at(now, "vocoder") - BESIDE * predicted_s

    def last_call_s(self, now: float) -> float:
        """From when on no acoustic batch that starts could bring rows to the vocoder before it is free."""
        seconds = (queue.cost.predict((SENTENCE["acoustic"],)) for queue in self._queues_of("acoustic"))
        return self.free_at(now, "vocoder") - min(seconds, default=0.0)

    def second_stage(self, jobs: Sequence[Job]) -> Batch:
        """What followed the acoustic stage in a call of both, to be accounted for; its jobs never wait."""
        cost = self._queue(jobs[0].key).cost
        return Batch(jobs[0].key, tuple(jobs), "free", cost.predict([job.size for job in jobs]), cost.layout, "vocoder")

    def wake_at(self, now: float) -> float | None:
        """When to call `next_batch` again though nothing new arrives; none if only an event can change its result."""
        return self.policy.wake_at(self._queues.values(), now)

    def use(self, policy: Policy, now: float) -> None:
        """Decide by this policy from the next batch on; waiting jobs are ranked again."""
        self.policy = policy
        for queue in self._queues.values():
            queue.reorder(policy.place, policy.n_tiers, now)

    def _is_settled(self, head: Head, stage: StageName | None, now: float) -> bool:
        """Whether no later arrival could change the batch that starts with this head."""
        free_s = self.free_at(now, stage)
        running = [] if stage == "acoustic" else [batch for batch, at_s in self._free_at.items() if at_s <= free_s]
        returning = [job.deadline_s for batch in running for job in batch.jobs if job.later_s > 0.0]
        if returning and (head.tier or min(returning) < head.rank):
            return False
        if stage == "vocoder" and not returning and now >= self.last_call_s(now):
            return True
        queue, limits = head.queue, self.limits
        is_full = len(queue) >= limits.max_rows
        return is_full or sum(self._row_s(job.key, job.size) for job in queue) >= PREFETCH_FULL * limits.cap_s

    def _has_turn(self, head: Head, before_s: float, now: float) -> bool:
        return self._minimum_share[head.tier].is_due(now, before_s)

    def _fill_batch(self, head: Head, now: float) -> Batch:
        """Start with the head and offer the other entries a place, in the order of their ranks.

        The head need not have the lowest rank: entries whose stream has an earlier chunk elsewhere are passed over.
        """
        queue, first, cost = head.queue, head.entry, head.queue.cost
        jobs = list(queue.take_entry(first))
        own_s = {job.stream: job.own_s for job in jobs}  # when the first of each stream is due
        rows = row_sizes([job.size for job in jobs])
        predicted_s, due_s, n_characters = cost.seconds(rows), first.binding_s(now), sum(j.n_characters for j in jobs)
        max_rows = 0 if head.alone or first.is_isolated else self.limits.max_rows
        max_text = inf if self.limits.max_text is None else self.limits.max_text
        max_padded, n_skipped = self.max_padded(queue.key), 0
        stopped_by: Reason | None = None

        def offer(entry: QueueEntry) -> bool | None:
            """True: it joins. False: it does not fit, another may. None: the batch is complete."""
            nonlocal rows, predicted_s, due_s, n_characters, n_skipped, stopped_by
            if len(jobs) >= max_rows:
                stopped_by = "full"
                return None
            if entry.is_isolated:
                return False
            job = entry.jobs[0]
            grown, text = rows.with_row(job.size), n_characters + job.n_characters
            grown_s, earliest_s = cost.seconds(grown), min(due_s, entry.binding_s(now))
            refusal: Reason | None = "full"
            if text <= max_text and cost.in_memory(grown) <= max_padded:
                due = Due(earliest_s, own_s.get(job.stream, inf))
                refusal = self.policy.refuses(first, entry, predicted_s, grown_s, due, now)
            if refusal is None:
                rows, predicted_s, due_s, n_characters = grown, grown_s, earliest_s, text
                jobs.append(job)
                own_s.setdefault(job.stream, job.own_s)
                return True
            stopped_by = stopped_by or refusal
            n_skipped += 1
            return False if self.policy.skips_misfits and n_skipped < MAX_SKIPPED else None

        for tier in self.policy.fill_from(head.tier):
            queue.take(tier, now, offer)
        reason = stopped_by if stopped_by and head.reason == "free" else head.reason
        is_alone = not self._free_at and not any(map(len, self.queues))
        stages: Stages = "both" if is_alone and may_run_both(jobs) else queue.key.stage
        return Batch(queue.key, tuple(jobs), reason, predicted_s, cost.layout, stages)

    def ended(self, batch: Batch) -> None:
        """The batch no longer runs; one of the calls below follows."""
        self._free_at.pop(batch, None)

    def finished(self, batch: Batch, took_s: float, now: float, device_share: float = 1.0) -> None:
        """Free the device and learn what such a batch costs. `device_share`: less if others ran at the same time; it
        is what callers are charged and waiting jobs should need. Deadlines depend on what batches really take.
        """
        self._release(batch, device_share * took_s, now)
        self._device_share += (device_share - self._device_share) / OVERLAP_BATCHES
        self._queue(batch.key).cost.learn(batch.sizes, took_s)
        self._admission.slower = slower_than_predicted([queue.cost for queue in self.queues])
        self._share_of_listener(batch.key.checkpoint)  # computed now, and known when the next stream comes
        if batch.key in self._max_padded:
            self._max_padded[batch.key] *= RECOVERY
            if self._max_padded[batch.key] >= self._memory_limit(batch.key):
                del self._max_padded[batch.key]

    def failed(self, batch: Batch, now: float) -> None:
        """Bisect: both halves wait again, each to run on its own, until one bad row is alone."""
        if batch.n_rows < 2:
            raise ValueError("a batch of one cannot be bisected; its job has failed")
        self._release(batch, batch.predicted_s, now)
        middle = batch.n_rows // 2
        for half in (batch.jobs[:middle], batch.jobs[middle:]):
            self.add_again(half, now, isolated=True)

    def device_full(self, batch: Batch, now: float) -> None:
        """Halve the memory limit and queue the jobs again."""
        if batch.n_rows < 2:
            raise ValueError("a batch of one cannot be made smaller; its job has failed")
        self._release(batch, batch.predicted_s, now)
        self._max_padded[batch.key] = max(1.0, min(self.max_padded(batch.key), batch.padded) / 2)
        self.add_again(batch.jobs, now)

    def lost(self, batch: Batch, now: float) -> None:
        """Free the device after its worker died. The caller queues its rows again, from their first stage."""
        self._release(batch, batch.predicted_s, now)

    def _release(self, batch: Batch, took_s: float, now: float) -> None:
        """Free the device, and charge its seconds to the callers of the batch."""
        self._free_at.pop(batch, None)
        used_s = {LATE: 0.0, BULK: 0.0}
        total = sum(batch.sizes) or 1
        for job in batch.jobs:
            self._admission.job_ended(job)
            share_s = took_s * job.size / total
            self._fair_share.charge(job.caller, share_s, now)
            if job.is_bulk:
                used_s[BULK] += share_s
            elif job.starts_late or job.due_s < now or self._fair_share.is_over(job.caller, now):
                used_s[LATE] += share_s
        for tier, seconds in used_s.items():
            if seconds:
                self._minimum_share[tier].charge(seconds, now)

    def waiting(self) -> dict[Priority, int]:
        """How many jobs of each priority wait."""
        return {name: sum(queue.n_by_priority[name] for queue in self.queues) for name in PRIORITIES}

    def backlog_s(self, now: float) -> float:
        """Device seconds until all present jobs have run."""
        return self.free_at(now) - now + self._admission.needed_s

    def free_at(self, now: float, stage: StageName | None = None) -> float:
        """When the running batches should be done, of all stages or of one."""
        return max([now, *(at_s for batch, at_s in self._free_at.items() if stage in (None, batch.key.stage))])

    def max_padded(self, key: Key) -> float:
        """Tokens or frames that one pass may hold at the moment."""
        return self._max_padded.get(key, self._memory_limit(key))

    def predict(self, key: Key, size: int) -> float:
        """Seconds for one row of this size alone."""
        return self._queue(key).cost.predict((size,))

    def cost(self, key: Key) -> CostModel:
        """Of one stage, as learned."""
        return self._queue(key).cost

    @property
    def queues(self) -> Collection[JobQueue]:
        return self._queues.values()

    def callers(self) -> set[str]:
        """The callers whose jobs wait or run."""
        running = {job.caller for batch in self._free_at for job in batch.jobs}
        return running | {job.caller for queue in self._queues.values() for job in queue}

    @property
    def n_inspected(self) -> int:
        """Queue entries inspected by all decisions so far."""
        return sum(queue.n_inspected for queue in self._queues.values())

    def _queues_of(self, stage: StageName | None) -> Collection[JobQueue]:
        return [queue for queue in self._queues.values() if stage in (None, queue.key.stage)]

    def _memory_limit(self, key: Key) -> float:
        return self.limits.max_padded.get(key.stage, inf)

    def _queue(self, key: Key) -> JobQueue:
        if key not in self._queues:
            place, n_tiers, shares = self.policy.place, self.policy.n_tiers, self._fair_share
            self._queues[key] = JobQueue(key, self._costs(key), place, n_tiers, shares.is_over, shares.is_crowding)
        return self._queues[key]

    def _row_s(self, key: Key, size: int) -> float:
        """Device seconds of a row in a full batch of rows of its size."""
        return self._queue(key).cost.per_row(size, self.limits.max_rows, self.limits.cap_s, self.max_padded(key))

    def _needs_s(self, job: Job) -> tuple[float, float]:
        """Device seconds of this stage and of the later ones, both in full batches."""
        row_s = self._device_share * self._row_s(job.key, job.size)
        return row_s, job.later_s * row_s / self.predict(job.key, job.size) if job.later_s else 0.0
