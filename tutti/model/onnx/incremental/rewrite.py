"""Kokoro's generator, rewritten so that a stretch of a row can sound as if the whole row were there.

Its instance norms take the mean and the spread of each channel over the whole row. Here both are inputs; or, with
`listening`, weighted sums over the frames that are there, which stand for the row, and then they are outputs too.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

LISTENING = "listening"  # bool
# [n, 1]: 20 a frame, and 120 a frame and one; each sums to one.
ROUGH_WEIGHTS, FINE_WEIGHTS = "rough_weights", "fine_weights"
GIVEN = "given:"  # before the name of a statistic, when it is an input
# Names of the blocks at 20 values a frame; the others are at 120.
ROUGH = ("noise_res.0", "resblocks.0", "resblocks.1", "resblocks.2")


def stretching(generator: "ModelProto") -> "ModelProto":
    """Samples, then the statistics, from what the generator reads, `listening`, two rows of weights, statistics."""
    from onnx import ModelProto, TensorProto, helper
    from onnx.utils import Extractor

    model = ModelProto()
    model.CopyFrom(generator)
    graph = model.graph
    made_by = {name: node for node in graph.node for name in node.output}
    statistics = [node.output[0] for node in graph.node if node.op_type == "ReduceMean"]
    if not statistics:
        raise ValueError("a generator without norms")
    nodes = [new for node in graph.node for new in _rewritten(node, made_by)]
    del graph.node[:]
    graph.node.extend(nodes)
    flag = helper.make_tensor_value_info(LISTENING, TensorProto.BOOL, [])
    inputs = [*(value.name for value in graph.input), LISTENING]
    told = [ROUGH_WEIGHTS, FINE_WEIGHTS, *(GIVEN + name for name in statistics)]
    extractor = Extractor(model)
    extractor.value_infos.update({name: _float(name) for name in (*told, *statistics)}, **{LISTENING: flag})
    return extractor.extract_model([*inputs, *told], [*(value.name for value in graph.output), *statistics])


def _rewritten(node: "NodeProto", made_by: dict[str, "NodeProto"]) -> Iterator["NodeProto"]:
    if node.op_type == "ReduceMean":
        yield _statistic(node, made_by)
    elif node.op_type == "Add" and (scaled := made_by.get(node.input[0])) and (norm := _norm(scaled, made_by)):
        yield from _affine(node, scaled.input[0], *norm)
    else:
        yield node


def _norm(scaled: "NodeProto", made_by: dict[str, "NodeProto"]) -> tuple[str, str, str] | None:
    """Of gain * ((x - mean) / deviation): x, mean and deviation."""
    if scaled.op_type != "Mul" or len(scaled.input) != 2:
        return None
    divided = made_by.get(scaled.input[1])
    if divided is None or divided.op_type != "Div":
        return None
    centred, root = made_by.get(divided.input[0]), made_by.get(divided.input[1])
    if centred is None or centred.op_type != "Sub" or root is None or root.op_type != "Sqrt":
        return None
    return centred.input[0], centred.input[1], root.output[0]


def _affine(node: "NodeProto", gain: str, x: str, mean: str, deviation: str) -> Iterator["NodeProto"]:
    """The norm as one multiplication and one addition over time."""
    from onnx import helper

    out, shift = node.output[0], node.input[1]
    yield helper.make_node("Div", [gain, deviation], [f"{out}_gain"])
    yield helper.make_node("Mul", [mean, f"{out}_gain"], [f"{out}_moved"])
    yield helper.make_node("Sub", [shift, f"{out}_moved"], [f"{out}_shift"])
    yield helper.make_node("Mul", [x, f"{out}_gain"], [f"{out}_scaled"])
    yield helper.make_node("Add", [f"{out}_scaled", f"{out}_shift"], [out], name=node.name)


def _statistic(node: "NodeProto", made_by: dict[str, "NodeProto"]) -> "NodeProto":
    """The mean, or the mean square of what is left without it: of what is here, or as given."""
    from onnx import helper

    out = node.output[0]
    block = node.name.split("/generator/")[1].split("/")[0]
    weights = ROUGH_WEIGHTS if block in ROUGH else FINE_WEIGHTS
    heard = f"{out}_heard"
    value = made_by[node.input[0]]
    if value.op_type == "Mul" and value.input[0] == value.input[1]:
        x, mean = made_by[value.input[0]].input
        # By squares: each operation over all of the row is a way through memory, and the others are on one column.
        inner = [
            helper.make_node("Mul", [x, x], [f"{heard}_squares"]),
            helper.make_node("MatMul", [f"{heard}_squares", weights], [f"{heard}_square"]),
            helper.make_node("Mul", [mean, mean], [f"{heard}_mean"]),
            helper.make_node("Sub", [f"{heard}_square", f"{heard}_mean"], [heard]),
        ]
    else:
        inner = [helper.make_node("MatMul", [node.input[0], weights], [heard])]
    listen = helper.make_graph(inner, f"{out}_listen", [], [_float(heard)])
    told = helper.make_node("Identity", [GIVEN + out], [f"{out}_told"])
    tell = helper.make_graph([told], f"{out}_tell", [], [_float(f"{out}_told")])
    return helper.make_node("If", [LISTENING], [out], name=node.name, then_branch=listen, else_branch=tell)


def _float(name: str) -> "ValueInfoProto":
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
