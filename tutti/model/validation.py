"""Checks of the inputs and outputs of every backend."""

from collections.abc import Sequence

import numpy as np

from tutti.errors import InvalidInput, ModelFailed
from tutti.speech import MAX_PHONEMES, SAMPLES_PER_FRAME, STYLE_SIZE, Frames, Samples, Span, Utterance

MIN_SPEED, MAX_SPEED = 0.25, 4.0


def check_utterances(rows: Sequence[Utterance]) -> None:
    """Raise InvalidInput for rows that the network would turn into noise."""
    for row in rows:
        n = len(row.tokens) - 2
        if not 1 <= n <= MAX_PHONEMES:
            raise InvalidInput(f"an utterance has 1 to {MAX_PHONEMES} phonemes, not {n}", param="input")
        if row.style.shape != (STYLE_SIZE,) or not np.isfinite(row.style).all():
            raise InvalidInput(f"a style is {STYLE_SIZE} finite numbers", param="voice")
        check_speed(row.speed)


def check_speed(speed: float) -> None:
    if not MIN_SPEED <= speed <= MAX_SPEED:  # also refuses nan
        raise InvalidInput(f"speed must be a number from {MIN_SPEED} to {MAX_SPEED:g}, not {speed:g}", param="speed")


def check_samples(frames: Frames, samples: Samples) -> Samples:
    """Raise ModelFailed for samples of a wrong length, NaN or infinity."""
    n_frames = frames.end - frames.start if isinstance(frames, Span) else frames.n_frames
    if len(samples) != n_frames * SAMPLES_PER_FRAME:
        raise ModelFailed(f"{n_frames} frames became {len(samples)} samples")
    if not np.isfinite(samples).all():
        raise not_finite()
    return samples


def not_finite() -> ModelFailed:
    """The error for samples with NaN or infinity, wherever they are found."""
    return ModelFailed("the vocoder produced numbers that are not finite")
