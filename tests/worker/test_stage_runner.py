"""A model may speak a row that is alone in a way of its own; what it leaves goes through both stages."""

from types import SimpleNamespace

import numpy as np

from tutti.model.tone import ToneModel
from tutti.speech import Utterance
from tutti.worker.stage_runner import StageRunner

LEFT = 9  # a first phoneme that the model does not speak alone


class AloneModel(ToneModel):
    def speak_row(self, row: Utterance) -> SimpleNamespace | None:
        if row.tokens[1] == LEFT:
            return None
        return SimpleNamespace(durations=np.array([7]), samples=np.array([1, 2], np.int16), acoustic_s=0.0)


def row(*phonemes: int) -> Utterance:
    return Utterance(np.array([0, *phonemes, 0]), np.zeros(256, np.float32))


def test_only_a_row_alone_is_spoken_alone_and_only_if_the_model_takes_it() -> None:
    alone = StageRunner(lambda: {"tone": AloneModel()}, lambda *_: None)
    plain = StageRunner(lambda: {"tone": ToneModel()}, lambda *_: None)
    spoken = alone.both_stages("tone", [(1, row(5, 6))])
    assert [durations.tolist() for durations in spoken.durations] == [[7]]
    assert [samples.tolist() for samples in spoken.samples] == [[1, 2]]
    for rows in ([(1, row(5, 6)), (2, row(6))], [(1, row(LEFT, 6))]):
        ours, both = alone.both_stages("tone", rows), plain.both_stages("tone", rows)
        assert all(np.array_equal(a, b) for a, b in zip(ours.durations, both.durations, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(ours.samples, both.samples, strict=True))
