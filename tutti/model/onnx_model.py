"""Kokoro on the processor: ONNX Runtime over the parts of the official graph."""

import ctypes
import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import RLock

import numpy as np
import onnxruntime as ort

from tutti.errors import ModelFailed, WeightsCorrupt, WeightsUnavailable
from tutti.model import cut
from tutti.model.contract import check_samples, check_utterances
from tutti.model.stretch import EARLY, n_heard
from tutti.model.stretcher import Stretcher
from tutti.speech import Frames, Part, Samples, Utterance

# The vocoder needs about half a megabyte for each frame in flight; 14 s side by side keep the process below 1.2 GB.
MAX_FRAMES_SIDE_BY_SIDE = 560
MMAP_THRESHOLD = (-3, 1 << 20)  # glibc's number for the option, and a megabyte


class OnnxModel:
    """Two stages over one checkpoint. A lone row uses all cores; rows of a batch run side by side, one core each.

    A batch of the graph itself would cost the sum of its rows, so there is nothing to gain from padding on a processor;
    one thread for each row is quicker than all threads for one row after the other.
    """

    def __init__(self, official: Path, precision: str, threads: int) -> None:
        if not official.exists():
            raise WeightsUnavailable(f"the model file is not at {official}; run: tutti pull --precision {precision}")
        _give_back_at_once()
        graphs = cut.graphs(official)
        self.lanes = threads
        self._wide = _Parts(graphs, threads)
        self._wide.make(early=precision in EARLY)
        self._narrow = _Parts(graphs, 1) if threads > 1 else self._wide
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lane")

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        return list(self._pool.map(self._parts(rows).read, rows))

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        spoken: list[Samples] = []
        for group in side_by_side(rows, MAX_FRAMES_SIDE_BY_SIDE):
            spoken += self._pool.map(self._parts(group).speak, group)
        return spoken

    def close(self) -> None:
        self._pool.shutdown()

    def _parts(self, rows: Sequence[object]) -> "_Parts":
        return self._wide if len(rows) == 1 else self._narrow


class _Parts:
    """The official graph in three parts, so many threads to each row: acoustic, and the vocoder's two halves.

    Each part is made when it is first needed: who speaks one long row after the other has no use for narrow ones.
    """

    def __init__(self, graphs: cut.Graphs, threads: int) -> None:
        self._graphs = graphs
        self._threads = threads
        self._making = RLock()
        self._sessions: dict[Path, ort.InferenceSession] = {}
        self._made: Stretcher | None = None

    def make(self, *, early: bool) -> None:
        """All that whole rows need, and rows that sound early."""
        for path in (self._graphs.acoustic, self._graphs.decoding, self._graphs.generating):
            self._session(path)
        if early:
            self._stretcher()

    def read(self, row: Utterance) -> Frames:
        session = self._session(self._graphs.acoustic)
        names = [value.name for value in session.get_inputs()]
        inputs = (row.tokens[None], row.style[None], np.array([row.speed], np.float32))
        wanted = [cut.FEATURES, cut.F0, cut.ENERGY, cut.DURATIONS]
        features, f0, energy, durations = _run(session, wanted, dict(zip(names, inputs, strict=True)))
        return Frames(durations[0].astype(np.int64), features[0], f0[0], energy[0], row.style)

    def speak(self, row: Frames) -> Samples:
        if isinstance(row, Part):
            return check_samples(row, self._stretcher().sound(row, self._decode))
        decoded, wave = self._decode(row)
        inputs = {cut.DECODED: decoded, cut.WAVE: wave, "style": row.style[None]}
        (audio,) = _run(self._session(self._graphs.generating), None, inputs)
        return check_samples(row, audio.reshape(-1))

    def _decode(self, row: Frames) -> tuple[np.ndarray, np.ndarray]:
        """What the generator reads."""
        inputs = {cut.FEATURES: row.features[None], cut.F0: row.f0[None], cut.ENERGY: row.energy[None]}
        session = self._session(self._graphs.decoding)
        decoded, wave = _run(session, [cut.DECODED, cut.WAVE], {**inputs, "style": row.style[None]})
        return decoded, wave

    def _stretcher(self) -> Stretcher:
        with self._making:
            if self._made is None:
                spectrum = _session(self._graphs.spectrum, 1)
                self._made = Stretcher(self._session(self._graphs.stretching), spectrum, _run)
            return self._made

    def _session(self, path: Path) -> ort.InferenceSession:
        with self._making:
            if path not in self._sessions:
                self._sessions[path] = _session(path, self._threads, spinning=path == self._graphs.acoustic)
            return self._sessions[path]


def side_by_side(rows: Sequence[Frames], max_frames: int) -> list[list[Frames]]:
    """Consecutive rows in groups that may sound at the same time without passing the memory cap."""
    groups: list[list[Frames]] = []
    for row in rows:
        if groups and sum(map(_n_sounding, groups[-1])) + _n_sounding(row) <= max_frames:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _n_sounding(row: Frames) -> int:
    """Frames in flight, less those that only give context."""
    if isinstance(row, Part):
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
