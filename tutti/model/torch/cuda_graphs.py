"""Static shapes made fast: a function on tensors is captured in one CUDA graph for each padded shape.

A lone sentence is several hundred kernels of a few microseconds; replayed as a graph, they cost one launch. Shapes that
were not captured run as they come, with the same results.
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
class Graph:
    """The tensors that a captured graph reads and writes, and the call that runs it."""

    inputs: Tensors
    outputs: Tensors
    replay: Replay


class Replays:
    """A function whose captured shapes are replayed."""

    def __init__(self, function: Function, capture: Capture) -> None:
        self._function, self._capture = function, capture
        self._graphs: dict[tuple[torch.Size, ...], Graph] = {}

    def __call__(self, *inputs: Tensor) -> Tensors:
        graph = self._graphs.get(_shape(inputs))
        if graph is None:
            return self._function(*inputs)
        for static, given in zip(graph.inputs, inputs, strict=True):
            static.copy_(given, non_blocking=True)
        graph.replay()
        # The next replay writes over these, and graphs share their memory.
        return tuple(output.clone() for output in graph.outputs)

    def capture(self, *inputs: Tensor) -> None:
        """From now on this shape is replayed."""
        if _shape(inputs) not in self._graphs:
            static = tuple(tensor.clone() for tensor in inputs)
            replay, outputs = self._capture(self._function, static)
            self._graphs[_shape(inputs)] = Graph(static, outputs, replay)

    def __len__(self) -> int:
        return len(self._graphs)


def keep_kernels(cache: Path) -> None:
    """Compiled kernels are kept in this folder, for the next start."""
    cache.mkdir(parents=True, exist_ok=True)
    os.environ["TRITON_CACHE_DIR"] = str(cache)


def cuda_capture() -> Capture:
    """Captures on the current stream, in one pool of memory: the graphs made by one such function never run at once."""
    pool = torch.cuda.graph_pool_handle()

    def capture(function: Function, inputs: Tensors) -> tuple[Replay, Tensors]:
        function(*inputs)  # compiles kernels, chooses algorithms, fills caches: none of it may happen in a capture
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")  # the other stage may run meanwhile
        try:
            outputs = function(*inputs)
        finally:
            graph.capture_end()
        graph.replay()  # the first launch of a graph takes far longer: no listener shall wait for it
        torch.cuda.current_stream().synchronize()
        return graph.replay, outputs

    return capture


def no_capture(_function: Function, _inputs: Tensors) -> tuple[Replay, Tensors]:
    raise NotImplementedError("only a CUDA device has graphs")


def _shape(tensors: Sequence[Tensor]) -> tuple[torch.Size, ...]:
    return tuple(tensor.shape for tensor in tensors)
