"""Padding: every row runs exactly once, in a shape that exists and holds it, with bounded waste."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tutti.model.buckets import FRAMES, ON_CPU, PLANS, TOKENS, Ladder, Shapes

LADDERS = st.sampled_from([TOKENS.ladder, FRAMES.ladder, Ladder(32, 64), Ladder(1, 1)])
LENGTHS = st.lists(st.integers(1, 1024), max_size=200)


@given(LADDERS, st.integers(1, 5000))
def test_a_shape_holds_its_row_and_is_its_own_shape(ladder: Ladder, length: int) -> None:
    fit = ladder.fit(length)
    assert fit >= length
    assert ladder.fit(fit) == fit
    assert fit <= max(ladder.step, length + ladder.step, length * (1 + 2 * ladder.step / ladder.linear_to))


@given(LADDERS, st.integers(1, 2000))
def test_all_lengths_are_listed(ladder: Ladder, longest: int) -> None:
    lengths = ladder.up_to(longest)
    assert lengths == sorted(set(lengths))
    assert {ladder.fit(length) for length in range(1, longest + 1)} == set(lengths)


@given(LENGTHS, LADDERS, st.integers(100, 20_000))
def test_every_row_is_in_exactly_one_group_that_holds_it(lengths: list[int], ladder: Ladder, cap: int) -> None:
    groups = replace(FRAMES, ladder=ladder).group(lengths, cap)
    assert sorted(i for group in groups for i in group.members) == list(range(len(lengths)))
    for group in groups:
        assert len(group.members) <= group.n_rows
        assert group.length == ladder.fit(max(lengths[i] for i in group.members))
        assert group.padded <= cap or group.n_rows == 1


@given(LENGTHS, st.integers(2_000, 40_000), st.sampled_from(["full", "reduced"]))
def test_only_captured_shapes_are_used_unless_a_row_is_too_long(lengths: list[int], cap: int, mode: str) -> None:
    plan = PLANS[mode]
    for shapes in (plan.tokens, plan.curves, plan.frames):
        captured = set(shapes.captured_shapes(cap))
        short = [length for length in lengths if length <= shapes.longest]
        assert {(group.n_rows, group.length) for group in shapes.group(short, cap)} <= captured


@given(st.lists(st.integers(1, 400), min_size=1, max_size=7))
def test_no_other_grouping_of_the_sorted_rows_is_cheaper(lengths: list[int]) -> None:
    shapes = Shapes((1, 2, 4), Ladder(16, 64), 0, per_group=90, per_step=1)
    ordered = sorted(lengths)

    def cost(rows: list[int]) -> float:
        fitting = [n for n in shapes.rows if n >= len(rows)]
        return shapes.cost(fitting[0], shapes.ladder.fit(rows[-1])) if fitting else float("inf")

    cuts = [cut for n in range(len(ordered)) for cut in combinations(range(1, len(ordered)), n)]
    cheapest = min(
        sum(cost(ordered[a:b]) for a, b in zip((0, *cut), (*cut, len(ordered)), strict=True)) for cut in cuts
    )
    assert sum(shapes.cost(group.n_rows, group.length) for group in shapes.group(lengths, 10_000)) == cheapest


@given(st.lists(st.integers(40, 600), min_size=16, max_size=128))
def test_on_a_processor_a_long_row_does_not_pad_the_short_ones(lengths: list[int]) -> None:
    padded = sum(group.padded for group in ON_CPU.group(lengths, 100_000))
    # A quarter at most, and what one more group would have cost.
    assert padded <= 1.25 * sum(lengths) + 1000


def test_equal_rows_stay_together() -> None:
    (group,) = FRAMES.group([200] * 64, 100_000)
    assert (group.n_rows, group.length) == (64, 256)


def test_two_kinds_of_rows_are_two_groups_where_padding_costs() -> None:
    lengths = [40, 600] * 16
    short, long = ON_CPU.group(lengths, 100_000)
    assert {lengths[i] for i in short.members} == {40}
    assert {lengths[i] for i in long.members} == {600}


def test_no_rows_make_no_groups() -> None:
    assert FRAMES.group([], 1000) == []
