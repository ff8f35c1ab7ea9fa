"""Kokoro on a processor: ONNX Runtime over the parts of the official graph."""

import ctypes
import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tutti.errors import ModelFailed, WeightsCorrupt, WeightsUnavailable
from tutti.model.onnx import split
from tutti.model.onnx.core_assignment import assign_cores
from tutti.model.onnx.incremental.generator import DecodedRow, SpanGenerator
from tutti.model.onnx.incremental.spans import INCREMENTAL_PRECISIONS
from tutti.model.onnx.incremental.statistics import first_span_overhead
from tutti.model.validation import check_samples, check_utterances
from tutti.speech import Frames, Samples, Span, Utterance

MMAP_THRESHOLD = (-3, 1 << 20)  # glibc's number of the option, and a megabyte


class OnnxModel:
    """Two stages over one checkpoint. A single row uses all cores; of several, each has its own core.

    A padded batch would cost the sum of its rows, so it gains nothing on a processor. But the generator, nine tenths of
    the work, is faster with one thread for each row than with all threads for one row after the other. The rest of the
    network gains nothing from that, and runs row by row.
    """

    def __init__(self, official: Path, precision: str, threads: int) -> None:
        if not official.exists():
            raise WeightsUnavailable(f"the model file is not at {official}; run: tutti pull --precision {precision}")
        _return_memory_early()
        graphs = split.split_graphs(official)
        incremental = precision in INCREMENTAL_PRECISIONS
        self._threads = threads
        self._acoustic = _session(graphs.acoustic, threads, spinning=True)
        self._decoder = _session(graphs.decoding, threads)
        self._all_cores = _Generator(graphs, threads, incremental)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vocoder")
        # Loaded in the background: the first row runs alone and does not need it.
        self._one_core = self._pool.submit(
            lambda: _Generator(graphs, 1, incremental) if threads > 1 else self._all_cores
        )

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        return [self._predict_frames(row) for row in rows]

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        by_row: dict[int, Samples] = {}
        for group in assign_cores([_work_frames(row) for row in rows], self._threads):
            generator = self._one_core.result() if len(group) > 1 else self._all_cores
            members = [rows[i] for i in group]
            samples = self._pool.map(generator.generate, members, [self._decode(row) for row in members])
            by_row.update(zip(group, samples, strict=True))
        return [by_row[i] for i in range(len(rows))]

    def close(self) -> None:
        self._pool.shutdown()

    def _predict_frames(self, row: Utterance) -> Frames:
        names = [value.name for value in self._acoustic.get_inputs()]
        inputs = (row.tokens[None], row.style[None], np.array([row.speed], np.float32))
        outputs = [split.FEATURES, split.F0, split.ENERGY, split.DURATIONS]
        features, f0, energy, durations = _run(self._acoustic, outputs, dict(zip(names, inputs, strict=True)))
        return Frames(durations[0].astype(np.int64), features[0], f0[0], energy[0], row.style)

    def _decode(self, row: Frames) -> DecodedRow | None:
        """The generator's inputs; none for a later span, whose row was decoded before."""
        if isinstance(row, Span) and split.DECODED in row.cache:
            return None
        inputs = {split.FEATURES: row.features[None], split.F0: row.f0[None], split.ENERGY: row.energy[None]}
        decoded, wave = _run(self._decoder, [split.DECODED, split.WAVE], {**inputs, "style": row.style[None]})
        return DecodedRow(decoded, wave)


class _Generator:
    """The second half of the vocoder, with so many threads to each row, for whole rows and for spans."""

    def __init__(self, graphs: split.Graphs, threads: int, incremental: bool) -> None:
        self._graphs = graphs
        self._threads = threads
        self._session = _session(graphs.generating, threads)
        if incremental:
            _ = self._spans

    @cached_property
    def _spans(self) -> SpanGenerator:
        session = _session(self._graphs.incremental, self._threads)
        return SpanGenerator(session, _session(self._graphs.spectrum, 1), _run)

    def generate(self, row: Frames, decoded: DecodedRow | None) -> Samples:
        if isinstance(row, Span):
            return check_samples(row, self._spans.generate(row, decoded))
        assert decoded is not None
        inputs = {split.DECODED: decoded.features, split.WAVE: decoded.wave, "style": row.style[None]}
        (audio,) = _run(self._session, None, inputs)
        return check_samples(row, audio.reshape(-1))


def _work_frames(row: Frames) -> int:
    """Frames that the vocoder computes for this row or span, without its context."""
    if isinstance(row, Span):
        return row.end - row.start + (first_span_overhead(row.n_frames) if row.start == 0 else 0)
    return row.n_frames


def _return_memory_early() -> None:
    """Make glibc return blocks of a megabyte and more to the system when they are freed.

    By default it raises that threshold with each freed block, until workspaces come from a heap that only grows: the
    process grew by 150 MB over a long text.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(*MMAP_THRESHOLD)


def _session(path: Path, threads: int, *, spinning: bool = False) -> ort.InferenceSession:
    """`spinning` threads busy-wait for work: good for many small steps, a core lost for few large ones."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # caches a memory plan for each length; lengths hardly ever repeat
    try:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # its errors have no common base class
        raise WeightsCorrupt(f"ONNX Runtime cannot read {path}: {exc}") from exc


def _run(session: ort.InferenceSession, outputs: list[str] | None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.RunOptions()
    # Free the workspace after each row: otherwise it only grows, by fragments of every length ever seen.
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    try:
        return session.run(outputs, inputs, options)  # type: ignore[no-any-return]
    except Exception as exc:  # as in `_session`
        raise ModelFailed(f"the model failed on a row: {exc}") from exc
