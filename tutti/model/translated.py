"""A checkpoint with a symbol table of its own: rows come with the ids of Kokoro's symbols, and run with its own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tutti.model.protocol import Model, OnStep, Ran
from tutti.speech import Frames, Samples, Utterance


class TranslatedModel(Model):
    """Another model behind a table that has its id for each of Kokoro's."""

    def __init__(self, model: Model, ids: Sequence[int]) -> None:
        self._model = model
        self._ids = np.array(ids, np.int64)
        self.traits = model.traits

    def acoustic(self, rows: Sequence[Utterance]) -> Sequence[Frames]:
        return self._model.acoustic(self._translated(rows))

    def vocoder(self, rows: Sequence[Frames]) -> Sequence[Samples]:
        return self._model.vocoder(rows)

    def speak(self, rows: Sequence[Utterance]) -> Ran:
        return self._model.speak(self._translated(rows))

    def warm_up(self, progress: OnStep = lambda _n_done, _n_steps: None) -> None:
        self._model.warm_up(progress)

    def enter_thread(self) -> None:
        self._model.enter_thread()

    def close(self) -> None:
        self._model.close()

    def _translated(self, rows: Sequence[Utterance]) -> list[Utterance]:
        return [replace(row, tokens=self._ids[row.tokens]) for row in rows]
