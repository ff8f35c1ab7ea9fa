"""Core assignment: every row once, within memory, and never slower than one row after the other."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.model.onnx.core_assignment import MAX_PARALLEL_FRAMES, SPEEDUP, assign_cores

SIZES = st.lists(st.integers(1, 2000), max_size=8)
CORES = st.integers(1, 16)


def total_time(groups: list[list[int]], sizes: list[int], n_cores: int) -> float:
    """Time in frames of a row alone: groups one after the other, each row on the core that is free first."""
    end = 0.0
    for group in groups:
        if len(group) == 1:
            end += sizes[group[0]]
            continue
        free = [0.0] * n_cores
        for row in group:
            free.sort()
            free[0] += sizes[row] * n_cores**SPEEDUP
        end += max(free)
    return end


@given(SIZES, CORES)
def test_every_row_runs_once_and_in_parallel_only_within_the_memory_limit(sizes: list[int], n_cores: int) -> None:
    groups = assign_cores(sizes, n_cores)
    assert sorted(row for group in groups for row in group) == [*range(len(sizes))]
    assert all(len(group) == 1 or sum(sizes[row] for row in group) <= MAX_PARALLEL_FRAMES for group in groups)


@given(SIZES, CORES)
def test_parallel_rows_are_never_slower_than_one_after_the_other(sizes: list[int], n_cores: int) -> None:
    assert total_time(assign_cores(sizes, n_cores), sizes, n_cores) <= sum(sizes) + 1e-9


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([90, 90], [[0, 1]]),
        ([90, 80, 85], [[0], [2, 1]]),  # one too many for two cores
        ([90, 80, 85, 80], [[0, 2, 1, 3]]),
        ([40, 240, 40], [[1], [0, 2]]),  # one much longer than the others
        ([100, 200, 100], [[1, 0, 2]]),  # as long as the two others
        ([300, 300], [[0], [1]]),  # too much memory
    ],
    ids=str,
)
def test_two_cores_are_kept_busy(sizes: list[int], groups: list[list[int]]) -> None:
    assert assign_cores(sizes, 2) == groups


@given(st.lists(st.integers(1, MAX_PARALLEL_FRAMES // 4), min_size=4, max_size=4))
def test_on_two_cores_no_other_plan_is_much_faster(sizes: list[int]) -> None:
    """Compared with all orders, and all ways to cut them into groups."""
    cuts = [[n for n in range(1, 4) if bits >> n & 1] for bits in range(0, 16, 2)]
    best = min(
        total_time([list(order[a:b]) for a, b in zip([0, *cut], [*cut, 4], strict=True)], sizes, 2)
        for order in permutations(range(4))
        for cut in cuts
    )
    assert total_time(assign_cores(sizes, 2), sizes, 2) <= best * 7 / 6 + 1e-9
