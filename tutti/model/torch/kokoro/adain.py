"""Instance norm that listens to the style, and what stands around it: sums, statistics, Snake and LeakyReLU."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks as rows
from tutti.model.torch.kokoro.masks import Ends

STYLE = 128  # numbers of a style that one half of the network reads
TILE = 128  # times whose statistics are taken together


class Moments(NamedTuple):
    """Means and spreads (sums of squared distances from the mean) of stretches of `size` times."""

    tiles: Tensor  # [B, tiles, 2, C] fp32
    size: int

    def beside(self, other: "Moments") -> "Moments":
        """Of both tensors' channels."""
        return Moments(torch.cat([self.tiles, other.tiles], dim=-1), self.size)


def joined(
    parts: Sequence[Tensor], ends: Ends, factor: float = 1, dtype: torch.dtype | None = None, size: int = TILE
) -> tuple[Tensor, Moments]:
    """The sum of tensors [B, T, C] times a factor, zero behind each row's end, and its moments."""
    x = parts[0]
    if rows.has_kernels(x):
        from tutti.model.torch import kernels

        total, tiles = kernels.joined([part.contiguous() for part in parts], ends.n, factor, dtype or x.dtype, size)
        return total, Moments(tiles, size)
    total = x if len(parts) == 1 else sum(parts[1:], x) * factor * ends.mask
    value = total.float()
    mean = (value * ends.mask).sum(1) / ends.n[:, None]
    spread = ((value - mean[:, None]).square() * ends.mask).sum(1)
    return total.to(dtype or x.dtype), Moments(torch.stack([mean, spread], dim=1)[:, None], x.shape[1])


def moments(x: Tensor, ends: Ends, size: int = TILE) -> Moments:
    return joined([x], ends, size=size)[1]


def bent(x: Tensor, its: Moments, manner: Tensor, alpha: Tensor | None, ends: Ends, like: Tensor) -> Tensor:
    """x [B, T, C or more] by its norm and the manner [B, 2C], then Snake by alpha [C], or LeakyReLU.

    In the dtype and width of the weight `like`; zero behind each row's end and behind C.
    """
    if rows.has_kernels(x):
        from tutti.model.torch import kernels

        return kernels.bent(x.contiguous(), its.tiles, its.size, manner, alpha, ends.n, like)
    scale, shift = manner[:, None].chunk(2, dim=-1)  # [B, 1, C]
    mean, spread = its.tiles[:, 0, :, None, : scale.shape[2]].unbind(1)  # [B, 1, C]
    value = x[:, :, : scale.shape[2]].float() - mean
    value = value * (torch.rsqrt(spread / ends.n[:, None, None] + 1e-5) * (1 + scale)) + shift
    value = F.leaky_relu(value, 0.2) if alpha is None else value + torch.sin(alpha * value).square() / alpha
    return F.pad(value * ends.mask, (0, like.shape[1] - value.shape[2])).to(like.dtype)


def blended(parts: Sequence[Tensor], bias: Tensor, slope: float, ends: Ends) -> Tensor:
    """LeakyReLU of the mean of three tensors [B, T, C] and of one bias [C], zero behind each row's end."""
    x = parts[0]
    if rows.has_kernels(x):
        from tutti.model.torch import kernels

        return kernels.blended(parts, bias, slope, ends.n)
    mean = torch.stack([part.float() for part in parts]).mean(0)
    return (F.leaky_relu(mean + bias, slope) * ends.mask).to(x.dtype)


class AdaIN(nn.Module):
    """Instance norm whose scale and shift come from the style, and the bend that follows it.

    The statistics are fp32 sums over the row's own times: padding must not change a voice.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)
        self.place = slice(0, 0)  # of its scale and shift among those of all norms, which `Manners` computes at once

    def forward(
        self, x: Tensor, its: Moments, manner: Tensor, ends: Ends, like: Tensor, alpha: Tensor | None = None
    ) -> Tensor:
        """[B, T, C] and its moments -> ready for a convolution by the weight `like`."""
        return bent(x, its, manner[:, self.place], alpha, ends, like)


class Manners(nn.Module):
    """The scales and shifts of all norms of a network, by one matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(0), persistent=False)  # [all, 128]
        self.register_buffer("bias", torch.empty(0), persistent=False)

    weight: Tensor
    bias: Tensor

    def gather(self, network: nn.Module) -> None:
        norms = [part for part in network.modules() if isinstance(part, AdaIN)]
        self.weight = torch.cat([norm.fc.weight.data for norm in norms])
        self.bias = torch.cat([norm.fc.bias.data for norm in norms])
        start = 0
        for norm in norms:
            norm.place = slice(start, start + norm.fc.out_features)
            start = norm.place.stop

    def forward(self, style: Tensor) -> Tensor:  # [B, 128] -> [B, all]
        return F.linear(style, self.weight, self.bias)


class StyledNorm(nn.Module):
    """Layer norm over channels whose scale and shift come from the style."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        scale, shift = self.fc(style)[:, None].chunk(2, dim=-1)
        return cast(Tensor, F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift)
