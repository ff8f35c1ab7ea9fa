"""The meters that compare two renderings of the same speech read known differences, however noisy the voice is."""

import numpy as np
import pytest
from numpy.typing import NDArray

from training.verify import meters
from training.verify.pitch import pitch_shift
from tutti.speech import SAMPLE_RATE, Samples

N = 2 * SAMPLE_RATE
TIME = np.arange(N) / SAMPLE_RATE


def voice(factor: float = 1.0, noise: float = 0.0, seed: int = 0, tilt: float = 1.0) -> Samples:
    """A gliding voice of twelve harmonics, hoarse by as much noise as is asked for."""
    turns = np.cumsum(130 * (1 + 0.1 * np.sin(2 * np.pi * 3 * TIME))) / SAMPLE_RATE * factor
    tone: NDArray[np.float64] = sum(np.sin(2 * np.pi * h * turns) / h**tilt for h in range(1, 13))  # type: ignore[assignment]
    tone *= 0.1 / np.sqrt(np.mean(tone**2))
    return (tone + noise * np.random.default_rng(seed).standard_normal(N)).astype(np.float32)


@pytest.mark.parametrize("shift", [0.0, 0.003, -0.003, 0.006, -0.006, 0.03])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2])  # of a tone of 0.1: the last is a whisper with little voice
def test_a_known_shift_of_the_pitch_is_read(shift: float, noise: float) -> None:
    read = pitch_shift(voice(1, noise, 1), voice(1 + shift, noise, 2))
    assert read == pytest.approx(shift, abs=0.0002 + 0.005 * noise)


def test_another_timbre_or_level_is_no_shift() -> None:
    assert pitch_shift(voice(tilt=0.5), voice(tilt=1.5)) == pytest.approx(0, abs=3e-4)
    assert pitch_shift(voice(), 0.3 * voice()) == pytest.approx(0, abs=1e-9)


def test_what_has_no_pitch_has_no_shift() -> None:
    rng = np.random.default_rng(0)
    assert np.isnan(pitch_shift(np.zeros(N, np.float32), np.zeros(N, np.float32)))
    assert np.isnan(pitch_shift(voice()[:600], voice()[:600])), "too short"
    hiss = [rng.standard_normal(N).astype(np.float32) for _ in range(2)]
    assert np.isnan(pitch_shift(*hiss))


class Ear:
    """An encoder of speakers that remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[Samples] = []

    def embed_utterance(self, samples: Samples) -> NDArray[np.float64]:
        self.heard.append(samples)
        return np.ones(1)


def test_speakers_are_compared_in_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact wave decides what is silence; the other has a click where that one is silent."""
    exact = np.concatenate([np.zeros(2000), np.ones(3000)]).astype(np.float32)
    light = exact.copy()
    light[500] = 0.5
    monkeypatch.setattr(meters, "_prepare_for_resemblyzer", lambda samples: samples)
    monkeypatch.setattr(meters, "spoken_places", lambda samples: np.abs(samples) > 0)
    meter = object.__new__(meters.Resemblyzer)
    meter._encoder = ear = Ear()
    assert meter(light, exact) == 1.0
    assert [len(samples) for samples in ear.heard] == [3000, 3000]


def test_a_short_pause_is_speech_and_a_long_one_is_not() -> None:
    pytest.importorskip("webrtcvad")
    spoken = voice()[::3][: N // 3]  # as if it were 16 kHz: a higher voice
    quiet = np.zeros(16_000, np.float32)
    long = meters.spoken_places(np.concatenate([quiet, spoken, quiet]))
    assert not long[:8000].any()
    assert long[18_000:30_000].all()
    assert not long[-8000:].any()
    short = meters.spoken_places(np.concatenate([spoken[:14_000], quiet[:1500], spoken[:14_000]]))
    assert short[3000:27_000].all()
