"""CUDA graphs: a function is captured once for each padded shape, and replayed.

A single sentence is several hundred kernels of a few microseconds; replayed as a graph, they cost one launch. Shapes
that were not captured run without a graph, with the same results.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tutti.model.torch.kokoro.padding import Arrays, StageStream, split_block

Tensors = tuple[Tensor, ...]
Function = Callable[..., Tensors]
Replay = Callable[[], None]
Capture = Callable[[Function, Tensors], tuple[Replay, Tensors]]


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """The memory that a captured graph reads and writes, and the call that runs it."""

    tensors: Tensors
    block: Tensor  # of the arrays
    outputs: Tensors
    replay: Replay


class GraphedFunction:
    """A function of tensors on the device and then arrays of the host; replays a CUDA graph for captured shapes."""

    def __init__(self, function: Function, capture: Capture) -> None:
        self._function, self._capture = function, capture
        self._graphs: dict[tuple[tuple[int, ...], ...], CapturedGraph] = {}

    def __call__(self, stream: StageStream, arrays: Arrays, *tensors: Tensor) -> Tensors:
        graph = self._graphs.get(_shapes(arrays, tensors))
        if graph is None:
            return self._function(*tensors, *stream.upload(*arrays))
        for static, value in zip(graph.tensors, tensors, strict=True):
            static.copy_(value, non_blocking=True)
        stream.write(graph.block, arrays)
        graph.replay()
        # Copied: the next replay overwrites these, and graphs share their memory.
        return tuple(output.clone() for output in graph.outputs)

    def prepare(self, stream: StageStream, arrays: Arrays, *tensors: Tensor, capture: bool) -> None:
        """Capture a graph for this shape, which is replayed from now on; or only run the function on it."""
        if _shapes(arrays, tensors) in self._graphs:
            return
        if not capture:
            self._function(*tensors, *stream.upload(*arrays))
        else:
            static, block = tuple(tensor.clone() for tensor in tensors), stream.new_block(arrays)
            stream.write(block, arrays)
            replay, outputs = self._capture(self._function, (*static, *split_block(block, arrays)))
            self._graphs[_shapes(arrays, tensors)] = CapturedGraph(static, block, outputs, replay)

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


def _shapes(arrays: Arrays, tensors: Tensors) -> tuple[tuple[int, ...], ...]:
    return (*(tensor.shape for tensor in tensors), *(array.shape for array in arrays))
