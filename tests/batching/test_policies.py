"""Each policy does what its name says, on a virtual clock."""

import itertools
from dataclasses import replace
from math import inf

import pytest

from tests.batching.fakes import new_scheduler
from tutti.batching.cost import CostModel
from tutti.batching.job import Job, Key, Priority
from tutti.batching.layout import SideBySide
from tutti.batching.policies import HAS_TIME_S, Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.plan.simulation import Padded

A, B = Key("a", "vocoder"), Key("b", "vocoder")
WINDOW = Window(max_wait_s=0.05, min_wait_s=0.002, early_rows=4)
BYPASS = Bypass(max_wait_s=0.05, min_wait_s=0.002, early_rows=4)
numbers = itertools.count()


def add(
    scheduler: Scheduler,
    now: float,
    priority: Priority = "next",
    deadline_s: float = 100.0,
    key: Key = A,
    caller: str = "",
) -> Job:
    job = Job(key, next(numbers), priority, 100, deadline_s, caller=caller, arrived_s=now)
    scheduler.add(job, now)
    return job


def batch_at(scheduler: Scheduler, now: float) -> tuple[str, tuple[Job, ...]] | None:
    batch = scheduler.next_batch(now)
    return batch and (batch.reason, batch.jobs)


@pytest.mark.parametrize("policy", [Deadline(0.08), Fifo()])
def test_a_lone_row_runs_at_once(policy: Policy) -> None:
    scheduler = new_scheduler(policy, cap_s=inf, max_rows=5)
    job = add(scheduler, 1.0)
    assert scheduler.wake_at(1.0) is None
    assert batch_at(scheduler, 1.0) == ("free", (job,))


def test_fifo_is_the_order_of_arrival_over_all_keys() -> None:
    scheduler = new_scheduler(Fifo(), cap_s=inf, max_rows=5)
    jobs = [add(scheduler, float(i), deadline_s=50.0 - i, key=A if i in (0, 2) else B) for i in range(5)]
    assert batch_at(scheduler, 9.0) == ("free", (jobs[0], jobs[2]))
    assert batch_at(scheduler, 9.0) == ("free", (jobs[1], jobs[3], jobs[4]))


def test_deadline_is_the_order_of_latest_start_over_all_keys_and_stages() -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=5)
    later, sooner = add(scheduler, 0.0, deadline_s=5.0), add(scheduler, 0.0, deadline_s=4.0, key=B)
    reads = Job(Key("b", "acoustic"), 99, "first", 10, 5.5, later_s=2.0)
    scheduler.add(reads, 0.0)
    assert [scheduler.next_batch(0.0).jobs for _ in range(3)] == [(reads,), (sooner,), (later,)]


def test_deadline_serves_jobs_in_time_before_late_ones() -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=5)
    late = add(scheduler, 0.0, deadline_s=9.0, key=B)
    in_time = add(scheduler, 0.0, deadline_s=10.0 + 1.5 * scheduler.predict(A, 100))
    assert batch_at(scheduler, 10.0) == ("free", (in_time,))
    assert batch_at(scheduler, 10.0) == ("free", (late,))


def test_what_became_late_goes_before_work_that_has_time() -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=5)
    late = add(scheduler, 0.0, deadline_s=9.0, key=B)
    has_time = add(scheduler, 0.0, deadline_s=10.0 + 2 * HAS_TIME_S)
    assert batch_at(scheduler, 10.0) == ("free", (late,))
    assert batch_at(scheduler, 10.0) == ("free", (has_time,))


def test_a_row_that_is_being_played_continues_before_chunks_with_later_deadlines() -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=5)
    later = add(scheduler, 0.0, deadline_s=20.0)
    late = Job(B, next(numbers), "next", 100, 10.0, is_continuation=True)
    scheduler.add(late, 0.0)
    assert batch_at(scheduler, 9.999) == ("free", (late,))
    assert batch_at(scheduler, 9.999) == ("free", (later,))


def test_a_caller_over_its_share_waits_for_callers_in_time() -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=5)
    for caller, took_s in (("greedy", 30.0), ("polite", 0.01)):
        add(scheduler, 0.0, caller=caller)
        batch = scheduler.next_batch(9.0)
        assert batch is not None
        scheduler.finished(batch, took_s, 9.0)
    greedy = add(scheduler, 9.0, deadline_s=20.0, key=B, caller="greedy")
    polite = add(scheduler, 9.0, deadline_s=30.0, caller="polite")
    assert batch_at(scheduler, 10.0) == ("free", (polite,))
    assert batch_at(scheduler, 10.0) == ("free", (greedy,))


