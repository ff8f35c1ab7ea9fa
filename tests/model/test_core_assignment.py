"""Rows on cores: all of them once, within memory, and never later than one after the other."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.model.onnx.core_assignment import MAX_FRAMES, SPEEDUP, laid_out

SIZES = st.lists(st.integers(1, 2000), max_size=8)
LANES = st.integers(1, 16)


def takes(groups: list[list[int]], sizes: list[int], lanes: int) -> float:
    """Frames of a lone row until the last is done: groups in turn, each row in whichever lane is free first."""
    end = 0.0
    for group in groups:
        if len(group) == 1:
            end += sizes[group[0]]
            continue
        free = [0.0] * lanes
        for place in group:
            free.sort()
            free[0] += sizes[place] * lanes**SPEEDUP
        end += max(free)
    return end


@given(SIZES, LANES)
def test_every_row_sounds_once_and_side_by_side_only_while_memory_allows(sizes: list[int], lanes: int) -> None:
    groups = laid_out(sizes, lanes)
    assert sorted(place for group in groups for place in group) == [*range(len(sizes))]
    assert all(len(group) == 1 or sum(sizes[place] for place in group) <= MAX_FRAMES for group in groups)


@given(SIZES, LANES)
def test_side_by_side_is_never_later_than_in_turn(sizes: list[int], lanes: int) -> None:
    assert takes(laid_out(sizes, lanes), sizes, lanes) <= sum(sizes) + 1e-9


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([90, 90], [[0, 1]]),
        ([90, 80, 85], [[0], [2, 1]]),  # one too many for two lanes
        ([90, 80, 85, 80], [[0, 2, 1, 3]]),
        ([40, 240, 40], [[1], [0, 2]]),  # one that the others would wait for
        ([100, 200, 100], [[1, 0, 2]]),  # as long as the two others
        ([300, 300], [[0], [1]]),  # too much memory
    ],
    ids=str,
)
def test_two_cores_are_kept_busy(sizes: list[int], groups: list[list[int]]) -> None:
    assert laid_out(sizes, 2) == groups


@given(st.lists(st.integers(1, MAX_FRAMES // 4), min_size=4, max_size=4))
def test_on_two_cores_nothing_else_ends_much_sooner(sizes: list[int]) -> None:
    """Of all orders, and all ways to cut them into groups."""
    cuts = [[n for n in range(1, 4) if bits >> n & 1] for bits in range(0, 16, 2)]
    best = min(
        takes([list(order[a:b]) for a, b in zip([0, *at], [*at, 4], strict=True)], sizes, 2)
        for order in permutations(range(4))
        for at in cuts
    )
    assert takes(laid_out(sizes, 2), sizes, 2) <= best * 7 / 6 + 1e-9
