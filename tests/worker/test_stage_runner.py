"""How often the stage runner calls a model, and with what."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.worker.fakes import expected_samples, row
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Samples
from tutti.worker.stage_runner import StageRunner


class Counted(ToneModel):
    def __init__(self) -> None:
        super().__init__()
        self.n_vocoded = 0

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        self.n_vocoded += 1
        return super().vocoder(rows)


@pytest.mark.parametrize(("asked", "n_vocoded"), [([1, 2], 1), ([2], 1), ([2, 1], 1), ([1, 3], 2)], ids=str)
def test_sound_that_was_begun_is_not_made_twice_unless_others_are_asked_for(asked: list[int], n_vocoded: int) -> None:
    model = Counted()
    runner = StageRunner(lambda: {"tone": model}, lambda *_: None)
    rows = {1: row(5), 2: row(6), 3: row(7)}
    runner.acoustic("tone", list(rows.items()))
    runner.begin("tone", [1, 2])
    sounds = runner.vocoder("tone", asked)
    assert model.n_vocoded == n_vocoded
    for id, samples in zip(asked, sounds, strict=True):
        assert np.array_equal(samples, expected_samples(rows[id]))
