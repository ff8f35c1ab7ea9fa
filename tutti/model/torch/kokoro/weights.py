"""Kokoro's weights under upstream's names, from the official ONNX file, upstream's checkpoint or our own archive.

Every tensor of the network must be found exactly once, and every tensor of the file must be used: a tensor that is
silently missing would be a voice that is silently wrong.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from torch import Tensor

from tutti.errors import WeightsCorrupt, WeightsUnavailable
from tutti.model.onnx import proto
from tutti.model.torch.kokoro.acoustic import Acoustic
from tutti.model.torch.kokoro.convs import pack_weights
from tutti.model.torch.kokoro.vocoder import Vocoder

State = dict[str, Tensor]

# Constants that the exporter computed; our network computes them at run time.
DERIVED = re.compile(r".*/(Constant|ConstantOfShape|Reciprocal)(_\d+)?_output_0|decoder\.decoder\.generator\.stft\..*")
SAFE_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
MAX_HEADER = 10_000_000  # bytes of JSON; that of Kokoro's has 60,000
# In upstream's checkpoint, but not used by the network.
UNUSED = re.compile(r"bert\.(pooler\..*|embeddings\.position_ids)")


def read_state(path: Path) -> State:
    """Read the weights; the suffix decides which of the three kinds of file it is."""
    if not path.exists():
        raise WeightsUnavailable(f"the model file is not at {path}; run: tutti pull --precision fp32")
    try:
        match path.suffix:
            case ".onnx":
                return from_onnx(path)
            case ".pth" | ".pt":
                return from_checkpoint(torch.load(path, map_location="cpu", weights_only=True))
            case ".safetensors":
                return from_checkpoint(_parts(read_safetensors(path)))
            case ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    return {name: torch.from_numpy(archive[name].astype(np.float32)) for name in archive.files}
    except UnpicklingError as exc:
        raise WeightsCorrupt(f"{path} is not a checkpoint that holds tensors alone") from exc
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as exc:
        raise WeightsCorrupt(f"{path} does not hold Kokoro's weights ({exc})") from exc
    raise WeightsCorrupt(f"{path} is neither .onnx, .safetensors, .pth nor .npz")


def build(state: Mapping[str, Tensor]) -> tuple[Acoustic, Vocoder]:
    """Build both halves; every tensor must be used once."""
    acoustic, vocoder = Acoustic(), Vocoder()
    own = {name: tensor for name, tensor in state.items() if not name.startswith("decoder.")}
    decoder = {name.removeprefix("decoder."): tensor for name, tensor in state.items() if name.startswith("decoder.")}
    try:
        acoustic.load_state_dict(own, strict=True)
        vocoder.load_state_dict(decoder, strict=True)
    except (RuntimeError, KeyError) as exc:
        raise WeightsCorrupt(f"these are not Kokoro's weights: {exc}") from exc
    pack_weights(acoustic)
    pack_weights(vocoder)
    vocoder.generator.sum_biases()
    acoustic.fuse()
    vocoder.style_projections.fuse(vocoder)
    return acoustic.eval().requires_grad_(False), vocoder.eval().requires_grad_(False)


def read_safetensors(path: Path) -> State:
    """Read a file of tensors: the length of a header in JSON, the header, and the numbers."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER:
            raise WeightsCorrupt(f"{path} is damaged or no .safetensors file")
        header = json.loads(file.read(length))
        numbers = bytearray(file.read())
    return {
        name: torch.frombuffer(numbers, dtype=SAFE_DTYPES[info["dtype"]], count=math.prod(info["shape"]),
                               offset=info["data_offsets"][0]).reshape(info["shape"]).float()
        for name, info in header.items() if name != "__metadata__"
    }  # fmt: skip


def _parts(tensors: State) -> dict[str, State]:
    """Return the tensors by the part of the network that the beginnings of their names say."""
    parts: dict[str, State] = defaultdict(dict)
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    return parts


