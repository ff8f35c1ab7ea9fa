"""The input of recognisers: 16 kHz, no aliasing, nothing cut."""

import numpy as np
import pytest

from tutti.verify.recogniser import LEAD_S, RECOGNISER_RATE, TAIL_S, prepare_for_recogniser


def tone(hz: float, sample_rate: int, length_s: float = 1.0) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(int(length_s * sample_rate)) / sample_rate).astype(np.float32)


@pytest.mark.parametrize("sample_rate", [8_000, 16_000, 24_000, 48_000])
def test_a_tone_keeps_its_pitch_its_level_and_its_length(sample_rate: int) -> None:
    prepared = prepare_for_recogniser(tone(440, sample_rate), sample_rate)
    assert len(prepared) == int((LEAD_S + 1.0 + TAIL_S) * RECOGNISER_RATE)
    middle = prepared[RECOGNISER_RATE // 2 : RECOGNISER_RATE]
    assert np.abs(np.fft.rfft(middle * np.hanning(len(middle)))).argmax() * RECOGNISER_RATE / len(
        middle
    ) == pytest.approx(440, abs=2)
    assert np.abs(middle).max() == pytest.approx(1.0, abs=0.02)


def test_frequencies_above_8_khz_are_removed_not_aliased() -> None:
    assert np.abs(prepare_for_recogniser(tone(10_000, 24_000), 24_000)[4_000:12_000]).max() < 0.01
