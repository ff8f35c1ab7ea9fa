"""Convolutions over time, and the residual block of both halves. All tensors are [B, T, C]."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.adain import AdaIN, Moments, sum_with_moments
from tutti.model.torch.kokoro.masks import RowMask, upsample_nearest


class Conv(nn.Module):
    """A convolution over time that keeps the length (divided by the stride).

    A [B, T, C] tensor viewed as [B, C, 1, T] is a channels-last image, which matrix units read without a copy.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int = 1, stride: int = 1, dilation: int = 1, bias: bool = True):
        super().__init__()
        self.stride, self.dilation = stride, dilation
        self.padding = (kernel - stride + 1) // 2 * dilation
        self.weight = nn.Parameter(torch.empty(n_out, n_in, kernel))
        self.bias = nn.Parameter(torch.empty(n_out)) if bias else None
        self.register_buffer("taps", torch.empty(0), persistent=False)  # [kernel, n_in, n_out] fp16

    taps: Tensor

    def forward(
        self, x: Tensor, mask: RowMask, skip_bias: bool = False
    ) -> Tensor:  # [B, T, n_in] -> [B, T / stride, n_out]
        """Undefined after each row's end. `skip_bias` where a norm follows, which would subtract the bias again."""
        if has_conv_kernel(self.taps):
            return self._run_kernel(x, mask, (), 1, None, skip_bias, stats=False)[0]
        x = F.pad(x, (0, self.weight.shape[1] - x.shape[2])).to(self.weight.dtype)
        bias = None if skip_bias or self.bias is None else self.bias.to(self.weight.dtype)
        weight = self.weight[:, :, None]
        y = F.conv2d(_as_image(x), weight, bias, (1, self.stride), (0, self.padding), (1, self.dilation))
        return y[:, :, 0].transpose(1, 2)

    def sum_with_moments(
        self,
        x: Tensor,
        mask: RowMask,
        residuals: Sequence[Tensor] = (),
        factor: float = 1,
        dtype: torch.dtype | None = None,
        skip_bias: bool = False,
    ) -> tuple[Tensor, Moments]:
        """The sum of the convolution and the residuals, times a factor, and its moments."""
        if has_conv_kernel(self.taps):
            return self._run_kernel(x, mask, residuals, factor, dtype, skip_bias, stats=True)
        return sum_with_moments([self(x, mask, skip_bias), *residuals], mask, factor, dtype)

    def _run_kernel(
        self,
        x: Tensor,
        mask: RowMask,
        residuals: Sequence[Tensor],
        factor: float,
        dtype: torch.dtype | None,
        skip_bias: bool,
        stats: bool,
    ) -> tuple[Tensor, Moments]:
        from tutti.model.torch import kernels

        n_rows, n_times = x.shape[0], x.shape[1] // self.stride
        if self.stride > 1:  # a strided convolution over T is a plain one over T / stride with wider channels
            after = self.stride * (n_times + self.taps.shape[0] - 1) - self.padding - x.shape[1]
            x = F.pad(x, (0, 0, self.padding, after)).view(n_rows, -1, self.taps.shape[1])
        out = x.new_empty(n_rows, n_times, self.taps.shape[2], dtype=dtype or self.taps.dtype)
        x, residuals = x.to(self.taps.dtype).contiguous(), [residual.contiguous() for residual in residuals]
        filters = kernels.Filters(self.taps, None if skip_bias else self.bias, self.dilation)
        return out, Moments(*kernels.conv(x, filters, residuals, mask.lengths, factor, stats, out))

    def use_fp16(self) -> None:
        """Convert to fp16, with zero channels added up to the width that matrix units need."""
        n_out, n_in, _ = self.weight.shape
        more_in, more_out = _aligned_channels(n_in) - n_in, _aligned_channels(n_out) - n_out
        self.set_weight(F.pad(self.weight.data, (0, 0, 0, more_in, 0, more_out)).half())
        if self.bias is not None:
            self.bias = nn.Parameter(F.pad(self.bias.data, (0, more_out)), requires_grad=False)

    def set_weight(self, weight: Tensor) -> None:  # [n_out, n_in, kernel]
        """Use this weight from now on."""
        self.weight = nn.Parameter(_channels_last(weight), requires_grad=False)
        if weight.dtype == torch.float16:
            n_taps = weight.shape[2] // self.stride
            self.taps = weight.permute(2, 1, 0).reshape(n_taps, -1, len(weight)).contiguous()


