"""A model may speak rows in a way of its own; the worker runs what it says, and keeps nothing of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.worker.fakes import both_stages, first_stage, row, second_stage
from tutti.errors import ModelFailed, RowsLost
from tutti.model.protocol import Model, Ran
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Prosody, Samples, Utterance
from tutti.worker.stage_runner import StageRunner


class LoneModel(ToneModel):
    """Has a way of its own for a row alone."""

    def speak(self, rows: Sequence[Utterance]) -> Ran:
        return Ran([np.array([7])], [np.array([1, 2], np.int16)]) if len(rows) == 1 else super().speak(rows)


class FloatModel(ToneModel):
    """Returns floats, whatever a row asks for."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return super().vocoder([replace(row, pcm_volume=None) for row in rows])


def runner(model: Model) -> StageRunner:
    return StageRunner(lambda: {"tone": model}, lambda *_: None)


def test_a_model_decides_how_rows_are_spoken() -> None:
    spoken = runner(LoneModel()).run(both_stages([(1, row(5, 6))]))
    assert [durations.tolist() for durations in spoken.durations] == [[7]]
    assert [samples.tolist() for samples in spoken.samples] == [[1, 2]]


@pytest.mark.parametrize("prosody", [Prosody(), Prosody(pitch=3.0)])
@pytest.mark.parametrize("volume", [None, 0.5])
def test_both_stages_at_once_equal_one_after_the_other(prosody: Prosody, volume: float | None) -> None:
    rows = [(id, replace(row(*tokens), prosody=prosody, pcm_volume=volume)) for id, tokens in ((1, (5, 6)), (2, (9,)))]
    ours = runner(LoneModel())
    both, first = ours.run(both_stages(rows)), ours.run(first_stage(rows))
    second = ours.run(second_stage([1, 2]))
    for at_once, in_turn in ((both.durations, first.durations), (both.samples, second.samples)):
        assert all(np.array_equal(a, b) for a, b in zip(at_once, in_turn, strict=True))
    assert {samples.dtype for samples in both.samples} == {np.dtype(np.float32 if volume is None else np.int16)}


def test_rows_that_ran_both_stages_leave_no_frames() -> None:
    ours = runner(ToneModel())
    ours.run(first_stage([(1, row(5))]))
    ours.run(both_stages([(1, row(5))]))
    with pytest.raises(RowsLost):
        ours.run(second_stage([1]))


def test_samples_in_another_format_than_the_row_asks_for_are_an_error() -> None:
    asked = replace(row(5), pcm_volume=1.0)
    with pytest.raises(ModelFailed, match="float32"):
        runner(FloatModel()).run(both_stages([(1, asked)]))
