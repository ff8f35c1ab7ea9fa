"""What recognisers get to hear: 16 kHz, nothing folded back, nothing cut."""

import numpy as np
import pytest

from tutti.verify.recogniser import LEAD_S, LISTEN_RATE, TAIL_S, for_listening


def tone(hz: float, sample_rate: int, length_s: float = 1.0) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(int(length_s * sample_rate)) / sample_rate).astype(np.float32)


@pytest.mark.parametrize("sample_rate", [8_000, 16_000, 24_000, 48_000])
def test_a_tone_keeps_its_pitch_its_level_and_its_length(sample_rate: int) -> None:
    heard = for_listening(tone(440, sample_rate), sample_rate)
    assert len(heard) == int((LEAD_S + 1.0 + TAIL_S) * LISTEN_RATE)
    middle = heard[LISTEN_RATE // 2 : LISTEN_RATE]
    assert np.abs(np.fft.rfft(middle * np.hanning(len(middle)))).argmax() * LISTEN_RATE / len(middle) == pytest.approx(
        440, abs=2
    )
    assert np.abs(middle).max() == pytest.approx(1.0, abs=0.02)


def test_what_16_khz_cannot_hold_is_gone_not_folded() -> None:
    assert np.abs(for_listening(tone(10_000, 24_000), 24_000)[4_000:12_000]).max() < 0.01