class Upsample(nn.Module):
    """A transposed convolution over time: `stride` values out for each value in; the caller adds its bias.

    With kernel = 2 * stride, each output depends on at most two inputs. So it is a plain convolution of three taps to
    `stride` times as many channels, which already lie in memory as consecutive outputs.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int) -> None:
        super().__init__()
        assert kernel == 2 * stride
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(n_in, n_out, kernel))
        self.bias = nn.Parameter(torch.empty(n_out))
        self.register_buffer("taps", torch.empty(0), persistent=False)  # [3, n_in, stride * n_out]

    taps: Tensor

    def pack_weights(self) -> None:
        n_in, n_out, _ = self.weight.shape
        first, last = self.weight.data.permute(2, 1, 0).chunk(2)  # [stride, n_out, n_in]
        half, none = self.stride // 2, torch.zeros(self.stride // 2, n_out, n_in)
        before, now, after = [last[half:], none], [first[half:], last[:half]], [none, first[:half]]
        self.taps = torch.stack([torch.cat(part).flatten(0, 1).T for part in (before, now, after)]).contiguous()

    def forward(
        self, x: Tensor, mask: RowMask, n_prefix: int = 0
    ) -> Tensor:  # [B, T, n_in] -> [B, n_prefix + T * stride, n_out]
        """The caller sets the first `n_prefix` values."""
        n_rows, n_times, wide = *x.shape[:2], self.taps.shape[2]
        whole = x.new_empty(n_rows, n_prefix + n_times * self.stride, wide // self.stride)
        out = whole[:, n_prefix:].as_strided((n_rows, n_times, wide), (whole.stride(0), wide, 1))
        if has_conv_kernel(self.taps):
            from tutti.model.torch import kernels

            filters = kernels.Filters(self.taps, None, dilation=1)
            kernels.conv(x.contiguous(), filters, (), mask.lengths, 1, False, out)
        else:
            weight = self.taps.permute(2, 1, 0)[:, :, None]
            out.copy_(F.conv2d(_as_image(x), weight, padding=(0, 1))[:, :, 0].transpose(1, 2))
        return whole

    def use_fp16(self) -> None:
        self.taps = self.taps.half()


class DepthwiseUpsample(nn.Module):
    """A depthwise transposed convolution of three taps and stride two, written out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, 3))
        self.bias = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor, mask: RowMask) -> Tensor:  # [B, T, C or more], masked -> [B, 2T, C or more], masked
        more = x.shape[2] - len(self.bias)
        after, now, before = F.pad(self.weight[:, 0].T, (0, more)).unbind(0)
        following = F.pad(x[:, 1:], (0, 0, 0, 1))
        pairs = torch.stack([x * now, x * before + following * after], dim=2) + F.pad(self.bias, (0, more))
        return torch.where(mask.valid, pairs.flatten(1, 2), 0).to(x.dtype)


class ResBlock(nn.Module):
    """AdaIN, LeakyReLU and convolution, twice, with a shortcut. `up` doubles the number of time steps."""

    def __init__(self, n_in: int, n_out: int, up: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = AdaIN(n_in), AdaIN(n_out)
        self.conv1, self.conv2 = Conv(n_in, n_out, 3), Conv(n_out, n_out, 3)
        self.pool = DepthwiseUpsample(n_in) if up else None
        self.conv1x1 = Conv(n_in, n_out, bias=False) if n_in != n_out else None

    def forward(
        self, x: Tensor, moments: Moments, styles: Tensor, mask: RowMask, dtype: torch.dtype
    ) -> tuple[Tensor, Moments]:
        """[B, T, n_in] and its moments -> [B, T or 2T, n_out] and its moments."""
        y = self.norm1(x, moments, styles, mask, self.conv1.weight)
        if self.pool is not None:
            x, mask = upsample_nearest(x), mask.upsample()
            y = self.pool(y, mask)
        y, moments = self.conv1.sum_with_moments(y, mask, skip_bias=True)
        y = self.norm2(y, moments, styles, mask, self.conv2.weight)
        shortcut = x if self.conv1x1 is None else self.conv1x1(x, mask, skip_bias=True)
        return self.conv2.sum_with_moments(y, mask, [shortcut], 1 / math.sqrt(2), dtype)


def has_conv_kernel(taps: Tensor) -> bool:
    """Whether our own convolution kernel runs on these weights."""
    return taps.dtype == torch.float16 and masks.has_kernels(taps)


def pack_weights(module: nn.Module) -> None:
    """Lay the weights out in memory as the convolutions read them."""
    for part in module.modules():
        if isinstance(part, Conv):
            part.weight.data = _channels_last(part.weight.data)
        elif isinstance(part, Upsample):
            part.pack_weights()


def _aligned_channels(channels: int) -> int:
    return 32 if channels <= 32 else -(-channels // 64) * 64


def _as_image(x: Tensor) -> Tensor:  # [B, T, C] -> [B, C, 1, T], the same memory
    return x.transpose(1, 2)[:, :, None]


def _channels_last(weight: Tensor) -> Tensor:  # [out, in, kernel], in memory [out, kernel, in]
    return weight.transpose(1, 2).contiguous().transpose(1, 2)
