"""Where speech is silent."""

import itertools

import numpy as np

from tutti.speech import SAMPLE_RATE, Samples

STEP_S = 0.005  # window of the level
SILENT_DB = -40.0  # relative to the loudest step
PAUSE_S = 0.15  # shorter silence is a stop consonant


def silences(samples: Samples, sample_rate: int = SAMPLE_RATE) -> list[tuple[float, float]]:
    """Start and end of each silence in seconds, those at the beginning and the end included."""
    n = round(STEP_S * sample_rate)
    steps = samples[: len(samples) // n * n].reshape(-1, n)
    level = np.sqrt((steps**2).mean(axis=1))
    loud = level > level.max(initial=0.0) * 10 ** (SILENT_DB / 20)
    runs, at = [], 0
    for silent, group in itertools.groupby(~loud):
        length = len(list(group))
        if silent and (length * STEP_S >= PAUSE_S or at in (0, len(loud) - length)):
            runs.append((at * STEP_S, (at + length) * STEP_S))
        at += length
    return runs


def parts_between(samples: Samples, sample_rate: int = SAMPLE_RATE) -> list[tuple[float, float]]:
    """Start and end in seconds of each part between two silences."""
    edges = [0.0, *itertools.chain(*silences(samples, sample_rate)), len(samples) / sample_rate]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(start_s, end_s) for start_s, end_s in pairs if end_s - start_s > STEP_S]