@pytest.mark.parametrize(
    ("due_s", "fixed_s", "most_s"),
    [(100.0, 0.01, 0.08), (0.25, 0.01, 0.04), (0.25, 0.045, 0.094), (100.0, 0.098, 0.2)],  # a row alone adds 0.002
    ids=["not urgent", "urgent", "expensive pass", "one row above the cap"],
)
def test_a_batch_of_urgent_rows_is_short_but_has_several_rows(due_s: float, fixed_s: float, most_s: float) -> None:
    """A row waits for one pass and needs another; if a single row takes long already, rows share the pass."""
    limits, cost = Limits(max_rows=64, cap_s=0.08), CostModel(Padded(), (fixed_s, 0.0, 2e-5, 0.0))
    scheduler = Scheduler(limits, lambda key: cost, Deadline(0.08))
    for _ in range(64):
        add(scheduler, 0.0, deadline_s=due_s)
    batch = scheduler.next_batch(0.0)
    assert batch is not None
    assert batch.reason == "cost"
    assert most_s - 0.002 < batch.predicted_s <= most_s + 1e-9  # a row adds 2 ms


def test_all_lanes_are_busy_even_where_one_row_alone_takes_longer_than_the_cap() -> None:
    """Otherwise a slow processor would never batch: half a second for one row, 0.8 for two side by side."""
    cost = CostModel(SideBySide(2), (0.0, 0.0, 0.001, 0.008))
    scheduler = Scheduler(Limits(max_rows=4, cap_s=0.2), lambda key: cost, Deadline(0.2))
    late = [add(scheduler, 0.0, deadline_s=0.3) for _ in range(2)]
    in_time = [add(scheduler, 0.0, deadline_s=2.0) for _ in range(3)]
    assert batch_at(scheduler, 0.0) == ("cost", tuple(in_time[:2]))
    assert batch_at(scheduler, 0.9) == ("deadline", tuple(late))


def add_stream(scheduler: Scheduler, caller: str, deadline_s: float, *, starts: bool = False) -> Job:
    """A job of a stream that is open from now on."""
    job = Job(A, next(numbers), "first", 100, deadline_s, caller=caller, arrived_s=1.0, starts_stream=starts)
    scheduler.streams.opened(job.stream, caller)
    scheduler.add(job, 1.0)
    return job


def test_a_stream_starts_before_those_of_a_caller_that_has_most_of_them() -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=1)
    busy = [add_stream(scheduler, "busy", 3.0 + n) for n in range(3)]
    newcomer = add_stream(scheduler, "other", 9.0, starts=True)
    order = [scheduler.next_batch(1.0).jobs[0] for _ in range(4)]
    assert order == [newcomer, *busy]


@pytest.mark.parametrize(
    ("n_busy", "n_own", "starts"),
    [(1, 1, True), (2, 2, True), (3, 1, False)],
    ids=["one stream each", "two streams each", "a later chunk"],
)
def test_among_callers_alike_the_deadline_decides(n_busy: int, n_own: int, starts: bool) -> None:
    scheduler = new_scheduler(Deadline(0.08), cap_s=inf, max_rows=1)
    for _ in range(n_own - 1):
        scheduler.streams.opened(next(numbers), "other")
    busy = [add_stream(scheduler, "busy", 3.0 + n) for n in range(n_busy)]
    own = add_stream(scheduler, "other", 9.0, starts=starts)
    order = [scheduler.next_batch(1.0).jobs[0] for _ in range(n_busy + 1)]
    assert order == [*busy, own]


@pytest.mark.parametrize(("has_others", "n_rows"), [(False, 2), (True, 1)])
def test_rows_of_a_crowd_make_no_pass_longer_while_others_are_there(has_others: bool, n_rows: int) -> None:
    """Half a second for one row, 0.8 for two: who comes meanwhile would wait for longer."""
    cost = CostModel(SideBySide(2), (0.0, 0.0, 0.001, 0.008))
    scheduler = Scheduler(Limits(max_rows=4, cap_s=0.2), lambda key: cost, Deadline(0.2))
    if has_others:
        other = add_stream(scheduler, "other", 2.0, starts=True)
        assert batch_at(scheduler, 1.0) == ("free", (other,))
        scheduler.streams.ended(other.stream)
    for _ in range(3):
        scheduler.streams.opened(next(numbers), "busy")
    for _ in range(3):
        add_stream(scheduler, "busy", 9.0)
    batch = scheduler.next_batch(1.0)
    assert batch is not None
    assert batch.n_rows == n_rows


def prefetched(running: Job, *waiting: Job, can_prefetch: bool = True) -> tuple[Job, ...] | None:
    """The batch that is prefetched while this job runs."""
    limits, cost = Limits(max_rows=3, cap_s=0.08), CostModel(Padded(), (0.01, 0.0, 2e-5, 0.0))
    scheduler = Scheduler(limits, lambda key: cost, Deadline(0.08, can_prefetch=can_prefetch))
    scheduler.add(running, 0.0)
    assert batch_at(scheduler, 0.0) == ("free", (running,))
    for job in waiting:
        scheduler.add(job, 0.0)
    batch = scheduler.next_batch(0.0, prefetch=True)
    assert batch is None or scheduler.free_at(0.0) >= scheduler.predict(running.key, 100) + batch.predicted_s
    return batch and batch.jobs


