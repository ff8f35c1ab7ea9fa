"""Linear layers that durations hang on: exact, and fast all the same."""

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks as rows
from tutti.model.torch.kokoro.masks import Ends


def halves(x: Tensor) -> tuple[Tensor, Tensor, float]:
    """Two fp16 tensors whose sum, times a scale, is x to 22 bits.

    The largest number becomes about a thousand, so that the lower half of a small one is not lost.
    """
    scale = 2.0 ** (math.ceil(math.log2(x.abs().max().item())) - 10)
    high = (x / scale).half()
    return high, (x / scale - high.float()).half(), scale


class Exact(nn.Module):
    """Linear layers that read the same input, as one; on a CUDA device by matrix units, and as exact as fp32.

    Durations are rounded to frames: what tf32 loses moves one of a thousand of them.
    """

    def __init__(self) -> None:
        super().__init__()
        for name in ("weight", "bias", "high", "low"):
            self.register_buffer(name, torch.empty(0), persistent=False)
        self.scale = 1.0

    weight: Tensor  # [N, K]
    bias: Tensor
    high: Tensor  # [K, N] fp16
    low: Tensor

    def gather(self, *layers: nn.Linear) -> None:
        self.weight = torch.cat([layer.weight.data for layer in layers])
        self.bias = torch.cat([layer.bias.data for layer in layers])

    def split(self) -> None:
        """For the matrix units."""
        self.high, self.low, self.scale = halves(self.weight.T.contiguous())

    def forward(self, x: Tensor, ends: Ends, gelu: bool = False) -> Tensor:  # [B, T, K] -> [B, T, N]
        if rows.has_kernels(x) and self.high.is_cuda:
            from tutti.model.torch import kernels

            return kernels.linear(x, self.high, self.low, self.bias, self.scale, ends.n, gelu)
        y = F.linear(x, self.weight, self.bias)
        return F.gelu(y, approximate="tanh") if gelu else y


def normed_sum(x: Tensor, y: Tensor, norm: nn.LayerNorm) -> Tensor:
    """The layer norm of x + y."""
    if rows.has_kernels(x):
        from tutti.model.torch import kernels

        return kernels.normed(x, y, norm.weight, norm.bias, norm.eps)
    return cast(Tensor, norm(x + y))
