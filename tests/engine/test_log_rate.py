"""The log under load."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.engine.log_rate import LogRate

log = logging.getLogger("tutti.test")


@given(st.lists(st.floats(0.0, 5.0), max_size=100), st.integers(1, 10))
def test_no_second_has_more_lines_than_allowed_and_a_quiet_one_has_all(times: list[float], per_s: int) -> None:
    now = 0.0
    rate = LogRate(log, "batch", per_s, lambda: now)
    passed: dict[int, int] = {}
    for now in sorted(times):
        passed[int(now)] = passed.get(int(now), 0) + rate.passes()
    for second, n in passed.items():
        assert n == min(per_s, sum(int(at) == second for at in times))


def test_it_says_how_many_lines_it_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = 7.0
    rate = LogRate(log, "batch", 2, lambda: now)
    with caplog.at_level(logging.INFO):
        assert [rate.passes() for _ in range(5)] == [True, True, False, False, False]
        now = 8.0
        assert rate.passes()
    assert "batch lines left out=3" in caplog.text
