"""The scheduler against queueing theory and under simulated traffic, on a virtual clock."""

import itertools
import random
from dataclasses import replace

import pytest

from benchmarks.simulate import AUDIO_S, DEVICES, Device, poisson, scheduler
from tutti.batching.cost import CostModel
from tutti.batching.job import Job, Key
from tutti.batching.policies import Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.plan.simulation import Padded, SimulatedStream, Simulation

GPU, SLOW_GPU, CPU = DEVICES


def deadline(device: Device) -> Policy:
    return Deadline(0.4 * device.target_s)


def simulated(device: Device, policy: Policy, streams: list[SimulatedStream], admission: bool = True) -> Simulation:
    simulation = Simulation(device, scheduler(device, policy), admission)
    simulation.run(streams)
    return simulation


def good_share(device: Device, streams: list[SimulatedStream]) -> float:
    return sum(stream.good(device.target_s) for stream in streams) / len(streams)


def p99(waits: list[float]) -> float:
    return sorted(waits)[int(0.99 * len(waits))]


def bulk_s(simulation: Simulation) -> float:
    """Device seconds of bulk rows."""
    return sum(
        batch.predicted_s
        * sum(job.size for job in batch.jobs if job.priority == "bulk")
        / sum(job.size for job in batch.jobs)
        for _, batch in simulation.batches
    )


# -- theory ------------------------------------------------------------------------------------------------------


def bound(rate: float, a: float, t0: float) -> float:
    """Upper bound of the mean latency when a batch takes all waiting jobs (Inoue, arXiv 1912.06322).

    Batches of b rows take H = a b + t0; arrivals are Poisson. B' = A + [A = 0], where A ~ Poisson(rate H) came during
    the last batch, so with p = P(A = 0)

        E[B]  = (rate t0 + p) / (1 - rate a)
        E[B²] = E[B] + rate² E[H²],  hence  E[B²] (1 - rate² a²) = E[B] (1 + 2 rate² a t0) + rate² t0².

    A job waits for the rest of the batch that runs, then for its own; over a cycle rate E[H²] / 2 + E[B H], so

        E[W] = (1 / (2 rate) + a) E[B²] / E[B] + t0 - 1 / (2 rate),

    which falls in E[B], the one unknown. E[B] is at least 1 and at least rate t0 / (1 - rate a) (p = 0): the greater of
    both gives the bound. With p = 0 it is 3/2 t0 / (1 - rate a) + a/2 (rate a + 2) / (1 - rate² a²).
    """
    mean = max(1.0, rate * t0 / (1 - rate * a))
    ratio = (1 + 2 * rate**2 * a * t0 + rate**2 * t0**2 / mean) / (1 - rate**2 * a**2)
    return (1 / (2 * rate) + a) * ratio + t0 - 1 / (2 * rate)


def test_the_bound_has_its_published_form() -> None:
    rate, a, t0 = 150.0, 0.005, 0.05
    published = 1.5 * t0 / (1 - rate * a) + a / 2 * (rate * a + 2) / (1 - rate**2 * a**2)
    assert bound(rate, a, t0) == pytest.approx(published)


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.02, 0.3, 0.6, 0.85])  # of 1 / a, where no batch is large enough
def test_mean_latency_agrees_with_theory(load: float) -> None:
    a, t0, n = 0.005, 0.05, 6_000
    rate, rng = load / a, random.Random(4)
    arrivals = list(itertools.accumulate(rng.expovariate(rate) for _ in range(n)))
    queue = Scheduler(Limits(max_rows=n, max_waiting=n), lambda key: CostModel(Padded(), (t0, a, 0.0, 0.0)), Fifo())
    now, total_s, came = 0.0, 0.0, 0
    while came < n or sum(queue.waiting().values()):
        if not sum(queue.waiting().values()):
            now = max(now, arrivals[came])
        while came < n and arrivals[came] <= now:
            queue.add(
                Job(Key("k", "vocoder"), came, "next", 1, arrivals[came], arrived_s=arrivals[came]), arrivals[came]
            )
            came += 1
        batch = queue.next_batch(now)
        assert batch is not None
        now += a * batch.n_rows + t0
        total_s += sum(now - job.arrived_s for job in batch.jobs)
        queue.finished(batch, a * batch.n_rows + t0, now)
    assert total_s / n == pytest.approx(bound(rate, a, t0), rel=0.1)
    assert total_s / n <= 1.02 * bound(rate, a, t0)


# -- traffic -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("device", "rate"), [(SLOW_GPU, 3.0), (CPU, 0.3)])
def test_deadline_serves_a_load_that_a_window_cannot(device: Device, rate: float) -> None:
    for policy, well in ((deadline(device), True), (Window(max_wait_s=0.05), False)):
        streams = poisson(rate, 250)
        simulated(device, policy, streams, admission=False)
        assert (good_share(device, streams) >= 0.99) == well


