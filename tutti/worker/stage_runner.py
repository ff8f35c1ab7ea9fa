"""Run the stages: owns the checkpoints of one device, and the frames of each row between its two stages."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tutti.errors import DeviceFull, InvalidInput, ModelFailed, RowsLost, TuttiError
from tutti.model.prosody import apply_prosody
from tutti.model.spans import quiet_end
from tutti.model.validation import check_samples, not_finite
from tutti.speech import Frames, Model, Samples, Span, Stage, Utterance, to_pcm
from tutti.worker.messages import BothStages, FrameRange, ModelFactory, Progress, RunAcoustic, RunVocoder, StageRequest

log = logging.getLogger(__name__)

StageResult = list[NDArray[np.int64]] | list[Samples] | BothStages


class StageRunner:
    """Models and frames of one device; used by one thread, and where stages overlap by a second one for `acoustic`."""

    def __init__(self, make_models: ModelFactory, progress: Progress) -> None:
        """Load and warm up all models; raise what they raise."""
        progress("loading", 0, 0)
        self._models = make_models()
        self._frames: dict[int, Frames] = {}
        self._span_caches: dict[int, dict[str, Any]] = {}  # of rows vocoded span by span
        self._pcm_volumes: dict[int, float] = {}  # of rows whose samples are wanted as integers
        # Whether an acoustic batch may run at the same time as one of the vocoder; a model that may has this attribute.
        self.stages_overlap = all(getattr(model, "stages_overlap", False) for model in self._models.values())
        for name, model in self._models.items():
            if warm_up := getattr(model, "warm_up", None):
                warm_up(lambda done, shapes, name=name: progress(f"warming up {name}", done, shapes))

    def enter_thread(self) -> None:
        """Prepare this thread to run a stage, if it is not the one that loaded the models."""
        for model in self._models.values():
            if enter := getattr(model, "enter_thread", None):
                enter()

    def run(self, request: StageRequest) -> StageResult:
        """Run the stages of a request. Call `forget_finished` when the result has been handed over."""
        if isinstance(request, RunAcoustic):
            return self.acoustic(request.checkpoint, request.rows)
        if isinstance(request, RunVocoder):
            return self.vocoder(request.checkpoint, request.ids, request.spans)
        return self.both_stages(request.checkpoint, request.rows)

    def acoustic(self, checkpoint: str, rows: Sequence[tuple[int, Utterance]]) -> list[NDArray[np.int64]]:
        """Frames for each token of each row; keep the frames themselves under the row's id."""
        return self._keep_frames(rows, self._model(checkpoint).acoustic)

    def _keep_frames(
        self, rows: Sequence[tuple[int, Utterance]], acoustic: Stage[Utterance, Frames]
    ) -> list[NDArray[np.int64]]:
        batch = acoustic([utterance for _, utterance in rows])
        _check_length(len(rows), len(batch))
        for (_, utterance), frames in zip(rows, batch, strict=True):
            apply_prosody(frames, utterance.prosody)
        self._frames.update((id, frames) for (id, _), frames in zip(rows, batch, strict=True))
        self._pcm_volumes.update((id, row.pcm_volume) for id, row in rows if row.pcm_volume is not None)
        return [frames.durations for frames in batch]

    def vocoder(self, checkpoint: str, ids: Sequence[int], spans: Mapping[int, FrameRange] = {}) -> list[Samples]:
        """Samples of rows that went through `acoustic` here: of the whole row, or of a span of its frames.

        A span that is not the last of its row may end a little earlier, where the row is quieter. The frames are kept
        until `forget` or `forget_finished`, so that a failed batch can be tried again in halves.
        """
        for id in ids:
            if id not in self._frames:
                raise RowsLost(f"the worker does not hold row {id}: it was restarted after the row's first stage")
        rows = [self._row(id, spans.get(id)) for id in ids]
        batch = self._vocode(checkpoint, rows, [self._pcm_volumes.get(id) for id in ids])
        _check_length(len(ids), len(batch))
        for row, samples in zip(rows, batch, strict=True):
            if isinstance(row, Span):  # a model that does not know spans would return the whole row
                check_samples(row, samples)
        return batch

    def _vocode(self, checkpoint: str, rows: Sequence[Frames], volumes: Sequence[float | None]) -> list[Samples]:
        """Run the vocoder; the samples of rows with a volume become integers, on the device where the model can."""
        model = self._model(checkpoint)
        on_device = getattr(model, "vocoder_pcm", None)
        if on_device is not None and None not in volumes and not any(isinstance(row, Span) for row in rows):
            return list(on_device(rows, volumes))
        batch = list(model.vocoder(rows))
        for i, volume in enumerate(volumes[: len(batch)]):
            if volume is not None:
                batch[i] = cast(Samples, to_pcm(_finite(batch[i]), volume))
        return batch

    def both_stages(self, checkpoint: str, rows: Sequence[tuple[int, Utterance]]) -> BothStages:
        """Run both stages; keep no frames, even after an error."""
        ids = [id for id, _ in rows]
        try:
            start_s, model = time.perf_counter(), self._model(checkpoint)
            speak_row = getattr(model, "speak_row", None)
            if speak_row is not None and len(rows) == 1 and (spoken := speak_row(rows[0][1])) is not None:
                vocoder_s = time.perf_counter() - start_s - spoken.acoustic_s
                return BothStages([spoken.durations], [spoken.samples], spoken.acoustic_s, vocoder_s)
            # A model on a device may prepare the vocoder while the device still computes pitch and energy.
            durations = self._keep_frames(rows, getattr(model, "start_acoustic", model.acoustic))
            between_s = time.perf_counter()
            samples = self.vocoder(checkpoint, ids)
            return BothStages(durations, samples, between_s - start_s, time.perf_counter() - between_s)
        finally:
            self.forget(ids)

    def forget_finished(self, request: StageRequest) -> None:
        """Drop the frames of rows whose last samples the request made."""
        if isinstance(request, RunVocoder):
            spans = request.spans
            self.forget([id for id in request.ids if id not in spans or spans[id][1] == self._frames[id].n_frames])

    def forget(self, ids: Sequence[int]) -> None:
        for id in ids:
            self._frames.pop(id, None)
            self._pcm_volumes.pop(id, None)
            self._span_caches.pop(id, None)

    def close(self) -> None:
        self._frames.clear()
        self._span_caches.clear()
        for model in self._models.values():
            model.close()

    def _row(self, id: int, span: FrameRange | None) -> Frames:
        row = self._frames[id]
        if span is None:
            return row
        start, end = span
        return Span.of(row, (start, quiet_end(row.energy, start, end)), self._span_caches.setdefault(id, {}))

    def _model(self, checkpoint: str) -> Model:
        if checkpoint not in self._models:
            raise InvalidInput(f"unknown model {checkpoint!r}; available: {', '.join(self._models)}", param="model")
        return self._models[checkpoint]


def as_tutti_error(exc: BaseException) -> TuttiError:
    """Convert any error: DeviceFull if memory ran out, ModelFailed for any other foreign type."""
    if isinstance(exc, TuttiError):
        return exc
    if isinstance(exc, MemoryError) or type(exc).__name__ == "OutOfMemoryError":  # of PyTorch, never imported here
        return DeviceFull(f"out of memory: {exc}; send fewer rows" if str(exc) else "out of memory; send fewer rows")
    log.error("the model failed", exc_info=exc)
    return ModelFailed(f"the model failed: {type(exc).__name__}: {exc}")


def _finite(samples: Samples) -> Samples:
    if not np.isfinite(samples).all():
        raise not_finite()
    return samples


def _check_length(n_rows: int, n_results: int) -> None:
    if n_rows != n_results:
        raise ModelFailed(f"the model returned {n_results} rows when {n_rows} were requested")
