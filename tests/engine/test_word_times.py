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
from tutti.engine.word_times import LAG_FRAMES, LAST_PHONEME, word_times
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, WordTime
from tutti.text.chunk import Chunk, PhonemeWord

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
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_words_beside_a_pause_begin_and_end_with_the_sound_itself(home: Path, precision: str) -> None:
    """Compared with the level of the samples, which falls and rises around every pause."""
    late_s: dict[str, list[float]] = {"start": [], "end": []}
    with running(open_engine(Settings(home=home, offline=True, precision=precision))) as engine:
        for voice in ("af_heart", "am_michael", "bf_emma", "bm_george"):
            speech = engine.speak(
                "Take two. [pause:0.2s] Go back, please; nobody came today. Do it again.", voice=voice
            )
            spoken = SpokenText("", voice, speech.samples, speech.words, ())
            for n, edge, true_s in edges_by_silence(spoken):
                word = speech.words[n]
                late_s[edge].append((word.start_s if edge == "start" else word.end_s) - true_s)
    assert len(late_s["start"]) >= 8
    assert np.abs(late_s["start"]).mean() < 0.08
    assert np.abs(late_s["end"]).mean() < 0.08
