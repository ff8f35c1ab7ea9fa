"""Ears for tests with the real model: a small real recogniser, and how much of what was said it missed."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.listen import Recogniser, hear, recogniser
from benchmarks.score import word_errors
from tutti import settings


def heard(samples: NDArray[np.float32], sample_rate: int) -> str:
    """The words in the samples, as Moonshine tiny writes them (fetched once: 73 MB on the way, 28 MB kept)."""
    return hear(_ears(), samples, sample_rate)


def word_error_rate(said: str, heard: str) -> float:
    """Wrong, missing and extra words for each word said: 0.0 is perfect. Numbers may be words or figures."""
    errors = word_errors([said], heard)
    return errors.wrong / errors.total


@cache
def _ears() -> Recogniser:
    return recogniser("moonshine", settings.load({})[0].home)
