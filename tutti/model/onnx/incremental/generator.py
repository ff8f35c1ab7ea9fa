"""Spans of rows through ONNX Runtime: the decoder once for a whole row, the generator for each span."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from tutti.model.onnx import split
from tutti.model.onnx.incremental.rewrite import COARSE_WEIGHTS, ESTIMATE, FINE_WEIGHTS, GIVEN
from tutti.model.onnx.incremental.statistics import CONTEXT_FRAMES, FIRST_FRAMES, representatives, select_frames
from tutti.speech import SAMPLES_PER_FRAME, Samples, Span

Arrays = dict[str, NDArray[np.float32]]
RunSession = Callable[[ort.InferenceSession, list[str] | None, dict[str, np.ndarray]], list[np.ndarray]]

NO_WEIGHTS: Arrays = {name: np.zeros((1, 1), np.float32) for name in (COARSE_WEIGHTS, FINE_WEIGHTS)}
WINDOW, HOP = 20, 5  # samples, of the STFT
FIRST_SPAN = "first_span"  # the samples of the first span, generated together with the statistics of the row


class DecodedRow(NamedTuple):
    """The outputs of the decoder for a row: features, and the wave of the harmonic source."""

    features: NDArray[np.float32]
    wave: NDArray[np.float32]


class SpanGenerator:
    """Caches with each row what its later spans need, so that they continue each other sample by sample."""

    def __init__(self, session: ort.InferenceSession, spectrum: ort.InferenceSession, run: RunSession) -> None:
        self._session = session
        self._run = run
        self._stft = stft_matrix(spectrum, run)
        self._statistics = [value.name for value in session.get_outputs()[1:]]

    def generate(self, span: Span, decoded: DecodedRow | None) -> Samples:
        """The samples of the span. The first span of a row comes with the decoded row."""
        state = span.cache
        if decoded is not None:
            state[split.DECODED], state[split.SOURCE] = decoded.features, source_spectrum(decoded.wave, self._stft)
        if FIRST_SPAN not in state:
            self._estimate_statistics(span, state)
        if span.end <= FIRST_FRAMES:
            first: Samples = state[FIRST_SPAN]
            return first[span.start * SAMPLES_PER_FRAME : span.end * SAMPLES_PER_FRAME]
        start, end = max(span.start - CONTEXT_FRAMES, 0), min(span.end + CONTEXT_FRAMES, span.n_frames)
        statistics = {GIVEN + name: state[name] for name in self._statistics}
        feed = {ESTIMATE: np.array(False), **NO_WEIGHTS, **statistics}
        samples, *_ = self._run_generator(span, np.arange(start, end), feed)
        skipped = (span.start - start) * SAMPLES_PER_FRAME
        return samples[skipped : skipped + (span.end - span.start) * SAMPLES_PER_FRAME]

    def _estimate_statistics(self, span: Span, state: Arrays) -> None:
        """Estimate the row's statistics from representative frames; the first span comes out of the same pass."""
        frames, weights = representatives(state[split.DECODED], state[split.SOURCE])
        coarse, fine = np.repeat(weights, 20) / 20, np.append(np.repeat(weights, 120) / 120, 0)
        feed = {
            ESTIMATE: np.array(True),
            COARSE_WEIGHTS: coarse[:, None].astype(np.float32),
            FINE_WEIGHTS: fine[:, None].astype(np.float32),
            **{GIVEN + name: NO_WEIGHTS[COARSE_WEIGHTS] for name in self._statistics},
        }
        samples, *statistics = self._run_generator(span, frames, feed)
        state.update(zip(self._statistics, statistics, strict=True))
        state[FIRST_SPAN] = samples[: FIRST_FRAMES * SAMPLES_PER_FRAME]

    def _run_generator(self, span: Span, frames: NDArray[np.int64], feed: dict[str, np.ndarray]) -> list[Samples]:
        decoded, source = select_frames(span.cache[split.DECODED], span.cache[split.SOURCE], frames)
        inputs = {split.DECODED: decoded, split.SOURCE: source, "style": span.style[None], **feed}
        samples, *statistics = self._run(self._session, None, inputs)
        return [samples.reshape(-1), *statistics]


def stft_matrix(spectrum: ort.InferenceSession, run: RunSession) -> NDArray[np.float64]:
    """The STFT of one window as a matrix [20, 2 * 11], read off unit impulses: real parts, then imaginary."""
    (output,) = run(spectrum, None, {split.WAVE: np.eye(WINDOW, dtype=np.float32).reshape(1, -1)})
    matrix: NDArray[np.float64] = output[0, :: WINDOW // HOP].astype(np.float64).transpose(0, 2, 1).reshape(WINDOW, -1)
    return matrix


def source_spectrum(wave: NDArray[np.float32], stft: NDArray[np.float64]) -> NDArray[np.float32]:
    """Magnitudes, then angles, [1, 22, 120T + 1], of a wave [1, 600T + 20].

    ONNX Runtime's own STFT takes as long as the whole decoder. This one reproduces its rounding errors: in unvoiced
    parts the angles consist of them, and the generator is sensitive to angles. Double precision adds no others.
    """
    windows = np.lib.stride_tricks.sliding_window_view(wave.reshape(-1), WINDOW)[::HOP]
    real, imaginary = np.split((windows @ stft).T.astype(np.float32), 2)
    return np.concatenate([np.hypot(real, imaginary), np.arctan2(imaginary, real)])[None]
