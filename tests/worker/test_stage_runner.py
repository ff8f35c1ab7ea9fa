"""The desk: how often a model is asked, and for what."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.worker.troubled_model import row
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
    desk = StageRunner(lambda: {"tone": model}, lambda *_: None)
    rows = {1: row(5), 2: row(6), 3: row(7)}
    desk.acoustic("tone", list(rows.items()))
    desk.begin("tone", [1, 2])
    sounds = desk.vocoder("tone", asked)
    assert model.n_vocoded == n_vocoded
    alone = ToneModel()
    for id, samples in zip(asked, sounds, strict=True):
        assert np.array_equal(samples, alone.vocoder(alone.acoustic([rows[id]]))[0])
