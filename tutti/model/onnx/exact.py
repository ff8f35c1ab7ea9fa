"""The exact vocoder on a processor: the second half of the official graph. It makes whole rows only, no spans."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import onnxruntime as ort

from tutti.model.onnx import split
from tutti.model.onnx.core_assignment import assign_cores
from tutti.model.onnx.session import open_session, run
from tutti.model.validation import finish_samples
from tutti.speech import Frames, Samples


class ExactVocoder:
    """A single row uses all cores; of several, each has its own core.

    A padded batch would cost the sum of its rows, so it gains nothing on a processor. But the generator, nine tenths of
    the work, is faster with one thread for each row than with all threads for one row after the other. The decoder
    gains nothing from that, and runs row by row.
    """

    def __init__(self, graphs: split.Graphs, threads: int) -> None:
        self._threads = threads
        self._decoder = open_session(graphs.decoding, threads)
        self._all_cores = open_session(graphs.generating, threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vocoder")
        # Loaded in the background: the first row runs alone and does not need it.
        self._one_core = self._pool.submit(
            lambda: open_session(graphs.generating, 1) if threads > 1 else self._all_cores
        )

    def __call__(self, rows: Sequence[Frames]) -> list[Samples]:
        by_row: dict[int, Samples] = {}
        for group in assign_cores([row.n_frames for row in rows], self._threads):
            generator = self._one_core.result() if len(group) > 1 else self._all_cores
            members = [rows[i] for i in group]
            samples = self._pool.map(partial(_generate, generator), members, [self._decode(row) for row in members])
            by_row.update(zip(group, samples, strict=True))
        return [by_row[i] for i in range(len(rows))]

    def close(self) -> None:
        self._pool.shutdown()

    def _decode(self, row: Frames) -> dict[str, np.ndarray]:
        """The generator's inputs."""
        decoded, wave = run(self._decoder, [split.DECODED, split.WAVE], split.decoder_inputs(row))
        return {split.DECODED: decoded, split.WAVE: wave, "style": row.style[None]}


def _generate(generator: ort.InferenceSession, row: Frames, inputs: dict[str, np.ndarray]) -> Samples:
    (audio,) = run(generator, None, inputs)
    return finish_samples(row, audio.reshape(-1))
