"""Which streams are accepted: an EDF feasibility test that counts every job once."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batching.fakes import VOCODER, new_job, numbers
from tutti.batching.admission import AdmissionControl
from tutti.batching.job import Job
from tutti.errors import QueueFull

NOW = 100.0


def new_admission(
    *jobs: tuple[Job, float], over_share: tuple[str, ...] = (), max_waiting: int = 100
) -> AdmissionControl:
    """Admission control with these jobs, each with its device seconds."""
    admission = AdmissionControl(100, lambda caller, now: caller in over_share)
    for job, seconds in jobs:
        admission.job_queued(job, seconds, 0.0)
    return admission


def admits(admission: AdmissionControl, deadline_s: float, cost_s: float = 0.01, caller: str = "") -> bool:
    return admitted(admission, deadline_s, cost_s, caller) is not None


def admitted(
    admission: AdmissionControl, deadline_s: float, cost_s: float = 0.01, caller: str = "", max_start_s: float = 0.0
) -> Job | None:
    """The first job of a stream that is accepted and queued; none if it is refused."""
    job = new_job(deadline_s=deadline_s, priority="first", caller=caller)
    job.starts_stream = True
    try:
        admission.admit(job, cost_s, max_start_s, NOW, NOW)
    except QueueFull:
        return None
    return job


def starts_late(job: Job | None) -> bool | None:
    """None if it was refused."""
    return job.starts_late if job else None


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


@given(
    jobs=st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(1e-3, 0.5)), max_size=20),
    target_s=st.floats(0.01, 2.0),
    max_start_s=st.floats(0.0, 20.0),
)
def test_patience_accepts_more_streams_and_says_when_they_start(
    jobs: list[tuple[float, float]], target_s: float, max_start_s: float
) -> None:
    admission = new_admission(*[(new_job(deadline_s=NOW + due_s), seconds) for due_s, seconds in jobs])
    strict = admitted(admission, NOW + target_s)
    patient = admitted(admission, NOW + target_s, max_start_s=max_start_s)
    if strict:
        assert patient is not None
        assert (patient.starts_late, patient.deadline_s) == (False, NOW + target_s)
    elif patient:
        assert patient.starts_late
        assert NOW + target_s <= patient.deadline_s <= NOW + max_start_s
        assert NOW + sum(seconds for _, seconds in jobs) <= patient.deadline_s, "all that waits can run before it"


def test_a_stream_that_starts_late_harms_none_in_time() -> None:
    in_time = [(new_job(deadline_s=NOW + 1.0 + 0.1 * n), 0.05) for n in range(10)]
    job = admitted(new_admission(*in_time), NOW + 0.5, cost_s=3.0, max_start_s=10.0)
    assert starts_late(job), "with its own deadline it would run before all of them"


def test_a_stream_in_time_does_not_delay_one_that_started_late() -> None:
    admission = new_admission((new_job(deadline_s=NOW + 0.5), 0.8))
    late = admitted(admission, NOW + 1.0, max_start_s=10.0)
    assert late is not None
    assert late.starts_late
    admission.job_queued(late, 0.1, 0.0)
    second = admitted(admission, NOW + 1.2, cost_s=0.3, max_start_s=10.0)
    assert second is not None
    assert second.deadline_s > late.deadline_s, "it is served after the one before it"
    assert not admits(admission, NOW + 1.2, cost_s=0.3), "and without being late it is refused"


def test_further_chunks_of_a_late_stream_come_before_new_streams_even_when_they_are_late() -> None:
    follower = new_job(deadline_s=NOW - 1.0)
    follower.starts_late = True
    assert starts_late(admitted(new_admission((follower, 0.5)), NOW + 1.0, max_start_s=10.0))


def test_late_streams_of_a_caller_over_its_share_do_not_delay_others() -> None:
    admission = new_admission(over_share=("greedy",))
    late = new_job(deadline_s=NOW + 20.0, priority="first", caller="greedy")
    late.starts_stream = late.starts_late = True
    admission.job_queued(late, 5.0, 0.0)
    job = admitted(admission, NOW + 1.0, caller="polite", max_start_s=10.0)
    assert starts_late(job) is False


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
