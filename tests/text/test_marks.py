"""Pauses and given phonemes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import InvalidInput
from tutti.text.clean import OBJECT, clean
from tutti.text.marks import Passage, parse
from tutti.text.spoken import Spoken


def passages(text: str) -> list[Passage]:
    return parse(Spoken.of(text))


@given(st.text("ab []()/:.\n", max_size=40))
def test_text_without_marks_is_one_passage(text: str) -> None:
    found = passages(text)
    if OBJECT not in "".join(passage.spoken.text for passage in found):
        assert [passage.spoken.text for passage in found] == ([text] if text.strip() else [])


@pytest.mark.parametrize(
    ("mark", "pause_s"),
    [
        ("[pause:1.5s]", 1.5),
        ("[pause:300ms]", 0.3),
        ("[PAUSE: 2 s ]", 2.0),
        ("[pause:60s]", 60.0),
        ("[pause:.5s]", 0.5),
    ],
)
def test_a_pause_ends_a_passage(mark: str, pause_s: float) -> None:
    first, second = passages(f"One. {mark} Two.")
    assert (first.spoken.text, first.pause_s) == ("One. ", pause_s)
    assert (second.spoken.text, second.pause_s) == (" Two.", 0.0)
    assert second.spoken.span() == (5 + len(mark), 10 + len(mark))


@pytest.mark.parametrize(
    "mark", ["[pause:0s]", "[pause:61s]", "[pause:-1s]", "[pause:1]", "[pause:]", "[pause:nans]", "[pause:60001ms]"]
)
def test_a_wrong_pause_names_the_field_and_the_cure(mark: str) -> None:
    with pytest.raises(InvalidInput, match=r"\[pause:1\.5s\]") as error:
        passages(f"One. {mark}")
    assert error.value.param == "input"


def test_pauses_alone_are_passages_without_text() -> None:
    assert [(p.spoken.text, p.pause_s) for p in passages("[pause:1s][pause:2s]")] == [("", 1.0), ("", 2.0)]


def test_a_given_word_is_one_object_tied_to_the_whole_mark() -> None:
    text = "I [read](/ɹˈɛd/) it, [you](/ju/) too."
    (passage,) = passages(text)
    assert passage.spoken.text == f"I {OBJECT} it, {OBJECT} too."
    assert passage.spoken.span(2, 3) == (2, 16)
    assert passage.given == {2: "ɹˈɛd", 21: "ju"}


def test_given_tildes_stand_alone_and_cedillas_do_not() -> None:
    (passage,) = parse(clean("[x](/bɔ̃ ã ç/)").spoken)
    assert passage.given == {0: "bɔ\u0303 a\u0303 ç"}


def test_other_brackets_stay_text() -> None:
    text = "[a] (b) [c](d) [pausing:1s] [e] (/f/)"
    assert passages(text) == [Passage(Spoken.of(text))]
