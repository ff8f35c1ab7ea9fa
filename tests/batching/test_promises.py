"""What admission control accepts starts within the time that it promised, on devices that are slower than speech, too.

Streams and whole answers, short and long, come at several times the capacity; on a virtual clock.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulate import Device, deadline
from tests.batching.fakes import new_job, new_scheduler
from tutti.admission.control import START_SHARE, Accepted, AdmissionControl, Ahead, NewStream
from tutti.admission.fair_share import FairShare
from tutti.admission.feasibility import NOTHING_REMAINS, Remaining
from tutti.admission.refusals import Refusals
from tutti.batching.job import Job, StageName
from tutti.batching.limits import Limits
from tutti.batching.scheduler import Scheduler
from tutti.errors import QueueFull
from tutti.plan.simulation import MODEL, SimulatedStream, Simulation

TIMEOUT_S = 60.0
LIVE, WHOLE = [1.4, 2.0, 2.9, 4.2, 5.0, 6.5, 6.6], [8.9, 10.8, 8.2]  # chunks of a text of half a minute
SHORT = ([1.5], [1.5, 2.5], [2.3], [1.5, 2.5, 3.2])
TWO_CORES = Device("two cores", 0.05, 0.45, 1.5, lanes=1, max_rows=4)
SLOWER_THAN_SPEECH = Device("a slow core", 0.2, 1.85, 1.5, lanes=1, max_rows=4)


@dataclass(frozen=True, slots=True)
class SlowedDevice(Device):
    """Becomes slower than it was when its costs were learned."""

    factor: float = 1.0

    def seconds(self, stage: StageName, sizes: Sequence[int]) -> float:
        return self.factor * Device.seconds(self, stage, sizes)


def traffic(rate: float, seconds: float, seed: int) -> list[SimulatedStream]:
    """Half of the requests are streams, half whole answers; three in eleven are long."""
    rng, at_s, streams = random.Random(seed), 0.0, []
    while at_s < seconds:
        at_s += rng.expovariate(rate)
        is_whole, is_long = rng.random() < 0.5, rng.random() < 3 / 11
        short = rng.choice(SHORT)
        chunks = (WHOLE if is_long else [sum(short)]) if is_whole else list(LIVE if is_long else short)
        stream = SimulatedStream(len(streams), at_s, chunks, is_whole=is_whole)
        if is_whole:
            stream.target_s, stream.max_start_s = 20.0, START_SHARE * TIMEOUT_S
        streams.append(stream)
    return streams


def accepted(device: Device, rate: float, seed: int, costs: Device | None = None) -> list[SimulatedStream]:
    """The accepted streams of five minutes; `costs`: the device as its costs were learned."""
    limits = Limits(device.max_rows, cap_s=0.4 * device.target_s, timeout_s=TIMEOUT_S)
    scheduler = Scheduler(limits, (costs or device).cost, deadline(device))
    streams = traffic(rate, 300.0, seed)
    Simulation(device, scheduler, ahead=3, is_paced=False).run(streams)
    return [stream for stream in streams if not stream.rejected]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", [1, 4, 8])
@pytest.mark.parametrize("device", [TWO_CORES, SLOWER_THAN_SPEECH], ids=lambda device: device.name)
def test_under_overload_what_is_accepted_is_served_before_its_client_gives_up(
    device: Device, load: float, seed: int
) -> None:
    streams = accepted(device, load / (device.per_audio_s * 10.0), seed)
    assert sum(stream.given_up for stream in streams) <= len(streams) / 20
    assert all(stream.wait_s <= TIMEOUT_S for stream in streams if not stream.given_up)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", [4, 8])
def test_at_the_speed_that_was_learned_no_accepted_stream_is_given_up(load: float, seed: int) -> None:
    streams = accepted(TWO_CORES, load / (TWO_CORES.per_audio_s * 10.0), seed)
    assert not any(stream.given_up for stream in streams)
    assert max(stream.wait_s for stream in streams) <= START_SHARE * TIMEOUT_S


@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_on_a_device_that_became_slower_nobody_waits_until_the_client_gives_up(factor: float) -> None:
    slow = SlowedDevice("slowed", 0.05, 0.45, 1.5, lanes=1, max_rows=4, factor=factor)
    streams = accepted(slow, 1.0, seed=1, costs=TWO_CORES)
    assert sum(stream.given_up for stream in streams) <= len(streams) / 4
    late = [stream for stream in streams if not stream.given_up and stream.wait_s > TIMEOUT_S]
    assert len(late) <= 1, "its batch was running"


def at_once(n: int, named_s: float) -> list[SimulatedStream]:
    """Clients that ask at the same moment and say after how many seconds they give up."""
    rng = random.Random(n)
    streams = [SimulatedStream(i, 0.0, [c for _ in range(rng.randint(1, 5)) for c in (1.5, 2.5)]) for i in range(n)]
    for stream in streams:
        stream.max_start_s = START_SHARE * named_s
    return streams


@pytest.mark.parametrize(
    ("device", "n"),
    [(TWO_CORES, 2), (TWO_CORES, 4), (TWO_CORES, 8), (TWO_CORES, 32), (SLOWER_THAN_SPEECH, 8)],
    ids=lambda value: getattr(value, "name", None),
)
def test_clients_that_wait_for_ten_minutes_are_all_served(device: Device, n: int) -> None:
    streams = at_once(n, 600.0)
    scheduler = Scheduler(
        Limits(device.max_rows, cap_s=0.4 * device.target_s, timeout_s=TIMEOUT_S), device.cost, deadline(device)
    )
    Simulation(device, scheduler, ahead=3, is_paced=False).run(streams)
    assert not any(stream.rejected or stream.given_up for stream in streams)
    assert max(stream.wait_s for stream in streams) <= START_SHARE * 600.0


def test_a_stream_that_plays_hears_none_of_those_that_wait_for_long() -> None:
    limits = Limits(TWO_CORES.max_rows, cap_s=0.4 * TWO_CORES.target_s, timeout_s=TIMEOUT_S)
    listener = SimulatedStream(100, 0.0, [1.5, 2.5, 3.5, *[5.0] * 8])
    waiting = at_once(8, 600.0)
    for stream in waiting:
        stream.arrived_s = 2.0
    Simulation(TWO_CORES, Scheduler(limits, TWO_CORES.cost, deadline(TWO_CORES)), ahead=3).run([listener, *waiting])
    assert not any(stream.rejected or stream.given_up for stream in waiting)
    assert listener.good(TWO_CORES.target_s)


@given(asked_s=st.none() | st.floats(0.0, 1e4), most_s=st.none() | st.floats(0.0, 1e4), sentence_s=st.floats(0.0, 1e3))
def test_no_client_leaves_before_the_time_that_it_is_made_to_wait(
    asked_s: float | None, most_s: float | None, sentence_s: float
) -> None:
    limits = Limits(max_start_s=most_s, timeout_s=TIMEOUT_S)
    start_s = limits.start_s(asked_s, sentence_s)
    assert start_s <= START_SHARE * limits.give_up_s(asked_s) * (1 + 1e-9)
    assert most_s is None or start_s <= most_s
    if asked_s is not None and most_s is None:
        assert start_s == asked_s, "its own word counts, not what is assumed of others"


def busy_admission() -> AdmissionControl[Job]:
    """New streams can only start late."""
    admission: AdmissionControl[Job] = AdmissionControl(100, FairShare(), Refusals())
    admission.job_queued(new_job(deadline_s=0.5), 2.0, 0.0)
    return admission


def accepts(admission: AdmissionControl[Job], remaining: Remaining = NOTHING_REMAINS) -> bool:
    try:
        return admission.judge(NewStream("", "", 0.3, 0.5, 10.0, inf, remaining=remaining), Ahead(0.0, 0.0)).starts_late
    except QueueFull:
        return False


@pytest.mark.parametrize(
    ("rest", "has_room"), [((0.0, 0.0), True), ((100.0, 0.9), False), ((100.0, 0.1), True), ((0.1, 0.9), True)]
)
def test_the_text_that_follows_counts_before_it_is_queued_at_the_pace_of_its_listener(
    rest: tuple[float, float], has_room: bool
) -> None:
    admission = busy_admission()
    admission.future.set(7, Remaining(*rest))
    assert accepts(admission) == has_room
    admission.future.set(7, NOTHING_REMAINS)
    assert accepts(admission), "the stream has ended"


def test_a_long_text_is_not_spoken_at_the_pace_of_many_short_ones() -> None:
    admission = busy_admission()
    admission.future.set(7, Remaining(100.0, 0.02))
    for stream in range(10, 30):
        admission.future.set(stream, Remaining(0.05, 0.04))
    assert accepts(admission), "in ten seconds the long text needs 0.2 s, and the short ones 1 s"


def test_the_last_chunk_of_a_stream_leaves_nothing_behind() -> None:
    scheduler = new_scheduler()
    future = scheduler._admission.future
    scheduler.add(replace(new_job(), remaining=scheduler.remaining_of_text(MODEL, 100_000)), 0.0)
    before_s = future.seconds(10.0)
    for _ in range(50):
        job = replace(new_job(), remaining=scheduler.remaining_of_text(MODEL, 0))
        scheduler.add(job, 0.0)
        scheduler.stream_ended(job.stream)
    assert future.seconds(10.0) == pytest.approx(before_s)


def n_patient(scheduler: Scheduler, now: float) -> int:
    """How many streams that wait for half a minute are accepted at once."""
    for n in range(500):
        job = replace(new_job(300, now + 0.2, "first"), max_start_s=30.0, starts_stream=True)
        try:
            scheduler.admit(job, now)
        except QueueFull:
            return n
        scheduler.add(job, now)
    return 500


def test_a_device_that_was_always_slower_than_its_first_costs_accepts_as_much_once_they_are_learned() -> None:
    learned, known = (
        new_scheduler(max_start_s=None, cost=(factor * 1e-3, 0.0, factor * 1e-4, 0.0)) for factor in (1, 8)
    )
    now = 0.0
    for scheduler in (learned, known):
        for size in [4000] * 4 + [100, 140, 180] * 10:
            scheduler.add(new_job(size), now)
            batch = scheduler.next_batch(now)
            assert batch is not None
            took_s = 8 * (1e-3 + 1e-4 * sum(batch.sizes))
            now += took_s
            scheduler.finished(batch, took_s, now)
    assert n_patient(learned, now) == pytest.approx(n_patient(known, now), rel=0.15)


def test_a_device_that_became_slower_accepts_less_before_its_costs_are_learned() -> None:
    admission = busy_admission()
    admission.slower = 4.0
    assert not accepts(admission)
    admission.slower = 1.0
    assert accepts(admission)


def test_a_stream_waits_at_most_for_its_share_of_the_timeout_however_slow_the_device_is() -> None:
    limits = Limits(cap_s=0.6, timeout_s=TIMEOUT_S)
    scheduler = Scheduler(limits, SLOWER_THAN_SPEECH.cost, deadline(SLOWER_THAN_SPEECH))
    assert 10 * scheduler.sentence_s(MODEL) > TIMEOUT_S
    assert limits.start_s(None, scheduler.sentence_s(MODEL)) == START_SHARE * TIMEOUT_S


def test_only_jobs_that_start_a_stream_are_hopeless_and_only_those_that_cannot_be_in_time() -> None:
    admission: AdmissionControl[Job] = AdmissionControl(100, FairShare(), Refusals())
    jobs = [new_job(deadline_s=deadline_s, priority="first") for deadline_s in (1.0, 2.0, 3.0, 4.0)]
    for job, give_up_s, starts in zip(jobs, (0.5, 1.5, 2.5, inf), (False, True, True, True), strict=True):
        job.give_up_s, job.starts_stream = give_up_s, starts
        admission.job_queued(job, 1.0, 0.0)
    assert admission.hopeless(0.0, 0.0) == [jobs[1]], "without it the third is in time"


@pytest.mark.parametrize("names_its_timeout", [True, False])
def test_who_says_how_long_it_waits_is_not_refused_because_less_waits_than_was_expected(
    names_its_timeout: bool,
) -> None:
    admission = busy_admission()
    earlier = replace(new_job(deadline_s=8.0, priority="first"), starts_late=True)
    admission.job_queued(earlier, 2.0, 0.0)  # accepted when more waited before it
    asked_s, long_text = 480.0 if names_its_timeout else None, Remaining(20.0, 0.5)  # which would delay the earlier one
    new = NewStream("", "", 0.3, 0.5, 480.0, inf, asked_s, remaining=long_text)
    if names_its_timeout:
        answer: Accepted = admission.judge(new, Ahead(0.0, 0.0))
        assert answer.starts_late
        assert answer.deadline_s >= earlier.deadline_s, "starts are in the order of arrival"
    else:
        with pytest.raises(QueueFull):
            admission.judge(new, Ahead(0.0, 0.0))
