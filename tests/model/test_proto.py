"""Our reader and writer of ONNX files agrees with the onnx package, which the tests have."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tutti.model.onnx import proto
from tutti.model.onnx.graph import GraphBuilder

ARRAYS = [
    np.array(values, dtype)
    for dtype in (np.float32, np.uint8, np.int8, np.int32, np.int64)
    for values in (3, [], [[1, 2, 3]])
]


def model() -> onnx.ModelProto:
    """y = (a + w) * b, and z = (a + w) - b, where `sum` is in between."""
    nodes = [
        helper.make_node("Add", ["a", "w"], ["sum"]),
        helper.make_node("Mul", ["sum", "b"], ["y"]),
        helper.make_node("Sub", ["sum", "b"], ["z"]),
    ]
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "n"]) for name in ("a", "b", "y", "z")}
    graph = helper.make_graph(
        nodes,
        "small",
        [values["a"], values["b"]],
        [values["y"], values["z"]],
        [numpy_helper.from_array(np.ones((1, 1), np.float32), "w")],
        value_info=[helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1, "n"])],
    )
    return helper.make_model(graph)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{list(array.shape)}")
def test_values_are_those_of_the_onnx_package_in_both_directions(array: np.ndarray) -> None:
    theirs = proto.Tensor.FromString(numpy_helper.from_array(array, "x").SerializeToString())
    ours = TensorProto.FromString(proto.tensor(array, "x").SerializeToString())
    for found in (proto.array_of(theirs), numpy_helper.to_array(ours)):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype


def test_values_that_are_not_raw_bytes_are_read() -> None:
    for kind in (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64):
        theirs = helper.make_tensor("x", kind, [2, 1], [7, 5]).SerializeToString()
        np.testing.assert_array_equal(proto.array_of(proto.Tensor.FromString(theirs)), [[7], [5]])


def test_nothing_of_a_file_is_lost(tmp_path: Path) -> None:
    """Also fields that the format here does not name."""
    whole = model()
    whole.metadata_props.add(key="licence", value="Apache-2.0")
    (tmp_path / "small.onnx").write_bytes(whole.SerializeToString())
    again = proto.load(tmp_path / "small.onnx").SerializeToString()
    assert onnx.ModelProto.FromString(again) == whole


def test_a_file_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "small.onnx").write_bytes(b"<!doctype html>")
    with pytest.raises(proto.DecodeError):
        proto.load(tmp_path / "small.onnx")


def test_a_part_has_the_nodes_and_weights_between_its_ends_alone() -> None:
    whole = proto.Model.FromString(model().SerializeToString())
    between, product = whole.graph.value_info[0], whole.graph.output[0]
    first = proto.part_of(whole, whole.graph.input[:1], [between])
    second = proto.part_of(whole, [between, whole.graph.input[1]], [product])
    assert [node.op_type for node in first.graph.node] == ["Add"]
    assert [tensor.name for tensor in first.graph.initializer] == ["w"]
    assert [node.op_type for node in second.graph.node] == ["Mul"]
    assert not second.graph.initializer
    for part in (first, second):
        onnx.checker.check_model(onnx.ModelProto.FromString(part.SerializeToString()), full_check=True)


def test_a_graph_that_was_built_here_is_a_model() -> None:
    builder = GraphBuilder()
    builder.add("Add", builder.transpose("x"), builder.constant(np.ones(3, np.float32)), output="y")
    built = onnx.ModelProto.FromString(builder.serialise("built", {"x": [1, 3, "n"]}, {"y": [1, "n", 3]}))
    onnx.checker.check_model(built, full_check=True)
