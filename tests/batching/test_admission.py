"""Which streams are accepted: an EDF feasibility test that counts every job once."""

from collections.abc import Collection
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batching.fakes import VOCODER, new_job, new_scheduler, numbers
from tutti.batching.admission import MARGIN, OWN_UTILISATION, ROOM_COSTS, UTILISATION, AdmissionControl
from tutti.batching.backlog import Demand
from tutti.batching.fairness import DEMOTED_S, FairShare
from tutti.batching.job import PRIORITIES, Job, Priority
from tutti.batching.open_streams import FEW_STREAMS, OpenStreams
from tutti.errors import QueueFull

NOW = 100.0


def shares_with(over_share: Collection[str]) -> FairShare:
    """These callers are over their share at any time of the test."""
    shares = FairShare()
    for caller in over_share:
        shares.demote(caller, NOW)
    return shares


def new_admission(*jobs: tuple[Job, float], over_share: Collection[str] = ()) -> AdmissionControl:
    """Admission control with these jobs, each with its device seconds."""
    admission = AdmissionControl(100, shares_with(over_share))
    for job, seconds in jobs:
        admission.streams.opened(job.stream, job.caller)
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
    assert not admits(new_admission(*jobs), NOW + 1.0, caller="greedy")


def full(*callers: str) -> AdmissionControl:
    """No further stream of 0.3 s could start without making others late."""
    return new_admission(
        *[(new_job(deadline_s=NOW + 0.5 + 0.1 * n, caller=name), 0.1) for n, name in enumerate(callers)]
    )


def test_who_has_no_stream_is_not_kept_out_by_one_with_many() -> None:
    admission = full(*["busy"] * 10)
    assert not admits(admission, NOW + 1.0, 0.3, "busy")
    assert admits(admission, NOW + 1.0, 0.3, "polite")
    assert admission._shares.over(NOW + 0.9 * DEMOTED_S) == {"busy"}, "its streams now rank behind"
    assert admission._shares.over(NOW + 1.1 * DEMOTED_S) == set()


def test_who_has_no_stream_does_not_start_late_for_one_with_many() -> None:
    assert starts_late(admitted(full(*["busy"] * 10), NOW + 1.0, 0.3, "polite", max_start_s=10.0)) is False
    assert starts_late(admitted(full(*["busy"] * 10), NOW + 1.0, 0.3, "busy", max_start_s=10.0)) is True


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


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.0, 20.0), st.floats(0.0, 20.0)), max_size=40))
def test_the_callers_over_their_share_are_those_of_which_it_is_true(charges: list[tuple[str, float, float]]) -> None:
    share, now = FairShare(), 0.0
    for caller, seconds, waited_s in charges:
        now += waited_s
        share.charge(caller, seconds, now)
        for later_s in (0.0, 5.0, 40.0):
            assert share.over(now + later_s) == {name for name in "abcdef" if share.is_over(name, now + later_s)}


class PlainAdmission(AdmissionControl):
    """The same test, job by job and from the start every time."""

    def _late_s(
        self, job: Job, demand: Demand, allowed_s: float, cost_s: float, start_s: float, now: float, delay_s: float
    ) -> float:
        latest_s = max(job.deadline_s, now + allowed_s) - delay_s
        if job.priority == "bulk":
            return start_s + cost_s + self.needed_s - latest_s
        over_share = self._shares.over(now)
        over = job.caller in over_share
        own_rank = over or job.starts_late, job.deadline_s
        waiting = [
            (other.starts_late or other.caller in over_share, due_s, other.caller in over_share, seconds)
            for other, due_s, seconds in self.jobs()
        ]
        taken_s = cost_s + MARGIN * sum(seconds for late, due_s, _, seconds in waiting if (late, due_s) <= own_rank)
        own_s = taken_s
        if own_rank[0]:  # what goes on with streams that started late runs before it, whenever it is due
            behind = [other for other in self.jobs() if self._rank(other[0], other[1], over_share) > own_rank]
            own_s += MARGIN * sum(seconds for other, _, seconds in behind if other.catches_up)
        worst_s = own_s - OWN_UTILISATION * (latest_s - start_s)
        utilisation = max(UTILISATION, 1 / max(1, len({other.stream for other, *_ in self.jobs()})))
        for late, due_s, is_over, seconds in sorted(waiting):
            if (late, due_s) <= own_rank:
                continue
            taken_s += MARGIN * seconds
            is_late_anyway = due_s < start_s and (own_rank[0] or not late)
            if not is_late_anyway and is_over <= over:
                share = max(utilisation, OWN_UTILISATION) if late else utilisation
                worst_s = max(worst_s, taken_s - share * (due_s - start_s))
        return worst_s

    def _rank(self, job: Job, due_s: float, over_share: Collection[str]) -> tuple[bool, float]:
        return job.starts_late or job.caller in over_share, due_s

    def _make_room(self, job: Job, *times_s: float) -> bool:
        before, crowding = self._shares, {"busy"}
        has_jobs = any(other.caller == job.caller for other, *_ in self.jobs())
        if has_jobs or job.caller in {"busy", *before.over(NOW)} or job.priority == "bulk":
            return False
        self._shares = shares_with(before.over(NOW) | crowding)
        is_feasible = self._late_s(job, self._demand(NOW), *times_s) <= 0.0
        if is_feasible:
            job.deadline_s = max(job.deadline_s, NOW + ROOM_COSTS * times_s[1])
        else:
            self._shares = before
        return is_feasible

    def jobs(self) -> list[tuple[Job, float, float]]:
        """When each job but bulk is due, and the device seconds that it needs."""
        waiting = [(job, job.deadline_s - job.later_s, sum(needs)) for job, needs in self._waiting.items()]
        running = [(job, job.deadline_s, later_s) for job, later_s in self._running.items()]
        return [(job, due_s, seconds) for job, due_s, seconds in [*waiting, *running] if job.priority != "bulk"]


