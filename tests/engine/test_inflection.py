"""Marks inside a sentence change their words, whose times follow; the sentence stays one row."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import running, silent_voices, tone_engine
from tutti.engine.inflection import token_inflection
from tutti.model.inflection import EMPHASES
from tutti.model.validation import MAX_SPEED, MIN_SPEED
from tutti.speech import NO_INFLECTION
from tutti.text.chunk import Chunk, PhonemeWord, WordStyle

SLOW = WordStyle(rate=0.5)


def test_a_word_has_the_space_before_it_and_what_is_between_words_of_its_style() -> None:
    words = (
        PhonemeWord("a", (0, 1)),
        PhonemeWord("b", (1, 2), after=", ", style=SLOW),
        PhonemeWord("k", (2, 3), before="(", after=") ", style=SLOW),
        PhonemeWord("d", (3, 4), after="."),
    )
    tokens = token_inflection(Chunk(words), 1.0)
    assert tokens is not None
    assert "".join("s" if rate != 1 else "-" for rate in tokens[:, 0]) == "--ssssss-----"  # pad a_b,_(k)_d. pad
    assert token_inflection(Chunk(words[:1]), 1.0) is None


@given(st.floats(0.25, 4), st.floats(0.25, 4), st.sampled_from([None, *EMPHASES]))
def test_speed_and_rate_together_stay_in_the_limits_of_speed(speed: float, rate: float, emphasis: str | None) -> None:
    word = PhonemeWord("a", (0, 1), style=WordStyle(rate=rate, emphasis=emphasis))
    tokens = token_inflection(Chunk((word,)), speed)
    assert tokens is not None
    assert MIN_SPEED - 1e-6 <= speed * tokens[1, 0] <= MAX_SPEED + 1e-6
    assert (tokens[0] == NO_INFLECTION).all()


def test_the_times_of_words_follow_and_others_keep_their_length(tmp_path: Path) -> None:
    with running(tone_engine(silent_voices(tmp_path))) as engine:
        (plain,), (marked,) = engine.stream("deep water runs"), engine.stream("deep [rate:0.5]water[/rate] runs")
        (quiet,) = engine.stream("deep [volume:0]water[/volume] runs")

    def lengths_s(speech: object) -> list[float]:
        return [word.end_s - word.start_s for word in speech.words]  # type: ignore[attr-defined]

    assert [word.word for word in marked.words] == ["deep", "water", "runs"]
    (deep, water, runs), (same_deep, slow_water, same_runs) = lengths_s(plain), lengths_s(marked)
    assert (same_deep, same_runs) == (pytest.approx(deep), pytest.approx(runs))
    assert slow_water == pytest.approx(2 * water)
    assert marked.words[2].start_s - plain.words[2].start_s == pytest.approx(water)
    _, word, after = quiet.words
    middle = slice(round(24_000 * (word.start_s + 0.04)), round(24_000 * (word.end_s - 0.04)))
    assert not quiet.samples[middle].any()
    assert np.array_equal(quiet.samples[-2400:], plain.samples[-2400:])
    assert after.end_s == plain.words[2].end_s
