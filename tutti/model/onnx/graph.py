"""Build ONNX graphs node by node. Values are [1, n, C]: n steps in time, C channels."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tutti.model.light.weights import BLOCK, Int8Matrix

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

MICROSOFT = "com.microsoft"
INT8_PRODUCTS = 4  # ONNX Runtime's accuracy level at which it quantises activations, too


class GraphBuilder:
    """Nodes and constants of a graph that is being built; all names start with the prefix."""

    def __init__(self, prefix: str = "") -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._prefix = prefix

    def add(self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its only output."""
        from onnx import helper

        name = output or f"{self._prefix}{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def split(self, x: str, n: int) -> list[str]:
        """Split the channels into equal parts."""
        from onnx import helper

        names = [f"{self._prefix}Split_{len(self.nodes)}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node("Split", [x], names, axis=-1, num_outputs=n))
        return names

    def constant(self, value: NDArray[np.generic]) -> str:
        from onnx import numpy_helper

        name = f"{self._prefix}constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def transpose(self, x: str, output: str = "") -> str:  # [1, n, C] <-> [1, C, n]
        return self.add("Transpose", x, perm=[0, 2, 1], output=output)

    def taps(self, x: str, n_taps: int) -> str:  # [1, n, C] -> [1, n, n_taps C]
        """For each step the values at all taps of a convolution around it, side by side; zero beyond the ends."""
        if n_taps == 1:
            return x
        half, last = n_taps // 2, np.iinfo(np.int64).max
        padded, axis = self.add("Pad", x, self.integers(0, half, 0, 0, half, 0)), self.integers(1)
        ends = [tap - n_taps + 1 or last for tap in range(n_taps)]
        parts = [
            self.add("Slice", padded, self.integers(tap), self.integers(end), axis) for tap, end in enumerate(ends)
        ]
        return self.add("Concat", *parts, axis=2)

    def product(self, x: str, weight: Int8Matrix, bias: str = "") -> str:
        """x [1, n, K] by a matrix [N, K] of int8.

        Each step is quantised by itself, in blocks: its result depends on no other step. So it is closer to fp32 than
        with one scale for all steps, and the same in any window.
        """
        n_out, n_in = weight.values.shape
        padded = np.pad(weight.values, ((0, 0), (0, -n_in % BLOCK))).astype(np.int16) + 128
        blocks = self.constant(padded.astype(np.uint8).reshape(n_out, -1, BLOCK))
        inputs = [x, blocks, self.constant(weight.scales.reshape(-1)), *(["", "", bias] if bias else [])]
        return self.add(
            "MatMulNBits", *inputs,
            domain=MICROSOFT, K=n_in, N=n_out, bits=8, block_size=BLOCK, accuracy_level=INT8_PRODUCTS,
        )  # fmt: skip
