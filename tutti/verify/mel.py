"""Perceptual distance of two waves: the mean absolute difference of their log-mel spectrograms, in dB."""

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE, Samples

WINDOW, HOP, BANDS = 1024, 256, 80
FLOOR = 1e-4  # about 70 dB below speech: quieter differences are inaudible


def log_mel(samples: Samples) -> NDArray[np.float64]:  # [n] -> [frames, 80] dB
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP] * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(frames)) ** 2
    mel = 2595 * np.log10(1 + np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE) / 700)
    edges = np.linspace(0, mel[-1], BANDS + 2)
    rising = (mel[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mel[:, None]) / (edges[2:] - edges[1:-1])
    bands: NDArray[np.float64] = 10 * np.log10(power @ np.clip(np.minimum(rising, falling), 0, None) + FLOOR)
    return bands


def distance_db(actual: Samples, expected: Samples) -> float:
    """Mean distance in dB; infinite for waves of different lengths."""
    if len(actual) != len(expected):
        return float("inf")
    return float(np.abs(log_mel(actual) - log_mel(expected)).mean())
