"""Kokoro's acoustic half after its text encoder, as two ONNX graphs for processors: what is said of each token, and the
pitch and energy of each step. Most of its weights are in int8; durations and curves leave it in fp32.

The weights are those of the official file. ONNX Runtime's own int8 convolutions are as slow as fp32, so ours are
products of a step's taps. LSTMs gain most: at each step they read all of their weights, which are a quarter as large.
"""

from collections.abc import Mapping

import numpy as np

from tutti.model.onnx.adain_graph import SLOPE, doubled, norm
from tutti.model.onnx.graph import Dimensions, GraphBuilder
from tutti.model.onnx.official import ACOUSTIC, BIAS, INPUT, RECURRENCE, Floats, official_weights
from tutti.model.onnx.proto import Message

TOKENS, READ, STYLE = "tokens", "read", "style"  # inputs: [1, n], [1, n, 512], [1, 256]
# Outputs for each token: frames at speed 1, not rounded; what pitch and energy follow from; what the vocoder reads.
DURATIONS, PROSODY, TEXT = "durations", "prosody", "text"  # [1, n], [1, n, 640], [1, n, 512]
F0, ENERGY = "f0", "energy"  # outputs for each step: [1, 2T]
FEATURES, PROSODIES = 512, 640
Weights = Mapping[str, Floats]


def token_graph(official: Message) -> bytes:
    """Tokens, what the text encoder made of them, and style -> durations, prosody, text. For an inference session."""
    graph, weights = GraphBuilder(), official_weights(official, ACOUSTIC)
    style, appended = _prosodic_style(graph), _style_of_tokens(graph)
    x = READ
    for i in (0, 2, 4):
        y = _lstm(graph, weights, f"text_encoder.lstms.{i}", graph.add("Concat", x, appended, axis=2))
        name = f"text_encoder.lstms.{i + 1}.fc"
        scale, shift = graph.scale_and_shift(style, weights[f"{name}.weight"], weights[f"{name}.bias"])
        normed = graph.layer_norm(y, np.ones(FEATURES, np.float32))
        x = graph.add("Add", graph.add("Mul", normed, scale), shift)
    prosody = graph.add("Concat", x, appended, axis=2, output=PROSODY)
    _durations(graph, weights, prosody)
    _text(graph, weights)
    inputs: dict[str, Dimensions] = {READ: [1, "n", FEATURES], STYLE: [1, 256]}
    outputs: dict[str, Dimensions] = {DURATIONS: [1, "n"], PROSODY: [1, "n", PROSODIES], TEXT: [1, "n", FEATURES]}
    return graph.serialise("tokens", inputs, outputs, {TOKENS: [1, "n"]})


def frame_graph(official: Message) -> bytes:
    """Prosody of each frame and style -> pitch and energy of each step. For an inference session."""
    graph, weights = GraphBuilder(), official_weights(official, ACOUSTIC)
    style, shared = _prosodic_style(graph), _lstm(graph, weights, "shared", PROSODY)
    for name, output in (("F0", F0), ("N", ENERGY)):
        x = shared
        for i in range(3):
            x = _block(graph, weights, f"{name}.{i}", style, x)
        last = graph.constant(weights[f"{name}_proj.weight"][:, :, 0].T)
        curve = graph.add("Add", graph.add("MatMul", x, last), graph.constant(weights[f"{name}_proj.bias"]))
        graph.add("Reshape", curve, graph.integers(1, -1), output=output)
    inputs: dict[str, Dimensions] = {PROSODY: [1, "T", PROSODIES], STYLE: [1, 256]}
    return graph.serialise("frames", inputs, {F0: [1, "2T"], ENERGY: [1, "2T"]})


def _prosodic_style(graph: GraphBuilder) -> str:  # [1, 128]
    """The half of the style that steers prosody."""
    return graph.split(STYLE, 2)[1]


def _style_of_tokens(graph: GraphBuilder) -> str:  # [1, n, 128]
    """The style again for each token."""
    n = graph.add("Shape", TOKENS, start=1, end=2)
    often = graph.add("Concat", graph.integers(1), n, graph.integers(1), axis=0)
    return graph.add("Tile", graph.add("Unsqueeze", _prosodic_style(graph), graph.integers(1)), often)


def _durations(graph: GraphBuilder, weights: Weights, prosody: str) -> None:
    """Each of fifty values is the probability that a token lasts for one frame more."""
    matrix, bias = weights["duration_proj.linear_layer.weight"].T, weights["duration_proj.linear_layer.bias"]
    y = graph.add("MatMul", _lstm(graph, weights, "lstm", prosody), graph.constant(matrix))
    more = graph.add("Sigmoid", graph.add("Add", y, graph.constant(bias)))
    graph.add("ReduceSum", more, graph.integers(2), keepdims=0, output=DURATIONS)


def _text(graph: GraphBuilder, weights: Weights) -> None:
    """Three convolutions over embeddings, each with a layer norm, and an LSTM."""
    x = graph.add("Gather", graph.constant(weights["text_encoder.embedding.weight"]), TOKENS, axis=0)
    for i in range(3):
        y = _convolved(graph, weights, f"text_encoder.cnn.{i}.0", x)
        gain, shift = (weights[f"text_encoder.cnn.{i}.1.{kind}"] for kind in ("gamma", "beta"))
        x = graph.add("LeakyRelu", graph.layer_norm(y, gain, shift), alpha=SLOPE)
    _lstm(graph, weights, "text_encoder.lstm", x, output=TEXT)


def _block(graph: GraphBuilder, weights: Weights, name: str, style: str, x: str) -> str:  # [1, n, C] -> [1, n or 2n, D]
    """Norm, activation and convolution, twice, and a shortcut; their sum is divided by the root of two."""
    doubles, shortcut = f"{name}.pool.weight" in weights, x
    y = norm(graph, weights, f"{name}.norm1", style, x)
    if doubles:
        y = doubled(graph, weights, f"{name}.pool", y)
    y = _convolved(graph, weights, f"{name}.conv1", y)
    y = norm(graph, weights, f"{name}.norm2", style, y)
    y = _convolved(graph, weights, f"{name}.conv2", y)
    if doubles:
        narrow = _convolved(graph, weights, f"{name}.conv1x1", x)
        shortcut = graph.interleave(narrow, narrow, len(weights[f"{name}.conv1x1.weight"]))
    return graph.add("Mul", graph.add("Add", y, shortcut), graph.constant(np.array(0.5**0.5, np.float32)))


def _convolved(graph: GraphBuilder, weights: Weights, name: str, x: str) -> str:
    weight, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
    taps = graph.taps(x, weight.shape[2]) if weight.shape[2] > 1 else x
    added = "" if bias is None else graph.constant(bias)
    return graph.coarse_product(taps, weight.transpose(0, 2, 1).reshape(len(weight), -1), added)


def _lstm(
    graph: GraphBuilder, weights: Weights, name: str, x: str, output: str = ""
) -> str:  # [1, n, C] -> [1, n, 512]
    """In both directions."""
    y = graph.lstm(
        graph.add("Transpose", x, perm=[1, 0, 2]), *(weights[name + kind] for kind in (INPUT, RECURRENCE, BIAS))
    )
    rows_first = graph.add("Transpose", y, perm=[2, 0, 1, 3])  # [1, n, 2, 256]
    return graph.add("Reshape", rows_first, graph.integers(1, -1, FEATURES), output=output)
