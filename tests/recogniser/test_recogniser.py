"""The recogniser that judges real speech hears what was said, and notices when it was not said."""

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.speak import Speaker
from tests.listening import heard, word_error_rate
from tutti.speech import SAMPLE_RATE
from tutti.weights import FP32_MODEL, Store, default_home, sources, wanted

SAID = "The harbour was quiet, and the boats rocked gently."
PHONEMES = "ðə hˈɑɹbəɹ wʌz kwˈIət, ænd ðə bˈOts ɹˈɑkt ʤˈɛntli."


@pytest.fixture(scope="module")
def speech() -> NDArray[np.float32]:
    store = Store(default_home())
    store.ensure(wanted("fp32"), sources=sources())
    return Speaker(store.path(FP32_MODEL), store.home / "voices").speak(PHONEMES, "af_heart")


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
