"""Which streams are accepted: an EDF feasibility test that counts every job once."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batching.fakes import VOCODER, new_job, new_scheduler, numbers
from tutti.admission.control import MARGIN, OWN_COSTS, Accepted, AdmissionControl, Ahead, NewStream
from tutti.admission.fair_share import DEPRIORITISED_S, FEW_STREAMS, FairShare
from tutti.admission.feasibility import OWN_UTILISATION, UTILISATION
from tutti.admission.refusals import Refusals
from tutti.batching.job import PRIORITIES, Job
from tutti.errors import QueueFull

NOW = 100.0


def shares_with(over_share: Collection[str]) -> FairShare:
    """These callers are over their share at any time of the test."""
    shares = FairShare()
    for caller in over_share:
        shares.deprioritise(caller, NOW)
    return shares


def new_admission(*jobs: tuple[Job, float], over_share: Collection[str] = ()) -> AdmissionControl[Job]:
    """Admission control with these jobs, each with its device seconds."""
    shares = shares_with(over_share)
    admission: AdmissionControl[Job] = AdmissionControl(100, shares, Refusals())
    for job, seconds in jobs:
        shares.opened(job.stream, job.caller)
        admission.job_queued(job, seconds, 0.0)
    return admission


def admits(admission: AdmissionControl[Job], deadline_s: float, cost_s: float = 0.01, caller: str = "") -> bool:
    return accepted(admission, deadline_s, cost_s, caller) is not None


def accepted(
    admission: AdmissionControl[Job],
    deadline_s: float,
    cost_s: float = 0.01,
    caller: str = "",
    max_start_s: float = 0.0,
) -> Accepted | None:
    """How a stream is accepted; none if it is refused."""
    try:
        return admission.judge(NewStream("", caller, deadline_s, cost_s, max_start_s, inf), Ahead(NOW, NOW))
    except QueueFull:
        return None


def starts_late(answer: Accepted | None) -> bool | None:
    """None if it was refused."""
    return answer.starts_late if answer else None


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
    assert not admits(new_admission(*jobs), NOW + 1.0, caller="greedy")


def full(*callers: str) -> AdmissionControl[Job]:
    """No further stream of 0.3 s could start without making others late."""
    return new_admission(
        *[(new_job(deadline_s=NOW + 0.5 + 0.1 * n, caller=name), 0.1) for n, name in enumerate(callers)]
    )


def test_who_has_no_stream_is_not_kept_out_by_one_with_many() -> None:
    admission = full(*["busy"] * 10)
    assert not admits(admission, NOW + 1.0, 0.3, "busy")
    answer = accepted(admission, NOW + 1.0, 0.3, "polite")
    assert answer is not None
    assert answer.deprioritised == "busy", "its streams rank behind for a moment"


def test_a_caller_is_deprioritised_for_a_moment() -> None:
    shares = shares_with(["busy"])
    assert shares.over(NOW + 0.9 * DEPRIORITISED_S) == {"busy"}
    assert shares.over(NOW + 1.1 * DEPRIORITISED_S) == set()


def test_a_verdict_changes_nothing() -> None:
    admission = full(*["busy"] * 10)
    answers = [accepted(admission, NOW + 1.0, 0.3, caller) for caller in ("polite", "other", "polite")]
    assert len(set(answers)) == 1
    assert admission._shares.over(NOW) == set()


def test_who_has_no_stream_does_not_start_late_for_one_with_many() -> None:
    assert starts_late(accepted(full(*["busy"] * 10), NOW + 1.0, 0.3, "polite", max_start_s=10.0)) is False
    assert starts_late(accepted(full(*["busy"] * 10), NOW + 1.0, 0.3, "busy", max_start_s=10.0)) is True


def test_who_has_a_stream_makes_nobody_else_late() -> None:
    assert not admits(full(*["busy"] * 9, "polite"), NOW + 1.0, 0.3, "polite")


def test_callers_with_few_streams_each_need_not_make_room() -> None:
    assert not admits(full(*"aaaaaabbbbbb"), NOW + 1.0, 0.3, "polite")
    few = [(new_job(deadline_s=NOW + 0.5, caller="a"), 3.0 / FEW_STREAMS) for _ in range(FEW_STREAMS)]
    assert not admits(new_admission(*few), NOW + 1.0, 0.3, "polite")


@given(
    jobs=st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(1e-3, 0.5)), max_size=20),
    target_s=st.floats(0.01, 2.0),
    max_start_s=st.floats(0.0, 20.0),
)
def test_patience_accepts_more_streams_and_says_when_they_start(
    jobs: list[tuple[float, float]], target_s: float, max_start_s: float
) -> None:
    admission = new_admission(*[(new_job(deadline_s=NOW + due_s), seconds) for due_s, seconds in jobs])
    strict = accepted(admission, NOW + target_s)
    patient = accepted(admission, NOW + target_s, max_start_s=max_start_s)
    if strict:
        assert patient is not None
        assert patient == Accepted(NOW + target_s)
    elif patient:
        assert patient.starts_late
        assert NOW + target_s <= patient.deadline_s <= NOW + max_start_s
        assert NOW + sum(seconds for _, seconds in jobs) <= patient.deadline_s, "all that waits can run before it"


def test_a_stream_that_starts_late_harms_none_in_time() -> None:
    in_time = [(new_job(deadline_s=NOW + 1.0 + 0.1 * n), 0.05) for n in range(10)]
    answer = accepted(new_admission(*in_time), NOW + 0.5, cost_s=3.0, max_start_s=10.0)
    assert starts_late(answer), "with its own deadline it would run before all of them"


def test_a_stream_in_time_does_not_delay_one_that_started_late() -> None:
    admission = new_admission((new_job(deadline_s=NOW + 0.5), 0.8))
    late = accepted(admission, NOW + 1.0, max_start_s=10.0)
    assert late is not None
    assert late.starts_late
    admission.job_queued(replace(new_job(deadline_s=late.deadline_s), starts_late=True, starts_stream=True), 0.1, 0.0)
    second = accepted(admission, NOW + 1.2, cost_s=0.3, max_start_s=10.0)
    assert second is not None
    assert second.deadline_s > late.deadline_s, "it is served after the one before it"
    assert not admits(admission, NOW + 1.2, cost_s=0.3), "and without being late it is refused"


def test_further_chunks_of_a_late_stream_come_before_new_streams_even_when_they_are_late() -> None:
    follower = new_job(deadline_s=NOW - 1.0)
    follower.starts_late = True
    assert starts_late(accepted(new_admission((follower, 0.5)), NOW + 1.0, max_start_s=10.0))


def test_late_streams_of_a_caller_over_its_share_do_not_delay_others() -> None:
    admission = new_admission(over_share=("greedy",))
    late = new_job(deadline_s=NOW + 20.0, priority="first", caller="greedy")
    late.starts_stream = late.starts_late = True
    admission.job_queued(late, 5.0, 0.0)
    assert starts_late(accepted(admission, NOW + 1.0, caller="polite", max_start_s=10.0)) is False


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


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.0, 20.0), st.floats(0.0, 20.0)), max_size=40))
def test_the_callers_over_their_share_are_those_of_which_it_is_true(charges: list[tuple[str, float, float]]) -> None:
    share, now = FairShare(), 0.0
    for caller, seconds, waited_s in charges:
        now += waited_s
        share.charge(caller, seconds, now)
        for later_s in (0.0, 5.0, 40.0):
            assert share.over(now + later_s) == {name for name in "abcdef" if share.is_over(name, now + later_s)}


@dataclass
class Plain:
    """The same verdict from a list of jobs, one by one and from the start every time."""

    over: set[str]  # callers over their share
    dominant: str
    jobs: dict[Job, tuple[float, float]] = field(default_factory=dict)  # device seconds of this stage, of later ones
    running: list[Job] = field(default_factory=list)

    def needs(self) -> list[tuple[Job, float, float]]:
        """When each job but bulk is due, and the device seconds that it still needs."""
        return [
            (job, job.deadline_s, later_s) if job in self.running else (job, job.due_s, stage_s + later_s)
            for job, (stage_s, later_s) in self.jobs.items()
            if job.priority != "bulk" and (later_s or job not in self.running)
        ]

    def needed_s(self) -> float:
        return sum(later_s + stage_s * (job not in self.running) for job, (stage_s, later_s) in self.jobs.items())

    def late_s(self, new: NewStream, over_share: set[str], deadline_s: float, latest_s: float, *, late: bool) -> float:
        """By how many seconds the worst deadline is missed."""
        if new.is_bulk:
            return NOW + new.cost_s + self.needed_s() - latest_s
        needs, over = self.needs(), new.caller in over_share
        ranks = [((job.starts_late or job.caller in over_share, due_s), job, s) for job, due_s, s in needs]
        own_rank = late or over, deadline_s
        ahead = [need for need in ranks if need[0] <= own_rank]
        behind = sorted(
            (need for need in ranks if need[0] > own_rank), key=lambda need: (need[0], need[1].caller in over_share)
        )
        taken_s = new.cost_s + MARGIN * sum(seconds for *_, seconds in ahead)
        # What goes on with streams that started late runs before one that starts late, whenever it is due.
        passed_s = MARGIN * sum(seconds for _, job, seconds in behind if job.catches_up) if own_rank[0] else 0.0
        worst_s = taken_s + passed_s - OWN_UTILISATION * (latest_s - NOW)
        for (is_late, due_s), job, seconds in behind:
            taken_s += MARGIN * seconds
            is_late_anyway = due_s < NOW and (own_rank[0] or not is_late)
            if not is_late_anyway and (job.caller in over_share) <= over:
                share = max(UTILISATION, 1 / len({job.stream for job, *_ in needs}))
                share = max(share, OWN_UTILISATION) if is_late else share
                worst_s = max(worst_s, taken_s - share * (due_s - NOW))
        return worst_s

    def judge(self, new: NewStream) -> Accepted | None:
        most_s = NOW + OWN_COSTS * new.cost_s
        latest_s = max(new.deadline_s, most_s)
        if self.late_s(new, self.over, new.deadline_s, latest_s, late=False) <= 0.0:
            return Accepted(new.deadline_s)
        waits = any(job.caller == new.caller for job, *_ in self.needs())
        if not waits and not new.is_bulk and new.caller not in {self.dominant, *self.over}:
            over, soon_s = self.over | {self.dominant}, max(latest_s, NOW + new.max_start_s)
            if self.late_s(new, over, new.deadline_s, soon_s, late=False) <= 0.0:
                return Accepted(max(new.deadline_s, NOW + OWN_COSTS * new.cost_s), deprioritised=self.dominant)
        if new.is_bulk or NOW + new.max_start_s <= new.deadline_s:
            return None
        wait_s = new.cost_s + MARGIN * sum(seconds for *_, seconds in self.needs())
        deadline_s = min(max(NOW + wait_s / OWN_UTILISATION + 1e-6, new.deadline_s), NOW + new.max_start_s)
        late = self.late_s(new, self.over, deadline_s, max(deadline_s, NOW), late=True) <= 0.0
        return Accepted(deadline_s, starts_late=True) if late else None


@given(seed=st.integers(), most=st.sampled_from([5, 20, 150]), max_start_s=st.sampled_from([0.0, 2.0, 10.0]))
@settings(max_examples=25)
def test_the_verdict_is_that_of_a_plain_computation(seed: int, most: int, max_start_s: float) -> None:
    """While up to `most` jobs come and run and leave, and their deadlines move."""
    rng, shares, over = Random(seed), shares_with({"greedy", "hog"}), {"greedy", "hog"}
    for n in range(FEW_STREAMS + 1):
        shares.opened(n, "busy")  # has most streams all the time
    admission: AdmissionControl[Job] = AdmissionControl(500, shares, Refusals())
    plain, waiting = Plain(over, "busy"), list[Job]()

    def due() -> float:
        return NOW + (rng.choice([-0.5, 0.2, 0.5, 1.0, 2.0]) if rng.random() < 0.5 else rng.uniform(-1.0, 10.0))

    def caller_of(stream: int) -> str:
        return ("anna", "ben", "greedy", "hog", "busy")[stream % 5]

    def queue() -> None:
        stream, priority = rng.randrange(most), rng.choice(PRIORITIES)
        stage_s, later_s = rng.uniform(0.0, 2.0 / most), rng.choice([0.0, 1.0 / most])
        job = Job(VOCODER, stream, priority, 100, due(), later_s, caller_of(stream))
        job.starts_late, job.starts_stream = rng.random() < 0.3, rng.random() < 0.5
        waiting.append(job)
        plain.jobs[job] = stage_s, later_s
        admission.job_queued(job, stage_s, later_s)

    n_steps = 3 * most
    for n in range(2 * n_steps):
        jobs = waiting if rng.random() < 0.7 else plain.running
        if not jobs or rng.random() < (0.5 if n < n_steps else 0.1):
            queue()
        elif rng.random() < 0.3:
            job = rng.choice(jobs)
            job.deadline_s = due()
            admission.deadline_moved(job)
        elif (job := rng.choice(jobs)) in waiting and rng.random() < 0.5:
            waiting.remove(job)
            plain.running.append(job)
            admission.job_started(job)
        else:
            for of in (waiting, plain.running):
                if job in of:
                    of.remove(job)
            del plain.jobs[job]
            admission.job_ended(job)
        if n % 3 == 0:
            priority, caller = rng.choice(PRIORITIES), caller_of(rng.randrange(most))
            new = NewStream("", caller, due(), rng.uniform(0.0, 0.2), max_start_s, inf, is_bulk=priority == "bulk")
            try:
                answer: Accepted | None = admission.judge(new, Ahead(NOW, NOW))
            except QueueFull:
                answer = None
            expected = plain.judge(new)
            assert answer == (expected and expected._replace(deadline_s=pytest.approx(expected.deadline_s)))


def test_a_deadline_that_moves_back_makes_room_for_a_stream() -> None:
    scheduler = new_scheduler()
    jobs = [new_job(deadline_s=0.3) for _ in range(60)]
    for job in jobs:
        scheduler.add(job, 0.0)
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(deadline_s=0.2, priority="first"), 0.0)
    for job in jobs:
        scheduler.move_deadline(job, 30.0, 0.0)
    scheduler.admit(new_job(deadline_s=0.2, priority="first"), 0.0)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("aaaabc"), st.booleans()), max_size=80))
def test_the_dominant_caller_has_most_of_the_open_streams(events: list[tuple[int, str, bool]]) -> None:
    streams, callers = FairShare(), dict[int, str]()
    for stream, caller, opens in events:
        if opens and stream not in callers:
            streams.opened(stream, caller)
            callers[stream] = caller
        elif not opens:
            streams.ended(stream)
            callers.pop(stream, None)
        if (dominant := streams.dominant_caller) is not None:
            n = list(callers.values()).count(dominant)
            assert n > FEW_STREAMS
            assert 2 * n > len(callers)


def test_a_caller_with_most_streams_is_dominant_until_enough_of_them_have_ended() -> None:
    streams = FairShare()
    for n in range(FEW_STREAMS + 1):
        assert streams.dominant_caller is None
        streams.opened(n, "busy")
    assert streams.dominant_caller == "busy"
    streams.ended(0)
    assert streams.dominant_caller is None
