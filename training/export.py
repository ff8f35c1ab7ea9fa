"""Write checkpoints of the training into the package.

python -m training.export CHECKPOINT       the network
python -m training.export --bases BASES    the bases of the decoder
python -m training.export --text TEXT      the text encoder
python -m training.export --nano NANO      the network that needs no decoder

`--gain` makes all speech louder, to remove a mean difference of level that was measured on trained rows.
Prints what rounding to int8 costs: the signal-to-noise ratio of each matrix.
"""

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tutti.errors import WeightsCorrupt, WeightsUnavailable
from tutti.model.light import weights
from tutti.model.light.signal import HEAD
from tutti.model.light.weights import Int8Matrix, Weights

if TYPE_CHECKING:
    from torch import Tensor

    from tutti.model.torch.light import SpectralNetwork

LAST = "head.weight"  # a tensor that every version of the network has
# Averaged weights first: they speak better than those of the last step.
PLACES = ("average", "ema", "network", "student", "model")
FIRST_NAMES = {"inp": "entry", "dw": "along", "ada": "style", "a": "expand", "b": "contract", "gamma": "gain"}

# The random input of `head_balance`: rows, steps of each, and the deviation of the decoder's output in speech.
N_ROWS, N_STEPS, FEATURE_DEVIATION = 8, 160, 2.7
# 0 leaves the input as it is, 1 makes all channels equally loud; between, input and weight lose the same by rounding.
BALANCE_SHARE = 0.7


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


def light_balance(state: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:  # [width]
    import torch

    from tutti.model.torch.light import FEATURES, LightNetwork

    network = LightNetwork.of(_tensors(state))
    return head_balance(network, torch.zeros(FEATURES), torch.full((FEATURES,), FEATURE_DEVIATION))


def head_balance(network: "SpectralNetwork", mean: "Tensor", deviation: "Tensor") -> NDArray[np.float32]:  # [width]
    """Factors that bring the input of the head's channels closer together, so that it can be rounded to int8.

    Four channels are forty times as loud as the median one, and each would set the step of rounding for 128. Random
    input shows which they are: the same as in speech.
    """
    import torch

    from tutti.model.torch.light import TIMBRE

    random = torch.Generator().manual_seed(0)
    x = mean + deviation * torch.randn(N_ROWS, N_STEPS, network.n_features, generator=random)
    f0 = 80 + 200 * torch.rand(N_ROWS, 1, generator=random).expand(N_ROWS, N_STEPS)
    f0 = f0.masked_fill(torch.arange(N_STEPS) < N_STEPS // 3, 0.0)
    with torch.inference_mode():
        hidden = network.hidden(x, f0, 0.1 * torch.randn(N_ROWS, TIMBRE, generator=random))
        loudness = hidden.square().mean((0, 1)).sqrt().clamp(min=1e-3)
        balance: NDArray[np.float32] = loudness.pow(-BALANCE_SHARE).numpy()
    return balance


def _tensors(state: Mapping[str, NDArray[np.float32]]) -> "dict[str, Tensor]":
    import torch

    return {name: torch.from_numpy(value) for name, value in state.items()}


def louder(state: dict[str, NDArray[np.float32]], gain_db: float) -> dict[str, NDArray[np.float32]]:
    """The same network with all its magnitudes raised: they are logarithms, so a part of the head's bias is."""
    parts = np.split(state["head.bias"], len(HEAD))
    nepers = np.float32(gain_db * np.log(10) / 20)
    raised = [part + nepers if name.endswith("magnitude") else part for name, part in zip(HEAD, parts, strict=True)]
    return {**state, "head.bias": np.concatenate(raised)}


def export(checkpoint: Path, out: Path = weights.PATH, gain_db: float = 0.0) -> None:
    state = read_checkpoint(checkpoint)
    if gain_db:
        state = louder(state, gain_db)
    packed = weights.pack(state, {"head.weight": light_balance(state)} if "entry.weight" in state else {})
    weights.save(packed, out)
    _report(packed, state, out)


def export_bases(checkpoint: Path, out: Path = weights.BASES_PATH) -> None:
    state = read_checkpoint(checkpoint)
    packed = weights.pack_bases(state)
    weights.save(packed, out)
    _report(packed, state, out)


def export_text(checkpoint: Path, out: Path = weights.TEXT_PATH) -> None:
    state = read_checkpoint(checkpoint)
    packed = weights.pack(state)
    weights.save(packed, out)
    _report(packed, state, out)


def export_nano(checkpoint: Path, out: Path = weights.NANO_PATH, gain_db: float = 0.0) -> None:
    from tutti.model.torch.nano import NanoNetwork

    state = louder(read_checkpoint(checkpoint), gain_db)
    network = NanoNetwork.of(_tensors(state))
    mean, deviation = (each[: network.n_features] for each in network.row.mean.chunk(2))  # as in speech
    packed = weights.pack(state, {"head.weight": head_balance(network, mean, deviation)})
    weights.save(packed, out)
    _report(packed, state, out)


def _report(packed: Weights, state: Mapping[str, NDArray[np.float32]], out: Path) -> None:
    for name, value in packed.items():
        if isinstance(value, Int8Matrix) and value.values.any():
            error = value.float32() - state[name]
            print(f"{name:26} {20 * np.log10(np.linalg.norm(state[name]) / np.linalg.norm(error)):5.1f} dB")
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, nargs="?")
    parser.add_argument("--bases", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--nano", type=Path)
    parser.add_argument("--to", type=Path, help="of nano; default: the package")
    parser.add_argument("--gain", type=float, default=0.0, help="dB")
    args = parser.parse_args()
    if args.checkpoint:
        export(args.checkpoint, gain_db=args.gain)
    if args.bases:
        export_bases(args.bases)
    if args.text:
        export_text(args.text)
    if args.nano:
        export_nano(args.nano, args.to or weights.NANO_PATH, args.gain)
