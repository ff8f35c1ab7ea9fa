"""What the residual blocks of Kokoro's halves have in common, as nodes of a graph: AdaIN, and the doubling of steps."""

from collections.abc import Mapping

import numpy as np

from tutti.model.onnx.graph import EPSILON, GraphBuilder
from tutti.model.onnx.official import Floats

SLOPE = 0.2  # of the activations


def norm(
    graph: GraphBuilder, weights: Mapping[str, Floats], name: str, style: str, x: str, balance: Floats | float = 1.0
) -> str:
    """Normalise each channel over the row, scale and shift it by the style, divide it by its balance; LeakyReLU."""
    divisors = np.tile(balance, 2) if np.ndim(balance) else balance
    scale, shift = graph.scale_and_shift(style, weights[f"{name}.fc.weight"], weights[f"{name}.fc.bias"], divisors)
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
