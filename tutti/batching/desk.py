"""Where the stages are run: the checkpoints of one device, and the frames of each row between its two stages."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tutti.batching.orders import Make, Progress
from tutti.errors import DeviceFull, InvalidInput, ModelFailed, TuttiError, WorkerLost
from tutti.model.prosody import intone
from tutti.speech import Frames, Model, Samples, Utterance

log = logging.getLogger(__name__)


class Desk:
    """Owns the models and the frames. One thread at a time; whoever runs it decides which."""

    def __init__(self, make: Make, progress: Progress) -> None:
        """Loads and warms up everything. Raises what the models raise."""
        progress("loading", 0, 0)
        self._models = make()
        self._frames: dict[int, Frames] = {}
        for name, model in self._models.items():
            if warm_up := getattr(model, "warm_up", None):
                warm_up(lambda done, shapes, name=name: progress(f"warming up {name}", done, shapes))

    def acoustic(self, checkpoint: str, rows: Sequence[tuple[int, Utterance]]) -> list[NDArray[np.int64]]:
        """Frames for each token of each row; the frames themselves stay here under the row's id."""
        found = self._model(checkpoint).acoustic([row for _, row in rows])
        _check_length(len(rows), len(found))
        for (_, row), frames in zip(rows, found, strict=True):
            intone(frames, row.prosody)
        self._frames.update((id, frames) for (id, _), frames in zip(rows, found, strict=True))
        return [frames.durations for frames in found]

    def vocoder(self, checkpoint: str, ids: Sequence[int]) -> list[Samples]:
        """The samples of rows that went through `acoustic` here; kept until `forget`, so that halves can be tried."""
        for id in ids:
            if id not in self._frames:
                raise WorkerLost(f"row {id} is not here: the worker was started again since its first stage")
        found = self._model(checkpoint).vocoder([self._frames[id] for id in ids])
        _check_length(len(ids), len(found))
        return list(found)

    def forget(self, ids: Sequence[int]) -> None:
        for id in ids:
            self._frames.pop(id, None)

    def close(self) -> None:
        self._frames.clear()
        for model in self._models.values():
            model.close()

    def _model(self, checkpoint: str) -> Model:
        if checkpoint not in self._models:
            raise InvalidInput(f"no model {checkpoint!r} here; there is {', '.join(self._models)}", param="model")
        return self._models[checkpoint]


def typed(exc: BaseException) -> TuttiError:
    """The error as callers know it: memory that ran out is DeviceFull, whatever has no type of ours ModelFailed."""
    if isinstance(exc, TuttiError):
        return exc
    if isinstance(exc, MemoryError) or type(exc).__name__ == "OutOfMemoryError":  # PyTorch's, which may not be here
        return DeviceFull(f"out of memory: {exc}; send fewer rows" if str(exc) else "out of memory; send fewer rows")
    log.error("the model broke", exc_info=exc)
    return ModelFailed(f"the model broke: {type(exc).__name__}: {exc}")


def _check_length(asked: int, answered: int) -> None:
    if asked != answered:
        raise ModelFailed(f"the model answered {answered} rows when {asked} were asked")
