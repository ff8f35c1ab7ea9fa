"""Where the stages are run: the checkpoints of one device, and the frames of each row between its two stages."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from tutti.errors import DeviceFull, InvalidInput, ModelFailed, TuttiError, WorkerLost
from tutti.model.onnx.incremental.spans import quiet_end
from tutti.model.prosody import apply_prosody
from tutti.model.validation import check_samples
from tutti.speech import Frames, Model, Samples, Span, Utterance
from tutti.worker.messages import FrameRange, Make, Progress

log = logging.getLogger(__name__)


class StageRunner:
    """Owns the models and the frames. One thread at a time; whoever runs it decides which."""

    def __init__(self, make: Make, progress: Progress) -> None:
        """Loads and warms up everything. Raises what the models raise."""
        progress("loading", 0, 0)
        self._models = make()
        self._frames: dict[int, Frames] = {}
        self._kept: dict[int, dict[str, NDArray[np.float32]]] = {}  # of rows that sound stretch by stretch
        self._begun: dict[int, Samples] = {}  # the sound of one batch at most, before it is asked for
        for name, model in self._models.items():
            if warm_up := getattr(model, "warm_up", None):
                warm_up(lambda done, shapes, name=name: progress(f"warming up {name}", done, shapes))

    def acoustic(self, checkpoint: str, rows: Sequence[tuple[int, Utterance]]) -> list[NDArray[np.int64]]:
        """Frames for each token of each row; the frames themselves stay here under the row's id."""
        found = self._model(checkpoint).acoustic([row for _, row in rows])
        _check_length(len(rows), len(found))
        for (_, row), frames in zip(rows, found, strict=True):
            apply_prosody(frames, row.prosody)
        self._frames.update((id, frames) for (id, _), frames in zip(rows, found, strict=True))
        return [frames.durations for frames in found]

    def begin(self, checkpoint: str, ids: Sequence[int]) -> None:
        """Makes the sound that `vocoder` will be asked for next. What goes wrong goes wrong again then, and is told."""
        with suppress(Exception):
            self._begun = dict(zip(ids, self.vocoder(checkpoint, ids), strict=True))

    def vocoder(self, checkpoint: str, ids: Sequence[int], spans: Mapping[int, FrameRange] = {}) -> list[Samples]:
        """The samples of rows that went through `acoustic` here, all of them or a span of frames.

        A span that is not the last of its row may end a little sooner, where it is quieter. The frames are kept until
        `forget` or `spoken`, so that halves can be tried.
        """
        for id in ids:
            if id not in self._frames:
                raise WorkerLost(f"row {id} is not here: the worker was started again since its first stage")
        begun, self._begun = self._begun, {}
        if not spans and all(id in begun for id in ids):
            return [begun[id] for id in ids]
        rows = [self._row(id, spans.get(id)) for id in ids]
        found = self._model(checkpoint).vocoder(rows)
        _check_length(len(ids), len(found))
        for row, samples in zip(rows, found, strict=True):
            if isinstance(row, Span):  # a model that knows no parts would answer with the whole row
                check_samples(row, samples)
        return list(found)

    def spoken(self, ids: Sequence[int], spans: Mapping[int, FrameRange]) -> None:
        """Forgets the rows that have been heard to their end."""
        self.forget([id for id in ids if id not in spans or spans[id][1] == self._frames[id].n_frames])

    def forget(self, ids: Sequence[int]) -> None:
        for id in ids:
            self._frames.pop(id, None)
            self._kept.pop(id, None)

    def close(self) -> None:
        self._frames.clear()
        self._kept.clear()
        self._begun.clear()
        for model in self._models.values():
            model.close()

    def _row(self, id: int, span: FrameRange | None) -> Frames:
        row = self._frames[id]
        if span is None:
            return row
        start, end = span
        return Span.of(row, (start, quiet_end(row.energy, start, end)), self._kept.setdefault(id, {}))

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
