"""Which frames represent a row, and with which weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.model.onnx.incremental.statistics import representatives
from tutti.model.spans import EXACT_SPANS


def row(n_frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    slow = np.repeat(random.normal(size=(512, n_frames // 20 + 1)), 40, 1)[:, : 2 * n_frames]
    decoded = slow + random.normal(size=slow.shape)
    return decoded[None].astype(np.float32), random.uniform(size=(1, 22, 120 * n_frames + 1)).astype(np.float32)


@settings(max_examples=3, deadline=None)
@given(st.integers(EXACT_SPANS.min_row, 500), st.integers(0, 99))
def test_the_first_and_last_frames_count_for_themselves_alone(n_frames: int, seed: int) -> None:
    frames, weights = representatives(*row(n_frames, seed))
    assert frames[0] == 0
    assert frames[-5:].tolist() == list(range(n_frames - 5, n_frames))  # nothing follows, as in the row
    assert np.r_[weights[:3], weights[-5:]] == pytest.approx(1 / n_frames)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= 0


@settings(max_examples=3, deadline=None)
@given(st.integers(EXACT_SPANS.min_row, 500))
def test_no_frame_is_chosen_twice_and_the_predicted_cost_holds(n_frames: int) -> None:
    frames, _ = representatives(*row(n_frames, 0))
    assert (np.diff(frames) > 0).all()
    assert len(frames) <= EXACT_SPANS.cost(n_frames, 0, EXACT_SPANS.first)


def test_an_outlier_at_the_end_does_not_represent_the_row() -> None:
    decoded, source = row(400, 1)
    plain = representatives(decoded, source)
    decoded[:, :, -2:] *= 50
    frames, weights = representatives(decoded, source)
    strength = np.abs(decoded[0]).reshape(512, 400, 2).mean(2)
    estimate, true = strength[:, frames] @ weights, strength.mean(1)
    assert np.abs(estimate - true).mean() / true.mean() < 0.1
    assert weights[-1] == pytest.approx(plain[1][-1])
