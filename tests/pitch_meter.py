"""A pitch meter for tests: the fundamental of a voice, found in its samples alone."""

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE

LOWEST_HZ, HIGHEST_HZ = 45.0, 500.0
WINDOW = 1200  # samples: 50 ms
HOP = 240
CLEAR = 0.15  # how little of a period may differ from the next


def pitches_hz(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """The fundamental in each window, by YIN (de Cheveigné and Kawahara); nan where it is not clearly periodic."""
    starts = range(0, len(samples) - 2 * WINDOW, HOP)
    return np.array([_window(samples[start:][: 2 * WINDOW]) for start in starts])


def moved_semitones(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """How far the median window moved, of those that are clear in both: which are clear depends on the pitch itself."""
    return float(np.nanmedian(12 * np.log2(pitches_hz(after) / pitches_hz(before))))


def _window(samples: NDArray[np.float32]) -> float:
    if np.sqrt(np.mean(samples**2)) < 0.01:
        return np.nan
    longest = int(SAMPLE_RATE / LOWEST_HZ)
    shortest = int(SAMPLE_RATE / HIGHEST_HZ)
    wave = samples.astype(np.float64)
    size = 4 * WINDOW
    product = np.fft.irfft(np.fft.rfft(wave, size) * np.conj(np.fft.rfft(wave[:WINDOW], size)), size)[: longest + 2]
    power = np.concatenate([[0.0], np.cumsum(wave**2)])
    energy = power[WINDOW : WINDOW + longest + 2] - power[: longest + 2]
    differs = np.maximum(energy[0] + energy - 2 * product, 0.0)
    mean = np.cumsum(differs[1:]) / np.arange(1, longest + 2)
    normal = np.concatenate([[1.0], differs[1:] / np.maximum(mean, 1e-12)])
    below = np.flatnonzero(normal[shortest:longest] < CLEAR)
    if not len(below):
        return np.nan
    lag = shortest + int(below[0])
    while lag + 1 < longest and normal[lag + 1] < normal[lag]:
        lag += 1
    a, b, c = normal[lag - 1 : lag + 2]
    bend = a - 2 * b + c
    return SAMPLE_RATE / (lag + (0.5 * (a - c) / bend if bend > 0 else 0.0))


def semitones(from_hz: float, to_hz: float) -> float:
    return float(12 * np.log2(to_hz / from_hz))
