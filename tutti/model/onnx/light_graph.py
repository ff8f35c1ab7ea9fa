"""The light network as an ONNX graph for processors: matrices in int8, everything else in fp32."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tutti.model.light.signal import BINS, HEAD, MAX_LOG_MAGNITUDE
from tutti.model.light.weights import BLOCK, Int8Matrix, Weights, matrix, vector
from tutti.model.onnx.graph import Dimensions, GraphBuilder

DECODED, PITCH, STYLE = "decoded", "pitch", "style"  # inputs: [1, n, 512], [1, 2, n], [1, 128]
# An input: of the result of each convolution, the first step that later ones need, and the one after the last. At its
# ends a window has steps that are only context of others, fewer after each convolution.
RANGES = "ranges"
# What the outputs hold, [1, n, parts, BINS].
MAGNITUDES = ("harmonic_magnitude", "free_magnitude", "noise_magnitude")
PHASES = ("harmonic_phase", "free_phase")
SPECTRA = {"magnitudes": (1, "m", len(MAGNITUDES), BINS), "phases": (1, "m", len(PHASES), BINS)}
FEATURES, TIMBRE = 512, 128
TAPS = 7


def light_graph(weights: Weights) -> bytes:
    """Build the graph; serialised, for an inference session."""
    graph, n_blocks = GraphBuilder(), sum(name.endswith(".gain") for name in weights)
    ends = graph.split(RANGES, 2 * (n_blocks + 1))
    ranges = list(zip(ends[::2], ends[1::2], strict=True))
    h = _entry(graph, weights, ranges[0])
    for i in range(n_blocks):
        h = block(graph, weights, f"blocks.{i}.", h, ranges[i + 1])
    head(graph, weights, h)
    inputs: dict[str, Dimensions] = {DECODED: [1, "n", FEATURES], PITCH: [1, 2, "n"], STYLE: [1, TIMBRE]}
    return graph.serialise("light", inputs, SPECTRA, {RANGES: [2 * (n_blocks + 1)]})


def _entry(graph: GraphBuilder, weights: Weights, needs: tuple[str, str]) -> str:
    """A convolution over decoded features and pitch. The pitch is not quantised: it has a range of its own."""
    weight = matrix(weights, "entry.weight")  # [width, taps, 514]
    width, n_blocks = len(weight.values), FEATURES // BLOCK
    own = Int8Matrix(
        weight.values[:, :, :FEATURES].reshape(width, -1),
        weight.scales[:, :, :n_blocks].reshape(width, -1),
        range=weight.range,
    )
    taps = graph.steps(graph.taps(DECODED, TAPS), *needs)
    h = graph.product(taps, own, graph.constant(vector(weights, "entry.bias")))
    of_pitch = graph.constant(weight.float32()[:, FEATURES:])
    pitch = graph.add("Conv", PITCH, of_pitch, kernel_shape=[TAPS], pads=[TAPS // 2] * 2)
    return graph.add("Add", h, graph.steps(graph.transpose(pitch), *needs))


def block(graph: GraphBuilder, weights: Weights, name: str, h: str, needs: tuple[str, str]) -> str:
    """A ConvNeXt block: a convolution of each channel by itself, a layer norm steered by the style, two products."""
    width = len(vector(weights, name + "gain"))
    along, along_bias = (graph.constant(vector(weights, f"{name}along.{kind}")) for kind in ("weight", "bias"))
    n_taps = vector(weights, f"{name}along.weight").shape[-1]
    pads = [n_taps // 2] * 2
    y = graph.add("Conv", graph.transpose(h), along, along_bias, group=width, kernel_shape=[n_taps], pads=pads)
    h, y = graph.steps(h, *needs), graph.steps(graph.transpose(y), *needs)
    scale, shift = graph.scale_and_shift(
        STYLE, *(vector(weights, f"{name}style.{kind}") for kind in ("weight", "bias"))
    )
    y = graph.layer_norm(y, np.ones(width, np.float32))
    y = graph.add("Add", graph.add("Mul", y, scale), shift)
    y = graph.product(y, matrix(weights, name + "expand.weight"), graph.constant(vector(weights, name + "expand.bias")))
    y = graph.add("Gelu", y, approximate="tanh")  # within 5e-4 of the exact one, in half the time
    gain, contract = vector(weights, name + "gain"), matrix(weights, name + "contract.weight")
    bias = graph.constant(vector(weights, name + "contract.bias") * gain)
    y = graph.product(y, replace(contract, scales=contract.scales * gain[:, None]), bias)
    return graph.add("Add", h, y)


def head(graph: GraphBuilder, weights: Weights, h: str) -> None:
    """The five spectra of each step; magnitudes are no longer logarithms."""
    order = np.arange(len(HEAD) * BINS).reshape(-1, BINS)[[HEAD.index(name) for name in (*MAGNITUDES, *PHASES)]].ravel()
    weight = matrix(weights, "head.weight")
    balance = np.ones(weight.values.shape[1], np.float32) if weight.balance is None else weight.balance
    normed = graph.layer_norm(h, balance)
    ordered = replace(weight, values=weight.values[order], scales=weight.scales[order])
    spectra = graph.product(normed, ordered, graph.constant(vector(weights, "head.bias")[order]))
    ends = graph.integers(0), graph.integers(len(MAGNITUDES) * BINS), graph.integers(len(order))
    logarithms, phases = (graph.add("Slice", spectra, *each, graph.integers(2)) for each in pairwise(ends))
    limited = graph.add("Min", logarithms, graph.constant(np.array(MAX_LOG_MAGNITUDE, np.float32)))
    for part, (name, shape) in zip((graph.add("Exp", limited), phases), SPECTRA.items(), strict=True):
        graph.add("Reshape", part, graph.integers(1, -1, *shape[2:]), output=name)
