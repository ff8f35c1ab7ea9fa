"""Kokoro on the processor: ONNX Runtime over the parts of the official graph."""

import ctypes
import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tutti.errors import ModelFailed, WeightsCorrupt, WeightsUnavailable
from tutti.model.onnx import split as cut
from tutti.model.onnx.core_assignment import laid_out
from tutti.model.onnx.incremental.generator import Decoded, Stretcher
from tutti.model.onnx.incremental.spans import EARLY, n_heard
from tutti.model.validation import check_samples, check_utterances
from tutti.speech import Frames, Samples, Span, Utterance

MMAP_THRESHOLD = (-3, 1 << 20)  # glibc's number for the option, and a megabyte


class OnnxModel:
    """Two stages over one checkpoint. A lone row uses all cores; of several, each sounds on a core of its own.

    A batch of the graph itself would cost the sum of its rows, so there is nothing to gain from padding on a processor;
    but the generator, nine tenths of the work, is quicker with one thread for each row than with all of them for one
    row after the other. The rest gains nothing from that, and goes row by row.
    """

    def __init__(self, official: Path, precision: str, threads: int) -> None:
        if not official.exists():
            raise WeightsUnavailable(f"the model file is not at {official}; run: tutti pull --precision {precision}")
        _give_back_at_once()
        graphs = cut.graphs(official)
        early = precision in EARLY
        self.lanes = threads
        self._acoustic = _session(graphs.acoustic, threads, spinning=True)
        self._decoder = _session(graphs.decoding, threads)
        self._wide = _Generator(graphs, threads, early)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lane")
        # Made while the first row, which is alone, is read and spoken: nobody waits for it.
        self._narrow = self._pool.submit(lambda: _Generator(graphs, 1, early) if threads > 1 else self._wide)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        return [self._read(row) for row in rows]

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        spoken: dict[int, Samples] = {}
        for places in laid_out([_n_sounding(row) for row in rows], self.lanes):
            generator = self._narrow.result() if len(places) > 1 else self._wide
            group = [rows[place] for place in places]
            sounds = self._pool.map(generator.sound, group, [self._decode(row) for row in group])
            spoken.update(zip(places, sounds, strict=True))
        return [spoken[place] for place in range(len(rows))]

    def close(self) -> None:
        self._pool.shutdown()

    def _read(self, row: Utterance) -> Frames:
        names = [value.name for value in self._acoustic.get_inputs()]
        inputs = (row.tokens[None], row.style[None], np.array([row.speed], np.float32))
        wanted = [cut.FEATURES, cut.F0, cut.ENERGY, cut.DURATIONS]
        features, f0, energy, durations = _run(self._acoustic, wanted, dict(zip(names, inputs, strict=True)))
        return Frames(durations[0].astype(np.int64), features[0], f0[0], energy[0], row.style)

    def _decode(self, row: Frames) -> Decoded | None:
        """What the generator reads; none for a later stretch, which has it."""
        if isinstance(row, Span) and cut.DECODED in row.kept:
            return None
        inputs = {cut.FEATURES: row.features[None], cut.F0: row.f0[None], cut.ENERGY: row.energy[None]}
        decoded, wave = _run(self._decoder, [cut.DECODED, cut.WAVE], {**inputs, "style": row.style[None]})
        return Decoded(decoded, wave)


class _Generator:
    """The second half of the vocoder, with so many threads to each row: for whole rows, and for stretches of rows."""

    def __init__(self, graphs: cut.Graphs, threads: int, early: bool) -> None:
        self._graphs = graphs
        self._threads = threads
        self._session = _session(graphs.generating, threads)
        if early:
            _ = self._stretcher

    @cached_property
    def _stretcher(self) -> Stretcher:
        return Stretcher(_session(self._graphs.stretching, self._threads), _session(self._graphs.spectrum, 1), _run)

    def sound(self, row: Frames, decoded: Decoded | None) -> Samples:
        if isinstance(row, Span):
            return check_samples(row, self._stretcher.sound(row, decoded))
        assert decoded is not None
        inputs = {cut.DECODED: decoded.features, cut.WAVE: decoded.wave, "style": row.style[None]}
        (audio,) = _run(self._session, None, inputs)
        return check_samples(row, audio.reshape(-1))


def _n_sounding(row: Frames) -> int:
    """Frames in flight, less those that only give context."""
    if isinstance(row, Span):
        return row.end - row.start + (n_heard(row.n_frames) if row.start == 0 else 0)
    return row.n_frames


def _give_back_at_once() -> None:
    """Blocks of a megabyte and more go back to the system when they are freed.

    Left alone, glibc raises that threshold with each block freed, until workspaces come from a heap that only grows:
    the process crept up by 150 MB over a long text.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(*MMAP_THRESHOLD)


def _session(path: Path, threads: int, *, spinning: bool = False) -> ort.InferenceSession:
    """`spinning` threads wait for their next part awake: good for many small steps, a core lost for few large ones."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # plans memory for each length it has seen; lengths hardly ever come back
    try:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as exc:
        raise WeightsCorrupt(f"ONNX Runtime cannot read {path}: {exc}") from exc


def _run(session: ort.InferenceSession, wanted: list[str] | None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.RunOptions()
    # Give the workspace back after each row: kept, it only grows, by fragments of every length ever seen.
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    try:
        return session.run(wanted, inputs, options)  # type: ignore[no-any-return]
    except Exception as exc:
        raise ModelFailed(f"the model broke on a row: {exc}") from exc
