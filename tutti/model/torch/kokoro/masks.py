"""Row lengths and masks of padded tensors [B, T, C]."""

from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

_kernels_enabled = True  # of this process


def valid_times(lengths: Tensor, size: int) -> Tensor:  # lengths [B] -> [B, size, 1]
    """True at the time steps that belong to a row."""
    return (torch.arange(size, device=lengths.device) < lengths[:, None])[:, :, None]


def upsample_nearest(x: Tensor) -> Tensor:  # [B, T, C] -> [B, 2T, C]
    """Repeat each time step once."""
    return x[:, :, None].expand(-1, -1, 2, -1).reshape(x.shape[0], -1, x.shape[2])


class RowMask(NamedTuple):
    """The length of each row of a padded batch, as a number and as a mask."""

    lengths: Tensor  # [B] int32
    valid: Tensor  # [B, T, 1]

    @staticmethod
    def of(lengths: Tensor, size: int) -> "RowMask":
        return RowMask(lengths.int(), valid_times(lengths, size))

    def upsample(self) -> "RowMask":
        """The mask after `upsample_nearest`."""
        return RowMask(2 * self.lengths, upsample_nearest(self.valid))


def use_kernels(enabled: bool) -> None:
    """Allow the Triton kernels in this process; without them nothing has to be compiled."""
    global _kernels_enabled
    _kernels_enabled = enabled


def has_kernels(x: Tensor) -> bool:
    """Whether the Triton kernels in `kernels` run on this tensor; the plain PyTorch code runs everywhere.

    They know no gradients.
    """
    return device_has_kernels(x.device) and not torch.is_grad_enabled()


def device_has_kernels(device: torch.device) -> bool:
    """The kernels need the tensor memory accelerator and the shared memory of Hopper or data-centre Blackwell."""
    if not _kernels_enabled or device.type != "cuda" or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device)[0] in (9, 10)
