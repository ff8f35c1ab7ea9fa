"""A pitch meter: the fundamental frequency of a voice, measured in its samples."""

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE

LOWEST_HZ, HIGHEST_HZ = 45.0, 500.0
WINDOW = 1200  # samples: 50 ms
HOP = 240
THRESHOLD = 0.15  # largest difference of two periods that counts as periodic


def pitches_hz(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """The fundamental in each window, by YIN (de Cheveigné and Kawahara); NaN where it is not clearly periodic."""
    starts = range(0, len(samples) - 2 * WINDOW, HOP)
    return np.array([_window_pitch(samples[start:][: 2 * WINDOW]) for start in starts])


def shift_semitones(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """The median change over the windows that are periodic in both; which are depends on the pitch itself."""
    return float(np.nanmedian(12 * np.log2(pitches_hz(after) / pitches_hz(before))))


def _window_pitch(samples: NDArray[np.float32]) -> float:
    if np.sqrt(np.mean(samples**2)) < 0.01:
        return np.nan
    longest = int(SAMPLE_RATE / LOWEST_HZ)
    shortest = int(SAMPLE_RATE / HIGHEST_HZ)
    wave = samples.astype(np.float64)
    size = 4 * WINDOW
    product = np.fft.irfft(np.fft.rfft(wave, size) * np.conj(np.fft.rfft(wave[:WINDOW], size)), size)[: longest + 2]
    power = np.concatenate([[0.0], np.cumsum(wave**2)])
    energy = power[WINDOW : WINDOW + longest + 2] - power[: longest + 2]
    difference = np.maximum(energy[0] + energy - 2 * product, 0.0)
    mean = np.cumsum(difference[1:]) / np.arange(1, longest + 2)
    normalised = np.concatenate([[1.0], difference[1:] / np.maximum(mean, 1e-12)])
    below = np.flatnonzero(normalised[shortest:longest] < THRESHOLD)
    if not len(below):
        return np.nan
    lag = shortest + int(below[0])
    while lag + 1 < longest and normalised[lag + 1] < normalised[lag]:
        lag += 1
    a, b, c = normalised[lag - 1 : lag + 2]
    curvature = a - 2 * b + c
    return SAMPLE_RATE / (lag + (0.5 * (a - c) / curvature if curvature > 0 else 0.0))


def semitones(from_hz: float, to_hz: float) -> float:
    return float(12 * np.log2(to_hz / from_hz))
