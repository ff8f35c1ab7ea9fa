"""The weights of our small networks, files of the package, with the large matrices in int8 and the rest in fp16: the
light vocoder, the bases of the decoder's convolutions (`tutti.model.onnx.decoder_graph`), the light text encoder, and
nano, the vocoder that needs no decoder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tutti.errors import WeightsCorrupt

PATH, BASES_PATH, TEXT_PATH, NANO_PATH = (
    Path(__file__).with_name(f"{name}.npz") for name in ("light", "bases", "text", "nano")
)
SCALES = ".scales"  # suffix of the scales of an int8 matrix
BALANCE = ".balance"  # suffix of the factors of its input
# For each matrix of a file of weights, by its digest and the matrix's name: the smallest and the largest number of its
# input in speech. Made by `training.ranges`; a matrix of other weights has none, and its input is rounded by steps.
RANGES_PATH = Path(__file__).with_name("ranges.npz")
BLOCK = 128  # numbers that share a scale; smaller is closer to the original, and slower
MIN_INT8 = 1 << 17  # numbers of a tensor from which on it is stored in int8
# What is added to the decoder's output, [512, 512] times it and [512]: a linear guess of what the bases leave out.
CORRECTION, CORRECTION_BIAS = "correction.weight", "correction.bias"
# Suffixes to a convolution's name: how loud its inputs are in speech, and the values between its two products.
INPUT_LOUDNESS, NARROW_LOUDNESS = ".input_loudness", ".narrow_loudness"
BASIS_LEVELS = 31  # on each side of zero, of the decoder's bases: six bits


@dataclass(frozen=True, slots=True, eq=False)
class Int8Matrix:
    """A weight with a scale for each block of input channels of each output, and for each tap of a convolution."""

    values: NDArray[np.int8]  # [out, in] or [out, taps, in]
    scales: NDArray[np.float32]  # [out, blocks] or [out, taps, blocks]
    # [in]: who multiplies the input by it may quantise the input too, though some channels are far louder than others.
    balance: NDArray[np.float32] | None = None
    range: tuple[float, float] | None = None  # of the input in speech, balanced if the weight is

    @staticmethod
    def of(weight: NDArray[np.float32], balance: NDArray[np.float32] | None = None, levels: int = 127) -> "Int8Matrix":
        """Round a weight, [out, in] or [out, in, taps], to the nearest of so many values on each side of zero."""
        last = weight if weight.ndim == 2 else weight.transpose(0, 2, 1)
        if balance is not None:
            last = last / balance
        n_in = last.shape[-1]
        padded = np.pad(last, [(0, 0)] * (last.ndim - 1) + [(0, -n_in % BLOCK)])
        blocks = padded.reshape(*last.shape[:-1], -1, BLOCK)
        scales = (np.maximum(np.abs(blocks).max(-1), 1e-12) / levels).astype(np.float32)
        values = np.rint(blocks / scales[..., None]).astype(np.int8)
        return Int8Matrix(values.reshape(padded.shape)[..., :n_in], scales, balance)

    def float32(self) -> NDArray[np.float32]:
        """The weight as PyTorch has it, for an input that is not balanced."""
        weight = self.balanced()
        if self.balance is not None:
            weight = weight * self.balance
        return weight if weight.ndim == 2 else weight.transpose(0, 2, 1)

    def balanced(self) -> NDArray[np.float32]:
        """The weight for a balanced input, channels last."""
        scales = np.repeat(self.scales, BLOCK, axis=-1)[..., : self.values.shape[-1]]
        return self.values.astype(np.float32) * scales


Weights = dict[str, Int8Matrix | NDArray[np.float32]]


def pack(
    state: Mapping[str, NDArray[np.float32]], balances: Mapping[str, NDArray[np.float32]] = MappingProxyType({})
) -> Weights:
    """Round the weights of a training to what the file holds. `balances`: of matrices, by name."""
    return {
        name: Int8Matrix.of(value, balances.get(name))
        if value.size >= MIN_INT8
        else value.astype(np.float16).astype(np.float32)
        for name, value in state.items()
    }


def pack_bases(state: Mapping[str, NDArray[np.float32]]) -> Weights:
    """Round the bases of the decoder's convolutions, by name; loudness and correction are more precise."""
    return {
        name: value.astype(np.float16).astype(np.float32)
        if value.ndim == 1
        else Int8Matrix.of(value, levels=127 if name == CORRECTION else BASIS_LEVELS)
        for name, value in state.items()
    }


def save(weights: Weights, path: Path = PATH) -> None:
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, value in weights.items():
        if isinstance(value, Int8Matrix):
            arrays[name], arrays[name + SCALES] = value.values, value.scales
            if value.balance is not None:
                arrays[name + BALANCE] = value.balance
        else:
            arrays[name] = value.astype(np.float16)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read(path: Path = PATH, prefix: str = "") -> Weights:
    """Read what has names with this prefix; raise WeightsCorrupt if the file is not one that `save` wrote."""
    try:
        ranges = {} if prefix else read_ranges(path)  # those who read a part build no graph of it
        with np.load(path, allow_pickle=False) as archive:
            names = [n for n in archive.files if n.startswith(prefix) and not n.endswith((SCALES, BALANCE))]
            return {
                name: Int8Matrix(archive[name], archive[name + SCALES], archive.get(name + BALANCE), ranges.get(name))
                if name + SCALES in archive
                else archive[name].astype(np.float32)
                for name in names
            }
    except (OSError, ValueError, KeyError, BadZipFile) as exc:
        raise WeightsCorrupt(f"{path} does not hold the light vocoder's weights ({exc}); reinstall tutti-tts") from exc


def read_ranges(path: Path) -> dict[str, tuple[float, float]]:
    """The ranges of the inputs of these weights, by the matrix's name."""
    prefix = f"{digest(path)}/"
    with np.load(RANGES_PATH, allow_pickle=False) as archive:
        found = {name.removeprefix(prefix): archive[name] for name in archive.files if name.startswith(prefix)}
    return {name: (float(low), float(high)) for name, (low, high) in found.items()}


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def as_float32(weights: Weights) -> dict[str, NDArray[np.float32]]:
    """All weights as PyTorch reads them."""
    return {name: value.float32() if isinstance(value, Int8Matrix) else value for name, value in weights.items()}


def matrix(weights: Weights, name: str) -> Int8Matrix:
    value = weights[name]
    return value if isinstance(value, Int8Matrix) else Int8Matrix.of(value)


def vector(weights: Weights, name: str) -> NDArray[np.float32]:
    value = weights[name]
    return value.float32() if isinstance(value, Int8Matrix) else value
