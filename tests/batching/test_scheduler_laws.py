"""Invariants of the scheduler under every policy and any order of events, on a virtual clock."""

import itertools
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from benchmarks.simulate import PART, Device, scheduler
from tests.examples import examples
from tutti.admission.feasibility import Remaining
from tutti.batching.cost import Coefficients, CostModel
from tutti.batching.job import FUSED_S, Batch, Job, Key, StageName
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.plan.devices import DeviceCosts
from tutti.plan.planner import scheduler_of
from tutti.plan.simulation import AHEAD, MODEL, PER_S, Padded, SimulatedStream, Simulation

KEYS = [Key("a", "acoustic"), Key("a", "vocoder"), Key("b", "acoustic")]
CAP_S = 0.08
MAX_OVER = 1.2  # times the sum over what remains of all: those that last about as long are added up
LIMITS = Limits(max_rows=6, max_padded={"acoustic": 900, "vocoder": 1200}, max_text=100, cap_s=CAP_S)


class Laws(RuleBasedStateMachine):
    policy: ClassVar[Policy]
    eager: ClassVar[bool]  # never idle while a job waits
    layout: ClassVar[Padded | SideBySide] = Padded()

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.scheduler = Scheduler(LIMITS, lambda key: CostModel(self.layout, (0.01, 0.001, 5e-5, 5e-5)), self.policy)
        self.waiting: dict[Job, None] = {}
        self.running: list[Batch] = []
        self.done: set[Job] = set()
        self.cancelled: set[Job] = set()
        self.ran_once: set[Job] = set()
        self.order: dict[tuple[Key, int], list[Job]] = {}  # jobs that never ran, in the order of their arrival
        self.remaining: dict[int, Remaining] = {}  # of the text of each stream that has one
        self.open: dict[int, str] = {}  # the caller of each open stream
        self.alone_s: dict[Job, float] = {}  # the most that each job was predicted to take alone: costs are learned

    @rule(
        key=st.sampled_from(KEYS),
        stream=st.integers(0, 5),
        priority=st.sampled_from(["first", "next", "bulk"]),
        size=st.sampled_from([1, 20, 21, 100, 300, 2000]),
        due=st.floats(-1, 5) | st.just(inf),
        later_s=st.sampled_from([0.0, 0.1]),
        caller=st.sampled_from("xyz"),
        text=st.sampled_from([0, 10, 60, 200]),
        remaining=st.none() | st.sampled_from([0, 10, 5000]),
        spans=st.sampled_from([0, 300]),
    )
    def add(self, key, stream, priority, size, due, later_s, caller, text, remaining, spans) -> None:
        job = Job(key, stream, priority, size, self.now + due, later_s, caller, text, self.now)
        job.spans = self.scheduler.remaining_of_row(key.checkpoint, spans)
        if remaining is not None:
            job.remaining = self.remaining[stream] = self.scheduler.remaining_of_text(key.checkpoint, remaining)
        self.scheduler.add(job, self.now)
        self.waiting[job] = None
        self.order.setdefault((key, stream), []).append(job)

    @invariant()
    def predictions_are_noted(self) -> None:
        for job in self.waiting:
            self.alone_s[job] = max(self.alone_s.get(job, 0.0), self.scheduler.predict(job.key, job.size))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel_a_waiting_job(self, data) -> None:
        job = data.draw(st.sampled_from(list(self.waiting)))
        assert self.scheduler.cancel(job)
        assert not self.scheduler.cancel(job), "a job is cancelled once"
        del self.waiting[job]
        self.cancelled.add(job)
        if job not in self.ran_once:
            self.order[job.key, job.stream].remove(job)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def cancel_a_running_job(self, data) -> None:
        job = data.draw(st.sampled_from(data.draw(st.sampled_from(self.running)).jobs))
        assert not self.scheduler.cancel(job), "a running job is not in the queue"

    @rule(stream=st.integers(0, 5), caller=st.sampled_from("xyz"))
    def open_a_stream(self, stream: int, caller: str) -> None:
        if stream not in self.open:
            self.scheduler.streams.opened(stream, caller)
            self.open[stream] = caller

    @rule(stream=st.integers(0, 5))
    def end_a_stream(self, stream: int) -> None:
        self.scheduler.stream_ended(stream)
        self.remaining.pop(stream, None)
        self.open.pop(stream, None)

    @rule(s=st.floats(0, 2) | st.just(40.0))
    def let_time_pass(self, s: float) -> None:
        self.now += s

    @precondition(lambda self: len(self.running) < 2)  # two devices
    @rule()
    def dispatch(self) -> None:
        batch = self.scheduler.next_batch(self.now)
        if batch is None:
            wake = self.scheduler.wake_at(self.now)
            assert not (self.eager and self.waiting), "idle with work waiting"
            assert wake is None or wake > self.now, "a job whose time has come must run"
            assert (wake is None) == (not self.waiting), "a timer is set while a job waits"
            return
        self.start(batch)

    @precondition(lambda self: len(self.running) == 1)
    @rule()
    def prefetch(self) -> None:
        due_back = [job.deadline_s for job in self.running[0].jobs if job.later_s > 0.0]
        batch = self.scheduler.next_batch(self.now, prefetch=True)
        if batch is not None:
            assert self.policy.can_prefetch
            assert all(due >= min(job.due_s for job in batch.jobs) for due in due_back), (
                "it is not prefetched before a more urgent job"
            )
            self.start(batch)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), by_s=st.floats(-2, 2))
    def move_deadline(self, data, by_s: float) -> None:
        job = data.draw(st.sampled_from(list(self.waiting)))
        self.scheduler.move_deadline(job, job.deadline_s - by_s, self.now)

    def start(self, batch: Batch) -> None:
        self.check(batch)
        for job in batch.jobs:
            del self.waiting[job]
            if job not in self.ran_once:
                queue = self.order[job.key, job.stream]
                assert queue.pop(0) is job, "jobs of a stream and key run in order"
            self.ran_once.add(job)
        self.running.append(batch)

    def check(self, batch: Batch) -> None:
        assert batch.jobs
        assert len(set(batch.jobs)) == batch.n_rows, "a job is in a batch once"
        assert set(batch.jobs) <= self.waiting.keys(), "only waiting jobs run"
        assert {job.key for job in batch.jobs} == {batch.key}, "keys never mix"
        assert batch.n_rows <= LIMITS.max_rows
        if batch.n_rows > 1 and batch.reason != "retry":
            assert batch.padded <= self.scheduler.max_padded(batch.key)
            assert sum(job.n_characters for job in batch.jobs) <= LIMITS.max_text
        if isinstance(self.policy, Deadline) and batch.n_rows > 1 and batch.reason != "retry":
            shared_s = 2 * self.alone_s[batch.jobs[0]]  # where one row alone is long already
            assert batch.predicted_s <= max(CAP_S, shared_s), "cost within the cap"

    @precondition(lambda self: self.running)
    @rule(data=st.data(), speed=st.sampled_from([0.5, 1.0, 3.0]))
    def finish(self, data, speed: float) -> None:
        batch = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.now += batch.predicted_s * speed
        self.scheduler.finished(batch, batch.predicted_s * speed, self.now)
        assert not self.done & set(batch.jobs)
        self.done |= set(batch.jobs)

    @precondition(lambda self: any(batch.n_rows > 1 for batch in self.running))
    @rule(data=st.data(), how=st.sampled_from(["failed", "device_full", "lost"]))
    def break_down(self, data, how: str) -> None:
        batch = data.draw(st.sampled_from([batch for batch in self.running if batch.n_rows > 1]))
        self.running.remove(batch)
        before = self.scheduler.max_padded(batch.key)
        getattr(self.scheduler, how)(batch, self.now)
        if how == "lost":
            self.scheduler.add_again(batch.jobs, self.now)
        if how == "device_full":
            assert self.scheduler.max_padded(batch.key) <= before / 2
        self.waiting |= dict.fromkeys(batch.jobs)

    @invariant()
    def the_counters_are_right(self) -> None:
        kinds = [job.priority for job in self.waiting]
        assert self.scheduler.waiting() == {kind: kinds.count(kind) for kind in ("first", "next", "bulk")}
        assert self.scheduler.backlog_s(self.now) >= -1e-9

    @invariant()
    def every_total_is_the_sum_over_what_is_open(self) -> None:
        admission, fair_share = self.scheduler._admission, self.scheduler._fair_share
        jobs = [*self.waiting, *(job for batch in self.running for job in batch.jobs)]
        needs_s = {job: sum(needs) for job, needs in admission._waiting.items()} | admission._running
        assert admission._waiting.keys() == self.waiting.keys()
        assert needs_s.keys() <= set(jobs)
        assert admission.needed_s == pytest.approx(sum(needs_s.values()), abs=1e-9)
        bulk_s = sum(seconds for job, seconds in needs_s.items() if job.priority == "bulk")
        assert admission._bulk_s == pytest.approx(bulk_s, abs=1e-9)
        assert admission._n_bulk == [job.priority for job in self.waiting].count("bulk")
        remaining = [*self.remaining.values(), *(job.spans for job in jobs if job.priority != "bulk")]
        for within_s in (0.0, 0.1, 3.0, 1e3):
            needed_s = sum(min(each.seconds, each.share * within_s) for each in remaining)
            assert needed_s - 1e-9 <= admission.future.seconds(within_s) <= MAX_OVER * needed_s + 1e-9
        assert fair_share._n_streams == Counter(self.open.values())
        assert fair_share._total.at(self.now) == pytest.approx(
            sum(used.at(self.now) for used, _ in fair_share._used.values()), abs=1e-9
        )
        for share in self.scheduler._minimum_share.values():
            assert share._used_s == pytest.approx(sum(seconds for _, seconds in share._runs), abs=1e-9)
        backlog = admission._backlog
        assert backlog._streams == Counter(job.stream for job in backlog._slots)
        assert backlog._n_jobs == Counter(job.caller for job in backlog._slots)
        assert self.scheduler._free_at.keys() == set(self.running)

    def teardown(self) -> None:
        """Every job runs in bounded time while batches finish; then the counters are zero."""
        for batch in self.running:
            self.scheduler.finished(batch, batch.predicted_s, self.now)
        for _ in range(2 * len(self.waiting) + 1):  # a batch, or a timer that must then fire
            if not self.waiting:
                break
            wake = self.scheduler.wake_at(self.now)
            self.now = max(self.now, wake if wake is not None else self.now)
            batch = self.scheduler.next_batch(self.now)
            assert batch is not None
            self.check(batch)
            for job in batch.jobs:
                del self.waiting[job]
            self.now += batch.predicted_s
            self.scheduler.finished(batch, batch.predicted_s, self.now)
        assert not self.waiting
        assert self.scheduler.next_batch(self.now) is None
        assert self.scheduler.wake_at(self.now) is None
        assert self.scheduler.backlog_s(self.now) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("layout", [Padded(), Padded(lambda n: -(-n // 16) * 16, (1, 2, 4, 8)), SideBySide(4)])
@pytest.mark.parametrize(
    ("policy", "eager"),
    [
        (Deadline(CAP_S), True),
        (Deadline(CAP_S, can_prefetch=True), True),
        (Deadline(), True),
        (Fifo(), True),
        (Window(max_wait_s=0.05, early_rows=5), False),
        (Bypass(max_wait_s=0.05, early_rows=5), False),
    ],
    ids=["deadline", "deadline, ahead", "no cap", "fifo", "window", "bypass"],
)
def test_the_laws(policy: Policy, eager: bool, layout: Padded | SideBySide) -> None:
    attributes = {"policy": policy, "eager": eager, "layout": layout}
    if isinstance(policy, Deadline) and policy.cap_s == inf:
        attributes["check"] = lambda self, batch: None
    run_state_machine_as_test(
        type("LawsOfOne", (Laws,), attributes),
        settings=settings(max_examples=examples(12), stateful_step_count=40, deadline=None),
    )


# -- one stream alone ----------------------------------------------------------------------------------------------


class ExactDevice(Device):
    """Takes exactly as long as its cost model predicts."""

    def cost(self, key: Key) -> CostModel:
        layout = SideBySide(self.lanes) if self.lanes else Padded()
        per_size = PART[key.stage] * self.per_audio_s / PER_S[key.stage]
        return CostModel(layout, (PART[key.stage] * self.base_s, 0.0, 0.1 * per_size, per_size))

    def seconds(self, stage: StageName, sizes: Sequence[int]) -> float:
        return self.cost(Key(MODEL, stage)).predict(sizes)


def one_by_one(device: Device, chunks: Sequence[float]) -> tuple[float, float, float]:
    """When the first audio of a lone stream comes, how long its listener hears nothing, and when the last one comes."""
    ready_s = first_s = plays_until_s = dry_s = 0.0
    starts_s: list[float] = []  # when each chunk starts to play
    for i, audio_s in enumerate(chunks):
        submitted_s = starts_s[i - AHEAD] if i >= AHEAD else 0.0
        sizes = {stage: max(1, round(audio_s * PER_S[stage])) for stage in PART}
        ready_s = max(ready_s, submitted_s) + sum(device.seconds(stage, [size]) for stage, size in sizes.items())
        if i == 0:
            first_s = plays_until_s = ready_s
        dry_s += max(0.0, ready_s - plays_until_s)
        starts_s.append(max(ready_s, plays_until_s))
        plays_until_s = starts_s[-1] + audio_s
    return first_s, dry_s, ready_s


@given(
    chunks=st.lists(st.floats(0.5, 12.0), min_size=1, max_size=8),
    base_s=st.floats(0.001, 0.3),
    per_audio_s=st.floats(0.001, 1.5),
    lanes=st.sampled_from([None, 1, 2, 4]),
    target_s=st.floats(0.1, 5.0),
)
def test_a_lone_stream_is_never_slower_than_its_chunks_run_one_by_one(
    chunks: list[float], base_s: float, per_audio_s: float, lanes: int | None, target_s: float
) -> None:
    """It starts as early, its listener hears no more silence, and it ends as early."""
    device = ExactDevice("exact", base_s, per_audio_s, target_s, lanes, max_rows=8)
    stream = SimulatedStream(0, 0.0, chunks)
    Simulation(device, scheduler(device, Deadline(0.4 * target_s))).run([stream])
    first_s, dry_s, done_s = one_by_one(device, chunks)
    assert stream.wait_s <= first_s + 1e-6
    assert stream.dry_s <= dry_s + 1e-6
    assert stream.done_s <= done_s + 1e-6


def as_served(device: DeviceCosts, texts: Sequence[Sequence[float]]) -> list[SimulatedStream]:
    """As in the engine: chunks are made ahead of what is heard, and both stages may run in one call."""
    streams = [SimulatedStream(number, 0.0, list(chunks)) for number, chunks in enumerate(texts)]
    Simulation(device, scheduler_of(device), admission=False, ahead=3, is_paced=False, fuses=True).run(streams)
    return streams


def processor(seconds_per_s: float, cores: int) -> DeviceCosts:
    """Rows run on one core each, or alone on all of them; the acoustic half only one after the other."""
    frame_s = seconds_per_s / PER_S["vocoder"]
    costs: dict[StageName, Coefficients] = {
        "acoustic": (0.005, 0.01, 0.0, 0.1 * seconds_per_s / PER_S["acoustic"]),
        "vocoder": (0.01, 0.002, 0.05 * frame_s, 0.9 * cores * frame_s),
    }
    return DeviceCosts("processor", costs, cores, 2 * cores, target_s=1.5)


def alone_s(device: DeviceCosts, chunks: Sequence[float]) -> list[float]:
    """When each chunk of a text is ready if they run one after the other."""
    each = [sum(device.seconds(stage, [max(1, round(s * PER_S[stage]))]) for stage in PER_S) for s in chunks]
    return list(itertools.accumulate(each))


@given(
    chunks=st.lists(st.floats(0.5, 12.0), min_size=2, max_size=8),
    seconds_per_s=st.floats(0.01, 0.7),  # on a slower device gaps cannot be avoided
    cores=st.sampled_from([1, 2, 4]),
)
def test_no_chunk_waits_for_a_later_one_in_the_same_call(chunks: list[float], seconds_per_s: float, cores: int) -> None:
    device = processor(seconds_per_s, cores)
    [stream] = as_served(device, [chunks])
    plays_until_s = dry_s = 0.0
    for number, (ready_s, audio_s) in enumerate(zip(alone_s(device, chunks), chunks, strict=True)):
        dry_s += max(0.0, ready_s - plays_until_s) if number else 0.0
        plays_until_s = max(ready_s, plays_until_s) + audio_s
    assert stream.dry_s <= dry_s + FUSED_S
    assert stream.done_s <= alone_s(device, chunks)[-1] + FUSED_S


@given(
    texts=st.lists(st.lists(st.floats(0.5, 8.0), min_size=1, max_size=2), min_size=2, max_size=4),
    seconds_per_s=st.floats(0.01, 1.5),
    cores=st.sampled_from([1, 2, 4]),
)
def test_rows_that_run_better_apart_do_not_share_a_call(
    texts: list[list[float]], seconds_per_s: float, cores: int
) -> None:
    device = processor(seconds_per_s, cores)
    in_turn_s = sum(alone_s(device, chunks)[-1] for chunks in texts)
    assert max(stream.done_s for stream in as_served(device, texts)) <= in_turn_s + FUSED_S


@given(
    texts=st.lists(st.lists(st.floats(0.5, 8.0), min_size=1, max_size=2), min_size=4, max_size=4),
    base_s=st.floats(0.001, 0.3),
    per_audio_s=st.floats(0.01, 1.5),
    lanes=st.sampled_from([None, 1, 2, 4]),
)
def test_four_at_once_are_never_slower_than_four_in_turn(
    texts: list[list[float]], base_s: float, per_audio_s: float, lanes: int | None
) -> None:
    device = ExactDevice("exact", base_s, per_audio_s, 1.5, lanes, max_rows=8)
    streams = [SimulatedStream(number, 0.0, chunks) for number, chunks in enumerate(texts)]
    Simulation(device, scheduler(device, Deadline(0.6), max_start_s=inf)).run(streams)
    in_turn_s = sum(one_by_one(device, chunks)[2] for chunks in texts)
    assert max(stream.done_s for stream in streams) <= in_turn_s + 1e-6
