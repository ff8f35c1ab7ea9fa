"""What the residual blocks of Kokoro's halves have in common, as nodes of a graph: AdaIN, and the doubling of steps."""

from collections.abc import Mapping

import numpy as np

from tutti.model.onnx.graph import GraphBuilder
from tutti.model.onnx.official import Floats

EPSILON = 1e-5  # of the norms
SLOPE = 0.2  # of the activations


def ones_and_zeros(n: int) -> Floats:
    """One for each scale and zero for each shift: a norm's scale is one more than what the style says."""
    return np.repeat([1, 0], n // 2).astype(np.float32)


def scale_and_shift(
    graph: GraphBuilder, weights: Mapping[str, Floats], name: str, style: str, divisors: Floats | float = 1.0
) -> list[str]:  # [1, C] each
    """What the style says to a norm, both divided."""
    weight, bias = (weights[f"{name}.fc.{kind}"] for kind in ("weight", "bias"))
    by = np.broadcast_to(np.float32(1) * divisors, bias.shape)
    matrix, added = graph.constant(weight / by[:, None]), graph.constant((bias + ones_and_zeros(len(bias))) / by)
    return graph.split(graph.add("Gemm", style, matrix, added, transB=1), 2)


def norm(
    graph: GraphBuilder, weights: Mapping[str, Floats], name: str, style: str, x: str, balance: Floats | float = 1.0
) -> str:
    """Normalise each channel over the row, scale and shift it by the style, divide it by its balance; LeakyReLU."""
    scale, shift = scale_and_shift(graph, weights, name, style, np.tile(balance, 2) if np.ndim(balance) else balance)
    centred = graph.add("Sub", x, graph.mean(x))
    variance = graph.mean(graph.add("Mul", centred, centred))
    deviation = graph.add("Sqrt", graph.add("Add", variance, graph.constant(np.array(EPSILON, np.float32))))
    y = graph.add("Add", graph.add("Mul", centred, graph.add("Div", scale, deviation)), shift)
    return graph.add("LeakyRelu", y, alpha=SLOPE)


def doubled(
    graph: GraphBuilder, weights: Mapping[str, Floats], name: str, x: str, balance: Floats | float = 1.0
) -> str:  # [1, n, C] -> [1, 2n, C]
    """A transposed convolution of each channel by itself, three taps and stride two, divided by the balance."""
    constant = graph.constant
    after, now, before = (constant(tap / balance) for tap in weights[f"{name}.weight"][:, 0].T)
    bias = constant(weights[f"{name}.bias"] / balance)
    even = graph.add("Add", graph.add("Mul", x, now), bias)
    odd = graph.add("Add", graph.add("Mul", x, before), graph.add("Mul", graph.shift(x, -1), after))
    return graph.interleave(even, graph.add("Add", odd, bias), len(weights[f"{name}.bias"]))