def write_archive(state: Mapping[str, Tensor], path: Path, dtype: type[np.floating] = np.float16) -> None:
    """Write an archive for machines that have neither the ONNX package nor the space for the official file."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **{name: tensor.numpy().astype(dtype) for name, tensor in state.items()})


def from_checkpoint(parts: Mapping[str, Mapping[str, Tensor]]) -> State:
    """Read upstream's `.pth`: five parts, wrapped for data parallelism, with weight norm still in two factors."""
    flat = {
        f"{part}.{name.removeprefix('module.')}": tensor
        for part, names in parts.items()
        for name, tensor in names.items()
    }
    state: State = {}
    for name, tensor in flat.items():
        if name.endswith(".weight_g"):
            direction = flat[name.removesuffix("_g") + "_v"]
            length = direction.flatten(1).norm(dim=1).view(-1, *[1] * (direction.dim() - 1))
            state[name.removesuffix("_g")] = tensor * direction / length
        elif not name.endswith(".weight_v") and not UNUSED.fullmatch(name):
            state[name] = tensor
    return state


def from_onnx(path: Path) -> State:
    """Read the official graph: most tensors keep their names, the rest are named after the node that reads them."""
    try:
        graph = proto.load(path).graph
    except proto.DecodeError as exc:
        raise WeightsCorrupt(f"{path} is not an ONNX file ({exc}); run: tutti pull --verify") from exc
    tensors = {
        value.name: torch.from_numpy(proto.array_of(value).copy())
        for value in graph.initializer
        if value.data_type == proto.FLOAT and not DERIVED.fullmatch(value.name)
    }
    state: State = {}
    used: set[str] = set()
    for name, source, tensor in _named_tensors(graph.node, tensors):
        if name in state and source not in used:
            raise WeightsCorrupt(f"{path} holds {name} twice")
        state[name] = tensor
        used.add(source)
    if unused := tensors.keys() - used:
        raise WeightsCorrupt(f"{path} holds tensors that no part of the network reads: {', '.join(sorted(unused))}")
    return state


def _named_tensors(nodes: Iterable[proto.Message], tensors: State) -> Iterable[tuple[str, str, Tensor]]:
    """(our name, the file's name, tensor) for each tensor at each node that reads it."""
    nodes = list(nodes)
    bias_after = {value: name for node in nodes if node.op_type == "Add" for name in node.input if name in tensors
                  for value in node.input}  # fmt: skip
    for node in nodes:
        for position, source in enumerate(node.input):
            if source not in tensors:
                continue
            if node.op_type == "LSTM":
                yield from _lstm_tensors(_module_name(node.name), position, source, tensors[source])
            elif source.startswith(("encoder.", "decoder.")):
                yield _strip_root(source), source, tensors[source]
            elif node.op_type == "MatMul":
                yield _strip_root(bias_after[node.output[0]]).removesuffix("bias") + "weight", source, tensors[source].T
            else:  # a convolution whose weight norm was folded by the exporter
                yield _module_name(node.name) + ".weight", source, tensors[source]


def _lstm_tensors(module: str, position: int, source: str, halves: Tensor) -> Iterable[tuple[str, str, Tensor]]:
    """ONNX orders the gates i, o, f, c; PyTorch i, f, c, o. Each tensor holds the forward and the backward half."""
    kinds = {1: ("weight_ih",), 2: ("weight_hh",), 3: ("bias_ih", "bias_hh")}[position]
    for direction, tensor in zip(("", "_reverse"), halves, strict=True):
        for kind, part in zip(kinds, tensor.chunk(len(kinds)), strict=True):
            i, o, f, c = part.chunk(4)
            yield f"{module}.{kind}_l0{direction}", source, torch.cat([i, f, c, o])


def _strip_root(name: str) -> str:
    return name.removeprefix("encoder.").replace("decoder.decoder.", "decoder.", 1)


def _module_name(node: str) -> str:
    """/encoder/F0.0/conv1/Conv is predictor.F0.0.conv1; /encoder/x/cnn.0/cnn.0.0/Conv is x.cnn.0.0."""
    parts = node.strip("/").split("/")[1:-1]
    parts = [part for part, below in zip(parts, [*parts[1:], ""], strict=True) if not below.startswith(f"{part}.")]
    if re.match(r"(F0|N)[._]|shared", parts[0]):
        parts.insert(0, "predictor")
    return ".".join(parts)
