"""Convolutions over time, and the residual block that both halves are built from. All tensors are [B, T, C]."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks as rows
from tutti.model.torch.kokoro.adain import AdaIN, Moments, joined
from tutti.model.torch.kokoro.masks import Ends, twice


class Conv(nn.Module):
    """A convolution over time that keeps the length (divided by the stride).

    A [B, T, C] tensor seen as [B, C, 1, T] is a channels-last image, the layout that matrix units read without a copy.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int = 1, stride: int = 1, dilation: int = 1, bias: bool = True):
        super().__init__()
        self.stride, self.dilation = stride, dilation
        self.padding = (kernel - stride + 1) // 2 * dilation
        self.weight = nn.Parameter(torch.empty(n_out, n_in, kernel))
        self.bias = nn.Parameter(torch.empty(n_out)) if bias else None
        self.register_buffer("taps", torch.empty(0), persistent=False)  # [kernel, n_in, n_out], once halved

    taps: Tensor

    def forward(
        self, x: Tensor, ends: Ends, unbiased: bool = False
    ) -> Tensor:  # [B, T, n_in] -> [B, T / stride, n_out]
        """Unset behind each row's end. `unbiased` where a norm follows, which would take the bias away again."""
        if has_convs(self.taps):
            return self._run(x, ends, (), 1, None, unbiased, stats=False)[0]
        x = F.pad(x, (0, self.weight.shape[1] - x.shape[2])).to(self.weight.dtype)
        bias = None if unbiased or self.bias is None else self.bias.to(self.weight.dtype)
        weight = self.weight[:, :, None]
        y = F.conv2d(_image(x), weight, bias, (1, self.stride), (0, self.padding), (1, self.dilation))
        return y[:, :, 0].transpose(1, 2)

    def joined(
        self,
        x: Tensor,
        ends: Ends,
        residuals: Sequence[Tensor] = (),
        factor: float = 1,
        dtype: torch.dtype | None = None,
        unbiased: bool = False,
    ) -> tuple[Tensor, Moments]:
        """The convolution and the residuals, summed, times a factor; and the moments of that."""
        if has_convs(self.taps):
            return self._run(x, ends, residuals, factor, dtype, unbiased, stats=True)
        return joined([self(x, ends, unbiased), *residuals], ends, factor, dtype)

    def _run(
        self,
        x: Tensor,
        ends: Ends,
        residuals: Sequence[Tensor],
        factor: float,
        dtype: torch.dtype | None,
        unbiased: bool,
        stats: bool,
    ) -> tuple[Tensor, Moments]:
        from tutti.model.torch import kernels

        n_rows, n_times = x.shape[0], x.shape[1] // self.stride
        if self.stride > 1:  # as many times fewer, as many times wider
            after = self.stride * (n_times + self.taps.shape[0] - 1) - self.padding - x.shape[1]
            x = F.pad(x, (0, 0, self.padding, after)).view(n_rows, -1, self.taps.shape[1])
        out = x.new_empty(n_rows, n_times, self.taps.shape[2], dtype=dtype or self.taps.dtype)
        x, beside = x.to(self.taps.dtype).contiguous(), [residual.contiguous() for residual in residuals]
        bias = None if unbiased else self.bias
        found = kernels.convolved(x, self.taps, bias, beside, ends.n, self.dilation, factor, stats, out)
        return out, Moments(*found)

    def halve(self) -> None:
        """To fp16, with as many channels as matrix units like; those that are added are zero."""
        n_out, n_in, kernel = self.weight.shape
        weight = F.pad(self.weight.data, (0, 0, 0, _aligned(n_in) - n_in, 0, _aligned(n_out) - n_out)).half()
        self.weight = nn.Parameter(_channels_last(weight), requires_grad=False)
        if self.bias is not None:
            self.bias = nn.Parameter(F.pad(self.bias.data, (0, _aligned(n_out) - n_out)), requires_grad=False)
        self.taps = weight.permute(2, 1, 0).reshape(kernel // self.stride, -1, len(weight)).contiguous()


class Upsample(nn.Module):
    """A transposed convolution over time: `stride` values out for each value in; its bias is left to the caller.

    With twice as many taps as strides, each value out hears two neighbours at most. So it is a plain convolution of
    three taps to `stride` times as many channels, which in memory are already the values one after the other.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int) -> None:
        super().__init__()
        assert kernel == 2 * stride
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(n_in, n_out, kernel))
        self.bias = nn.Parameter(torch.empty(n_out))
        self.register_buffer("taps", torch.empty(0), persistent=False)  # [3, n_in, stride * n_out]

    taps: Tensor

    def lay_out(self) -> None:
        n_in, n_out, _ = self.weight.shape
        first, last = self.weight.data.permute(2, 1, 0).chunk(2)  # [stride, n_out, n_in]
        half, none = self.stride // 2, torch.zeros(self.stride // 2, n_out, n_in)
        before, now, after = [last[half:], none], [first[half:], last[:half]], [none, first[:half]]
        self.taps = torch.stack([torch.cat(part).flatten(0, 1).T for part in (before, now, after)]).contiguous()

    def forward(
        self, x: Tensor, ends: Ends, ahead: int = 0
    ) -> Tensor:  # [B, T, n_in] -> [B, ahead + T * stride, n_out]
        """The first `ahead` values are left for the caller to set."""
        n_rows, n_times, wide = *x.shape[:2], self.taps.shape[2]
        whole = x.new_empty(n_rows, ahead + n_times * self.stride, wide // self.stride)
        out = whole[:, ahead:].as_strided((n_rows, n_times, wide), (whole.stride(0), wide, 1))
        if has_convs(self.taps):
            from tutti.model.torch import kernels

            kernels.convolved(x.contiguous(), self.taps, None, (), ends.n, 1, 1, False, out)
        else:
            weight = self.taps.permute(2, 1, 0)[:, :, None]
            out.copy_(F.conv2d(_image(x), weight, padding=(0, 1))[:, :, 0].transpose(1, 2))
        return whole

    def halve(self) -> None:
        self.taps = self.taps.half()


class Doubling(nn.Module):
    """Each channel for itself, twice as many times: a transposed convolution of three taps, written out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, 3))
        self.bias = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor, ends: Ends) -> Tensor:  # [B, T, C or more], masked -> [B, 2T, C or more], masked
        more = x.shape[2] - len(self.bias)
        later, now, before = F.pad(self.weight[:, 0].T, (0, more)).unbind(0)
        following = F.pad(x[:, 1:], (0, 0, 0, 1))
        pairs = torch.stack([x * now, x * before + following * later], dim=2) + F.pad(self.bias, (0, more))
        return torch.where(ends.mask, pairs.flatten(1, 2), 0).to(x.dtype)


