"""What a bystander's waits are compared with, and when a turn is over."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from benchmarks.bystander import BATCH, SETTLED_TIMES, SPOKEN_S, Waits, is_settled, judged

WAITS = Waits(alone=[0.15] * 99 + [9.0], ordinary=[0.4] * 50 + [0.7] * 50)


def turn(p99_ms: float, spoken_s: float = 0.0) -> dict[str, Any]:
    return {"route": "/v1/audio/speech", "p99_ms": p99_ms, "spoken_s": spoken_s}


def test_what_is_refused_is_compared_with_nobody_else() -> None:
    row = judged([turn(200.0)], WAITS)
    assert (row["against"], row["base_ms"], row["holds"]) == ("alone", 150.0, True)


def test_what_is_spoken_is_compared_with_an_ordinary_client() -> None:
    row = judged([turn(1000.0, spoken_s=2 * SPOKEN_S)], WAITS)
    assert (row["against"], row["base_ms"], row["holds"]) == ("ordinary", 700.0, True)


def test_many_texts_are_compared_with_as_many_ordinary_ones() -> None:
    waits = replace(WAITS, batch=[1.0])
    row = judged([turn(1400.0, spoken_s=2 * SPOKEN_S) | {"route": BATCH}], waits)
    assert (row["against"], row["base_ms"], row["holds"]) == ("batch", 1000.0, True)


@pytest.mark.parametrize(("p99_ms", "holds"), [(225.0, True), (226.0, False), (inf, False)])
def test_the_limit_is_half_as_much_again(p99_ms: float, holds: bool) -> None:
    assert judged([turn(p99_ms)], WAITS)["holds"] is holds


def test_what_nobody_hears_is_within_the_limit() -> None:
    assert judged([turn(55.0)], Waits(alone=[0.01] * 9, ordinary=[0.01]))["holds"]


def test_only_what_is_over_the_limit_twice_fails() -> None:
    assert judged([turn(500.0), turn(170.0)], WAITS)["holds"]
    assert not judged([turn(500.0), turn(400.0)], WAITS)["holds"]
    assert judged([turn(500.0), turn(400.0)], WAITS)["turns"] == 2


def test_a_turn_is_over_when_the_last_waits_are_as_short_as_alone() -> None:
    calm = [0.15] * SETTLED_TIMES
    assert is_settled([0.9, *calm], WAITS.alone)
    assert not is_settled(calm[1:], WAITS.alone)
    assert not is_settled([*calm, 0.9, 0.15], WAITS.alone)
