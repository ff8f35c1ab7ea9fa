"""Listeners on two cores, on a virtual clock: the same engine as on a real one, without waiting."""

import logging
from collections.abc import Iterator

import pytest

from benchmarks.virtual import on_two_cores, playing


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_eight_listeners_who_start_at_once_hear_no_gap(seed: int) -> None:
    """With seed 5 one starts late, and is due again before those in time, who have seconds."""
    ((_, n_asked, n_refused, n_unserved, heard, *_, with_gaps, _),) = on_two_cores(playing(8), seed)
    assert int(n_asked) > 8
    assert (n_refused, n_unserved, heard, with_gaps) == ("0", "0", "100.0", "0")
