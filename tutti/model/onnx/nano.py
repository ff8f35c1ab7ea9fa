"""The nano vocoder on a processor: one network in ONNX Runtime, without a decoder before it."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime as ort

from tutti.model.light import signal, weights
from tutti.model.light.row import TimbreSteering, row_statistics
from tutti.model.light.signal import Spectra
from tutti.model.onnx import split
from tutti.model.onnx.graph_files import packaged_graph
from tutti.model.onnx.light_graph import RANGES, SPECTRA, STYLE, TIMBRE
from tutti.model.onnx.nano_graph import CURVES, FRAME_TAPS, STEPS_PER_FRAME, TAPS, TEXT, n_blocks, nano_graph
from tutti.model.onnx.session import open_session, run
from tutti.model.onnx.windows import SHORT_FRAMES, Floats, Range, WindowedVocoder, needed, relative
from tutti.speech import Frames


class NanoInput(NamedTuple):
    """What the network reads of the whole row."""

    text: Floats  # [1, T, 512]
    curves: Floats  # [1, 3, 2T]
    timbre: Floats  # [128] steered by the row's statistics


class NanoVocoder(WindowedVocoder):
    def __init__(self, graphs: split.Graphs, threads: int, path: Path = weights.NANO_PATH) -> None:
        super().__init__(threads)
        packed = weights.read(path)
        self._n_blocks = n_blocks(packed)
        self._network = open_session(network_path(graphs.decoding.parent, path), threads)
        self._steering = TimbreSteering.of(packed)

    def read_row(self, row: Frames) -> NanoInput:
        return read_row(row, self._steering)

    def predict(self, read: NanoInput, row: Frames, low: int, high: int) -> Spectra:
        return predict(self._network, self._n_blocks, read, row, low, high)


def network_path(folder: Path, path: Path = weights.NANO_PATH) -> Path:
    """The network as a graph in this folder."""
    return packaged_graph(folder, "nano", path, nano_graph)


def read_row(row: Frames, steering: TimbreSteering) -> NanoInput:
    text = np.ascontiguousarray(row.features.T)
    of_steps = np.concatenate([np.repeat(text, STEPS_PER_FRAME, 0), row.energy[:, None]], axis=1)
    timbre = steering(row.style[:TIMBRE], row_statistics(of_steps, row.f0))
    curves = np.concatenate([row.energy[None], signal.pitch_inputs(row.f0)])
    return NanoInput(text[None], curves[None], timbre)


def predict(
    network: ort.InferenceSession, blocks: tuple[int, int], read: NanoInput, row: Frames, low: int, high: int
) -> Spectra:
    """The spectra of these steps, from the frames and steps that decide them: before each block, and at last."""
    frames, steps = needed_places(low, high, row.n_frames, blocks)
    (begin, stop), (start, _) = frames[0], steps[-1]
    given = (STEPS_PER_FRAME * begin, STEPS_PER_FRAME * stop)
    inputs = {
        TEXT: read.text[:, begin:stop],
        CURVES: read.curves[:, :, slice(*given)],
        STYLE: read.timbre[None],
        RANGES: np.array([*relative(frames), *relative([given, steps[0]]), *relative(steps)]),
    }
    outputs = run(network, list(SPECTRA), inputs, keep_workspace=row.n_frames <= SHORT_FRAMES)
    return Spectra(*(output[0, low - start : high - start] for output in outputs))


def needed_places(low: int, high: int, n_frames: int, blocks: tuple[int, int]) -> tuple[list[Range], list[Range]]:
    """The frames before each block of frames and after the last; likewise the steps."""
    n_frame_blocks, n_step_blocks = blocks
    n_steps = STEPS_PER_FRAME * n_frames
    steps = [needed(low, high, n_steps, TAPS // 2 * left) for left in range(n_step_blocks, -1, -1)]
    start, end = steps[0][0] // STEPS_PER_FRAME, -(-steps[0][1] // STEPS_PER_FRAME)
    frames = [needed(start, end, n_frames, FRAME_TAPS // 2 * left) for left in range(n_frame_blocks, -1, -1)]
    whole = (STEPS_PER_FRAME * frames[-1][0], STEPS_PER_FRAME * frames[-1][1])  # of the frames after the last block
    return frames, [whole, *steps[1:]]
