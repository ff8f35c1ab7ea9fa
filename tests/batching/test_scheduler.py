"""The scheduler: bisection, memory limits, shares, admission, and how few jobs a decision inspects."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import ceil, inf, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batching.fakes import COST, VOCODER, first_job, new_job, new_scheduler, run
from tests.examples import examples
from tutti.admission.refusals import REFUSAL_S, Asking
from tutti.batching.cost import CostModel
from tutti.batching.job import Job, Key, Priority
from tutti.batching.policies import Deadline, Fifo
from tutti.batching.queue import JobQueue
from tutti.batching.scheduler import Scheduler
from tutti.errors import QueueFull
from tutti.plan.simulation import Padded


@given(n=st.integers(2, 32), data=st.data())
def test_bisection_finds_the_bad_row_and_spares_the_rest(n: int, data: st.DataObject) -> None:
    scheduler = new_scheduler(cap_s=inf)
    jobs = [new_job() for _ in range(n)]
    bad = data.draw(st.sampled_from(jobs))
    for job in jobs:
        scheduler.add(job, 0.0)
    reruns, good = -1, []
    while (batch := scheduler.next_batch(0.0)) is not None:
        reruns += bad in batch.jobs
        if bad not in batch.jobs:
            scheduler.finished(batch, batch.predicted_s, 0.0)
            good += batch.jobs
        elif batch.n_rows > 1:
            scheduler.failed(batch, 0.0)
            scheduler.add(newcomer := new_job(), 0.0)
            jobs.append(newcomer)
    assert reruns == pytest.approx(log2(n), abs=1)
    assert reruns <= 2 * ceil(log2(n)) + 1
    assert sorted(map(id, good)) == sorted(id(job) for job in jobs if job is not bad)


def test_halves_of_a_failed_batch_run_before_other_jobs_join_them() -> None:
    scheduler = new_scheduler(cap_s=inf)
    jobs = [new_job() for _ in range(4)]
    for job in jobs:
        scheduler.add(job, 0.0)
    failed = scheduler.next_batch(0.0)
    assert failed is not None
    scheduler.failed(failed, 0.0)
    scheduler.add(new_job(deadline_s=1.0), 0.0)
    batches = [run(scheduler, 0.0)[0] for _ in range(3)]
    assert {batch.jobs for batch in batches if batch.reason == "retry"} == {failed.jobs[:2], failed.jobs[2:]}


def test_a_batch_of_one_row_cannot_be_split() -> None:
    scheduler = new_scheduler()
    scheduler.add(new_job(), 0.0)
    batch = scheduler.next_batch(0.0)
    assert batch is not None
    for report in (scheduler.failed, scheduler.device_full):
        with pytest.raises(ValueError, match="batch of one"):
            report(batch, 0.0)


def test_a_full_device_gets_half_as_much_and_slowly_more_again() -> None:
    scheduler = new_scheduler(cap_s=inf, max_padded={"vocoder": 1600})
    for _ in range(800):
        scheduler.add(new_job(), 0.0)
    full = scheduler.next_batch(0.0)
    assert full is not None
    assert full.padded == 1600
    scheduler.device_full(full, 0.0)
    sizes = [run(scheduler, 0.0)[0].padded for _ in range(39)]
    assert sizes[0] == 800
    assert sizes == sorted(sizes), "it recovers"
    assert sizes[5] < 1000, "slowly"
    assert sizes[-1] == 1600, "fully"


def test_an_empty_copy_knows_what_was_learned_about_the_device() -> None:
    """It follows on an error in the batcher: a device that was full must not be filled again, and fail again."""
    scheduler = new_scheduler(cap_s=inf, max_padded={"vocoder": 1600})
    for _ in range(40):
        scheduler.add(new_job(), 0.0)
    full = scheduler.next_batch(0.0)
    assert full is not None
    scheduler.device_full(full, 0.0)
    shared = scheduler.next_batch(0.0)
    assert shared is not None
    scheduler.finished(shared, shared.predicted_s, 0.0, device_share=0.5)  # beside a batch of the other stage
    copy = scheduler.empty_copy()
    assert not sum(copy.waiting().values())
    assert copy.backlog_s(0.0) == 0.0
    assert copy.max_padded(VOCODER) == scheduler.max_padded(VOCODER) < 1600
    assert copy.remaining_of_text("kokoro", 100) == scheduler.remaining_of_text("kokoro", 100)
    copy.device_full(full, 0.0)
    assert scheduler.max_padded(VOCODER) > copy.max_padded(VOCODER), "it learns for itself"


def test_both_stages_run_in_one_call_if_no_other_row_is_here() -> None:
    """Neither waiting nor running, in either stage; and the rows are short, and need not be cut."""
    acoustic = Key("kokoro", "acoustic")

    def stages(*jobs: Job, waits: Key | None = None, runs: Key | None = None) -> str:
        scheduler = new_scheduler(max_rows=len(jobs))
        if runs:
            scheduler.add(new_job(key=runs), 0.0)
            assert scheduler.next_batch(0.0)
        for each in jobs:
            scheduler.add(each, 0.0)
        if waits:
            scheduler.add(new_job(100, 60.0, key=waits), 0.0)
        batch = scheduler.next_batch(0.0, stage="acoustic")
        assert batch is not None
        assert batch.n_rows == len(jobs)
        return batch.stages

    def job(later_s: float = 0.01, *, may_split: bool = False) -> Job:
        return replace(new_job(key=acoustic), later_s=later_s, may_split=may_split)

    assert stages(job()) == stages(job(1.0)) == stages(job(), job()) == "both"
    assert stages(job(1.0), job(1.0)) == stages(job(may_split=True)) == "acoustic"
    for key in (acoustic, VOCODER):
        assert stages(job(), waits=key) == stages(job(), runs=key) == "acoustic"


@pytest.mark.slow
@settings(max_examples=examples(8), deadline=None)
@given(
    bulk_size=st.sampled_from([50, 500, 4000, 20_000]),
    other_size=st.sampled_from([50, 1000, 4000]),
    n_keys=st.integers(1, 2),
)
def test_bulk_gets_its_share_of_any_ten_seconds(bulk_size: int, other_size: int, n_keys: int) -> None:
    """However much urgent work there is. Bulk rows of up to 0.4 s, other batches of up to the cap."""
    scheduler = new_scheduler()
    keys = [VOCODER, Key("kokoro", "acoustic")][:n_keys]
    now, runs, waiting = 0.0, [], 0
    while now < 25.0:
        while scheduler.waiting()["first"] < 12:
            for key in keys:
                scheduler.add(new_job(other_size, now + 60.0, "first", key=key), now)
        while waiting < 64:
            scheduler.add(new_job(bulk_size, now + 3600, "bulk", key=keys[-1]), now)
            waiting += 1
        batch, end = run(scheduler, now)
        bulk = [job for job in batch.jobs if job.priority == "bulk"]
        waiting -= len(bulk)
        runs.append((now, end, sum(job.size for job in bulk) / sum(job.size for job in batch.jobs)))
        now = end
    for start in range(15):
        had = sum(max(0.0, min(end, start + 10) - max(begin, start)) * part for begin, end, part in runs)
        assert had >= 0.05 * 10, f"{had:.2f} s from {start} s on"


def test_late_jobs_are_served_beside_jobs_that_are_in_time() -> None:
    scheduler = new_scheduler()
    late = [new_job(deadline_s=-1.0) for _ in range(20)]
    for job in late:
        scheduler.add(job, 0.0)
    now = 0.0
    while any(job.deadline_s < 0 for queue in scheduler._queues.values() for job in queue):
        for _ in range(8):
            scheduler.add(new_job(1000, now + 0.5, "first"), now)
        _, now = run(scheduler, now)
        assert now < 60.0, "starved"


def test_bulk_rows_fill_the_padding_of_a_batch() -> None:
    """Five rows are padded to eight: three places are paid for."""
    scheduler = new_scheduler(layout=Padded(rows=(1, 2, 4, 8, 16)))
    for _ in range(5):
        scheduler.add(new_job(100, 10.0, "first"), 0.0)
    for _ in range(9):
        scheduler.add(new_job(90, 3600.0, "bulk"), 0.0)
    batch, _ = run(scheduler, 0.0)
    assert [job.priority for job in batch.jobs] == ["first"] * 5 + ["bulk"] * 3


@pytest.mark.parametrize(
    ("priority", "is_same_stream", "n_rows"), [("next", False, 2), ("next", True, 1), ("bulk", False, 1)]
)
def test_past_the_cap_a_pass_is_shared_by_listeners_only(priority: Priority, is_same_stream: bool, n_rows: int) -> None:
    """A long row cannot be cut; but nobody waits for twice that because one client asked for more."""
    scheduler = new_scheduler(cost=(0.001, 0.0, 1e-3, 0.0))
    first = new_job(500, priority=priority)
    second = new_job(500, priority=priority)
    for job in (first, replace(second, stream=first.stream, deadline_s=2e6) if is_same_stream else second):
        scheduler.add(job, 0.0)
    assert run(scheduler, 0.0)[0].n_rows == n_rows


@pytest.mark.parametrize(
    ("others_due_s", "follower_due_s", "goes_on"),
    [(0.04, 0.05, True), (0.5, 1.0, False), (2.0, 1.0, True)],
    ids=["due soon", "due later", "due first"],
)
def test_a_stream_that_started_late_goes_on_before_another_starts_late_if_it_is_due_soon_or_first(
    others_due_s: float, follower_due_s: float, goes_on: bool
) -> None:
    scheduler = new_scheduler()
    starts = replace(new_job(deadline_s=others_due_s, priority="first"), starts_late=True, starts_stream=True)
    follower = replace(new_job(deadline_s=follower_due_s), starts_late=True)
    for job in (starts, follower):
        scheduler.add(job, 0.0)
    assert run(scheduler, 0.0)[0].jobs[0] is (follower if goes_on else starts)


@pytest.mark.parametrize(("follower_due_s", "goes_on"), [(0.05, True), (0.5, False)])
def test_a_stream_that_started_late_passes_those_in_time_only_if_it_is_due_soon(
    follower_due_s: float, goes_on: bool
) -> None:
    scheduler = new_scheduler()
    in_time, follower = new_job(deadline_s=0.9), replace(new_job(deadline_s=follower_due_s), starts_late=True)
    for job in (in_time, follower):
        scheduler.add(job, 0.0)
    assert run(scheduler, 0.0)[0].jobs[0] is (follower if goes_on else in_time)


@pytest.mark.parametrize("max_start_s", [0.0, 2.0])
def test_further_spans_of_rows_make_others_start_late_but_refuse_none_in_time(max_start_s: float) -> None:
    """Their listeners need them later, at their own pace; but all of them are made before a stream that starts late."""

    def n_accepted(n_span_frames: int) -> int:
        """Streams that come at once and are accepted, beside rows of ten listeners with so many frames to come."""
        scheduler = new_scheduler(max_start_s=max_start_s)
        for _ in range(10):
            playing = replace(
                new_job(deadline_s=5.0), spans=scheduler.remaining_of_row(VOCODER.checkpoint, n_span_frames)
            )
            scheduler.add(playing, 0.0)
        return n_admitted(scheduler, lambda _: new_job(deadline_s=0.2, priority="first"))

    if max_start_s:
        assert n_accepted(2000) < n_accepted(0)
    else:
        assert n_accepted(2000) == n_accepted(0)


def test_a_row_joins_only_if_that_is_cheaper_than_running_it_alone() -> None:
    scheduler = new_scheduler(cap_s=10.0)
    long, short, like = new_job(2000), new_job(40), new_job(1900)
    for job in (long, short, like):
        scheduler.add(job, 0.0)
    assert run(scheduler, 0.0)[0].jobs == (long, like)
    assert run(scheduler, 0.0)[0].jobs == (short,)


def test_a_batch_does_not_grow_beyond_the_deadline_of_its_first_row() -> None:
    scheduler = new_scheduler(cap_s=inf)
    tight = new_job(100, deadline_s=0.015)
    for job in [tight, *(new_job(100, deadline_s=5.0) for _ in range(20))]:
        scheduler.add(job, 0.0)
    batch, end = run(scheduler, 0.0)
    assert tight in batch.jobs
    assert batch.n_rows > 1
    assert end <= tight.deadline_s


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_an_hour_more_or_less_on_the_clock_changes_nothing(data: st.DataObject) -> None:
    """Only differences of times count."""
    jobs = data.draw(
        st.lists(
            st.tuples(st.integers(1, 500), st.integers(0, 40), st.sampled_from(["first", "next", "bulk"])), max_size=30
        )
    )

    def decisions(start: float) -> list[tuple[int, ...]]:
        scheduler, now = new_scheduler(), start
        for size, due, kind in jobs:
            scheduler.add(new_job(size, start + due / 16, kind), now)
        batches = []
        while (batch := scheduler.next_batch(now)) is not None:
            batches.append(tuple(job.size for job in batch.jobs))
            now += 0.0625  # exact in binary wherever the clock starts
            scheduler.finished(batch, 0.0625, now)
        return batches

    assert decisions(0.0) == decisions(4096.0)


def test_a_decision_inspects_few_jobs_however_many_wait() -> None:
    """Amortised: a job that fell late is moved once; beyond that, rows of the batch and a fixed number passed over."""
    n_inspected = {}
    for n in (500, 8000):
        scheduler = new_scheduler(max_waiting=10_000)
        for i in range(n):
            scheduler.add(new_job(20 + 37 * i % 480, 60.0 + i % 91), 0.0)
        before, now, most = scheduler.n_inspected, 0.0, 0
        for _ in range(20):
            batch, now = run(scheduler, now)
            most = max(most, scheduler.n_inspected - before - batch.n_rows)
            before = scheduler.n_inspected
        n_inspected[n] = most
    assert n_inspected[8000] <= 2 * 24 + 16
    assert n_inspected[8000] <= n_inspected[500] + 8


@pytest.mark.parametrize("which", range(3))
def test_a_job_that_is_needed_sooner_stays_behind_those_of_its_stream(which: int) -> None:
    scheduler = new_scheduler(max_rows=1)
    jobs = [Job(VOCODER, 7, "next", 100, 1e6 + i) for i in range(3)]
    for job in jobs:
        scheduler.add(job, 0.0)
    scheduler.move_deadline(jobs[which], jobs[which].deadline_s - 1000.0, 0.0)
    assert [run(scheduler, 0.0)[0].jobs for _ in jobs] == [(job,) for job in jobs]


@pytest.mark.parametrize("is_half_of_a_failed_batch", [False, True])
def test_a_batch_is_taken_whole_though_many_wait_before_its_head(is_half_of_a_failed_batch: bool) -> None:
    """Second chunks that rank before the head, but whose first ones are late and wait elsewhere, as after a restart."""
    scheduler, now, acoustic = new_scheduler(), 100.0, Key("kokoro", "acoustic")
    jobs = [Job(acoustic, 1000 + n, "next", 100, now + 0.7) for n in range(2)]
    for job in jobs:
        scheduler.add(job, now)
    if is_half_of_a_failed_batch:
        batch = scheduler.next_batch(now)
        assert batch is not None
        scheduler.failed(batch, now)
    for stream in range(10):
        jobs += [Job(VOCODER, stream, "next", 100, now - 1), Job(acoustic, stream, "next", 5000, now + 0.6)]
        for job in jobs[-2:]:
            scheduler.add(job, now)
    ran: list[Job] = []
    while (next_batch := scheduler.next_batch(now)) is not None:
        ran += next_batch.jobs
    assert len(ran) == len(jobs)
    assert set(ran) == set(jobs)


def test_cancelled_jobs_do_not_pile_up() -> None:
    scheduler = new_scheduler()
    scheduler.add(new_job(deadline_s=0.5), 0.0)
    for _ in range(5000):
        scheduler.add(job := new_job(), 0.0)
        scheduler.cancel(job)
    (queue,) = scheduler._queues.values()
    assert sum(map(len, queue._tiers)) < 200
    assert not queue._behind


# -- admission ----------------------------------------------------------------------------------------------------


def test_each_request_of_a_burst_is_accepted_or_gets_a_retry_time() -> None:
    scheduler = new_scheduler(max_waiting=30)
    accepted, retry_after_s = 0, []
    for i in range(1000):
        now = i * 1e-4
        job = new_job(100, now + 5.0, "first", str(i))
        try:
            scheduler.admit(job, now)
        except QueueFull as full:
            retry_after_s.append(full.retry_after_s)
        else:
            accepted += 1
            scheduler.add(job, now)
        assert sum(scheduler.waiting().values()) <= 30
    assert (accepted, len(retry_after_s)) == (30, 970)
    assert min(retry_after_s) > 0


def test_a_stream_that_cannot_be_in_time_is_refused_and_an_accepted_one_never_is() -> None:
    scheduler = new_scheduler()
    for _ in range(40):
        scheduler.add(new_job(1000, 0.1, "first"), 0.0)
    with pytest.raises(QueueFull) as refused:
        scheduler.admit(first_job(scheduler, 0.02, 0.2), 0.0)
    assert refused.value.status == 429
    assert 0.1 <= refused.value.retry_after_s < 10
    scheduler.admit(first_job(scheduler, 0.02, 60.0), 0.0)
    scheduler.add(new_job(1000, 0.1), 0.0)


@pytest.mark.parametrize(("others", "is_accepted"), [(1, True), (4, False)])
def test_two_streams_share_a_slow_device_but_five_do_not(others: int, is_accepted: bool) -> None:
    """The same work in the same time, for one stream or for four: each of them will have more chunks."""
    scheduler = new_scheduler(cap_s=1.6)
    for stream in range(others):
        scheduler.add(Job(VOCODER, stream, "next", 110_000 // others, 3.0), 0.0)
    try:
        scheduler.admit(first_job(scheduler, 0.1, 1.0), 0.0)
    except QueueFull:
        assert not is_accepted
    else:
        assert is_accepted


@pytest.mark.parametrize("costs_s", [*itertools.permutations((0.8, 0.9, 1.0, 1.1))], ids=str)
def test_four_at_once_are_admitted_where_one_alone_is_hardly_in_time(costs_s: tuple[float, ...]) -> None:
    """A request that needs less does not run before one that was there: both have the same deadline."""
    scheduler = new_scheduler(cap_s=0.6)
    for stream, cost_s in enumerate(costs_s):
        job = new_job(int(cost_s * 50_000), 1.5, "first", str(stream))
        scheduler.admit(job, 0.0)
        scheduler.add(job, 0.0)
    scheduler.admit(patient := new_job(40_000, 60.0, "first"), 0.0)
    scheduler.add(patient, 0.0)
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(40_000, 1.5, "first"), 0.0)


def test_without_a_limit_on_lateness_every_stream_is_admitted() -> None:
    scheduler = new_scheduler(cap_s=0.6, max_start_s=inf)
    for _ in range(8):
        job = new_job(50_000, 1.5, "first")
        scheduler.admit(job, 0.0)
        scheduler.add(job, 0.0)


def test_bulk_is_refused_first() -> None:
    scheduler = new_scheduler(max_waiting=20)
    for _ in range(10):
        scheduler.add(new_job(priority="bulk"), 0.0)
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(priority="bulk", deadline_s=3600.0), 0.0)
    scheduler.admit(new_job(priority="first", deadline_s=5.0), 0.0)


def test_a_caller_over_its_share_ranks_last_and_blocks_no_other_caller() -> None:
    scheduler, now = new_scheduler(), 0.0

    def fill_queue(wait_s: float) -> None:
        with suppress(QueueFull):
            while True:
                scheduler.admit(job := new_job(1000, now + wait_s, "first", "greedy"), now)
                scheduler.add(job, now)

    for i in itertools.count():
        if i % 20 == 0:
            scheduler.add(new_job(100, now + 1.0, "first", "polite"), now)
        fill_queue(1.0)
        _, now = run(scheduler, now)
        if now > 30.0:
            break
    fill_queue(0.3)
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(1000, now + 0.3, "first", "greedy"), now)
    polite = new_job(100, now + 0.3, "first", "polite")
    scheduler.admit(polite, now)
    scheduler.add(polite, now)
    batches = [run(scheduler, now)[0] for _ in range(2)]  # one may be the minimum share of the greedy caller
    assert any(polite in batch.jobs for batch in batches)


def test_equal_callers_keep_the_order_of_deadlines() -> None:
    scheduler, now = new_scheduler(), 0.0
    for i in itertools.count():
        scheduler.add(new_job(1000, now + 1.0, "first", "ab"[i % 2]), now)
        if i % 4 == 3:
            _, now = run(scheduler, now)
        if now > 30.0:
            break
    later, sooner = new_job(100, now + 0.4, "first", "a"), new_job(100, now + 0.3, "first", "b")
    scheduler.add(later, now)
    scheduler.add(sooner, now)
    while sooner not in (batch := run(scheduler, now)[0]).jobs:
        assert later not in batch.jobs
    assert later not in batch.jobs or batch.jobs.index(sooner) < batch.jobs.index(later)


def test_without_batching_rows_run_one_at_a_time() -> None:
    scheduler = new_scheduler(Fifo(), max_rows=1)
    for _ in range(3):
        scheduler.add(new_job(), 0.0)
    assert [run(scheduler, 0.0)[0].n_rows for _ in range(3)] == [1, 1, 1]


def test_the_quick_test_at_the_door_agrees_with_admission() -> None:
    scheduler = new_scheduler(max_start_s=1.0)
    scheduler.check_wait(Asking("kokoro", ""), 0.2, 0.0)
    while True:
        job = new_job(1000, 0.2, "first")
        try:
            scheduler.admit(job, 0.0)
        except QueueFull:
            break
        scheduler.add(job, 0.0)
    with pytest.raises(QueueFull) as refused:
        scheduler.check_wait(Asking("kokoro", ""), 0.2, REFUSAL_S)
    assert refused.value.retry_after_s is not None
    assert refused.value.retry_after_s > 0.0
    with pytest.raises(QueueFull):
        scheduler.check_wait(Asking("kokoro", "", 0.5), 0.2, REFUSAL_S)
    now = REFUSAL_S
    while (batch := scheduler.next_batch(now)) is not None:
        now += batch.predicted_s
        scheduler.finished(batch, batch.predicted_s, now)
    scheduler.check_wait(Asking("kokoro", ""), 0.2, now)


def n_queued_at_once(scheduler: Scheduler) -> int:
    """How many typical streams are accepted, each queued before the next one comes."""
    later_s = scheduler.predict(Key("kokoro", "vocoder"), 174)
    return n_admitted(scheduler, lambda n: Job(Key("kokoro", "acoustic"), n, "first", 60, 0.2, later_s))


def n_admitted(scheduler: Scheduler, job_of_stream: Callable[[int], Job]) -> int:
    """How many of these jobs are admitted, each queued before the next one comes."""
    for n in range(1000):
        job = job_of_stream(n)
        try:
            scheduler.admit(job, 0.0)
        except QueueFull:
            return n
        scheduler.add(job, 0.0)
    return 1000


def n_passing_the_door(scheduler: Scheduler) -> int:
    """How many streams pass the quick test while none of them is queued: their texts are still being read."""
    for n in range(1000):
        try:
            scheduler.check_wait(Asking("kokoro", ""), 0.2, 0.0, n_starting=n)
        except QueueFull:
            return n
    return 1000


@pytest.mark.parametrize("max_start_s", [1.0, 3.0])
def test_no_more_streams_pass_the_door_while_their_texts_are_read_than_will_be_accepted(max_start_s: float) -> None:
    n_queued = n_queued_at_once(new_scheduler(max_start_s=max_start_s))
    n_passing = n_passing_the_door(new_scheduler(max_start_s=max_start_s))
    assert 10 < n_queued < 900
    assert n_passing == pytest.approx(n_queued, rel=0.1)


def test_after_a_refusal_nobody_passes_the_door_for_a_moment() -> None:
    """A stream that is refused after its text was read has cost that: no other may, until there is room again."""
    scheduler = new_scheduler(max_start_s=1.0)
    scheduler.check_wait(Asking("kokoro", ""), 0.2, 0.0)
    with pytest.raises(QueueFull) as refused:
        scheduler.admit(new_job(100, 0.2, "first"), 0.0, delay_s=3.0)
    with pytest.raises(QueueFull) as again:
        scheduler.check_wait(Asking("kokoro", ""), 0.2, REFUSAL_S / 2)
    assert vars(again.value) == vars(refused.value)
    scheduler.check_wait(Asking("kokoro", "", 0.5), 0.2, REFUSAL_S / 2)  # another question
    scheduler.check_wait(Asking("kokoro", ""), 0.2, 2 * REFUSAL_S)


def test_a_refusal_of_bulk_work_refuses_no_listener() -> None:
    scheduler = new_scheduler(max_waiting=2)
    scheduler.add(new_job(priority="bulk"), 0.0)
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(priority="bulk"), 0.0)
    scheduler.check_wait(Asking("kokoro", ""), 0.2, 0.0)


def new_queue(is_over_share: Callable[[str, float], bool] = lambda caller, now: False) -> JobQueue:
    policy = Deadline(0.08)
    return JobQueue(VOCODER, CostModel(Padded(), COST), policy.place, policy.n_tiers, is_over_share, lambda _: False)


def test_every_span_that_waits_beside_its_stream_counts() -> None:
    queue = new_queue()
    spans = [replace(new_job(deadline_s=due_s), stream=1, is_continuation=True) for due_s in (3.0, 9.0)]
    for job in spans:
        queue.add(job, 0.0)
    assert queue.due_before(1, 5.0)
    queue.cancel(spans[1])
    assert queue.due_before(1, 5.0)
    queue.cancel(spans[0])
    assert not queue.due_before(1, 5.0)


def test_a_chunk_that_comes_up_is_ranked_by_what_its_caller_uses_then() -> None:
    queue = new_queue(lambda caller, now: now < 2.0)
    for due_s in (20.0, 25.0):
        queue.add(replace(new_job(deadline_s=due_s), stream=1), 0.0)
    ranked = queue.head(2, 10.0)
    assert ranked is not None
    queue.take_entry(ranked[2])
    following = queue.head(0, 10.0)
    assert following is not None, "its caller was over its share when it arrived, and is not any more"
    assert not following[2].is_over_share
