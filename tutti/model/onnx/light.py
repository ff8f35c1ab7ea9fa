"""The light vocoder on a processor: ONNX Runtime for the decoder and the network, NumPy for the signals around them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from tutti.model.light import signal, weights
from tutti.model.light.row import TimbreSteering, row_statistics
from tutti.model.light.signal import CONTEXT_STEPS, REACH, Spectra
from tutti.model.light.weights import Weights
from tutti.model.onnx import proto, split
from tutti.model.onnx.decoder_graph import OUTPUT, decoder_graph
from tutti.model.onnx.graph_files import packaged_graph
from tutti.model.onnx.light_graph import DECODED, PITCH, RANGES, SPECTRA, STYLE, TAPS, TIMBRE, light_graph
from tutti.model.onnx.session import open_session, run
from tutti.model.onnx.windows import SHORT_FRAMES, WindowedVocoder, needed, relative
from tutti.speech import Frames

Floats = NDArray[np.float32]
CONTEXTS = range(CONTEXT_STEPS - REACH, -1, -(TAPS // 2))  # steps on both sides, before each convolution and at last


class LightInput(NamedTuple):
    """What the network reads of the whole row."""

    features: Floats  # [1, 2T, 512]
    timbre: Floats  # [128] steered by the row's statistics


class LightVocoder(WindowedVocoder):
    """The decoder runs row by row on all cores, then the network."""

    def __init__(self, graphs: split.Graphs, threads: int) -> None:
        super().__init__(threads)
        self._decoder = open_session(decoder_path(graphs.decoding), threads, spinning=True)
        self._network = open_session(network_path(graphs.decoding.parent), threads)
        self._steering = TimbreSteering.of(weights.read(prefix="row."))

    def read_row(self, row: Frames) -> LightInput:
        inputs = split.decoder_inputs(row)
        (features,) = run(self._decoder, [OUTPUT], inputs, keep_workspace=row.n_frames <= SHORT_FRAMES)
        return LightInput(features, self._steering(row.style[:TIMBRE], row_statistics(features[0], row.f0)))

    def predict(self, read: LightInput, row: Frames, low: int, high: int) -> Spectra:
        return predict(self._network, read, row, low, high)


def network_path(folder: Path) -> Path:
    """The network as a graph in this folder."""
    return packaged_graph(folder, "light", weights.PATH, light_graph)


def decoder_path(official: Path) -> Path:
    """The decoder as a graph, next to the part of the official one that holds it."""

    def build(bases: Weights) -> bytes:
        return decoder_graph(proto.load(official), bases)

    return packaged_graph(official.parent, f"{official.stem}.light", weights.BASES_PATH, build)


def predict(network: ort.InferenceSession, read: LightInput, row: Frames, low: int, high: int) -> Spectra:
    """The spectra of these steps, from the steps that decide them: before the first convolution, and after each."""
    ranges = [needed(low, high, 2 * row.n_frames, context) for context in CONTEXTS]
    (begin, stop), (start, _) = ranges[0], ranges[-1]
    inputs = {
        DECODED: read.features[:, begin:stop],
        PITCH: signal.pitch_inputs(row.f0[begin:stop])[None],
        STYLE: read.timbre[None],
        RANGES: np.array(relative(ranges)),
    }
    outputs = run(network, list(SPECTRA), inputs, keep_workspace=row.n_frames <= SHORT_FRAMES)
    return Spectra(*(output[0, low - start : high - start] for output in outputs))
