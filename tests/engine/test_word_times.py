"""Word times: no gap inside a phrase, silence belongs to the pause, and nothing lies outside of the audio."""

from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.words import SpokenText, edges_by_silence
from tests.fakes import running
from tutti import Settings, open_engine
from tutti.engine.word_times import LAST_PHONEME, MODIFIERS, STRESS_MARKS, shift_time, word_times
from tutti.speech import LAG_FRAMES, SAMPLE_RATE, SAMPLES_PER_FRAME, Speech, WordTime
from tutti.text.chunk import Chunk, PhonemeWord
from tutti.text.visemes import VISEMES, visemes
from tutti.text.vocab import PUNCTUATION, SYMBOLS

FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE
AFTER = st.sampled_from([" ", ", ", ". ", "”. ", "— ", ""])


def timed(words: list[PhonemeWord], durations: list[int]) -> tuple[WordTime, ...]:
    return word_times("x" * 100, Chunk(tuple(words)), np.array(durations))


def phoneme_words(*triples: tuple[str, str, str]) -> list[PhonemeWord]:
    return [PhonemeWord(phonemes, (n, n + 1), before, after) for n, (before, phonemes, after) in enumerate(triples)]


@given(
    st.lists(st.tuples(st.sampled_from(["", "“", "("]), st.sampled_from(["a", "ˈba", "kwˈɪk"]), AFTER), min_size=1),
    st.data(),
)
def test_words_are_in_order_and_inside_of_the_audio(triples: list[tuple[str, str, str]], data: st.DataObject) -> None:
    words = phoneme_words(*triples)
    n_symbols = len(Chunk(tuple(words)).phonemes)
    durations = data.draw(st.lists(st.integers(1, 40), min_size=n_symbols + 2, max_size=n_symbols + 2))
    times = timed(words, durations)
    assert len(times) == len(words)
    assert all(0 <= time.start_s < time.end_s < sum(durations) * FRAME_S for time in times)
    assert all(a.end_s <= b.start_s for a, b in pairwise(times))


SOUNDS = st.text(st.sampled_from("abkɪAˈˌːʰ"), min_size=1, max_size=8).filter(lambda text: set(text) - set("ˈˌ"))


@given(st.lists(st.tuples(st.just(""), SOUNDS, AFTER), min_size=1, max_size=6), st.data())
def test_the_sounds_of_a_word_fill_it_and_visemes_leave_no_gap(
    triples: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    words = phoneme_words(*triples)
    n_symbols = len(Chunk(tuple(words)).phonemes)
    durations = data.draw(st.lists(st.integers(1, 40), min_size=n_symbols + 2, max_size=n_symbols + 2))
    times = timed(words, durations)
    for word, time in zip(words, times, strict=True):
        assert "".join(sound.phoneme for sound in time.phonemes) == word.phonemes.translate({712: None, 716: None})
        edges = [time.start_s, *(sound.end_s for sound in time.phonemes)]
        assert [sound.start_s for sound in time.phonemes] == edges[:-1]
        assert edges[-1] == time.end_s
        assert edges == sorted(edges)
    shapes = visemes(times)
    assert (shapes[0].start_s, shapes[-1].end_s) == (times[0].start_s, times[-1].end_s)
    assert all(a.end_s == pytest.approx(b.start_s) and a.phoneme != b.phoneme for a, b in pairwise(shapes))


def test_stress_belongs_to_the_next_sound_and_length_to_the_one_before() -> None:
    (word,) = timed(phoneme_words(("", "bˈiːt", ".")), [4, 2, 3, 5, 7, 2, 3, 1])
    assert [(sound.phoneme, round((sound.end_s - sound.start_s) / FRAME_S)) for sound in word.phonemes] == [
        ("b", 4),  # its two frames, and two of the silence before it
        ("iː", 15),
        ("t", 2),
    ]


def test_every_symbol_has_a_shape_of_the_mouth() -> None:
    sounds = set(SYMBOLS) - PUNCTUATION - set(STRESS_MARKS + MODIFIERS + " ")
    assert sounds == set(VISEMES)
    names = {name for shapes in VISEMES.values() for name in shapes}
    assert names == {"PP", "FF", "TH", "DD", "kk", "CH", "SS", "nn", "RR", "aa", "E", "I", "O", "U"}


def test_a_diphthong_has_two_shapes() -> None:
    (word,) = timed(phoneme_words(("", "mA", ".")), [4, 4, 4, 3, 1])
    assert [shape.phoneme for shape in visemes([word])] == ["PP", "E", "I"]


def test_shifting_moves_the_sounds_with_their_word() -> None:
    words = timed(phoneme_words(("", "ba", " "), ("", "ka", ".")), [4, 2, 2, 2, 2, 2, 3, 1])
    shifted = shift_time(Speech(np.zeros(0, np.float32), words, (0, 2)), 10.0).words
    for before, after in zip(words, shifted, strict=True):
        assert [sound.start_s for sound in after.phonemes] == [sound.start_s + 10 for sound in before.phonemes]
        assert after.phonemes[-1].end_s == after.end_s


def test_within_a_phrase_a_word_begins_where_the_one_before_ended() -> None:
    first, second, third = timed(
        phoneme_words(("", "ab", " "), ("", "cd", ""), ("", "e", ".")), [9, 3, 3, 2, 3, 3, 5, 7, 1]
    )
    assert first.end_s == second.start_s
    assert second.end_s == third.start_s


@pytest.mark.parametrize("pace", [1, 2, 4])
@pytest.mark.parametrize("after", [". ", ", ", " ", ""])
def test_the_last_sound_before_a_pause_ends_before_the_silence(after: str, pace: int) -> None:
    words = phoneme_words(("", "abc", after), *([("", "defg", ".")] if after else []))
    durations = [4, *(pace * n for n in (2, 2, 20, *(2 for _ in after), *((2, 2, 2, 3, 4) if after else ()))), 1]
    ends = [0, *accumulate(durations)]
    assert timed(words, durations)[0].end_s == pytest.approx((ends[3] + 2 * pace * LAST_PHONEME - LAG_FRAMES) * FRAME_S)


def test_a_long_sound_inside_of_a_phrase_is_not_shortened() -> None:
    first, _ = timed(phoneme_words(("", "aː", " "), ("", "bcd", ".")), [4, 3, 10, 3, 3, 3, 3, 3, 1])
    assert first.end_s == pytest.approx((17 - LAG_FRAMES) * FRAME_S)


@pytest.mark.weights
@pytest.mark.parametrize(
    ("precision", "voices"), [("fp32", ("bf_emma",)), ("int8", ("af_heart", "am_michael", "bm_george"))]
)
def test_words_beside_a_pause_begin_and_end_with_the_sound_itself(
    home: Path, precision: str, voices: tuple[str, ...]
) -> None:
    """Compared with the level of the samples, which falls and rises around every pause."""
    late_s: dict[str, list[float]] = {"start": [], "end": []}
    with running(open_engine(Settings(home=home, offline=True, precision=precision))) as engine:
        for voice in voices:
            speech = engine.speak(
                "Take two. [pause:0.2s] Go back, please; nobody came today. Do it again.", voice=voice
            )
            spoken = SpokenText("", voice, speech.samples, speech.words, ())
            for n, edge, true_s in edges_by_silence(spoken):
                word = speech.words[n]
                late_s[edge].append((word.start_s if edge == "start" else word.end_s) - true_s)
    assert len(late_s["start"]) >= 2 * len(voices)
    assert np.abs(late_s["start"]).mean() < 0.08
    assert np.abs(late_s["end"]).mean() < 0.08
