"""Marks: pauses, given IPA, voice, language, rate and pitch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling, word_styles
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text.aligned_text import PLACEHOLDER, AlignedText
from tutti.text.chunk import Chunk, InlineStyle
from tutti.text.clean import clean
from tutti.text.marks import StyledText, check_marks, marks_as_text, parse_marks, strip_marks, voices_named
from tutti.text.options import TextOptions


def styled_texts(text: str) -> list[StyledText]:
    return parse_marks(AlignedText.of(text))


@given(st.text("ab []()/:.\n", max_size=40))
def test_text_without_marks_is_one_styled_text(text: str) -> None:
    result = styled_texts(text)
    if PLACEHOLDER not in "".join(styled.aligned.text for styled in result):
        assert [styled.aligned.text for styled in result] == ([text] if text.strip() else [])


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
def test_a_pause_ends_a_styled_text(mark: str, pause_s: float) -> None:
    first, second = styled_texts(f"One. {mark} Two.")
    assert (first.aligned.text, first.pause_s) == ("One. ", pause_s)
    assert (second.aligned.text, second.pause_s) == (" Two.", 0.0)
    assert second.aligned.source() == (5 + len(mark), 10 + len(mark))


@pytest.mark.parametrize(
    "mark", ["[pause:0s]", "[pause:61s]", "[pause:-1s]", "[pause:1]", "[pause:]", "[pause:nans]", "[pause:60001ms]"]
)
def test_a_wrong_pause_is_an_error_with_the_field_and_an_example(mark: str) -> None:
    with pytest.raises(InvalidInput, match=r"\[pause:1\.5s\]") as error:
        styled_texts(f"One. {mark}")
    assert error.value.param == "input"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("index [voice:nope] is", "index (voice:nope] is"),
        (
            "[rate:fast] [pitch:2] [volume:1] [lang:xx] [/voice] [/rate]",
            "(rate:fast] (pitch:2] (volume:1] (lang:xx] (/voice] (/rate]",
        ),
        ("a [pause:1.5s] [PAUSE: 2 s ] b", "a [pause:1.5s] [PAUSE: 2 s ] b"),
        ("a [pause:long] b", "a (pause:long] b"),
        ("[read](/ɹˈɛd/) a[0] <b>", "[read](/ɹˈɛd/) a[0] <b>"),
    ],
)
def test_marks_as_text_begin_with_a_round_bracket(text: str, read: str) -> None:
    assert "".join(marks_as_text(text)) == read


@given(st.lists(st.sampled_from(["[voice:", "[rate:", "[pause:", "[/lang", "x", "1s", "]", "[", " "]), max_size=12))
def test_marks_as_text_keep_the_length_and_cause_no_error(parts: list[str]) -> None:
    text = "".join(parts)
    read = "".join(marks_as_text(text))
    assert len(read) == len(text)
    assert not voices_named(read)
    check_marks(read)


def test_a_long_text_is_replaced_in_parts_that_split_no_mark() -> None:
    text = "a [rate:fast] b [pause:1.5s] " * 10_000
    parts = list(marks_as_text(text))
    assert 10 < len(parts) < 20
    assert "".join(parts) == text.replace("[rate", "(rate")


def test_pauses_alone_are_styled_texts_without_words() -> None:
    assert [(p.aligned.text, p.pause_s) for p in styled_texts("[pause:1s][pause:2s]")] == [("", 1.0), ("", 2.0)]


def test_a_word_with_ipa_is_one_placeholder_with_the_source_of_its_mark() -> None:
    text = "I [read](/ɹˈɛd/) it, [you](/ju/) too."
    (styled,) = styled_texts(text)
    assert styled.aligned.text == f"I {PLACEHOLDER} it, {PLACEHOLDER} too."
    assert styled.aligned.source(2, 3) == (2, 16)
    assert styled.ipa_overrides == {2: "ɹˈɛd", 21: "ju"}


def test_tildes_are_decomposed_and_cedillas_are_not() -> None:
    (styled,) = parse_marks(clean("[x](/bɔ̃ ã ç/)").aligned)
    assert styled.ipa_overrides == {0: "bɔ\u0303 a\u0303 ç"}


def test_other_brackets_stay_text() -> None:
    text = "[a] (b) [c](d) [pausing:1s] [e] (/f/)"
    assert styled_texts(text) == [StyledText(AlignedText.of(text))]


def read(text: str) -> list[Chunk]:
    return list(chunks(text, "en-us", Spelling().pronounce))


def test_rate_and_pitch_last_until_their_end_or_the_next_mark() -> None:
    text = "a [rate:1.5]b [rate:80%]c[/rate] d [pitch:+2]e [pitch:-3.5st]f[/pitch] g"
    assert [(word, style.rate, style.pitch) for word, style in word_styles(read(text))] == [
        ("a", 1.0, 0.0),
        ("b", 1.5, 0.0),
        ("c", 0.8, 0.0),
        ("d", 1.0, 0.0),
        ("e", 1.0, 2.0),
        ("f", 1.0, -3.5),
        ("ɡ", 1.0, 0.0),
    ]


def test_a_voice_speaks_its_own_language_unless_a_mark_changes_it() -> None:
    text = "a [voice:bf_emma]b [lang:it]c [voice:am_adam]d[/voice] e [voice:fable]f"
    assert [(chunk.phonemes, chunk.inline_style.voice, chunk.inline_style.language) for chunk in read(text)] == [
        ("a", None, None),
        ("b", "bf_emma", "en-gb"),
        ("c", "bf_emma", "it"),
        ("d", "am_adam", "en-us"),
        ("e", None, None),
        ("f", "fable", None),
    ]


def test_punctuation_behind_a_mark_belongs_to_the_words_before_it() -> None:
    first, second, third = styled_texts("Say [voice:am_adam]it[/voice]! Now.")
    assert [styled.aligned.text for styled in (first, second, third)] == ["Say ", "it!", " Now."]


def test_marks_of_words_do_not_end_a_sentence_and_join_no_words() -> None:
    (chunk,) = read("Say [rate:0.5]it[/rate],[pitch:2]now[volume:2]or [emphasis:strong]never[/emphasis].")
    assert chunk.phonemes == "say it now or never."
    rates = [(style.rate, style.pitch, style.volume, style.emphasis) for _, style in word_styles([chunk])]
    assert rates == [
        (1.0, 0.0, 1.0, None),
        (0.5, 0.0, 1.0, None),
        (1.0, 2.0, 1.0, None),
        (1.0, 2.0, 2.0, None),
        (1.0, 2.0, 2.0, "strong"),
    ]
    assert read("我[rate:0.5]很[/rate]好")[0].words == read("我很好")[0].words


def test_what_all_words_of_a_sentence_have_is_the_style_of_its_row() -> None:
    slow, high = read("[rate:0.5][pitch:1]one [pitch:2]two.[pause:1s] [/rate]three.")
    assert (slow.inline_style, high.inline_style) == (InlineStyle(rate=0.5), InlineStyle(pitch=2.0))
    assert [word.style and word.style.pitch for word in (*slow.words, *high.words)] == [1.0, 2.0, None]


def test_without_words_asked_for_their_styles_stay() -> None:
    (chunk,) = chunks("so [rate:0.5]slow", "en-us", Spelling().pronounce, options=TextOptions(with_words=False))
    assert [style.rate for _, style in word_styles([chunk])] == [1.0, 0.5]


def test_there_is_a_pause_after_a_paragraph_that_ends_at_a_mark() -> None:
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
        "[emphasis:heavy]",
    ],
)
def test_a_wrong_mark_is_an_error_with_the_field_and_an_example(mark: str) -> None:
    with pytest.raises(InvalidInput, match=r"such as \[") as error:
        styled_texts(f"One. {mark} Two.")
    assert error.value.param == "input"


MARKS = [
    "[rate:1.2]",
    "[emphasis:reduced]",
    "[/rate]",
    "[pitch:-2]",
    "[/pitch]",
    "[voice:am_adam]",
    "[/voice]",
    "[lang:en-gb]",
    "[/lang]",
]
WORDS = ["alpha", "beta.", "gamma,", "[delta](/a/)", "[pause:1s]", "\n\n"]


@given(st.lists(st.sampled_from(MARKS + WORDS), max_size=30))
def test_with_marks_no_word_and_no_source_is_lost(pieces: list[str]) -> None:
    text = " ".join(pieces)
    spoken_words = [text[slice(*word.source)] for chunk in read(text) for word in chunk.words]
    assert spoken_words == [piece for piece in pieces if piece[0].isalpha() or piece.startswith("[delta")]


def test_voices_named_finds_marks_and_ssml_tags() -> None:
    text = "[voice: af_sky ]a [VOICE:x+y]b <voice xml:lang='en' name=\"am_adam\">c</voice> [voice:]"
    assert list(voices_named(text)) == ["af_sky", "x+y", "am_adam"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [("[read](/ɹˈɛd/)", "read"), ("world[/rate]!", "world!"), ("&amp;", "&"), ("[1]", "[1]"), ("R&D", "R&D")],
)
def test_strip_marks_leaves_what_captions_show(written: str, shown: str) -> None:
    assert strip_marks(written) == shown


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [('one <break time="1s"/> two', 1.0), ("one <break time='300ms' /> two", 0.3), ("one <break/> two", 0.5),
     ('one <break strength="strong"/> two', 1.0), ('one <break time="900s"/> two', 60.0)],
)  # fmt: skip
def test_a_break_tag_in_plain_text_is_a_pause(text: str, pause_s: float) -> None:
    result = list(chunks(text, "en-us", Spelling().pronounce))
    assert [(chunk.phonemes, chunk.pause_s) for chunk in result] == [("one", pause_s), ("two", 0.0)]


def test_a_volume_mark_holds_until_its_end() -> None:
    assert [style.volume for _, style in word_styles(read("a [volume:50%]b[/volume] c"))] == [1.0, 0.5, 1.0]
    with pytest.raises(InvalidInput):
        parse_marks(AlignedText.of("[volume:9]a"))
