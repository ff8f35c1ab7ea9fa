"""A small real recogniser for tests with the real model, and the word error rate."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.heard import Recogniser, load_recogniser, transcribe
from benchmarks.score import word_errors
from tutti import settings


def recognise(samples: NDArray[np.float32], sample_rate: int) -> str:
    """The words in the samples by Moonshine tiny (downloaded once: 73 MB, of which 28 MB are stored)."""
    return transcribe(_recogniser(), samples, sample_rate)


def word_error_rate(text: str, transcript: str) -> float:
    """Wrong, missing and extra words for each word of the text: 0.0 is perfect. Numbers may be words or figures."""
    errors = word_errors([text], transcript)
    return errors.wrong / errors.total


@cache
def _recogniser() -> Recogniser:
    return load_recogniser("moonshine", settings.load({})[0].home)
