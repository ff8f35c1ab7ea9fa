"""Pauses, given phonemes, and manners of speaking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk
from tutti.text.clean import OBJECT, clean
from tutti.text.marks import Passage, bare, parse, voices_named


def passages(text: str) -> list[Passage]:
    return parse(AlignedText.of(text))


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
    assert passages(text) == [Passage(AlignedText.of(text))]


def read(text: str) -> list[Chunk]:
    return list(chunks(text, "en-us", Spelling().pronounce))


def test_a_manner_lasts_until_its_end_or_the_next() -> None:
    text = "a [rate:1.5]b [rate:80%]c[/rate] d [pitch:+2]e [pitch:-3.5st]f[/pitch] g"
    assert [(chunk.phonemes, chunk.manner.rate, chunk.manner.pitch) for chunk in read(text)] == [
        ("a", 1.0, 0.0),
        ("b", 1.5, 0.0),
        ("c", 0.8, 0.0),
        ("d", 1.0, 0.0),
        ("e", 1.0, 2.0),
        ("f", 1.0, -3.5),
        ("ɡ", 1.0, 0.0),
    ]


def test_a_voice_reads_in_its_own_language_unless_told() -> None:
    text = "a [voice:bf_emma]b [lang:it]c [voice:am_adam]d[/voice] e [voice:fable]f"
    assert [(chunk.phonemes, chunk.manner.voice, chunk.manner.language) for chunk in read(text)] == [
        ("a", None, None),
        ("b", "bf_emma", "en-gb"),
        ("c", "bf_emma", "it"),
        ("d", "am_adam", "en-us"),
        ("e", None, None),
        ("f", "fable", None),
    ]


def test_punctuation_behind_a_mark_belongs_to_the_words_before_it() -> None:
    first, second, third = passages("Say [rate:2]it[/rate]! Now.")
    assert [passage.spoken.text for passage in (first, second, third)] == ["Say ", "it!", " Now."]


def test_a_paragraph_that_ends_at_a_mark_pauses() -> None:
    text = "[voice:af_sky]One.\n\n[voice:am_adam]Two.\n[voice:af_sky]Three.\n\n"
    assert [chunk.pause_s > 0 for chunk in read(text)] == [True, False, False]


@pytest.mark.parametrize(
    "mark",
    [
        "[rate:0.1]",
        "[rate:5]",
        "[rate:fast]",
        "[rate:]",
        "[rate:nan]",
        "[pitch:13]",
        "[pitch:x]",
        "[pitch:]",
        "[voice: ]",
    ],
)
def test_a_wrong_manner_names_the_field_and_the_cure(mark: str) -> None:
    with pytest.raises(InvalidInput, match=r"such as \[") as error:
        passages(f"One. {mark} Two.")
    assert error.value.param == "input"


MARKS = ["[rate:1.2]", "[/rate]", "[pitch:-2]", "[/pitch]", "[voice:am_adam]", "[/voice]", "[lang:en-gb]", "[/lang]"]
WORDS = ["alpha", "beta.", "gamma,", "[delta](/a/)", "[pause:1s]", "\n\n"]


@given(st.lists(st.sampled_from(MARKS + WORDS), max_size=30))
def test_marks_lose_no_word_and_no_place(pieces: list[str]) -> None:
    text = " ".join(pieces)
    said = [text[slice(*word.span)] for chunk in read(text) for word in chunk.words]
    assert said == [piece for piece in pieces if piece[0].isalpha() or piece.startswith("[delta")]


def test_the_voices_of_a_text_are_known_before_it_is_read() -> None:
    text = "[voice: af_sky ]a [VOICE:x+y]b <voice xml:lang='en' name=\"am_adam\">c</voice> [voice:]"
    assert list(voices_named(text)) == ["af_sky", "x+y", "am_adam"]


@pytest.mark.parametrize(
    ("written", "seen"),
    [("[read](/ɹˈɛd/)", "read"), ("world[/rate]!", "world!"), ("&amp;", "&"), ("[1]", "[1]"), ("R&D", "R&D")],
)
def test_a_reader_sees_no_marks(written: str, seen: str) -> None:
    assert bare(written) == seen
