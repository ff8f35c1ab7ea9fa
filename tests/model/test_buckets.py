"""Laws of padding: every row runs exactly once, in a shape that holds it and that exists, at a bounded waste."""

from hypothesis import given
from hypothesis import strategies as st

from tutti.model.buckets import FRAMES, ROWS, TOKENS, Ladder, groups, shapes

LADDERS = st.sampled_from([TOKENS, FRAMES, Ladder(32, 128), Ladder(1, 1)])
LENGTHS = st.lists(st.integers(1, 1024), max_size=200)


@given(LADDERS, st.integers(1, 5000))
def test_a_shape_holds_its_row_and_is_its_own_shape(ladder: Ladder, length: int) -> None:
    fit = ladder.fit(length)
    assert fit >= length
    assert ladder.fit(fit) == fit
    assert fit <= max(ladder.step, length + ladder.step, length * (1 + 2 * ladder.step / ladder.fine))


@given(LADDERS, st.integers(1, 2000))
def test_all_shapes_are_listed(ladder: Ladder, longest: int) -> None:
    lengths = ladder.upto(longest)
    assert lengths == sorted(set(lengths))
    assert {ladder.fit(length) for length in range(1, longest + 1)} == set(lengths)


@given(LENGTHS, LADDERS, st.integers(100, 20_000))
def test_every_row_is_in_exactly_one_group_that_holds_it(lengths: list[int], ladder: Ladder, cap: int) -> None:
    found = groups(lengths, ladder, cap)
    assert sorted(i for group in found for i in group.members) == list(range(len(lengths)))
    for group in found:
        assert len(group.members) <= group.n_rows
        assert group.length == ladder.fit(max(lengths[i] for i in group.members))
        assert group.padded <= cap or group.n_rows == 1


@given(LENGTHS, st.integers(2_000, 20_000))
def test_only_listed_shapes_occur(lengths: list[int], cap: int) -> None:
    rows = (1, 4, 16)
    known = set(shapes(FRAMES, 1024, cap, rows))
    assert {(group.n_rows, group.length) for group in groups(lengths, FRAMES, cap, rows)} <= known


@given(st.lists(st.integers(40, 600), min_size=16, max_size=128))
def test_a_long_row_does_not_pad_the_short_ones(lengths: list[int]) -> None:
    padded = sum(group.padded for group in groups(lengths, FRAMES, 100_000))
    # A quarter at most, and what one more group would have cost.
    assert padded <= 1.25 * sum(lengths) + 1000


def test_equal_rows_stay_together() -> None:
    (group,) = groups([200] * 64, FRAMES, 100_000)
    assert (group.n_rows, group.length) == (64, 208)


def test_two_kinds_of_rows_are_two_groups() -> None:
    lengths = [40, 600] * 16
    short, long = groups(lengths, FRAMES, 100_000)
    assert {lengths[i] for i in short.members} == {40}
    assert {lengths[i] for i in long.members} == {600}


def test_no_rows_make_no_groups() -> None:
    assert groups([], FRAMES, 1000) == []
    assert len(ROWS) == len(set(ROWS))
