"""Rows of different lengths in one padded tensor [B, T, C], and where each ends."""

from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor


def valid(lengths: Tensor, size: int) -> Tensor:  # lengths [B] -> [B, size, 1]
    """True at the times that belong to a row."""
    return (torch.arange(size, device=lengths.device) < lengths[:, None])[:, :, None]


def twice(x: Tensor) -> Tensor:  # [B, T, C] -> [B, 2T, C]
    """Each time said twice: nearest-neighbour upsampling."""
    return x[:, :, None].expand(-1, -1, 2, -1).reshape(x.shape[0], -1, x.shape[2])


class Ends(NamedTuple):
    """Where each row of a padded batch ends."""

    n: Tensor  # [B] int32
    mask: Tensor  # [B, T, 1]

    @staticmethod
    def of(lengths: Tensor, size: int) -> "Ends":
        return Ends(lengths.int(), valid(lengths, size))

    def doubled(self) -> "Ends":
        return Ends(2 * self.n, twice(self.mask))


def has_kernels(x: Tensor) -> bool:
    """Whether the folder `kernels` runs here; everything that it does is written in plain PyTorch too.

    It needs the copy engine and the shared memory of Hopper, or of what came after it for data centres.
    """
    return x.is_cuda and find_spec("triton") is not None and torch.cuda.get_device_capability(x.device)[0] in (9, 10)
