"""The recogniser of the tests finds the words of real speech, and notices missing ones."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.quality import Speaker
from tests.recogniser_helper import recognise, word_error_rate
from tutti.speech import SAMPLE_RATE

TEXT = "The harbour was quiet, and the boats rocked gently."
PHONEMES = "ðə hˈɑɹbəɹ wʌz kwˈIət, ænd ðə bˈOts ɹˈɑkt ʤˈɛntli."


@pytest.fixture(scope="module")
def speech(home: Path, official: dict[str, Path]) -> NDArray[np.float32]:
    return Speaker(official["fp32"], home / "voices").speak(PHONEMES, "af_heart")


@pytest.mark.weights
def test_all_words_are_recognised(speech: NDArray[np.float32]) -> None:
    assert word_error_rate(TEXT, recognise(speech, SAMPLE_RATE)) == 0


@pytest.mark.weights
def test_the_sample_rate_is_used(speech: NDArray[np.float32]) -> None:
    assert word_error_rate(TEXT, recognise(np.repeat(speech, 2), 2 * SAMPLE_RATE)) == 0
    assert word_error_rate(TEXT, recognise(speech, SAMPLE_RATE // 3)) > 0.5


@pytest.mark.weights
def test_a_missing_end_is_noticed(speech: NDArray[np.float32]) -> None:
    assert word_error_rate(TEXT, recognise(speech[: len(speech) // 2], SAMPLE_RATE)) > 0.2
