"""Pitch meters: the fundamental frequency of a voice, and how far two renderings of the same speech differ in it."""

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE

LOWEST_HZ, HIGHEST_HZ = 45.0, 500.0
WINDOW = 1200  # samples: 50 ms
HOP = 240
THRESHOLD = 0.15  # largest difference of two periods that counts as periodic

# Of `pitch_shift`, chosen by how well it reads known shifts (docs/log/2026-11-17-paired-meters.md).
PAIR_WINDOW = 1800  # samples: 75 ms; longer: less noise, and fewer windows inside a vowel
PAIR_LOWEST_HZ = 60.0
TOP_HZ = 1000.0  # of what is compared; above it lies the noise of a whisper
QUIET = 0.003  # root mean square of a window below which it has no pitch
MAX_DIFFERENCE = 0.4  # of two periods, mean of both waves, in a window that counts
MULTIPLES = (1, 2, 3)  # of the period, at which a window is compared with itself: a shift is larger at the third
NEAR, STEP = 0.06, 0.002  # largest shift that is found in a window, and between two that are tried


def pitches_hz(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """The fundamental in each window, by YIN (de Cheveigné and Kawahara); NaN where it is not clearly periodic."""
    starts = range(0, len(samples) - 2 * WINDOW, HOP)
    return np.array([_window_pitch(samples[start:][: 2 * WINDOW]) for start in starts])


def shift_semitones(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """The median change over the windows that are periodic in both; which are depends on the pitch itself."""
    return float(np.nanmedian(12 * np.log2(pitches_hz(after) / pitches_hz(before))))


def pitch_shift(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """The change of the pitch, relative to it, between two waves of the same speech; NaN without a pitch.

    Each window is compared at the period that fits both waves best. That may be a multiple of the true one: the change
    is the same. So windows count that are hardly periodic, as in a whisper, by as much as they are.
    """
    curves = [_difference_curves(_low_pass(samples.astype(np.float64))) for samples in (before, after)]
    shortest, longest = int(SAMPLE_RATE / HIGHEST_HZ), int(SAMPLE_RATE / PAIR_LOWEST_HZ)
    common = (curves[0] + curves[1])[:, shortest:longest] / 2
    difference, place = common.min(axis=1), common.argmin(axis=1)
    clear = (difference < MAX_DIFFERENCE) & (place > 0) & (place < longest - shortest - 1)
    changes = [_period_change(each[clear], shortest + place[clear]) for each in curves]
    change, weight = changes[0] - changes[1], 1 - difference[clear]
    found = np.isfinite(change)
    return float(np.expm1(_weighted_median(change[found], weight[found]))) if found.any() else np.nan


def _low_pass(wave: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without phase, so that both waves stay where they are."""
    spectrum = np.fft.rfft(wave)
    spectrum /= 1 + (np.fft.rfftfreq(len(wave), 1 / SAMPLE_RATE) / TOP_HZ) ** 8
    return np.fft.irfft(spectrum, len(wave))


def _difference_curves(wave: NDArray[np.float64]) -> NDArray[np.float64]:  # [n] -> [windows, lags]
    """How much each window differs from itself, later by a lag: 0 for the same, 1 for something else or nothing."""
    n_lags = int(MULTIPLES[-1] * SAMPLE_RATE / PAIR_LOWEST_HZ * np.exp(NEAR)) + 4
    if len(wave) < PAIR_WINDOW + n_lags:
        return np.zeros((0, n_lags))
    windows = np.lib.stride_tricks.sliding_window_view(wave, PAIR_WINDOW + n_lags)[::HOP]
    size = 2 * windows.shape[1]
    first = np.conj(np.fft.rfft(windows[:, :PAIR_WINDOW], size))
    product = np.fft.irfft(np.fft.rfft(windows, size) * first, size)[:, :n_lags]
    power = np.pad(np.cumsum(windows**2, axis=1), ((0, 0), (1, 0)))
    energy = power[:, PAIR_WINDOW : PAIR_WINDOW + n_lags] - power[:, :n_lags]
    curves: NDArray[np.float64] = 1 - 2 * product / np.maximum(energy[:, :1] + energy, 1e-9)
    curves[energy[:, 0] < PAIR_WINDOW * QUIET**2] = 1.0
    return curves


def _period_change(curves: NDArray[np.float64], period: NDArray[np.int64]) -> NDArray[np.float64]:  # [windows]
    """By how much the window's own period is longer, as a logarithm; NaN if that is not a minimum."""
    tried = np.arange(-NEAR, NEAR + STEP / 2, STEP)
    lags = np.exp(tried)[:, None, None] * np.array(MULTIPLES)[:, None] * period  # [tried, multiples, windows]
    difference = _between(curves, lags).sum(axis=1)
    windows = np.arange(len(period))
    place = difference.argmin(axis=0).clip(1, len(tried) - 2)
    a, b, c = (difference[place + i, windows] for i in (-1, 0, 1))
    is_minimum = (a >= b) & (c >= b) & (a + c > 2 * b)
    offset = 0.5 * (a - c) / np.where(is_minimum, a - 2 * b + c, 1.0)  # by a parabola
    return np.where(is_minimum, tried[place] + STEP * offset, np.nan)


def _between(curves: NDArray[np.float64], lags: NDArray[np.float64]) -> NDArray[np.float64]:  # [..., windows]
    """The curves at lags between samples, by cubic interpolation (Catmull and Rom)."""
    place = lags.astype(np.int64)
    windows, x = np.arange(len(curves)), lags - place
    a, b, c, d = (curves[windows, place + i] for i in (-1, 0, 1, 2))
    return b + 0.5 * x * (c - a + x * (2 * a - 5 * b + 4 * c - d + x * (3 * (b - c) + d - a)))


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2)])


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
