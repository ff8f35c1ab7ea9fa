"""The benchmark of decisions repeats the same ones, always among the same number of waiting jobs."""

import random

import pytest

from benchmarks.decisions import DEVICES, POLICIES, SteadyLoad, measure, summary


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("device", DEVICES)
def test_every_round_makes_the_same_decisions(device: str, policy: str) -> None:
    rounds = [[rows for _, rows in measure(DEVICES[device].scheduler(policy, 200), 200, 60)] for _ in range(2)]
    assert rounds[0] == rounds[1]
    assert max(rounds[0]) <= DEVICES[device].max_rows


def test_the_queue_keeps_its_length() -> None:
    load = SteadyLoad(DEVICES["an H200"].scheduler("deadline", 300), random.Random(1))
    load.add(300)
    for _ in range(50):
        batch = load.scheduler.next_batch(load.now)
        assert batch is not None
        load.finish(batch)
        assert sum(map(len, load.scheduler.queues)) == 300


def test_best_ignores_the_interruption_of_one_round() -> None:
    result = summary([[(0.001, 2), (0.5, 4)], [(0.5, 2), (0.002, 4)]])
    assert result["p99"] == 500.0
    assert result["best p99"] == 2.0
    assert result["rows"] == 3.0
