"""Write a checkpoint of the training into the package: python -m tutti.model.light.export CHECKPOINT [OUT]

Prints what rounding to int8 costs: the signal-to-noise ratio of each matrix.
"""

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutti.errors import WeightsCorrupt, WeightsUnavailable
from tutti.model.light import weights
from tutti.model.light.weights import Int8Matrix

LAST = "head.weight"  # a tensor that every version of the network has
# Averaged weights first: they speak better than those of the last step.
PLACES = ("average", "ema", "network", "student", "model")
FIRST_NAMES = {"inp": "entry", "dw": "along", "ada": "style", "a": "expand", "b": "contract", "gamma": "gain"}


def read_checkpoint(path: Path) -> dict[str, NDArray[np.float32]]:
    """The network's weights in a checkpoint, under today's names: .pt, or .npz, whole or in pieces (.npz.0, …)."""
    if path.suffix == ".npz":
        data = path.read_bytes() if path.exists() else b"".join(piece.read_bytes() for piece in _pieces(path))
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {_current_name(name): archive[name].astype(np.float32) for name in archive.files}
    import torch

    found = _find_state(torch.load(path, map_location="cpu", weights_only=True))
    if found is None:
        raise WeightsCorrupt(f"{path} holds no weights of the light vocoder")
    return {_current_name(name): tensor.float().numpy() for name, tensor in found.items()}


def _pieces(path: Path) -> list[Path]:
    pieces = sorted(path.parent.glob(f"{path.name}.[0-9]"))
    if not pieces:
        raise WeightsUnavailable(f"neither {path} nor its pieces {path.name}.0, … exist")
    return pieces


def _find_state(checkpoint: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if LAST in checkpoint:
        return checkpoint
    inner = [checkpoint[name] for name in PLACES if isinstance(checkpoint.get(name), Mapping)]
    return next((state for state in map(_find_state, inner) if state), None)


def _current_name(name: str) -> str:
    return ".".join(FIRST_NAMES.get(part, part) for part in name.split("."))


def export(checkpoint: Path, out: Path = weights.PATH) -> None:
    state = read_checkpoint(checkpoint)
    packed = weights.pack(state)
    weights.save(packed, out)
    for name, value in packed.items():
        if isinstance(value, Int8Matrix):
            error = value.float32() - state[name]
            print(f"{name:26} {20 * np.log10(np.linalg.norm(state[name]) / np.linalg.norm(error)):5.1f} dB")
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=weights.PATH)
    args = parser.parse_args()
    export(args.checkpoint, args.out)