class ResBlock(nn.Module):
    """AdaIN, LeakyReLU, convolution, twice; with a shortcut. `up` doubles the times."""

    def __init__(self, n_in: int, n_out: int, up: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = AdaIN(n_in), AdaIN(n_out)
        self.conv1, self.conv2 = Conv(n_in, n_out, 3), Conv(n_out, n_out, 3)
        self.pool = Doubling(n_in) if up else None
        self.conv1x1 = Conv(n_in, n_out, bias=False) if n_in != n_out else None

    def forward(
        self, x: Tensor, its: Moments, manner: Tensor, ends: Ends, dtype: torch.dtype
    ) -> tuple[Tensor, Moments]:
        """[B, T, n_in] and its moments -> [B, T or 2T, n_out] and its moments."""
        y = self.norm1(x, its, manner, ends, self.conv1.weight)
        if self.pool is not None:
            x, ends = twice(x), ends.doubled()
            y = self.pool(y, ends)
        y, its = self.conv1.joined(y, ends, unbiased=True)
        y = self.norm2(y, its, manner, ends, self.conv2.weight)
        shortcut = x if self.conv1x1 is None else self.conv1x1(x, ends, unbiased=True)
        return self.conv2.joined(y, ends, [shortcut], 1 / math.sqrt(2), dtype)


def has_convs(taps: Tensor) -> bool:
    """Whether our own convolution runs on these weights here."""
    return taps.dtype == torch.float16 and rows.has_kernels(taps)


def lay_out(module: nn.Module) -> None:
    """Puts the weights in memory as the convolutions read them."""
    for part in module.modules():
        if isinstance(part, Conv):
            part.weight.data = _channels_last(part.weight.data)
        elif isinstance(part, Upsample):
            part.lay_out()


def _aligned(channels: int) -> int:
    return 32 if channels <= 32 else -(-channels // 64) * 64


def _image(x: Tensor) -> Tensor:  # [B, T, C] -> [B, C, 1, T], the same memory
    return x.transpose(1, 2)[:, :, None]


def _channels_last(weight: Tensor) -> Tensor:  # [out, in, kernel], in memory [out, kernel, in]
    return weight.transpose(1, 2).contiguous().transpose(1, 2)
