"""The recogniser that judges real speech hears what was said, and notices when it was not said."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.speak import Speaker
from tests.recogniser_helper import heard, word_error_rate
from tutti.speech import SAMPLE_RATE

SAID = "The harbour was quiet, and the boats rocked gently."
PHONEMES = "ðə hˈɑɹbəɹ wʌz kwˈIət, ænd ðə bˈOts ɹˈɑkt ʤˈɛntli."


@pytest.fixture(scope="module")
def speech(home: Path, official: dict[str, Path]) -> NDArray[np.float32]:
    return Speaker(official["fp32"], home / "voices").speak(PHONEMES, "af_heart")


@pytest.mark.weights
def test_what_was_said_is_heard(speech: NDArray[np.float32]) -> None:
    assert word_error_rate(SAID, heard(speech, SAMPLE_RATE)) == 0


@pytest.mark.weights
def test_the_sample_rate_is_believed(speech: NDArray[np.float32]) -> None:
    assert word_error_rate(SAID, heard(np.repeat(speech, 2), 2 * SAMPLE_RATE)) == 0
    assert word_error_rate(SAID, heard(speech, SAMPLE_RATE // 3)) > 0.5


@pytest.mark.weights
def test_a_lost_end_is_noticed(speech: NDArray[np.float32]) -> None:
    assert word_error_rate(SAID, heard(speech[: len(speech) // 2], SAMPLE_RATE)) > 0.2
