"""The light vocoder on a processor: ONNX Runtime for the decoder and the network, NumPy for the signals around them."""

from collections.abc import Callable, Iterator, Sequence
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
from tutti.model.light.weights import Weights
from tutti.model.onnx import proto, split
from tutti.model.onnx.decoder_graph import OUTPUT, decoder_graph
from tutti.model.onnx.graph import FORMAT
from tutti.model.onnx.light_graph import DECODED, OUTPUTS, PITCH, RANGES, STYLE, TAPS, TIMBRE, light_graph
from tutti.model.onnx.session import open_session, run
from tutti.model.onnx.text_graph import text_graph
from tutti.model.validation import finish_samples
from tutti.speech import Frames, Samples, Span

Floats = NDArray[np.float32]
SHORT_FRAMES = 375  # up to which a row leaves its workspace to the next one; 9 s
MIN_PIECE = 20  # frames; shorter ones would be mostly context
# Steps: the int8 products take up to four together, and sum in another order what is left over at the end. Pieces that
# begin and end at multiples of it are left with the same steps as the whole row.
GROUP = 4
CONTEXTS = range(CONTEXT_STEPS - REACH, -1, -(TAPS // 2))  # steps on both sides, before each convolution and at last


class LightInput(NamedTuple):
    """What the network reads of the whole row."""

    features: Floats  # [1, 2T, 512]
    timbre: Floats  # [128] steered by the row's statistics


class LightVocoder:
    """The decoder runs row by row on all cores, and so does the network for a row alone: then each product is shared.

    Of several rows, each core takes pieces. A piece is exactly a part of the whole, so it does not matter how rows and
    spans are cut.
    """

    def __init__(self, graphs: split.Graphs, threads: int) -> None:
        self._threads = threads
        self._decoder = open_session(decoder_path(graphs.decoding), threads, spinning=True)
        self._network = open_session(network_path(graphs.decoding.parent), threads)
        self._steering = TimbreSteering.of(weights.read(prefix="row."))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vocoder")

    def __call__(self, rows: Sequence[Frames]) -> list[Samples]:
        decoded = [self._decode(row) for row in rows]
        ranges = [(row.start, row.end) if isinstance(row, Span) else (0, row.n_frames) for row in rows]
        n_frames = sum(end - start for start, end in ranges)
        share = n_frames / self._threads if len(rows) > 1 else n_frames  # of a core
        pieces = [(i, piece) for i, (start, end) in enumerate(ranges) for piece in split_evenly(start, end, share)]
        samples = list(
            self._pool.map(lambda piece: generate(self._network, decoded[piece[0]], rows[piece[0]], *piece[1]), pieces)
        )
        by_row: list[list[Samples]] = [[] for _ in rows]
        for (i, _), part in zip(pieces, samples, strict=True):
            by_row[i].append(part)
        return [finish_samples(row, np.concatenate(parts)) for row, parts in zip(rows, by_row, strict=True)]

    def close(self) -> None:
        self._pool.shutdown()

    def _decode(self, row: Frames) -> LightInput:
        """The network's input for the whole row; kept for its later spans."""
        cache = row.cache if isinstance(row, Span) else {}
        if OUTPUT not in cache:
            inputs = split.decoder_inputs(row)
            (features,) = run(self._decoder, [OUTPUT], inputs, keep_workspace=row.n_frames <= SHORT_FRAMES)
            timbre = self._steering(row.style[:TIMBRE], row_statistics(features[0], row.f0))
            cache[OUTPUT] = LightInput(features, timbre)
        decoded: LightInput = cache[OUTPUT]
        return decoded


def network_path(folder: Path) -> Path:
    """The network as a graph in this folder."""
    return _written(folder, "light", weights.PATH, light_graph)


def text_path(graphs: split.Graphs) -> Path:
    """The light text encoder as a graph, next to the parts of the official one."""
    return _written(graphs.reading.parent, "light-text", weights.TEXT_PATH, text_graph)


def decoder_path(official: Path) -> Path:
    """The decoder as a graph, next to the part of the official one that holds it."""

    def build(bases: Weights) -> bytes:
        return decoder_graph(proto.load(official), bases)

    return _written(official.parent, f"{official.stem}.light", weights.BASES_PATH, build)


def _written(folder: Path, name: str, source: Path, build: Callable[[Weights], bytes]) -> Path:
    """A graph with these weights; written at first use, since building it takes time and memory."""
    path = folder / f"{name}-{sha256(FORMAT + source.read_bytes()).hexdigest()[:16]}.onnx"
    if not path.exists():
        with FileLock(folder / f"{name}.lock"):
            if not path.exists():
                split.write_graph(build(weights.read(source)), path)
                for older in set(folder.glob(f"{name}-*.onnx")) - {path}:
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
    # Spectra that reach into the piece, and the steps that decide them: before the first convolution, and after each.
    low, high = max(0, first - REACH), min(n_steps, last + REACH)
    needed = [needed_steps(low, high, n_steps, context) for context in CONTEXTS]
    (begin, stop), (start, _) = needed[0], needed[-1]
    inputs = {
        DECODED: decoded.features[:, begin:stop],
        PITCH: signal.pitch_inputs(row.f0[begin:stop])[None],
        STYLE: decoded.timbre[None],
        RANGES: np.array([[one - before[0] for one in now] for before, now in pairwise(needed)]).reshape(-1),
    }
    outputs = run(network, list(OUTPUTS), inputs, keep_workspace=row.n_frames <= SHORT_FRAMES)
    predicted = Spectra(*(output[0, low - start : high - start] for output in outputs))
    pulses, noise = _sources(row, low - REACH, high + REACH)
    spectrum = signal.combine(predicted, signal.analyse(pulses), signal.analyse(noise))
    samples = signal.synthesise(spectrum)
    return samples[(first - low) * HOP : (last - low) * HOP]


def needed_steps(low: int, high: int, n_steps: int, context: int) -> tuple[int, int]:
    """These steps of a row with so many on both sides, in whole groups."""
    return max(0, low - context) // GROUP * GROUP, min(n_steps, -(-(high + context) // GROUP) * GROUP)


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
