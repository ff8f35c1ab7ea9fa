"""CUDA graphs: a function on tensors is captured once for each padded shape, and replayed.

A single sentence is several hundred kernels of a few microseconds; replayed as a graph, they cost one launch. Shapes
that were not captured run without a graph, with the same results.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
Function = Callable[..., Tensors]
Replay = Callable[[], None]
Capture = Callable[[Function, Tensors], tuple[Replay, Tensors]]


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """The tensors that a captured graph reads and writes, and the call that runs it."""

    inputs: Tensors
    outputs: Tensors
    replay: Replay


class GraphedFunction:
    """A function that replays a CUDA graph for shapes that were captured."""

    def __init__(self, function: Function, capture: Capture) -> None:
        self._function, self._capture = function, capture
        self._graphs: dict[tuple[torch.Size, ...], CapturedGraph] = {}

    def __call__(self, *inputs: Tensor) -> Tensors:
        graph = self._graphs.get(_shapes(inputs))
        if graph is None:
            return self._function(*inputs)
        for static, value in zip(graph.inputs, inputs, strict=True):
            static.copy_(value, non_blocking=True)
        graph.replay()
        # Copied: the next replay overwrites these, and graphs share their memory.
        return tuple(output.clone() for output in graph.outputs)

    def prepare(self, *inputs: Tensor, capture: bool) -> None:
        """Capture a graph for this shape, which is replayed from now on; or only run the function on it."""
        if _shapes(inputs) in self._graphs:
            return
        if not capture:
            self._function(*inputs)
        else:
            static = tuple(tensor.clone() for tensor in inputs)
            replay, outputs = self._capture(self._function, static)
            self._graphs[_shapes(inputs)] = CapturedGraph(static, outputs, replay)

    def __len__(self) -> int:
        return len(self._graphs)


def set_kernel_cache(cache: Path) -> None:
    """Keep compiled Triton kernels in this folder for the next start."""
    cache.mkdir(parents=True, exist_ok=True)
    os.environ["TRITON_CACHE_DIR"] = str(cache)


def cuda_capture() -> Capture:
    """Return a function that captures on the current stream, in one memory pool; its graphs must not run at once."""
    pool = torch.cuda.graph_pool_handle()

    def capture(function: Function, inputs: Tensors) -> tuple[Replay, Tensors]:
        function(*inputs)  # compiles kernels and chooses algorithms, which a capture must not do
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")  # the other stage may run at the same time
        try:
            outputs = function(*inputs)
        finally:
            graph.capture_end()
        graph.replay()  # the first launch of a graph takes far longer: do it here, not in a request
        torch.cuda.current_stream().synchronize()
        return graph.replay, outputs

    return capture


def no_capture(_function: Function, _inputs: Tensors) -> tuple[Replay, Tensors]:
    raise NotImplementedError("CUDA graphs need a CUDA device")


def _shapes(tensors: Sequence[Tensor]) -> tuple[torch.Size, ...]:
    return tuple(tensor.shape for tensor in tensors)
