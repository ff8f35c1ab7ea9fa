"""The text student as an ONNX graph for processors: a row's tokens to the features that Kokoro's predictor reads."""

import numpy as np

from tutti.model.light.text import HEAD, KERNEL, waves
from tutti.model.light.weights import Weights, matrix, vector
from tutti.model.onnx.graph import GraphBuilder

TOKENS, FEATURES = "tokens", "features"  # input [1, n], output [1, n, 512]


def text_graph(weights: Weights) -> bytes:
    """Build the graph; serialised, for an inference session."""
    graph = GraphBuilder()
    embedding = vector(weights, "embedding.weight")
    x = graph.add("Gather", graph.constant(embedding), TOKENS, axis=0)
    n = graph.add("Shape", TOKENS, start=1, end=2)
    cos, sin = (graph.steps(graph.constant(wave[None]), graph.integers(0), n) for wave in waves())
    for i in range(sum(name.endswith("qkv.weight") for name in weights)):
        x = _block(graph, weights, f"blocks.{i}.", x, (cos, sin), embedding.shape[1])
    _product(graph, weights, "features", _layer_norm(graph, weights, "norm", x), output=FEATURES)
    return graph.serialise("text", {}, {FEATURES: [1, "n", 512]}, {TOKENS: [1, "n"]})


def _block(graph: GraphBuilder, weights: Weights, name: str, x: str, turns: tuple[str, str], width: int) -> str:
    """Attention, a convolution of each channel by itself, and two wide layers; each is added to its input."""
    x = graph.add("Add", x, _attention(graph, weights, name, x, turns, width))
    along, bias = (graph.constant(vector(weights, f"{name}conv.{kind}")) for kind in ("weight", "bias"))
    near = graph.add(
        "Conv", graph.transpose(x), along, bias, group=width, kernel_shape=[KERNEL], pads=[KERNEL // 2] * 2
    )
    x = graph.add("Add", x, graph.transpose(near))
    y = _product(graph, weights, name + "expand", _layer_norm(graph, weights, name + "feed_norm", x))
    y = graph.add("Gelu", y, approximate="tanh")
    return graph.add("Add", x, _product(graph, weights, name + "contract", y))


def _attention(graph: GraphBuilder, weights: Weights, name: str, x: str, turns: tuple[str, str], width: int) -> str:
    """Every token with every other, in heads; queries and keys are turned by their positions."""
    normed = _layer_norm(graph, weights, name + "attention_norm", x)
    parts = [_heads(graph, part) for part in graph.split(_product(graph, weights, name + "qkv", normed), 3)]
    queries, keys = (_rotated(graph, part, turns) for part in parts[:2])
    scaled = graph.add("Mul", queries, graph.constant(np.array(HEAD**-0.5, np.float32)))
    scores = graph.add("MatMul", scaled, graph.add("Transpose", keys, perm=[0, 1, 3, 2]))
    mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), parts[2])
    together = graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), graph.integers(1, -1, width))
    return _product(graph, weights, name + "out", together)


def _heads(graph: GraphBuilder, x: str) -> str:  # [1, n, heads 64] -> [1, heads, n, 64]
    return graph.add("Transpose", graph.add("Reshape", x, graph.integers(1, 0, -1, HEAD)), perm=[0, 2, 1, 3])


def _rotated(graph: GraphBuilder, x: str, turns: tuple[str, str]) -> str:
    (a, b), (cos, sin) = graph.split(x, 2), turns
    first = graph.add("Sub", graph.add("Mul", a, cos), graph.add("Mul", b, sin))
    second = graph.add("Add", graph.add("Mul", a, sin), graph.add("Mul", b, cos))
    return graph.add("Concat", first, second, axis=-1)


def _layer_norm(graph: GraphBuilder, weights: Weights, name: str, x: str) -> str:
    return graph.layer_norm(x, *(vector(weights, f"{name}.{kind}") for kind in ("weight", "bias")))


def _product(graph: GraphBuilder, weights: Weights, name: str, x: str, output: str = "") -> str:
    bias = graph.constant(vector(weights, name + ".bias"))
    return graph.product(x, matrix(weights, name + ".weight"), bias, output)
