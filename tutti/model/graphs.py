"""Static shapes made fast: a function on tensors is compiled once and captured in one CUDA graph for each padded shape.

A lone sentence is a thousand kernels of a few microseconds; replayed as a graph, they cost one launch. Shapes that were
not captured run eagerly, with the same results.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
Function = Callable[..., Tensors]
Replay = Callable[[], None]
Capture = Callable[[Function, Tensors], tuple[Replay, Tensors]]

WARM_RUNS = 3
MAX_SHAPES = 500


@dataclass(frozen=True, slots=True)
class Graph:
    """The tensors that a captured graph reads and writes, and the call that runs it."""

    inputs: Tensors
    outputs: Tensors
    replay: Replay


class Replays:
    """A function whose captured shapes are replayed."""

    def __init__(self, function: Function, compiled: Function, capture: Capture) -> None:
        self._function, self._compiled, self._capture = function, compiled, capture
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

    def prime(self, *inputs: Tensor) -> None:
        """Lets the compiler see a shape that is typical in every dimension, so that what it makes fits all shapes."""
        self._compiled(*inputs)

    def capture(self, *inputs: Tensor) -> None:
        """From now on this shape is replayed."""
        if _shape(inputs) not in self._graphs:
            static = tuple(tensor.clone() for tensor in inputs)
            replay, outputs = self._capture(self._compiled, static)
            self._graphs[_shape(inputs)] = Graph(static, outputs, replay)

    def __len__(self) -> int:
        return len(self._graphs)


def compiled(function: Function, cache: Path | None, dynamic: bool = True) -> Function:
    """The function through inductor, which fuses what lies between the convolutions; kernels are kept under `cache`.

    `dynamic`: one compilation for all shapes (two: it makes a special case of one row). Compiling each shape for itself
    takes half a minute a shape.
    """
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    if not dynamic:
        torch._dynamo.config.recompile_limit = MAX_SHAPES
    return torch.compile(function, dynamic=dynamic, fullgraph=True)


def cuda_capture() -> Capture:
    """Captures on the current device, in one pool of memory: the graphs made by one such function never run at once."""
    pool = torch.cuda.graph_pool_handle()

    def capture(function: Function, inputs: Tensors) -> tuple[Replay, Tensors]:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inductor advises other precisions
            for _ in range(WARM_RUNS):  # compiles, chooses algorithms, fills caches: none of it may happen in a capture
                function(*inputs)
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            outputs = function(*inputs)
        return graph.replay, outputs

    return capture


def no_capture(_function: Function, _inputs: Tensors) -> tuple[Replay, Tensors]:
    raise NotImplementedError("only a CUDA device has graphs")


def _shape(tensors: Sequence[Tensor]) -> tuple[torch.Size, ...]:
    return tuple(tensor.shape for tensor in tensors)
