"""The decoder of Kokoro as the light vocoder needs it: an ONNX graph for processors, with its matrices in int8.

Each wide convolution is two products: one to the few channels that its basis spans, and the basis itself. The bases are
a file of the package, with a small correction of the output; everything else is the official file's, be it fp32 or
int8. One scale serves all steps and channels of a product's input, so loud channels are made quieter before it and
their weights larger: the package knows how loud each is in speech.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from tutti.model.light.weights import (
    CORRECTION,
    CORRECTION_BIAS,
    INPUT_LOUDNESS,
    NARROW_LOUDNESS,
    Int8Matrix,
    Weights,
    as_float32,
)
from tutti.model.onnx.adain_graph import doubled, norm
from tutti.model.onnx.graph import Dimensions, GraphBuilder
from tutti.model.onnx.official import DECODER, Floats, official_weights
from tutti.model.onnx.proto import Message
from tutti.model.onnx.split import ENERGY, F0, FEATURES, STYLE

OUTPUT = "decoded"  # [1, 2T, 512]
INPUTS: dict[str, Dimensions] = {FEATURES: [1, 512, "T"], F0: [1, "2T"], ENERGY: [1, "2T"], STYLE: [1, 256]}
BLOCKS = ("encode", "decode.0", "decode.1", "decode.2", "decode.3")
# Of the loudness of a channel that is taken from the input of a product and given to its weights: both are rounded. A
# larger share is better for quiet channels of the input, and worse for quiet weights.
BALANCE_SHARE = 0.5
MIN_LOUDNESS = 1e-3  # of the loudest channel; quieter ones count as this loud


def decoder_graph(official: Message, bases: Weights) -> bytes:
    """Build the graph; serialised, for an inference session."""
    return _Decoder(official_weights(official, DECODER), bases).build()


class _Narrow(NamedTuple):
    """The few values of each step that a basis turns into channels."""

    name: str  # [1, n, rank]
    basis: Floats  # [n_out, rank]


class _Decoder:
    """The graph while it is built."""

    def __init__(self, official: Mapping[str, Floats], bases: Weights) -> None:
        self._graph, self._official, self._bases = GraphBuilder(), official, as_float32(bases)

    def build(self) -> bytes:
        graph = self._graph
        features = graph.transpose(FEATURES)
        self._timbre, _ = graph.split(STYLE, 2)
        curves = graph.transpose(
            graph.add("Concat", self._halved(F0, "F0_conv"), self._halved(ENERGY, "N_conv"), axis=1)
        )
        text = graph.add("MatMul", features, graph.constant(self._official["asr_res.0.weight"][:, :, 0].T))
        text = graph.add("Add", text, graph.constant(self._official["asr_res.0.bias"]))
        x = self._block(BLOCKS[0], graph.add("Concat", features, curves, axis=2))
        for name in BLOCKS[1:]:
            x = self._block(name, graph.add("Concat", x, text, curves, axis=2))
        return graph.serialise("decoder", INPUTS, {OUTPUT: [1, "2T", 512]})

    def _halved(self, curve: str, conv: str) -> str:  # [1, 2T] -> [1, 1, T]
        """A convolution of three taps and stride two."""
        graph, one = self._graph, self._graph.integers(1)
        weight, bias = (graph.constant(self._official[f"{conv}.{kind}"]) for kind in ("weight", "bias"))
        return graph.add("Conv", graph.add("Unsqueeze", curve, one), weight, bias, pads=[1, 1], strides=[2])

    def _block(self, name: str, x: str) -> str:  # [1, n, n_in] -> [1, n or 2n, n_out]
        """Norm, activation and convolution, twice, and a shortcut; their sum is divided by the root of two."""
        graph, doubles = self._graph, f"{name}.pool.weight" in self._official
        balance = self._balance(f"{name}.conv1{INPUT_LOUDNESS}")
        y = norm(graph, self._official, f"{name}.norm1", self._timbre, x, 1.0 if doubles else balance)
        if doubles:
            y = doubled(graph, self._official, f"{name}.pool", y, balance)
        y = self._widened([self._narrowed(f"{name}.conv1", y)])  # the norm after it removes bias and factor
        y = norm(
            graph, self._official, f"{name}.norm2", self._timbre, y, self._balance(f"{name}.conv2{INPUT_LOUDNESS}")
        )
        quieter = graph.constant(1 / self._balance(f"{name}.conv1x1{INPUT_LOUDNESS}"))
        shortcut = self._narrowed(f"{name}.conv1x1", graph.add("Mul", x, quieter))
        if doubles:
            rank = shortcut.basis.shape[1]
            shortcut = shortcut._replace(name=graph.interleave(shortcut.name, shortcut.name, rank))
        bias = self._official[f"{name}.conv2.bias"]
        parts = (self._narrowed(f"{name}.conv2", y), shortcut)
        return self._corrected(parts, bias) if name == BLOCKS[-1] else self._widened(parts, bias)

    def _balance(self, name: str) -> Floats:
        """By what each channel is divided before a product."""
        loudness = self._bases[name]
        balance: Floats = np.maximum(loudness, MIN_LOUDNESS * loudness.max()) ** np.float32(BALANCE_SHARE)
        return balance

    def _narrowed(self, name: str, x: str) -> _Narrow:
        """The first product of a convolution of a balanced input: of each of its taps by itself, then the sum of these
        where they meet.
        """
        graph, basis = self._graph, self._bases[name]
        weight = self._official[f"{name}.weight"] * self._balance(name + INPUT_LOUDNESS)[:, None]
        n_out, n_in, n_taps = weight.shape
        balance = self._balance(name + NARROW_LOUDNESS)
        narrow = basis.T @ weight.reshape(n_out, -1) / balance[:, None]  # [rank, n_in taps]
        taps_first: Floats = narrow.reshape(-1, n_in, n_taps).transpose(2, 0, 1).reshape(-1, n_in).astype(np.float32)
        products = graph.coarse_product(x, taps_first)
        if n_taps == 1:
            return _Narrow(products, basis * balance)
        before, now, after = graph.split(products, n_taps)
        return _Narrow(graph.add("Sum", graph.shift(before, 1), now, graph.shift(after, -1)), basis * balance)

    def _widened(self, parts: Sequence[_Narrow], bias: Floats | None = None) -> str:
        """The second product, of all parts at once: its sum is theirs, divided by the root of two."""
        matrix = (np.concatenate([part.basis for part in parts], axis=1) / sqrt(2)).astype(np.float32)
        added = "" if bias is None else self._graph.constant(bias / np.float32(sqrt(2)))
        return self._graph.coarse_product(self._joined(parts), matrix, added)

    def _corrected(self, parts: Sequence[_Narrow], bias: Floats) -> str:
        """As `_widened`, for the last block: with the correction of the decoder's output in the same product.

        Each step has its own scales: as a coarse product it alone caused a third of all errors of rounding.
        """
        factor = (np.eye(len(bias), dtype=np.float32) + self._bases[CORRECTION]) / np.float32(sqrt(2))
        matrix = factor @ np.concatenate([part.basis for part in parts], axis=1)
        added = self._graph.constant(factor @ bias + self._bases[CORRECTION_BIAS])
        return self._graph.product(self._joined(parts), Int8Matrix.of(matrix), added, OUTPUT)

    def _joined(self, parts: Sequence[_Narrow]) -> str:
        return parts[0].name if len(parts) == 1 else self._graph.add("Concat", *(part.name for part in parts), axis=2)