@pytest.mark.slow
@pytest.mark.parametrize(("device", "rate"), [(GPU, 90.0), (SLOW_GPU, 13.0), (CPU, 1.1)])
def test_at_twice_its_capacity_a_device_refuses_some_and_serves_the_rest_well(device: Device, rate: float) -> None:
    streams = poisson(rate, max(300, int(rate * 8)), seed=7)
    simulated(device, deadline(device), streams)
    accepted = [stream for stream in streams if not stream.rejected]
    assert len(accepted) < len(streams)
    assert good_share(device, accepted) >= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(("device", "rate", "n"), [(GPU, 100.0, 6000), (SLOW_GPU, 20.0, 4000)])
def test_a_caller_with_most_of_the_traffic_does_not_harm_the_others(device: Device, rate: float, n: int) -> None:
    """Nine tenths come from one caller: the others are accepted and wait about as long as without it."""

    def traffic(greedy: bool) -> list[SimulatedStream]:
        streams, rng = poisson(rate, n, seed=3), random.Random(5)
        for stream in streams:
            stream.caller = "greedy" if rng.random() < 0.9 else f"other {rng.randrange(9)}"
        return [stream for stream in streams if greedy or stream.caller != "greedy"]

    def waits(streams: list[SimulatedStream]) -> list[float]:  # of the others, once the shares of all callers are known
        others = [stream for stream in streams if stream.caller != "greedy" and stream.arrived_s > 20.0]
        assert not any(stream.rejected for stream in others)
        assert good_share(device, others) >= 0.98
        return [stream.wait_s for stream in others]

    alone, beside = traffic(False), traffic(True)
    for streams in (alone, beside):
        simulated(device, deadline(device), streams)
    assert sum(stream.rejected for stream in beside) > n / 3
    assert p99(waits(beside)) <= 1.2 * p99(waits(alone))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_a_device_with_little_load_refuses_no_request(device: Device) -> None:
    streams = poisson(0.05 / (device.per_audio_s * AUDIO_S), 500)
    simulated(device, deadline(device), streams)
    assert good_share(device, streams) >= 0.99


def test_short_and_long_texts_mixed_waste_little_and_delay_none() -> None:
    """1 s and 30 s: at most a quarter is padding, and a new request waits for a running batch and a cap, no longer."""
    device = replace(GPU, target_s=0.4)
    streams = poisson(40.0, 300, chunks=lambda rng: [rng.choice([1.0, 30.0])])
    simulation = simulated(device, deadline(device), streams, admission=False)
    batches = [batch for _, batch in simulation.batches]
    rows = [job.size for batch in batches for job in batch.jobs]
    assert max(batch.n_rows for batch in batches) > 2
    assert 1 - sum(rows) / sum(batch.padded for batch in batches) <= 0.25
    starts = {job: at for at, batch in simulation.batches for job in batch.jobs}
    longest_s = max(batch.predicted_s for batch in batches)
    assert longest_s <= 2 * 0.4 * device.target_s
    waits = [at - job.arrived_s for job, at in starts.items() if job.key.stage == "acoustic"]
    assert max(waits) <= longest_s + 0.4 * device.target_s


@pytest.mark.slow
def test_a_huge_bulk_job_makes_progress_and_harms_no_listener() -> None:
    listeners = poisson(12.0, 600)
    end_s = listeners[-1].arrived_s
    bulk = [SimulatedStream(10_000 + i, 0.0, [5.0] * 100_000, priority="bulk", caller="bulk") for i in range(20)]
    simulation = Simulation(GPU, scheduler(GPU, deadline(GPU)))
    simulation.run([*bulk, *listeners], until_s=end_s)
    ended = [stream for stream in listeners if stream.arrived_s < end_s - 20]
    late = [stream for stream in ended if stream.wait_s > GPU.target_s or stream.dry_s > 0]
    assert len(late) <= 0.01 * len(ended)
    assert bulk_s(simulation) >= 0.05 * end_s
    assert sum(stream.made for stream in bulk) > 100


@pytest.mark.slow
def test_bulk_keeps_its_share_beside_more_listeners_than_the_device_can_serve() -> None:
    listeners = poisson(90.0, 2700)
    end_s = listeners[-1].arrived_s
    bulk = SimulatedStream(10_000, 0.0, [5.0] * 100_000, priority="bulk", caller="bulk")
    simulation = Simulation(GPU, scheduler(GPU, deadline(GPU)))
    simulation.run([bulk, *listeners], until_s=end_s)
    assert bulk_s(simulation) >= 0.05 * end_s


def test_a_thousand_requests_at_once_are_all_accounted_for() -> None:
    streams = [SimulatedStream(i, i * 1e-4, [2.0]) for i in range(1000)]
    simulation = Simulation(GPU, scheduler(GPU, deadline(GPU), max_waiting=50))
    simulation.run(streams)
    accepted = [stream for stream in streams if not stream.rejected]
    assert all(stream.done_s < float("inf") for stream in accepted)
    assert 0 < len(accepted) < 1000
    assert simulation.most_waiting <= 50
    assert sum(simulation.scheduler.waiting().values()) == 0
