"""Checks of the inputs and outputs of every backend."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tutti.errors import InvalidInput, ModelFailed
from tutti.speech import (
    MAX_PHONEMES,
    SAMPLES_PER_FRAME,
    STYLE_SIZE,
    Frames,
    Inflection,
    Samples,
    Span,
    Utterance,
    is_pcm,
    to_pcm,
)

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
        if row.inflection is not None and (
            row.inflection.shape != (n + 2, len(Inflection._fields)) or not np.isfinite(row.inflection).all()
        ):
            raise InvalidInput("an inflection is six finite numbers for each token", param="input")


def check_speed(speed: float) -> None:
    if not MIN_SPEED <= speed <= MAX_SPEED:  # also refuses nan
        raise InvalidInput(f"speed must be a number from {MIN_SPEED} to {MAX_SPEED:g}, not {speed:g}", param="speed")


def check_count(n_rows: int, n_results: int) -> None:
    if n_rows != n_results:
        raise ModelFailed(f"the model returned {n_results} rows when {n_rows} were requested")


def check_samples(row: Frames, samples: Samples) -> None:
    """Raise ModelFailed for samples of a wrong length or format. A model without spans would return the whole row."""
    n_frames = row.end - row.start if isinstance(row, Span) else row.n_frames
    if len(samples) != n_frames * SAMPLES_PER_FRAME:
        raise ModelFailed(f"{n_frames} frames became {len(samples)} samples")
    if is_pcm(samples) != (row.pcm_volume is not None):
        raise ModelFailed(f"the model returned {samples.dtype} samples, which is not the format of the row")


def finish_samples(row: Frames, samples: Samples) -> Samples:
    """The samples of a row, from floats, in the format that it asks for; raise ModelFailed for NaN or infinity."""
    if not np.isfinite(samples).all():
        raise not_finite()
    return in_format(row, samples)


def in_format(row: Frames, samples: Samples) -> Samples:
    """Float samples as the row asks for them."""
    if row.gain is not None:
        samples = samples * _gain_of_samples(row, row.gain)
    return samples if row.pcm_volume is None else cast(Samples, to_pcm(samples, row.pcm_volume))


def _gain_of_samples(row: Frames, gain: NDArray[np.float32]) -> NDArray[np.float32]:  # [2T] -> [600T]
    """The factor of each sample of a row or span: linear between the middles of half frames."""
    start, end = (row.start, row.end) if isinstance(row, Span) else (0, row.n_frames)
    places = (np.arange(start * SAMPLES_PER_FRAME, end * SAMPLES_PER_FRAME) + 0.5) * (2 / SAMPLES_PER_FRAME) - 0.5
    factors: NDArray[np.float32] = np.interp(places, np.arange(len(gain)), gain).astype(np.float32)
    return factors


def not_finite() -> ModelFailed:
    """The error for samples with NaN or infinity, wherever they are found."""
    return ModelFailed("the vocoder produced numbers that are not finite")
