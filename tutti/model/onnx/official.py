"""The weights of Kokoro's official graphs under upstream's names; what is int8 in a file becomes fp32."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutti.model.onnx.proto import FLOAT, Message, array_of

Floats = NDArray[np.float32]
QUANTISED = "_quantized"  # suffix of a constant in int8; that of its scale has another


class Half(NamedTuple):
    """Where the names of its nodes and of its constants begin in the official file."""

    nodes: str
    constants: str


ACOUSTIC = Half("/encoder/", "encoder.")
DECODER = Half("/decoder/decoder/", "decoder.decoder.")
PREDICTOR = "predictor."  # begins the names of some constants, but not of the nodes that read them
# Suffixes to the name of an LSTM: [2, 4H, n_in], [2, 4H, H], [2, 8H]; gates in the order of ONNX.
INPUT, RECURRENCE, BIAS = ".input", ".recurrence", ".bias"


def official_weights(part: Message, half: Half) -> dict[str, Floats]:
    constants = {value.name: value for value in part.graph.initializer}
    found = {
        name.removeprefix(half.constants).removeprefix(PREDICTOR): array_of(value)
        for name, value in constants.items()
        if name.startswith(half.constants) and value.data_type == FLOAT
    }
    for node in part.graph.node:
        if node.name.startswith(half.nodes) and len(node.input) > 1:
            found |= {_module(node, half) + suffix: weight for suffix, weight in _weights(node, constants)}
    return found


def _weights(node: Message, constants: Mapping[str, Message]) -> Iterator[tuple[str, Floats]]:
    """The weights that only this node's inputs say whose they are."""
    weight = constants.get(node.input[1] if node.op_type != "Gather" else node.input[0])
    if weight is None:
        return
    match node.op_type:
        case "Conv" | "ConvTranspose":
            yield ".weight", array_of(weight)
        case "ConvInteger":
            yield ".weight", _dequantised(weight, constants[node.input[3]], constants)
        case "MatMul":
            yield ".weight", array_of(weight).T
        case "MatMulInteger":
            yield ".weight", _dequantised(weight, constants[node.input[3]], constants).T
        case "Gather" if weight.name.endswith(QUANTISED):
            yield ".weight", _dequantised(weight, None, constants)
        case "LSTM":
            for suffix, name in zip((INPUT, RECURRENCE, BIAS), node.input[1:4], strict=True):
                yield suffix, array_of(constants[name])
        case "DynamicQuantizeLSTM":
            for suffix, name, zero in zip((INPUT, RECURRENCE), node.input[1:3], node.input[9:12:2], strict=True):
                yield suffix, _dequantised(constants[name], constants[zero], constants).transpose(0, 2, 1)
            yield BIAS, array_of(constants[node.input[3]])


def _module(node: Message, half: Half) -> str:
    """/decoder/decoder/decode.0/conv1/Conv is decode.0.conv1; …/asr_res/asr_res.0/Conv is asr_res.0."""
    *parents, own = node.name.removeprefix(half.nodes).removeprefix("predictor/").split("/")[:-1] or [""]
    return ".".join([*(parent for parent in parents if not own.startswith(f"{parent}.")), own])


def _dequantised(weight: Message, zero_point: Message | None, constants: Mapping[str, Message]) -> Floats:
    """One scale for all, for each output, or for each direction of an LSTM."""
    values = array_of(weight).astype(np.float32)
    if zero_point is not None:
        values = values - _as_broad(array_of(zero_point).astype(np.float32), values)
    scales: Floats = array_of(constants[weight.name.removesuffix(QUANTISED) + "_scale"])
    return values * _as_broad(scales, values)


def _as_broad(each: Floats, values: Floats) -> Floats:
    """Beside the axis that it has a value for: the first of three, the last of two."""
    return each.reshape(-1, *[1] * (values.ndim - 1)) if values.ndim == 3 and each.size > 1 else each
