"""Linear layers with fp32 accuracy on fp16 matrix units. Durations depend on them."""

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.masks import RowMask


def split_fp16(x: Tensor) -> tuple[Tensor, Tensor, float]:
    """Split x into two fp16 tensors whose sum, times a scale, is x to 22 bits.

    The scale maps the largest value to about 1000, so that the low half of small values does not underflow.
    """
    scale = 2.0 ** (math.ceil(math.log2(x.abs().max().item())) - 10)
    high = (x / scale).half()
    return high, (x / scale - high.float()).half(), scale


class SplitFp16Linear(nn.Module):
    """Linear layers with the same input, fused into one; on CUDA by two-term fp16 emulation of fp32.

    Durations are rounded to frames: the error of tf32 changes about one in a thousand of them.
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

    def fuse(self, *layers: nn.Linear) -> None:
        """Copy the weights of these layers, one after the other."""
        self.weight = torch.cat([layer.weight.data for layer in layers])
        self.bias = torch.cat([layer.bias.data for layer in layers])

    def split(self) -> None:
        """Prepare the fp16 halves for the CUDA kernel."""
        self.high, self.low, self.scale = split_fp16(self.weight.T.contiguous())

    def forward(self, x: Tensor, mask: RowMask, gelu: bool = False) -> Tensor:  # [B, T, K] -> [B, T, N]
        if masks.has_kernels(x) and self.high.is_cuda:
            from tutti.model.torch import kernels

            return kernels.linear(x, self.high, self.low, self.bias, self.scale, mask.lengths, gelu)[0]
        y = F.linear(x, self.weight, self.bias)
        return F.gelu(y, approximate="tanh") if gelu else y


def add_layer_norm(x: Tensor, inner: Tensor, linear: SplitFp16Linear, norm: nn.LayerNorm, mask: RowMask) -> Tensor:
    """Layer norm of x + linear(inner)."""
    if masks.has_kernels(x) and linear.high.is_cuda:
        from tutti.model.torch import kernels

        parts = kernels.n_parts(inner.numel() // inner.shape[-1], inner.shape[-1])
        y = kernels.linear(inner, linear.high, linear.low, linear.bias, linear.scale, mask.lengths, parts=parts)
        return kernels.add_layer_norm(x, y, norm.weight, norm.bias, norm.eps)
    return cast(Tensor, norm(x + linear(inner, mask)))
