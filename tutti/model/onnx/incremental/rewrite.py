"""Rewrite the ONNX graph of Kokoro's generator so that it can generate a span of a row by itself.

Its instance norms use the mean and the variance of each channel over the whole row. In the rewritten graph both are
inputs; with the input `estimate` they are weighted sums over the present frames, and outputs as well.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

ESTIMATE = "estimate"  # bool
# Weights [n, 1]: 20 a frame, and 120 a frame plus one; each sums to one.
COARSE_WEIGHTS, FINE_WEIGHTS = "coarse_weights", "fine_weights"
GIVEN = "given:"  # prefix of a statistic's name as an input
# Blocks at 20 values a frame; the others are at 120.
COARSE_BLOCKS = ("noise_res.0", "resblocks.0", "resblocks.1", "resblocks.2")


def make_incremental(generator: "ModelProto") -> "ModelProto":
    """Add the inputs `estimate`, weights and statistics to the generator's own, and the statistics to its outputs."""
    from onnx import ModelProto, TensorProto, helper
    from onnx.utils import Extractor

    model = ModelProto()
    model.CopyFrom(generator)
    graph = model.graph
    producer = {name: node for node in graph.node for name in node.output}
    statistics = [node.output[0] for node in graph.node if node.op_type == "ReduceMean"]
    if not statistics:
        raise ValueError("a generator without norms")
    nodes = [new for node in graph.node for new in _rewrite(node, producer)]
    del graph.node[:]
    graph.node.extend(nodes)
    flag = helper.make_tensor_value_info(ESTIMATE, TensorProto.BOOL, [])
    inputs = [*(value.name for value in graph.input), ESTIMATE]
    new_inputs = [COARSE_WEIGHTS, FINE_WEIGHTS, *(GIVEN + name for name in statistics)]
    extractor = Extractor(model)
    extractor.value_infos.update({name: _float(name) for name in (*new_inputs, *statistics)}, **{ESTIMATE: flag})
    return extractor.extract_model([*inputs, *new_inputs], [*(value.name for value in graph.output), *statistics])


def _rewrite(node: "NodeProto", producer: dict[str, "NodeProto"]) -> Iterator["NodeProto"]:
    if node.op_type == "ReduceMean":
        yield _statistic(node, producer)
    elif node.op_type == "Add" and (scaled := producer.get(node.input[0])) and (norm := _match_norm(scaled, producer)):
        yield from _affine(node, scaled.input[0], *norm)
    else:
        yield node


def _match_norm(scaled: "NodeProto", producer: dict[str, "NodeProto"]) -> tuple[str, str, str] | None:
    """Match gain * ((x - mean) / deviation); return x, mean and deviation."""
    if scaled.op_type != "Mul" or len(scaled.input) != 2:
        return None
    divided = producer.get(scaled.input[1])
    if divided is None or divided.op_type != "Div":
        return None
    centred, root = producer.get(divided.input[0]), producer.get(divided.input[1])
    if centred is None or centred.op_type != "Sub" or root is None or root.op_type != "Sqrt":
        return None
    return centred.input[0], centred.input[1], root.output[0]


def _affine(node: "NodeProto", gain: str, x: str, mean: str, deviation: str) -> Iterator["NodeProto"]:
    """The norm as one multiplication and one addition over time."""
    from onnx import helper

    out, shift = node.output[0], node.input[1]
    yield helper.make_node("Div", [gain, deviation], [f"{out}_gain"])
    yield helper.make_node("Mul", [mean, f"{out}_gain"], [f"{out}_scaled_mean"])
    yield helper.make_node("Sub", [shift, f"{out}_scaled_mean"], [f"{out}_shift"])
    yield helper.make_node("Mul", [x, f"{out}_gain"], [f"{out}_scaled"])
    yield helper.make_node("Add", [f"{out}_scaled", f"{out}_shift"], [out], name=node.name)


def _statistic(node: "NodeProto", producer: dict[str, "NodeProto"]) -> "NodeProto":
    """The mean or the variance of a channel: estimated from the present frames, or read from an input."""
    from onnx import helper

    out = node.output[0]
    block = node.name.split("/generator/")[1].split("/")[0]
    weights = COARSE_WEIGHTS if block in COARSE_BLOCKS else FINE_WEIGHTS
    estimate = f"{out}_estimate"
    value = producer[node.input[0]]
    if value.op_type == "Mul" and value.input[0] == value.input[1]:
        x, mean = producer[value.input[0]].input
        # Mean square less squared mean: each operation over the whole row is a pass through memory, and this needs two.
        nodes = [
            helper.make_node("Mul", [x, x], [f"{estimate}_squares"]),
            helper.make_node("MatMul", [f"{estimate}_squares", weights], [f"{estimate}_mean_square"]),
            helper.make_node("Mul", [mean, mean], [f"{estimate}_squared_mean"]),
            helper.make_node("Sub", [f"{estimate}_mean_square", f"{estimate}_squared_mean"], [estimate]),
        ]
    else:
        nodes = [helper.make_node("MatMul", [node.input[0], weights], [estimate])]
    estimated = helper.make_graph(nodes, f"{out}_estimated", [], [_float(estimate)])
    identity = helper.make_node("Identity", [GIVEN + out], [f"{out}_input"])
    from_input = helper.make_graph([identity], f"{out}_given", [], [_float(f"{out}_input")])
    return helper.make_node("If", [ESTIMATE], [out], name=node.name, then_branch=estimated, else_branch=from_input)


def _float(name: str) -> "ValueInfoProto":
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
