"""The light vocoder on a processor: ONNX Runtime for the decoder and the network, NumPy for the signals around them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from filelock import FileLock
from numpy.typing import NDArray

from tutti.model.light import signal, weights
from tutti.model.light.noise import normal, row_seed
from tutti.model.light.row import TimbreSteering, row_statistics
from tutti.model.light.signal import CONTEXT_STEPS, HOP, REACH, Spectra
from tutti.model.onnx import split
from tutti.model.onnx.light_graph import DECODED, OUTPUTS, PITCH, STYLE, TIMBRE, light_graph
from tutti.model.onnx.session import open_session, run
from tutti.model.validation import check_samples
from tutti.speech import Frames, Samples, Span

Floats = NDArray[np.float32]
MIN_PIECE = 20  # frames; shorter ones would be mostly context
# Steps: the int8 products take up to four together, and sum in another order what is left over at the end. Pieces that
# begin and end at multiples of it are left with the same steps as the whole row.
GROUP = 4


class LightInput(NamedTuple):
    """What the network reads of the whole row."""

    features: Floats  # [1, 512, 2T]
    timbre: Floats  # [128] steered by the row's statistics


class LightVocoder:
    """The decoder runs row by row on all cores; then each core takes pieces of the rows.

    A piece is exactly a part of the whole, so it does not matter how rows and spans are cut.
    """

    def __init__(self, graphs: split.Graphs, threads: int) -> None:
        self._threads = threads
        self._decoder = open_session(graphs.light_decoder, threads)
        self._network = open_session(network_path(graphs.light_decoder.parent), 1)
        self._steering = TimbreSteering.of(weights.read())
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vocoder")

    def __call__(self, rows: Sequence[Frames]) -> list[Samples]:
        decoded = [self._decode(row) for row in rows]
        ranges = [(row.start, row.end) if isinstance(row, Span) else (0, row.n_frames) for row in rows]
        share = sum(end - start for start, end in ranges) / self._threads  # frames for each core
        pieces = [(i, piece) for i, (start, end) in enumerate(ranges) for piece in split_evenly(start, end, share)]
        samples = list(
            self._pool.map(lambda piece: generate(self._network, decoded[piece[0]], rows[piece[0]], *piece[1]), pieces)
        )
        by_row: list[list[Samples]] = [[] for _ in rows]
        for (i, _), part in zip(pieces, samples, strict=True):
            by_row[i].append(part)
        return [check_samples(row, np.concatenate(parts)) for row, parts in zip(rows, by_row, strict=True)]

    def close(self) -> None:
        self._pool.shutdown()

    def _decode(self, row: Frames) -> LightInput:
        """The network's input for the whole row; kept for its later spans."""
        cache = row.cache if isinstance(row, Span) else {}
        if split.DECODED not in cache:
            (features,) = run(self._decoder, [split.DECODED], split.decoder_inputs(row))
            timbre = self._steering(row.style[:TIMBRE], row_statistics(features[0], row.f0))
            cache[split.DECODED] = LightInput(features, timbre)
        decoded: LightInput = cache[split.DECODED]
        return decoded


def network_path(folder: Path) -> Path:
    """The network as a graph in this folder; written at first use, since building it takes time and 50 MB."""
    path = folder / f"light-{sha256(weights.PATH.read_bytes()).hexdigest()[:16]}.onnx"
    if not path.exists():
        with FileLock(folder / "light.lock"):
            if not path.exists():
                split.write_graph(light_graph(weights.read()), path)
                for older in set(folder.glob("light-*.onnx")) - {path}:
                    older.unlink()
    return path


def split_evenly(start: int, end: int, length: float) -> Iterator[tuple[int, int]]:
    """Cut frames into equal pieces of about this length, and at least MIN_PIECE."""
    n = max(1, min(round((end - start) / length), (end - start) // MIN_PIECE))
    cuts = [start + (end - start) * i // n for i in range(n + 1)]
    yield from pairwise(cuts)


def generate(network: ort.InferenceSession, decoded: LightInput, row: Frames, start: int, end: int) -> Samples:
    """The samples of the frames `start` to `end`: the same in any piece."""
    n_steps, first, last = 2 * row.n_frames, 2 * start, 2 * end
    # Spectra that reach into the piece, and the steps that decide them.
    low, high = max(0, first - REACH), min(n_steps, last + REACH)
    begin = max(0, first - CONTEXT_STEPS) // GROUP * GROUP
    stop = min(n_steps, -(-(last + CONTEXT_STEPS) // GROUP) * GROUP)
    inputs = {
        DECODED: np.ascontiguousarray(decoded.features[:, :, begin:stop]),
        PITCH: signal.pitch_inputs(row.f0[begin:stop])[None],
        STYLE: decoded.timbre[None],
    }
    outputs = run(network, list(OUTPUTS), inputs)
    predicted = Spectra(*(output[0, low - begin : high - begin] for output in outputs))
    pulses, noise = _sources(row, low - REACH, high + REACH)
    spectrum = signal.combine(predicted, signal.analyse(pulses), signal.analyse(noise))
    samples = signal.synthesise(spectrum)
    return samples[(first - low) * HOP : (last - low) * HOP]


def _sources(row: Frames, low: int, high: int) -> tuple[Samples, Samples]:
    """Pulses and noise of these steps; zero outside the row."""
    n_steps = len(row.f0)
    begin, stop = max(0, low), min(n_steps, high)
    next_f0 = np.append(row.f0[begin + 1 : stop + 1], np.zeros(max(0, stop + 1 - n_steps), np.float32))
    pulses = signal.pulses(row.f0[begin:stop], signal.pitch_phase(row.f0)[begin:stop], next_f0)
    seed = np.array([row_seed(row.durations, row.style)])  # an array wraps around silently, unlike a scalar
    noise = normal(seed, np.arange(begin * HOP, stop * HOP))
    outside = ((begin - low) * HOP, (high - stop) * HOP)
    return np.pad(pulses, outside), np.pad(noise, outside)
