"""Run the stages: owns the checkpoints of one device, and the frames of each row between its two stages."""

import logging
from collections.abc import Sequence
from typing import Any

from tutti.errors import DeviceFull, InvalidInput, ModelFailed, RowsLost, TuttiError
from tutti.model.protocol import Ran, run_acoustic, run_vocoder
from tutti.model.spans import quiet_end
from tutti.speech import Frames, Span
from tutti.worker.messages import FrameRange, ModelFactory, Progress, Run

log = logging.getLogger(__name__)


class StageRunner:
    """Models and frames of one device; used by one thread, and where stages overlap by a second one for `acoustic`."""

    def __init__(self, make_models: ModelFactory, progress: Progress) -> None:
        """Load and warm up all models; raise what they raise."""
        progress("loading", 0, 0)
        self._models = make_models()
        self._frames: dict[int, Frames] = {}
        self._span_caches: dict[int, dict[str, Any]] = {}  # of rows vocoded span by span
        self.stages_overlap = all(model.traits.stages_overlap for model in self._models.values())
        for name, model in self._models.items():
            model.warm_up(lambda done, steps, name=name: progress(f"warming up {name}", done, steps))  # type: ignore[misc]

    def enter_thread(self) -> None:
        """Prepare this thread to run a stage, if it is not the one that loaded the models."""
        for model in self._models.values():
            model.enter_thread()

    def run(self, run: Run) -> Ran:
        """Run the stages of a call. Call `forget_finished` when the result has been handed over."""
        if run.checkpoint not in self._models:
            raise InvalidInput(f"unknown model {run.checkpoint!r}; available: {', '.join(self._models)}", param="model")
        model = self._models[run.checkpoint]
        match run.stages:
            case "acoustic":
                frames = run_acoustic(model.acoustic, run.utterances)
                self._frames.update(zip(run.ids, frames, strict=True))
                return Ran(durations=[row.durations for row in frames])
            case "vocoder":
                return Ran(samples=run_vocoder(model.vocoder, [self.row(id, run.spans.get(id)) for id in run.ids]))
            case "both":
                self.forget(run.ids)
                return model.speak(run.utterances)

    def forget_finished(self, run: Run) -> None:
        """Drop the frames of rows whose last samples the call made."""
        if run.stages == "vocoder":
            spans = run.spans
            self.forget([id for id in run.ids if id not in spans or spans[id][1] == self._frames[id].n_frames])

    def forget(self, ids: Sequence[int]) -> None:
        for id in ids:
            self._frames.pop(id, None)
            self._span_caches.pop(id, None)

    def close(self) -> None:
        self._frames.clear()
        self._span_caches.clear()
        for model in self._models.values():
            model.close()

    def row(self, id: int, span: FrameRange | None = None) -> Frames:
        """A row that went through the acoustic stage here, or a span of it.

        A span that is not the last of its row may end a little earlier, where the row is quieter.
        """
        if id not in self._frames:
            raise RowsLost(f"the worker does not hold row {id}: it was restarted after the row's first stage")
        row = self._frames[id]
        if span is None:
            return row
        start, end = span
        return Span.of(row, (start, quiet_end(row.energy, start, end)), self._span_caches.setdefault(id, {}))


def as_tutti_error(exc: BaseException) -> TuttiError:
    """Convert any error: DeviceFull if memory ran out, ModelFailed for any other foreign type."""
    if isinstance(exc, TuttiError):
        return exc
    if isinstance(exc, MemoryError) or type(exc).__name__ == "OutOfMemoryError":  # of PyTorch, never imported here
        return DeviceFull(f"out of memory: {exc}; send fewer rows" if str(exc) else "out of memory; send fewer rows")
    log.error("the model failed", exc_info=exc)
    return ModelFailed(f"the model failed: {type(exc).__name__}: {exc}")
