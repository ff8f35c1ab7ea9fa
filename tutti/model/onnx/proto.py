"""Read and write ONNX files: as much of their format as Kokoro's graphs and ours have, for protobuf.

ONNX Runtime needs protobuf anyway. The onnx package, with all operators and their checks, would be 9 MB to download and
31 MB on disk, a tenth of everything that tutti needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

__all__ = ["FLOAT", "INT64", "DecodeError", "Message", "Model", "Value", "array_of", "graph_file", "load", "node",
           "part_of", "tensor", "value"]  # fmt: skip

# The fields of each message with their numbers; a star means: any number of them. What else a file has is kept.
FORMAT = """
Model: ir_version 1 int64, graph 7 Graph, opset_import 8 *Opset
Graph: node 1 *Node, name 2 string, initializer 5 *Tensor, input 11 *Value, output 12 *Value, value_info 13 *Value
Node: input 1 *string, output 2 *string, name 3 string, op_type 4 string, attribute 5 *Attribute, domain 7 string
Attribute: name 1 string, f 2 float, i 3 int64, s 4 bytes, t 5 Tensor, floats 7 *float, ints 8 *int64, type 20 int32
Tensor: dims 1 *int64, data_type 2 int32, float_data 4 *float, int32_data 5 *int32, int64_data 7 *int64, name 8 string,
 raw_data 9 bytes
Value: name 1 string, type 2 Type
Type: tensor_type 1 TensorType
TensorType: elem_type 1 int32, shape 2 Shape
Shape: dim 1 *Dim
Dim: dim_value 1 int64, dim_param 2 string
Opset: domain 1 string, version 2 int64
"""
# Numbers of types in ONNX, and the fields for values that are not raw bytes.
FLOAT, INT64 = 1, 7
DTYPES: dict[int, tuple[type[np.generic], str]] = {
    FLOAT: (np.float32, "float_data"),
    2: (np.uint8, "int32_data"),
    3: (np.int8, "int32_data"),
    6: (np.int32, "int32_data"),
    INT64: (np.int64, "int64_data"),
    10: (np.float16, ""),  # has no field of numbers that is read here
}
NUMBERS = {np.dtype(dtype): number for number, (dtype, _) in DTYPES.items()}

Message: TypeAlias = Any  # the classes are made below, when the module is imported


def _classes() -> Mapping[str, Message]:
    """The class of each message. They have a pool of their own: another package may know the same format."""
    file = descriptor_pb2.FileDescriptorProto(name="graphs.proto", package="graphs", syntax="proto2")
    lines = [line.split(": ") for line in FORMAT.replace("\n ", " ").strip().splitlines()]
    for message, fields in lines:
        kind = file.message_type.add(name=message)
        for name, number, text in (field.split() for field in fields.split(", ")):
            field, many = kind.field.add(name=name, number=int(number)), text.startswith("*")
            field.label = field.LABEL_REPEATED if many else field.LABEL_OPTIONAL
            scalar = getattr(field, f"TYPE_{text.strip('*').upper()}", None)
            if scalar is None:
                field.type, field.type_name = field.TYPE_MESSAGE, f".graphs.{text.strip('*')}"
            else:
                field.type = scalar
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"graphs.{name}")) for name, _ in lines}


_CLASS = _classes()
Model, Graph, Node, Attribute, Tensor, Value = (
    _CLASS[name] for name in ("Model", "Graph", "Node", "Attribute", "Tensor", "Value")
)


def load(path: Path) -> Message:
    """A model file; raises DecodeError if it is none."""
    return Model.FromString(path.read_bytes())


def array_of(tensor: Message) -> NDArray[Any]:
    """The values of a tensor."""
    dtype, field = DTYPES[tensor.data_type]
    values = np.frombuffer(tensor.raw_data, dtype) if tensor.raw_data else np.array(getattr(tensor, field), dtype)
    return values.reshape(tuple(tensor.dims))


def tensor(array: NDArray[Any], name: str) -> Message:
    """These values as a tensor."""
    return Tensor(name=name, dims=array.shape, data_type=NUMBERS[array.dtype], raw_data=array.tobytes())


def node(kind: str, inputs: Iterable[str], outputs: Iterable[str], domain: str = "", **attributes: Any) -> Message:
    return Node(
        op_type=kind,
        input=inputs,
        output=outputs,
        domain=domain,
        attribute=[_attribute(name, value) for name, value in sorted(attributes.items())],
    )


def _attribute(name: str, value: int | float | str | Sequence[int]) -> Message:
    """The last field says which of the others has the value."""
    match value:
        case int():
            return Attribute(name=name, i=value, type=2)
        case float():
            return Attribute(name=name, f=value, type=1)
        case str():
            return Attribute(name=name, s=value.encode(), type=3)
    return Attribute(name=name, ints=value, type=7)


def value(name: str, kind: int, shape: Sequence[int | str | None] | None) -> Message:
    """An input or output of this type; a dimension that may vary has a name or none."""
    described = Value(name=name)
    described.type.tensor_type.elem_type = kind
    if shape is not None:
        described.type.tensor_type.shape.SetInParent()
    for size in shape or ():
        dimension = described.type.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dimension.dim_value = size
        elif size is not None:
            dimension.dim_param = size
    return described


def graph_file(graph: Message, opsets: Mapping[str, int], ir_version: int) -> bytes:
    model = Model(ir_version=ir_version, graph=graph)
    for domain, version in opsets.items():
        model.opset_import.add(domain=domain, version=version)
    data: bytes = model.SerializeToString()
    return data


def part_of(model: Message, inputs: Sequence[Message], outputs: Sequence[Message]) -> Message:
    """The part of a model that makes these outputs of these inputs; both are described as `value` does."""
    makers = {name: node for node in model.graph.node for name in node.output}
    known = {value.name for value in inputs}
    to_do, nodes = [value.name for value in outputs], set()
    while to_do:
        name = to_do.pop()
        if name in known or name not in makers:
            continue
        known.update(makers[name].output)
        nodes.add(id(makers[name]))
        to_do += makers[name].input
    kept = [node for node in model.graph.node if id(node) in nodes]
    read = {name for node in kept for name in node.input}
    part = Model(ir_version=model.ir_version, opset_import=model.opset_import)
    part.graph.name = model.graph.name
    part.graph.input.extend(inputs)
    part.graph.output.extend(outputs)
    part.graph.node.extend(kept)
    part.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in read)
    made = {name for node in kept for name in node.output} - {value.name for value in outputs}
    part.graph.value_info.extend(value for value in model.graph.value_info if value.name in made)
    return part
