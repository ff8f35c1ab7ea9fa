"""The time left does not swing: the end that is predicted moves little from passage to passage, and proves true."""

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tutti.audiobook.time_left import FIRST_S, TimeLeft, spoken_duration

Progress = Sequence[tuple[float, int]]  # seconds since the start, and characters done
# A run of `tutti read` on two cores that nine other processes used.
RECORDED = json.loads((Path(__file__).parent / "recorded_progress.json").read_text())


def uneven(seed: int, pace_after: float = 1.0) -> Progress:
    """Ten hours in passages of which some take several times as long as others; later at another pace."""
    chance = random.Random(seed)
    at, done, rows = 0.0, 0, [(0.0, 0)]
    while at < 36_000:
        n = chance.randint(400, 1000)
        at += n / 20 * chance.lognormvariate(0, 0.5) * (pace_after if at > 9000 else 1.0)
        done += n
        rows.append((at, done))
    return rows


def ends(rows: Progress) -> list[tuple[float, float]]:
    """When something was predicted, and which end."""
    estimate = TimeLeft()
    found = ((at, estimate.update(at, done, rows[-1][1])) for at, done in rows)
    return [(at, end) for at, end in found if end is not None]


RUNS = [pytest.param([(at, n) for at, n, _ in RECORDED], id="recorded"), *(uneven(seed) for seed in range(20))]


@pytest.mark.parametrize("rows", RUNS)
def test_it_does_not_swing(rows: Progress) -> None:
    predicted = ends(rows)
    assert len(predicted) > len(rows) / 2
    for (at, end), (later, after) in pairwise(predicted):
        assert abs(after - end) <= 0.1 * (end - at) + (later - at)
    settled = [end for at, end in predicted if at > 0.2 * rows[-1][0]]
    assert max(settled) < 1.35 * min(settled)


@pytest.mark.parametrize("rows", RUNS)
def test_it_proves_true(rows: Progress) -> None:
    last = rows[-1][0]
    few_passages_s = 12 * last / len(rows)
    for at, end in ends(rows):
        if at > 0.3 * last:
            assert end - at == pytest.approx(last - at, rel=0.3, abs=few_passages_s)


@pytest.mark.parametrize("pace", [0.4, 3.0])
def test_it_follows_another_pace(pace: float) -> None:
    rows = uneven(1, pace)
    last = rows[-1][0]
    (late,) = [end for at, end in ends(rows) if at > 0.7 * last][:1]
    assert late == pytest.approx(last, rel=0.15)


def test_it_says_nothing_before_something_is_known() -> None:
    estimate = TimeLeft()
    assert [estimate.update(at, n, 9000) for at, n in ((0, 4000), (1, 4500), (2, 5000), (3, 5500))] == [None] * 4
    end = estimate.update(FIRST_S, 6000, 9000)
    assert end is not None
    assert end == pytest.approx(FIRST_S + FIRST_S / 2000 * 3000, rel=0.1)  # what was done before this run counts not


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, "less than a minute"),
        (89, "1 min"),
        (3000, "50 min"),
        (5000, "1 h 20 min"),
        (7100, "2 h"),
        (180_500, "50 h"),
    ],
)
def test_it_is_said_no_more_precisely_than_it_is_known(seconds: float, text: str) -> None:
    assert spoken_duration(seconds) == text
