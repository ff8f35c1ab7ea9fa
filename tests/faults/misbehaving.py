"""A model that fails in every way that a device or a network can."""

from collections.abc import Sequence

import numpy as np

from tests.fakes import has_token
from tutti.errors import DeviceFull, ModelFailed
from tutti.model.tone import ToneModel
from tutti.model.validation import check_samples, finish_samples
from tutti.speech import Frames, Samples
from tutti.text.vocab import SYMBOLS

# A word with this letter makes the model fail in this way whenever it is in a batch.
RAISES, NOT_A_NUMBER, WRONG_LENGTH, NO_MEMORY, BROKEN = "qxzjv"
MAX_ROWS = 2  # that fit on its device


class MisbehavingModel(ToneModel):
    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if has_token(rows, SYMBOLS[RAISES]):
            raise ModelFailed("a row that the model fails on")
        if has_token(rows, SYMBOLS[BROKEN]):
            raise ZeroDivisionError("a bug in the model")
        if len(rows) > MAX_ROWS:
            raise DeviceFull(f"no more than {MAX_ROWS} rows fit")
        samples = super().vocoder(rows)
        for n, row in enumerate(rows):
            if has_token([row], SYMBOLS[NOT_A_NUMBER]):
                finish_samples(row, samples[n] * np.float32(np.nan))
            if has_token([row], SYMBOLS[WRONG_LENGTH]):
                check_samples(row, samples[n][:-1])
        return samples
