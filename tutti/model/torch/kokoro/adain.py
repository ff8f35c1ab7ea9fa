"""AdaIN (adaptive instance norm), and the sums, statistics and activations (Snake, LeakyReLU) around it."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.masks import RowMask

STYLE = 128  # values of a style that one half of the network reads
TILE = 128  # time steps of one tile of the statistics


class Moments(NamedTuple):
    """Mean, and sum of squared distances from the mean, of each tile of `size` time steps."""

    tiles: Tensor  # [B, tiles, 2, C] fp32
    size: int

    def concat(self, other: "Moments") -> "Moments":
        """The moments of both tensors concatenated along their channels."""
        return Moments(torch.cat([self.tiles, other.tiles], dim=-1), self.size)


def sum_with_moments(
    parts: Sequence[Tensor], mask: RowMask, factor: float = 1, dtype: torch.dtype | None = None, size: int = TILE
) -> tuple[Tensor, Moments]:
    """The sum of tensors [B, T, C] times a factor, zero after each row's end, and its moments."""
    x = parts[0]
    if masks.has_kernels(x):
        from tutti.model.torch import kernels

        contiguous = [part.contiguous() for part in parts]
        total, tiles = kernels.sum_with_moments(contiguous, mask.lengths, factor, dtype or x.dtype, size)
        return total, Moments(tiles, size)
    total = x if len(parts) == 1 else sum(parts[1:], x) * factor * mask.valid
    value = total.float()
    mean = (value * mask.valid).sum(1) / mask.lengths[:, None]
    spread = ((value - mean[:, None]).square() * mask.valid).sum(1)
    return total.to(dtype or x.dtype), Moments(torch.stack([mean, spread], dim=1)[:, None], x.shape[1])


def moments_of(x: Tensor, mask: RowMask, size: int = TILE) -> Moments:
    return sum_with_moments([x], mask, size=size)[1]


def adain(x: Tensor, moments: Moments, style: Tensor, alpha: Tensor | None, mask: RowMask, like: Tensor) -> Tensor:
    """Normalise x [B, T, C or more], apply scale and shift [B, 2C], then Snake by alpha [C], or LeakyReLU.

    The result has the dtype and width of the weight `like`; it is zero after each row's end and after channel C.
    """
    if masks.has_kernels(x):
        from tutti.model.torch import kernels

        return kernels.adain(x.contiguous(), moments.tiles, moments.size, style, alpha, mask.lengths, like)
    scale, shift = style[:, None].chunk(2, dim=-1)  # [B, 1, C]
    mean, spread = moments.tiles[:, 0, :, None, : scale.shape[2]].unbind(1)  # [B, 1, C]
    value = x[:, :, : scale.shape[2]].float() - mean
    value = value * (torch.rsqrt(spread / mask.lengths[:, None, None] + 1e-5) * (1 + scale)) + shift
    value = F.leaky_relu(value, 0.2) if alpha is None else value + torch.sin(alpha * value).square() / alpha
    return F.pad(value * mask.valid, (0, like.shape[1] - value.shape[2])).to(like.dtype)


def mean_leaky_relu(parts: Sequence[Tensor], bias: Tensor, slope: float, mask: RowMask) -> Tensor:
    """LeakyReLU of the mean of three tensors [B, T, C] plus a bias [C], zero after each row's end."""
    x = parts[0]
    if masks.has_kernels(x):
        from tutti.model.torch import kernels

        return kernels.mean_leaky_relu(parts, bias, slope, mask.lengths)
    mean = torch.stack([part.float() for part in parts]).mean(0)
    return (F.leaky_relu(mean + bias, slope) * mask.valid).to(x.dtype)


class AdaIN(nn.Module):
    """Instance norm with scale and shift from the style, and the activation after it.

    The statistics are fp32 sums over the row's own time steps: padding must not change a voice.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)
        self.columns = slice(0, 0)  # of its scale and shift in the output of `StyleProjections`

    def forward(
        self, x: Tensor, moments: Moments, styles: Tensor, mask: RowMask, like: Tensor, alpha: Tensor | None = None
    ) -> Tensor:
        """[B, T, C] and its moments -> the input of a convolution with the weight `like`."""
        return adain(x, moments, styles[:, self.columns], alpha, mask, like)


class StyleProjections(nn.Module):
    """The scales and shifts of all AdaIN layers of a network, by one matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(0), persistent=False)  # [all, 128]
        self.register_buffer("bias", torch.empty(0), persistent=False)

    weight: Tensor
    bias: Tensor

    def fuse(self, network: nn.Module) -> None:
        """Copy the weights of all AdaIN layers, and tell each layer its columns."""
        norms = [part for part in network.modules() if isinstance(part, AdaIN)]
        self.weight = torch.cat([norm.fc.weight.data for norm in norms])
        self.bias = torch.cat([norm.fc.bias.data for norm in norms])
        start = 0
        for norm in norms:
            norm.columns = slice(start, start + norm.fc.out_features)
            start = norm.columns.stop

    def forward(self, style: Tensor) -> Tensor:  # [B, 128] -> [B, all]
        return F.linear(style, self.weight, self.bias)


class AdaLayerNorm(nn.Module):
    """Layer norm over channels with scale and shift from the style."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        scale, shift = self.fc(style)[:, None].chunk(2, dim=-1)
        return cast(Tensor, F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift)
