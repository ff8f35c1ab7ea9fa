"""Which frames speak for a row, and how loudly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.model.onnx.incremental.spans import FIRST, WORTH, n_heard, representatives


def row(n_frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng(seed)
    mood = np.repeat(noise.normal(size=(512, n_frames // 20 + 1)), 40, 1)[:, : 2 * n_frames]
    decoded = mood + noise.normal(size=mood.shape)
    return decoded[None].astype(np.float32), noise.uniform(size=(1, 22, 120 * n_frames + 1)).astype(np.float32)


@settings(max_examples=3, deadline=None)
@given(st.integers(WORTH, 500), st.integers(0, 99))
def test_the_first_frames_and_the_last_stand_for_themselves_alone(n_frames: int, seed: int) -> None:
    frames, weights = representatives(*row(n_frames, seed))
    assert frames[0] == 0
    assert frames[-5:].tolist() == list(
        range(n_frames - 5, n_frames)
    )  # at the end, where nothing follows, as in the row
    assert np.r_[weights[:3], weights[-5:]] == pytest.approx(1 / n_frames)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= 0


@settings(max_examples=3, deadline=None)
@given(st.integers(WORTH, 500))
def test_no_frame_is_heard_twice_and_the_cost_is_known_before(n_frames: int) -> None:
    frames, _ = representatives(*row(n_frames, 0))
    assert (np.diff(frames) > 0).all()
    assert len(frames) <= FIRST + n_heard(n_frames)


def test_a_frame_like_no_other_at_the_end_is_not_mistaken_for_the_row() -> None:
    decoded, source = row(400, 1)
    plain = representatives(decoded, source)
    decoded[:, :, -2:] *= 50
    frames, weights = representatives(decoded, source)
    strength = np.abs(decoded[0]).reshape(512, 400, 2).mean(2)
    heard, true = strength[:, frames] @ weights, strength.mean(1)
    assert np.abs(heard - true).mean() / true.mean() < 0.1
    assert weights[-1] == pytest.approx(plain[1][-1])