def outcome(admission: AdmissionControl, job: Job, cost_s: float, max_start_s: float) -> tuple[float, ...]:
    """By how much it would be late now and as a late stream, whether it is accepted, and how."""
    late_s = []
    for starts_late in (True, False):
        job.starts_late = starts_late
        late_s.append(admission._late_s(job, admission._demand(NOW), 0.0, cost_s, NOW, NOW, 0.0))
    accepted = True
    try:
        admission.admit(job, cost_s, max_start_s, NOW, NOW)
    except QueueFull:
        accepted = False
    return *late_s, accepted, job.starts_late, job.deadline_s


@given(seed=st.integers(), most=st.sampled_from([5, 20, 150]), max_start_s=st.sampled_from([0.0, 2.0, 10.0]))
@settings(max_examples=25)
def test_the_verdict_is_that_of_a_plain_computation(seed: int, most: int, max_start_s: float) -> None:
    """While up to `most` jobs come and run and leave, and their deadlines move."""
    rng, shares = Random(seed), [shares_with({"greedy", "hog"}) for _ in range(2)]
    sides = AdmissionControl(500, shares[0]), PlainAdmission(500, shares[1])
    for n in range(FEW_STREAMS + 1):
        sides[0].streams.opened(n, "busy")  # has most streams all the time
    waiting: list[tuple[Job, Job]] = []
    running: list[tuple[Job, Job]] = []

    def pair(priority: Priority, *, starts_late: bool, later_s: float = 0.0) -> tuple[Job, Job]:
        """The same job for each side."""
        stream, due_s = rng.randrange(most), due()
        caller = ("anna", "ben", "greedy", "hog", "busy")[stream % 5]  # a stream has one caller
        jobs = [Job(VOCODER, stream, priority, 100, due_s, later_s, caller) for _ in sides]
        starts_stream = rng.random() < 0.5
        for job in jobs:
            job.starts_late, job.starts_stream = starts_late, starts_stream
        return jobs[0], jobs[1]

    def due() -> float:
        return NOW + (rng.choice([-0.5, 0.2, 0.5, 1.0, 2.0]) if rng.random() < 0.5 else rng.uniform(-1.0, 10.0))

    n_steps = 3 * most
    for n in range(2 * n_steps):
        grows = n < n_steps
        jobs = waiting if rng.random() < 0.7 else running
        if not jobs or rng.random() < (0.5 if grows else 0.1):
            stage_s, later_s = rng.uniform(0.0, 2.0 / most), rng.choice([0.0, 1.0 / most])
            waiting.append(pair(rng.choice(PRIORITIES), starts_late=rng.random() < 0.3, later_s=later_s))
            for side, job in zip(sides, waiting[-1], strict=True):
                side.job_queued(job, stage_s, later_s)
        elif rng.random() < 0.3:
            due_s = due()
            for side, job in zip(sides, rng.choice(jobs), strict=True):
                job.deadline_s = due_s
                side.deadline_moved(job)
        else:
            left = jobs.pop(rng.randrange(len(jobs)))
            starts = jobs is waiting and rng.random() < 0.5
            for side, job in zip(sides, left, strict=True):
                (side.job_started if starts else side.job_ended)(job)
            if starts:
                running.append(left)
        if n % 3 == 0:
            probes, cost_s = pair(rng.choice(PRIORITIES), starts_late=False), rng.uniform(0.0, 0.2)
            outcomes = [outcome(side, job, cost_s, max_start_s) for side, job in zip(sides, probes, strict=True)]
            assert outcomes[0] == pytest.approx(outcomes[1])


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
def test_who_crowds_has_most_of_the_open_streams(events: list[tuple[int, str, bool]]) -> None:
    streams, callers = OpenStreams(), dict[int, str]()
    for stream, caller, opens in events:
        if opens and stream not in callers:
            streams.opened(stream, caller)
            callers[stream] = caller
        elif not opens:
            streams.ended(stream)
            callers.pop(stream, None)
        if (crowding := streams.crowding()) is not None:
            n = list(callers.values()).count(crowding)
            assert n > FEW_STREAMS
            assert 2 * n > len(callers)


def test_a_caller_with_most_streams_crowds_until_enough_of_them_have_ended() -> None:
    streams = OpenStreams()
    for n in range(FEW_STREAMS + 1):
        assert streams.crowding() is None
        streams.opened(n, "busy")
    assert streams.crowding() == "busy"
    streams.ended(0)
    assert streams.crowding() is None
