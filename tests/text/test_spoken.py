"""Ties to the original survive every way of rewriting."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tutti.text.aligned_text import AlignedText

texts = st.text(alphabet="ab1 .", max_size=40)


@given(texts, st.integers(0, 50))
def test_text_is_its_own_original(text: str, offset: int) -> None:
    spoken = AlignedText.of(text, offset)
    assert spoken.text == text
    assert all(spoken.span(i, i + 1) == (offset + i, offset + i + 1) for i in range(len(text)))


@given(texts)
def test_slices_and_sums_are_those_of_the_text(text: str) -> None:
    spoken, half = AlignedText.of(text), len(text) // 2
    assert spoken[:half] + spoken[half:] == spoken
    assert spoken.strip().text == text.strip()


@given(texts)
def test_sub_says_what_re_sub_says_and_points_at_the_match(text: str) -> None:
    pattern = re.compile(r"\d+|a(?=b)")
    spoken = AlignedText.of(text).sub(pattern, "number")
    assert spoken.text == pattern.sub("number", text)
    spans = [match.span() for match in pattern.finditer(text)]
    assert {spoken.span(m.start(), m.end()) for m in re.finditer("number", spoken.text)} == set(spans)


def test_a_function_may_leave_a_match_alone() -> None:
    spoken = AlignedText.of("1 2 3").sub(re.compile(r"\d"), lambda match: "two" if match[0] == "2" else None)
    assert spoken.text == "1 two 3"
    assert spoken.span(2, 5) == (2, 3)


def test_groups_are_replaced_on_their_own() -> None:
    spoken = AlignedText.of("in Jan 5.").sub(
        re.compile(r"(?P<month>Jan) (?P<day>\d)"), lambda match: {"day": "fifth", "month": "January"}
    )
    assert spoken.text == "in January fifth."
    assert spoken.span(3, 10) == (3, 6)
    assert spoken.span(11, 16) == (7, 8)


def test_keep_leaves_the_ties_of_the_group() -> None:
    spoken = AlignedText.of("a [b](c) d").keep(re.compile(r"\[(?P<text>.)\]\(.\)"), "text")
    assert spoken.text == "a b d"
    assert spoken.span(2, 3) == (3, 4)


def test_equal_however_the_ties_are_kept() -> None:
    assert AlignedText.of("abc") == AlignedText("abc", (0, 1, 2), (1, 2, 3))
    assert hash(AlignedText.of("abc")) == hash(AlignedText("abc", (0, 1, 2), (1, 2, 3)))
    assert AlignedText.of("abc") != AlignedText.of("abc", 1)


def test_split_gives_the_pieces_between() -> None:
    pieces = list(AlignedText.of("a,b").split(re.compile(",")))
    assert [piece.text for piece in pieces] == ["a", "b"]
    assert pieces[1].span() == (2, 3)
