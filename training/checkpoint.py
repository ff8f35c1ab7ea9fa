"""Weights as an archive of fp16 arrays, whole or in pieces that are small enough for any way of copying them."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tutti.model.light import weights as packed

PIECE_BYTES = 15 << 20


def write(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write `path`.0, `path`.1, …; each piece replaces its predecessor at once."""
    buffer = io.BytesIO()
    arrays = {name: tensor.detach().float().clamp(-65_000, 65_000).half().cpu() for name, tensor in tensors.items()}
    np.savez(buffer, allow_pickle=False, **{name: array.numpy() for name, array in arrays.items()})
    data = buffer.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
    for i, piece in enumerate(pieces):
        partial = path.with_name(f"{path.name}.{i}.partial")
        partial.write_bytes(piece)
        partial.rename(path.with_name(f"{path.name}.{i}"))


def read(path: Path) -> dict[str, Tensor]:
    """Read `path`, or its pieces; also `.pt` files of PyTorch, and the int8 file of the package."""
    if path.suffix == ".pt":
        state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
        return {name: tensor.float() for name, tensor in state.items()}
    pieces = sorted(path.parent.glob(f"{path.name}.[0-9]"))
    data = path.read_bytes() if path.exists() else b"".join(piece.read_bytes() for piece in pieces)
    if not data:
        raise FileNotFoundError(f"neither {path} nor its pieces {path.name}.0, … exist")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        if any(name.endswith(packed.SCALES) for name in archive.files):
            return {name: torch.from_numpy(array) for name, array in packed.as_float32(packed.read(path)).items()}
        return {name: torch.from_numpy(archive[name].astype(np.float32)) for name in archive.files}


def quantised(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights as they are after int8 with one scale for each output channel; vectors stay as they are."""
    return {name: _round_to_int8(tensor) if tensor.dim() > 1 else tensor for name, tensor in tensors.items()}


def _round_to_int8(weight: Tensor) -> Tensor:
    scale = weight.flatten(1).abs().amax(1).clamp(min=1e-12).view(-1, *[1] * (weight.dim() - 1)) / 127
    return (weight / scale).round() * scale
