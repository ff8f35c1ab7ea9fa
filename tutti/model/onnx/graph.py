"""Build ONNX graphs node by node. Values are [1, n, C]: n steps in time, C channels."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutti.model.light.weights import BLOCK, Int8Matrix
from tutti.model.onnx import proto
from tutti.model.onnx.proto import FLOAT, INT64, Message

Floats = NDArray[np.float32]
Dimensions = Sequence[int | str | None]
MICROSOFT = "com.microsoft"
OPSET, IR_VERSION = 20, 9
FORMAT = b"5"  # of our graphs: changes with what is built from the same weights
SEVEN_BITS = 63  # the largest integer on each side of zero
EIGHT_BITS = 255  # the largest integer without a sign
EPSILON = 1e-5  # of all norms
INT8_PRODUCTS = 4  # ONNX Runtime's accuracy level at which it quantises activations, too


class GraphBuilder:
    """Nodes and constants of a graph that is being built."""

    def __init__(self) -> None:
        self._nodes: list[Message] = []
        self._constants: list[Message] = []

    def serialise(
        self,
        name: str,
        inputs: Mapping[str, Dimensions],
        outputs: Mapping[str, Dimensions],
        integers: Mapping[str, Dimensions] = MappingProxyType({}),
    ) -> bytes:
        """The graph for an inference session; all inputs and outputs are fp32, but the inputs `integers`."""
        given, said = (
            [proto.value(value, FLOAT, shape) for value, shape in each.items()] for each in (inputs, outputs)
        )
        given += [proto.value(value, INT64, shape) for value, shape in integers.items()]
        graph = proto.Graph(name=name, node=self._nodes, initializer=self._constants, input=given, output=said)
        return proto.graph_file(graph, {"": OPSET, MICROSOFT: 1}, IR_VERSION)

    def add(self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its only output."""
        name = output or f"{kind}_{len(self._nodes)}"
        self._nodes.append(proto.node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def split(self, x: str, n: int) -> list[str]:
        """Split the channels, or a vector, into equal parts."""
        names = [f"Split_{len(self._nodes)}_{i}" for i in range(n)]
        self._nodes.append(proto.node("Split", [x], names, axis=-1, num_outputs=n))
        return names

    def steps(self, x: str, start: str, end: str) -> str:
        """Some steps of x."""
        return self.add("Slice", x, start, end, self.integers(1))

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(proto.tensor(np.atleast_1d(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def transpose(self, x: str) -> str:  # [1, n, C] <-> [1, C, n]
        return self.add("Transpose", x, perm=[0, 2, 1])

    def taps(self, x: str, n_taps: int) -> str:  # [1, n, C] -> [1, n, n_taps C]
        """For each step the values at all taps of a convolution around it, side by side; zero beyond the ends."""
        half, last = n_taps // 2, np.iinfo(np.int64).max
        padded = self.add("Pad", x, self.integers(0, half, 0, 0, half, 0))
        ends = [tap - n_taps + 1 or last for tap in range(n_taps)]
        parts = [self.steps(padded, self.integers(tap), self.integers(end)) for tap, end in enumerate(ends)]
        return self.add("Concat", *parts, axis=2)

    def mean(self, x: str) -> str:  # [1, n, C] -> [1, 1, C]
        """Of each channel over time: a product with equal weights, five times as fast as ONNX Runtime's ReduceMean."""
        n = self.add("Shape", x, start=1, end=2)
        shape = self.add("Concat", self.integers(1, 1), n, axis=0)
        ones = self.add("Expand", self.constant(np.array(1, np.float32)), shape)
        weights = self.add("Div", ones, self.add("Cast", n, to=FLOAT))
        return self.add("MatMul", weights, x)

    def shift(self, x: str, n: int) -> str:
        """Move all steps later by `n`, or earlier if it is negative; zero where none is left."""
        return self.add("Pad", x, self.integers(0, n, 0, 0, -n, 0))

    def interleave(self, even: str, odd: str, n_channels: int) -> str:  # [1, n, C] each -> [1, 2n, C]
        """The steps of both in turn."""
        return self.add("Reshape", self.add("Concat", even, odd, axis=2), self.integers(1, -1, n_channels))

    def layer_norm(self, x: str, gain: Floats, *shift: Floats) -> str:
        """Each step by itself."""
        return self.add("LayerNormalization", x, *map(self.constant, (gain, *shift)), axis=-1, epsilon=EPSILON)

    def scale_and_shift(self, style: str, weight: Floats, bias: Floats, divisors: Floats | float = 1.0) -> list[str]:
        """What a style [1, 128] says to a norm, [1, C] each and divided: a scale is one more than its product."""
        by = np.broadcast_to(np.float32(1) * divisors, bias.shape)
        ones_and_zeros = np.repeat([1, 0], len(bias) // 2).astype(np.float32)
        matrix, added = self.constant(weight / by[:, None]), self.constant((bias + ones_and_zeros) / by)
        return self.split(self.add("Gemm", style, matrix, added, transB=1), 2)

    def product(self, x: str, weight: Int8Matrix, bias: str = "", output: str = "") -> str:
        """x [1, n, K] by a matrix [N, K] of int8. The result of a step depends on no other, so it is the same in any
        window: x has a fixed scale if its range in speech is known, else each step has its own, in blocks.
        """
        if weight.range is not None:
            return self._fixed_product(x, weight.balanced(), *weight.range, bias, output)
        n_out, n_in = weight.values.shape
        padded = np.pad(weight.values, ((0, 0), (0, -n_in % BLOCK))).astype(np.int16) + 128
        blocks = self.constant(padded.astype(np.uint8).reshape(n_out, -1, BLOCK))
        inputs = [x, blocks, self.constant(weight.scales.reshape(-1)), *(["", "", bias] if bias else [])]
        return self.add(
            "MatMulNBits", *inputs, output=output,
            domain=MICROSOFT, K=n_in, N=n_out, bits=8, block_size=BLOCK, accuracy_level=INT8_PRODUCTS,
        )  # fmt: skip

    def _fixed_product(self, x: str, weight: Floats, low: float, high: float, bias: str, output: str) -> str:
        """x is rounded to eight bits, the matrix to seven: 2.5 times as fast as with scales of steps."""
        step = (max(high, 0.0) - min(low, 0.0)) / EIGHT_BITS
        values, scales = _seven_bits(weight)
        scale = self.constant(np.array(step, np.float32))
        zero = self.constant(np.array(round(-min(low, 0.0) / step), np.uint8))
        rounded = self.add("QuantizeLinear", x, scale, zero)
        inputs = [rounded, self.constant(values), scale, self.constant(scales), zero, *(["", bias] if bias else [])]
        return self.add("MatMulIntegerToFloat", *inputs, output=output, domain=MICROSOFT)

    def coarse_product(self, x: str, weight: Floats, bias: str = "") -> str:
        """x [1, n, K] by a matrix [N, K], with one scale for all steps: a third faster than `product`.

        The matrix is rounded to seven bits.
        """
        values, scales = _seven_bits(weight)
        inputs = [x, self.constant(values), self.constant(scales), *(["", bias] if bias else [])]
        return self.add("DynamicQuantizeMatMul", *inputs, domain=MICROSOFT)

    def lstm(self, x: str, weight: Floats, recurrence: Floats, bias: Floats) -> str:  # [n, 1, C] -> [n, 2, 1, H]
        """An LSTM in both directions, its matrices rounded to seven bits; gates in the order of ONNX."""
        (values, scales), (own_values, own_scales) = (_seven_bits(each) for each in (weight, recurrence))
        zeros = self.constant(np.zeros_like(scales, np.int8))
        return self.add(
            "DynamicQuantizeLSTM", x, self.constant(values), self.constant(own_values), self.constant(bias),
            "", "", "", "",
            self.constant(scales), zeros, self.constant(own_scales), zeros,
            domain=MICROSOFT, direction="bidirectional", hidden_size=recurrence.shape[-1],
        )  # fmt: skip


def _seven_bits(weight: Floats) -> tuple[NDArray[np.int8], Floats]:  # [..., N, K] -> [..., K, N], [..., N]
    """Eight could overflow on processors without instructions for products of int8."""
    scales = (np.maximum(np.abs(weight).max(-1), 1e-12) / SEVEN_BITS).astype(np.float32)
    values = np.rint(weight / scales[..., None]).astype(np.int8)
    return np.ascontiguousarray(values.swapaxes(-1, -2)), scales
