"""The last seconds are summed and ranked as if one had kept everything and counted anew."""

from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.percentile import percentile
from tutti.server.dashboard import MAX_VALUES, Spread, Sums

FACTS = st.lists(
    st.tuples(st.floats(0, 3), st.sampled_from(["rows", "padded"]), st.integers(0, 1000)), min_size=1, max_size=60
)


@given(FACTS, st.floats(0.5, 5), st.floats(0, 10))
def test_sums_are_those_of_the_window_and_nothing_before_it(
    facts: list[tuple[float, str, int]], over_s: float, later_s: float
) -> None:
    sums, kept, now = Sums(over_s), [], 100.0
    for step_s, name, amount in facts:
        now += step_s
        sums.add(now, name, amount)
        kept.append((now, name, amount))
    now += later_s
    sums.forget(now)
    window = [(name, amount) for at_s, name, amount in kept if at_s >= now - over_s]
    for name in ("rows", "padded"):
        assert sums[name] == sum(amount for other, amount in window if other == name)
    rows, padded = sums["rows"], sums["padded"]
    assert sums.ratio("rows", "padded") == (rows / padded if padded else None)


def test_no_rounding_error_outlives_the_window() -> None:
    sums = Sums(1.0)
    for i in range(1000):
        sums.add(float(i), "audio", 0.1 * i)
        sums.forget(float(i))
    sums.forget(2000.0)
    assert sums["audio"] == 0.0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.sampled_from([50, 95, 99]))
def test_at_least_so_many_do_not_pass_a_percentile_and_it_is_the_smallest_such(values: list[float], p: int) -> None:
    ordered = sorted(values)
    found = percentile(ordered, p)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= p / 100 * len(ordered)
    assert sum(value < found for value in ordered) < p / 100 * len(ordered)


def test_many_values_are_ranked_by_the_newest() -> None:
    spread = Spread(10.0)
    for i in range(3 * MAX_VALUES):
        spread.add(100.0 + i / MAX_VALUES, float(i))
    ordered = spread.values()
    assert ordered == [float(i) for i in range(2 * MAX_VALUES, 3 * MAX_VALUES)]
    assert percentile(ordered, 95) == pytest.approx(quantiles(ordered, n=100)[94], rel=0.01)


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile([], 99) is None
