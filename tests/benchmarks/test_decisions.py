"""What the benchmark of decisions may claim: the same ones each time, and always among as many who wait."""

import random

import pytest

from benchmarks.decisions import DEVICES, POLICIES, Line, summed_up, thoughts


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("device", DEVICES)
def test_a_round_can_be_held_again(device: str, policy: str) -> None:
    rounds = [[rows for _, rows in thoughts(DEVICES[device].scheduler(policy, 200), 200, 60)] for _ in range(2)]
    assert rounds[0] == rounds[1]
    assert max(rounds[0]) <= DEVICES[device].max_rows


def test_the_line_stays_as_long_as_it_was() -> None:
    line = Line(DEVICES["an H200"].scheduler("deadline", 300), random.Random(1))
    line.grow(300)
    for _ in range(50):
        batch = line.scheduler.next_batch(line.now)
        assert batch is not None
        line.ran(batch)
        assert sum(map(len, line.scheduler.rooms)) == 300


def test_one_interruption_is_not_the_decisions_own() -> None:
    found = summed_up([[(0.001, 2), (0.5, 4)], [(0.5, 2), (0.002, 4)]])
    assert found["p99"] == 500.0
    assert found["best p99"] == 2.0
    assert found["rows"] == 3.0
