"""Faster speech: as long as asked for to the sample, in any pieces and both formats, its pitch unchanged."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audio.tempo import Tempo
from tutti.speech import SAMPLE_RATE, Samples, is_pcm, to_pcm

TONE = (0.5 * np.sin(2 * np.pi * 200 * np.arange(2 * SAMPLE_RATE) / SAMPLE_RATE)).astype(np.float32)


def faster(samples: Samples, factor: float, cuts: list[int]) -> Samples:
    tempo, edges = Tempo(factor), [0, *sorted(cuts), len(samples)]
    return np.concatenate([tempo.write(samples[a:b], last=b is edges[-1]) for a, b in pairwise(edges)])


@given(st.floats(1.01, 4), st.lists(st.integers(0, len(TONE) - 1), max_size=4))
def test_it_is_as_long_as_asked_for_in_any_pieces(factor: float, cuts: list[int]) -> None:
    whole = faster(TONE, factor, [])
    assert len(whole) == round(len(TONE) / factor)
    assert np.array_equal(faster(TONE, factor, cuts), whole)


@pytest.mark.parametrize("factor", [1.1, 2.0, 3.2])
def test_the_pitch_and_the_level_stay(factor: float) -> None:
    whole = faster(TONE, factor, [])
    spectrum = np.abs(np.fft.rfft(whole * np.hanning(len(whole))))
    assert spectrum.argmax() * SAMPLE_RATE / len(whole) == pytest.approx(200, abs=1.5)
    assert np.sqrt(np.mean(whole**2)) == pytest.approx(np.sqrt(np.mean(TONE**2)), rel=0.02)


def test_integers_stay_integers_and_an_empty_or_tiny_audio_is_no_error() -> None:
    pcm = faster(to_pcm(TONE), 2.0, [])  # type: ignore[arg-type]
    assert is_pcm(pcm)
    assert np.abs(pcm / 32767 - faster(TONE, 2.0, [])).max() < 1e-3
    assert [len(faster(TONE[:n], 2.0, [])) for n in (0, 2, 100)] == [0, 1, 50]
