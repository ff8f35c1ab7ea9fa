"""The exact vocoder on a processor: the second half of the official graph, whole rows or span by span."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from tutti.model.onnx import split
from tutti.model.onnx.core_assignment import assign_cores
from tutti.model.onnx.incremental.generator import DecodedRow, SpanGenerator
from tutti.model.onnx.session import open_session, run
from tutti.model.spans import EXACT_SPANS
from tutti.model.validation import check_samples
from tutti.speech import Frames, Samples, Span


class ExactVocoder:
    """A single row uses all cores; of several, each has its own core.

    A padded batch would cost the sum of its rows, so it gains nothing on a processor. But the generator, nine tenths of
    the work, is faster with one thread for each row than with all threads for one row after the other. The decoder
    gains nothing from that, and runs row by row.
    """

    def __init__(self, graphs: split.Graphs, threads: int, *, incremental: bool) -> None:
        self._threads = threads
        self._decoder = open_session(graphs.decoding, threads)
        self._all_cores = _Generator(graphs, threads, incremental)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vocoder")
        # Loaded in the background: the first row runs alone and does not need it.
        self._one_core = self._pool.submit(
            lambda: _Generator(graphs, 1, incremental) if threads > 1 else self._all_cores
        )

    def __call__(self, rows: Sequence[Frames]) -> list[Samples]:
        by_row: dict[int, Samples] = {}
        for group in assign_cores([_work_frames(row) for row in rows], self._threads):
            generator = self._one_core.result() if len(group) > 1 else self._all_cores
            members = [rows[i] for i in group]
            samples = self._pool.map(generator.generate, members, [self._decode(row) for row in members])
            by_row.update(zip(group, samples, strict=True))
        return [by_row[i] for i in range(len(rows))]

    def close(self) -> None:
        self._pool.shutdown()

    def _decode(self, row: Frames) -> DecodedRow | None:
        """The generator's inputs; none for a later span, whose row was decoded before."""
        if isinstance(row, Span) and split.DECODED in row.cache:
            return None
        decoded, wave = run(self._decoder, [split.DECODED, split.WAVE], split.decoder_inputs(row))
        return DecodedRow(decoded, wave)


class _Generator:
    """The second half of the vocoder, with so many threads to each row, for whole rows and for spans."""

    def __init__(self, graphs: split.Graphs, threads: int, incremental: bool) -> None:
        self._graphs = graphs
        self._threads = threads
        self._session = open_session(graphs.generating, threads)
        if incremental:
            _ = self._spans

    @cached_property
    def _spans(self) -> SpanGenerator:
        session = open_session(self._graphs.incremental, self._threads)
        return SpanGenerator(session, open_session(self._graphs.spectrum, 1), run)

    def generate(self, row: Frames, decoded: DecodedRow | None) -> Samples:
        if isinstance(row, Span):
            return check_samples(row, self._spans.generate(row, decoded))
        assert decoded is not None
        inputs = {split.DECODED: decoded.features, split.WAVE: decoded.wave, "style": row.style[None]}
        (audio,) = run(self._session, None, inputs)
        return check_samples(row, audio.reshape(-1))


def _work_frames(row: Frames) -> int:
    return EXACT_SPANS.cost(row.n_frames, row.start, row.end) if isinstance(row, Span) else row.n_frames