def test_a_batch_is_prefetched_only_if_no_later_job_could_change_it() -> None:
    sounds, reads = Job(A, 1, "next", 100, 50.0), Job(Key("a", "acoustic"), 1, "next", 100, 50.0, later_s=0.1)
    three = tuple(Job(A, 10 + i, "next", 100, 60.0) for i in range(3))
    sooner = tuple(Job(A, 20 + i, "next", 100, 40.0) for i in range(3))
    assert prefetched(sounds, *three) == three
    assert prefetched(sounds, *three, can_prefetch=False) is None
    assert prefetched(sounds, three[0]) is None  # others may join it until the device is free
    assert prefetched(reads, *three) is None  # the vocoder job of the running one will be more urgent
    assert prefetched(reads, *sooner) == sooner


def test_window_waits_for_more_rows_until_the_oldest_waited_long_enough() -> None:
    scheduler = new_scheduler(WINDOW, cap_s=inf, max_rows=5)
    jobs = (add(scheduler, 0.0), add(scheduler, 0.001))
    assert batch_at(scheduler, 0.049) is None
    assert scheduler.wake_at(0.049) == pytest.approx(0.05)
    assert batch_at(scheduler, 0.05) == ("window", jobs)


def test_window_fires_early_near_capacity() -> None:
    scheduler = new_scheduler(WINDOW, cap_s=inf, max_rows=5)
    jobs = [add(scheduler, 0.0) for _ in range(3)]
    assert batch_at(scheduler, 0.0) is None
    jobs.append(add(scheduler, 0.001))
    assert scheduler.wake_at(0.001) == 0.001
    assert batch_at(scheduler, 0.001) == ("early", tuple(jobs))


def test_window_releases_a_lone_row_after_its_minimum_wait() -> None:
    scheduler = new_scheduler(WINDOW, cap_s=inf, max_rows=5)
    job = add(scheduler, 0.0)
    assert batch_at(scheduler, 0.001) is None
    assert scheduler.wake_at(0.001) == pytest.approx(0.002)
    assert batch_at(scheduler, 0.002) == ("quiet", (job,))


def test_window_counts_each_key_for_itself() -> None:
    scheduler = new_scheduler(WINDOW, cap_s=inf, max_rows=5)
    for key in (A, B, A, B):
        add(scheduler, 0.0, key=key)
    assert batch_at(scheduler, 0.01) is None
    assert {scheduler.next_batch(0.05).n_rows for _ in range(2)} == {2}


def test_window_takes_no_more_rows_than_fit() -> None:
    scheduler = new_scheduler(WINDOW, cap_s=inf, max_rows=5)
    jobs = [add(scheduler, 0.0) for _ in range(7)]
    assert batch_at(scheduler, 0.0) == ("early", tuple(jobs[:5]))
    assert batch_at(scheduler, 0.0) is None


def test_bypass_sends_first_chunks_at_once_and_alone() -> None:
    scheduler = new_scheduler(BYPASS, cap_s=inf, max_rows=5)
    rest = [add(scheduler, 0.0), add(scheduler, 0.0)]
    first = [add(scheduler, 0.001, "first"), add(scheduler, 0.002, "first")]
    assert scheduler.wake_at(0.002) == 0.002
    assert [batch_at(scheduler, 0.002) for _ in range(2)] == [("bypass", (job,)) for job in first]
    assert batch_at(scheduler, 0.002) is None
    assert batch_at(scheduler, 0.05) == ("window", tuple(rest))


def test_bypass_does_not_count_first_chunks_towards_a_window() -> None:
    scheduler = new_scheduler(BYPASS, cap_s=inf, max_rows=5)
    for kind in ("next", "first", "next", "first"):
        add(scheduler, 0.0, kind)
    scheduler.next_batch(0.0)
    scheduler.next_batch(0.0)
    assert scheduler.next_batch(0.01) is None


@pytest.mark.parametrize("policy", [Deadline(0.08), Fifo(), WINDOW, BYPASS])
def test_the_halves_of_a_failed_batch_run_without_waiting(policy: Policy) -> None:
    scheduler = new_scheduler(replace(policy), cap_s=inf, max_rows=5)
    for _ in range(4):
        add(scheduler, 0.0, "next")
    failed = scheduler.next_batch(0.0)
    assert failed is not None
    assert failed.n_rows == 4
    scheduler.failed(failed, 0.0)
    assert [batch_at(scheduler, 0.0) for _ in range(2)] == [("retry", failed.jobs[:2]), ("retry", failed.jobs[2:])]


def test_text_budget_and_memory_stop_a_batch_but_not_a_single_row() -> None:
    limits = Limits(max_padded={"vocoder": 250}, max_text=30)
    for size, text, rows in ((100, 0, 2), (10, 11, 2), (1000, 0, 1), (10, 500, 1)):
        scheduler = Scheduler(limits, lambda key: CostModel(Padded(), (0.01, 0.0, 2e-5, 0.0)), Fifo())
        for _ in range(4):
            scheduler.add(Job(A, next(numbers), "next", size, 9.0, n_characters=text), 0.0)
        batch = scheduler.next_batch(0.0)
        assert batch is not None
        assert (batch.n_rows, batch.reason) == (rows, "full")
