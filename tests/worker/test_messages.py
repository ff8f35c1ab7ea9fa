"""Calls on their way to a worker's process."""

import pickle

import numpy as np
import pytest

from tutti.speech import STYLE_SIZE, Prosody, Utterance


@pytest.mark.parametrize("dtype", ["<i8", "<i4", ">i8"])
def test_an_utterance_arrives_as_it_was(dtype: str) -> None:
    tokens, style = np.array([0, 5, 177, 0], dtype), np.linspace(-2, 2, STYLE_SIZE, dtype=np.float32)
    sent = Utterance(tokens, style, 1.3, 7, Prosody(2.0, 0.5, -1.0), 0.8)
    arrived = pickle.loads(pickle.dumps(sent))
    assert arrived.tokens.tolist() == tokens.tolist()
    assert np.array_equal(arrived.style, style)
    assert arrived.tokens.flags.writeable
    assert arrived.style.flags.writeable
    rest = "speed", "seed", "prosody", "pcm_volume"
    assert [getattr(arrived, name) for name in rest] == [getattr(sent, name) for name in rest]
