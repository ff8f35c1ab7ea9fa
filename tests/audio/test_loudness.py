"""Finished audio: the loudness that was asked for, no peak above the limit, and not a sample more or less."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audio.loudness import PRESETS, SILENT, Finisher, Loudness, measure_lufs, parse_loudness
from tutti.errors import InvalidInput
from tutti.speech import SAMPLE_RATE, Samples


def tone(amplitude: float, length_s: float = 8.0) -> Samples:
    return (amplitude * np.sin(2 * np.pi * 997 * np.arange(round(length_s * SAMPLE_RATE)) / SAMPLE_RATE)).astype("f4")


def finish(samples: Samples, target: Loudness, cuts: list[int]) -> Samples:
    pieces = [samples[a:b] for a, b in pairwise([0, *sorted(cuts), len(samples)])]
    finisher = Finisher(measure_lufs(pieces), target)
    return np.concatenate([*map(finisher.write, pieces), finisher.flush()])


def test_a_sine_has_the_loudness_of_the_standard() -> None:
    assert measure_lufs([tone(10 ** (-23 / 20))]) == pytest.approx(-26, abs=0.1)  # mono: 3 dB below its peak
    assert measure_lufs([np.zeros(SAMPLE_RATE, np.float32)]) <= SILENT


@pytest.mark.parametrize("target", [*PRESETS.values(), Loudness(-30.0)])
@pytest.mark.parametrize("amplitude", [0.02, 0.5])
def test_the_target_is_met(target: Loudness, amplitude: float) -> None:
    assert measure_lufs([finish(tone(amplitude), target, [])]) == pytest.approx(target.lufs, abs=0.2)


@given(st.lists(st.integers(0, 30_000), max_size=5), st.floats(-36, -9), st.floats(0.001, 1))
def test_no_sample_is_lost_and_none_exceeds_the_peak(cuts: list[int], lufs: float, amplitude: float) -> None:
    samples = tone(amplitude, 1.25)
    samples[5000:5010] = 1.0
    finished = finish(samples, Loudness(lufs, -3.0), cuts)
    assert len(finished) == len(samples)
    assert np.abs(finished).max() <= 10 ** (-3.0 / 20) + 1e-4


def test_silence_stays_silence() -> None:
    assert not finish(np.zeros(SAMPLE_RATE, np.float32), PRESETS["acx"], [100]).any()


@pytest.mark.parametrize("written", ["loud", "", "0", "-60", "nan"])
def test_a_wrong_loudness_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="acx, ebu, podcast") as error:
        parse_loudness(written)
    assert error.value.param == "loudness"
    assert parse_loudness(" ACX ") == PRESETS["acx"]
    assert parse_loudness("-18.5") == Loudness(-18.5)
