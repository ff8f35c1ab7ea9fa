"""Stretches of rows through ONNX Runtime: the decoder once for a whole row, the generator for each stretch."""

from collections.abc import Callable

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from tutti.model import cut
from tutti.model.stretch import CONTEXT, FIRST, cut_out, representatives
from tutti.model.stretching import FINE_WEIGHTS, GIVEN, LISTENING, ROUGH_WEIGHTS
from tutti.speech import SAMPLES_PER_FRAME, Part, Samples

Arrays = dict[str, NDArray[np.float32]]
Run = Callable[[ort.InferenceSession, list[str] | None, dict[str, np.ndarray]], list[np.ndarray]]

NOTHING: Arrays = {name: np.zeros(1, np.float32) for name in (ROUGH_WEIGHTS, FINE_WEIGHTS)}
OPENING = "opening"  # the samples of the first stretch, which sound while the row is listened to


class Stretcher:
    """Keeps with each row what its later stretches need, so that they continue each other sample by sample."""

    def __init__(self, session: ort.InferenceSession, run: Run) -> None:
        self._session = session
        self._run = run
        self._statistics = [value.name for value in session.get_outputs()[1:]]

    def sound(self, part: Part, decode: Callable[[Part], tuple[np.ndarray, np.ndarray]]) -> Samples:
        """The samples of the part. `decode` gives what the generator reads, for the whole row."""
        kept = part.kept
        if cut.DECODED not in kept:
            kept[cut.DECODED], kept[cut.SOURCE] = decode(part)
        if OPENING not in kept:
            self._listen(part, kept)
        if part.end <= FIRST:
            return kept[OPENING][part.start * SAMPLES_PER_FRAME : part.end * SAMPLES_PER_FRAME]
        start, end = max(part.start - CONTEXT, 0), min(part.end + CONTEXT, part.n_frames)
        given = {GIVEN + name: kept[name] for name in self._statistics}
        samples, *_ = self._shape(part, kept, np.arange(start, end), {LISTENING: np.array(False), **NOTHING, **given})
        skipped = (part.start - start) * SAMPLES_PER_FRAME
        return samples[skipped : skipped + (part.end - part.start) * SAMPLES_PER_FRAME]

    def _listen(self, part: Part, kept: Arrays) -> None:
        """The statistics of the row, by those frames that speak for it."""
        frames, weights = representatives(kept[cut.DECODED], kept[cut.SOURCE])
        rough, fine = np.repeat(weights, 20) / 20, np.append(np.repeat(weights, 120) / 120, 0)
        feed = {
            LISTENING: np.array(True),
            ROUGH_WEIGHTS: rough.astype(np.float32),
            FINE_WEIGHTS: fine.astype(np.float32),
            **{GIVEN + name: NOTHING[ROUGH_WEIGHTS] for name in self._statistics},
        }
        samples, *statistics = self._shape(part, kept, frames, feed)
        kept.update(zip(self._statistics, statistics, strict=True))
        kept[OPENING] = samples[: FIRST * SAMPLES_PER_FRAME]

    def _shape(self, part: Part, kept: Arrays, frames: NDArray[np.int64], told: dict[str, np.ndarray]) -> list[Samples]:
        decoded, source = cut_out(kept[cut.DECODED], kept[cut.SOURCE], frames)
        feed = {cut.DECODED: decoded, cut.SOURCE: source, "style": part.style[None], **told}
        samples, *statistics = self._run(self._session, None, feed)
        return [samples.reshape(-1), *statistics]
