"""Inference sessions of ONNX Runtime on a processor."""

from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tutti.errors import ModelFailed, WeightsCorrupt


def open_session(graph: Path | bytes, threads: int, *, spinning: bool = False) -> ort.InferenceSession:
    """`spinning` threads busy-wait for work: good for many small steps, a core lost for few large ones."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    options.add_session_config_entry("session.force_spinning_stop", "1")  # at the end of a run: others need the cores
    _register_workspace()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # caches a memory plan for each length; lengths hardly ever repeat
    try:
        return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # its errors have no common base class
        name = graph if isinstance(graph, Path) else "the light vocoder"
        raise WeightsCorrupt(
            f"ONNX Runtime cannot read {name}: {exc}; delete this file, it is made again from the official one"
        ) from exc


def run(
    session: ort.InferenceSession,
    outputs: list[str] | None,
    inputs: dict[str, np.ndarray],
    *,
    keep_workspace: bool = False,
) -> list[np.ndarray]:
    """Run a session. With `keep_workspace` its memory is left to the next run, of any session.

    The light decoder takes a tenth longer if the system has to clear new pages for it. But a workspace that is always
    kept only grows, by fragments of every length ever seen, so it is kept after short rows.
    """
    options = ort.RunOptions()
    if not keep_workspace:
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    try:
        return session.run(outputs, inputs, options)  # type: ignore[no-any-return]
    except Exception as exc:  # as in `open_session`
        raise ModelFailed(f"the model failed on a row: {exc}") from exc


@cache
def _register_workspace() -> None:
    """One workspace for all sessions of the process, which hardly ever run at once."""
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(memory, None)
