"""Which streams are accepted: an EDF feasibility test that counts every job once."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batching.fakes import VOCODER, new_job, numbers
from tutti.batching.admission import MAX_LATENESS, AdmissionControl
from tutti.batching.job import Job
from tutti.errors import QueueFull

NOW = 100.0


def new_admission(
    *jobs: tuple[Job, float], over_share: tuple[str, ...] = (), max_waiting: int = 100
) -> AdmissionControl:
    """Admission control with these jobs, each with its device seconds."""
    admission = AdmissionControl(100, MAX_LATENESS, lambda caller, now: caller in over_share)
    for job, seconds in jobs:
        admission.job_queued(job, seconds, 0.0)
    return admission


def admits(admission: AdmissionControl, deadline_s: float, cost_s: float = 0.01, caller: str = "") -> bool:
    try:
        admission.admit(new_job(deadline_s=deadline_s, priority="first", caller=caller), cost_s, NOW, NOW)
    except QueueFull:
        return False
    return True


@given(cost_s=st.floats(1e-3, 30.0), target_s=st.floats(0.0, 5.0))
def test_an_idle_device_admits_every_stream_however_slow_it_is(cost_s: float, target_s: float) -> None:
    assert admits(new_admission(), NOW + target_s, cost_s)


@given(
    jobs=st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(1e-3, 0.5)), max_size=20),
    deadline_s=st.floats(0.01, 5.0),
    later_s=st.floats(0.0, 5.0),
)
def test_a_later_deadline_never_turns_acceptance_into_refusal(
    jobs: list[tuple[float, float]], deadline_s: float, later_s: float
) -> None:
    """If all other jobs are due before it."""
    admission = new_admission(*[(new_job(deadline_s=NOW + min(due_s, deadline_s)), s) for due_s, s in jobs])
    assert admits(admission, NOW + deadline_s + later_s) >= admits(admission, NOW + deadline_s)


def test_work_that_is_due_earlier_delays_a_new_stream() -> None:
    assert admits(new_admission((new_job(deadline_s=NOW + 0.5), 0.2)), NOW + 1.0)
    assert not admits(new_admission((new_job(deadline_s=NOW + 0.5), 0.8)), NOW + 1.0)


def test_a_new_stream_must_not_make_an_accepted_one_late() -> None:
    jobs = [(new_job(deadline_s=NOW + 2.0 + 0.01 * n), 0.08) for n in range(10)]
    assert admits(new_admission(*jobs), NOW + 1.0, cost_s=0.05)
    assert not admits(new_admission(*jobs), NOW + 1.0, cost_s=0.7)


def test_a_job_that_is_late_anyway_does_not_block_new_streams() -> None:
    late = (new_job(deadline_s=NOW - 0.1, caller="greedy"), 0.9)
    assert admits(new_admission(late, over_share=("greedy",)), NOW + 0.5, caller="polite")


def test_a_caller_over_its_share_does_not_block_one_within_its_share() -> None:
    jobs = [(new_job(deadline_s=NOW + 0.5, caller="greedy"), 0.3) for _ in range(5)]
    assert admits(new_admission(*jobs, over_share=("greedy",)), NOW + 1.0, caller="polite")
    assert not admits(new_admission(*jobs, over_share=("greedy",)), NOW + 1.0, caller="greedy")
    assert not admits(new_admission(*jobs), NOW + 1.0, caller="polite")


def test_a_stream_without_a_deadline_is_admitted_whatever_waits() -> None:
    assert admits(new_admission((new_job(deadline_s=NOW + 0.1), 9.0)), inf)


@given(st.lists(st.tuples(st.floats(0.0, 5.0) | st.just(inf), st.floats(0.001, 0.5), st.floats(0.0, 0.5)), max_size=20))
def test_needed_seconds_are_the_sum_over_jobs_that_have_not_run(jobs: list[tuple[float, float, float]]) -> None:
    admission = new_admission()
    needs = [(Job(VOCODER, next(numbers), "next", 100, NOW + due_s, later_s), s, later_s) for due_s, s, later_s in jobs]
    for job, seconds, later_s in needs:
        admission.job_queued(job, seconds, later_s)
    assert admission.needed_s == pytest.approx(sum(seconds + later_s for _, seconds, later_s in needs))
    for job, _, _ in needs:
        admission.job_started(job)
    assert admission.needed_s == pytest.approx(sum(later_s for *_, later_s in needs))
    for job, _, _ in needs:
        admission.job_ended(job)
    assert admission.needed_s == pytest.approx(0.0)
