"""Sources survive every way of rewriting."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tutti.text.aligned_text import AlignedText

texts = st.text(alphabet="ab1 .", max_size=40)


@given(texts, st.integers(0, 50))
def test_text_is_its_own_original(text: str, offset: int) -> None:
    aligned = AlignedText.of(text, offset)
    assert aligned.text == text
    assert all(aligned.source(i, i + 1) == (offset + i, offset + i + 1) for i in range(len(text)))


@given(texts)
def test_slices_and_sums_are_like_those_of_strings(text: str) -> None:
    aligned, half = AlignedText.of(text), len(text) // 2
    assert aligned[:half] + aligned[half:] == aligned
    assert aligned.strip().text == text.strip()


@given(texts)
def test_sub_gives_the_text_of_re_sub_and_the_source_of_the_match(text: str) -> None:
    pattern = re.compile(r"\d+|a(?=b)")
    aligned = AlignedText.of(text).sub(pattern, "number")
    assert aligned.text == pattern.sub("number", text)
    sources = [match.span() for match in pattern.finditer(text)]
    assert {aligned.source(m.start(), m.end()) for m in re.finditer("number", aligned.text)} == set(sources)


def test_a_function_may_leave_a_match_alone() -> None:
    aligned = AlignedText.of("1 2 3").sub(re.compile(r"\d"), lambda match: "two" if match[0] == "2" else None)
    assert aligned.text == "1 two 3"
    assert aligned.source(2, 5) == (2, 3)


def test_groups_can_be_replaced_separately() -> None:
    aligned = AlignedText.of("in Jan 5.").sub(
        re.compile(r"(?P<month>Jan) (?P<day>\d)"), lambda match: {"day": "fifth", "month": "January"}
    )
    assert aligned.text == "in January fifth."
    assert aligned.source(3, 10) == (3, 6)
    assert aligned.source(11, 16) == (7, 8)


def test_keep_group_keeps_the_sources_of_the_group() -> None:
    aligned = AlignedText.of("a [b](c) d").keep_group(re.compile(r"\[(?P<text>.)\]\(.\)"), "text")
    assert aligned.text == "a b d"
    assert aligned.source(2, 3) == (3, 4)


def test_ranges_and_tuples_of_offsets_are_equal() -> None:
    assert AlignedText.of("abc") == AlignedText("abc", (0, 1, 2), (1, 2, 3))
    assert hash(AlignedText.of("abc")) == hash(AlignedText("abc", (0, 1, 2), (1, 2, 3)))
    assert AlignedText.of("abc") != AlignedText.of("abc", 1)
