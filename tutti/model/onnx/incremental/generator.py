"""Stretches of rows through ONNX Runtime: the decoder once for a whole row, the generator for each stretch."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from tutti.model.onnx import split as cut
from tutti.model.onnx.incremental.rewrite import FINE_WEIGHTS, GIVEN, LISTENING, ROUGH_WEIGHTS
from tutti.model.onnx.incremental.spans import CONTEXT, FIRST, cut_out, representatives
from tutti.speech import SAMPLES_PER_FRAME, Samples, Span

Arrays = dict[str, NDArray[np.float32]]
Run = Callable[[ort.InferenceSession, list[str] | None, dict[str, np.ndarray]], list[np.ndarray]]

NOTHING: Arrays = {name: np.zeros((1, 1), np.float32) for name in (ROUGH_WEIGHTS, FINE_WEIGHTS)}
WINDOW, HOP = 20, 5  # samples, of the transform
OPENING = "opening"  # the samples of the first stretch, which sound while the row is listened to


class Decoded(NamedTuple):
    """A row as the decoder leaves it, and the wave of its pitch."""

    features: NDArray[np.float32]
    wave: NDArray[np.float32]


class Stretcher:
    """Keeps with each row what its later stretches need, so that they continue each other sample by sample."""

    def __init__(self, session: ort.InferenceSession, spectrum: ort.InferenceSession, run: Run) -> None:
        self._session = session
        self._run = run
        self._waves = transform(spectrum, run)
        self._statistics = [value.name for value in session.get_outputs()[1:]]

    def sound(self, part: Span, decoded: Decoded | None) -> Samples:
        """The samples of the part. The first of a row comes with the row, decoded."""
        kept = part.kept
        if decoded is not None:
            kept[cut.DECODED], kept[cut.SOURCE] = decoded.features, harmonics(decoded.wave, self._waves)
        if OPENING not in kept:
            self._listen(part, kept)
        if part.end <= FIRST:
            return kept[OPENING][part.start * SAMPLES_PER_FRAME : part.end * SAMPLES_PER_FRAME]
        start, end = max(part.start - CONTEXT, 0), min(part.end + CONTEXT, part.n_frames)
        given = {GIVEN + name: kept[name] for name in self._statistics}
        samples, *_ = self._shape(part, kept, np.arange(start, end), {LISTENING: np.array(False), **NOTHING, **given})
        skipped = (part.start - start) * SAMPLES_PER_FRAME
        return samples[skipped : skipped + (part.end - part.start) * SAMPLES_PER_FRAME]

    def _listen(self, part: Span, kept: Arrays) -> None:
        """The statistics of the row, by those frames that speak for it."""
        frames, weights = representatives(kept[cut.DECODED], kept[cut.SOURCE])
        rough, fine = np.repeat(weights, 20) / 20, np.append(np.repeat(weights, 120) / 120, 0)
        feed = {
            LISTENING: np.array(True),
            ROUGH_WEIGHTS: rough[:, None].astype(np.float32),
            FINE_WEIGHTS: fine[:, None].astype(np.float32),
            **{GIVEN + name: NOTHING[ROUGH_WEIGHTS] for name in self._statistics},
        }
        samples, *statistics = self._shape(part, kept, frames, feed)
        kept.update(zip(self._statistics, statistics, strict=True))
        kept[OPENING] = samples[: FIRST * SAMPLES_PER_FRAME]

    def _shape(self, part: Span, kept: Arrays, frames: NDArray[np.int64], told: dict[str, np.ndarray]) -> list[Samples]:
        decoded, source = cut_out(kept[cut.DECODED], kept[cut.SOURCE], frames)
        feed = {cut.DECODED: decoded, cut.SOURCE: source, "style": part.style[None], **told}
        samples, *statistics = self._run(self._session, None, feed)
        return [samples.reshape(-1), *statistics]


def transform(spectrum: ort.InferenceSession, run: Run) -> NDArray[np.float64]:
    """What the transform makes of each of the samples under its window, [20, 2 * 11]: real parts, then imaginary."""
    (found,) = run(spectrum, None, {cut.WAVE: np.eye(WINDOW, dtype=np.float32).reshape(1, -1)})
    bins: NDArray[np.float64] = found[0, :: WINDOW // HOP].astype(np.float64).transpose(0, 2, 1).reshape(WINDOW, -1)
    return bins


def harmonics(wave: NDArray[np.float32], waves: NDArray[np.float64]) -> NDArray[np.float32]:
    """Magnitudes, then angles, [1, 22, 120T + 1], of a wave [1, 600T + 20].

    As ONNX Runtime's own transform has them, which takes as long as all of the decoder, with its errors: where nothing
    sounds they are all that the angles tell, and the generator hears angles. In double numbers no others come in.
    """
    under = np.lib.stride_tricks.sliding_window_view(wave.reshape(-1), WINDOW)[::HOP]
    real, imaginary = np.split((under @ waves).T.astype(np.float32), 2)
    return np.concatenate([np.hypot(real, imaginary), np.arctan2(imaginary, real)])[None]
