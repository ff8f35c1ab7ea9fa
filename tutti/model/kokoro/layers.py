"""What both halves of Kokoro are built from. All tensors are [B, T, C]; a mask is [B, T, 1], true within the row."""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STYLE = 128  # numbers of a style that one half of the network reads
GATE_CHANNELS = 8  # one would do; eight keep the input aligned
ALIGNED = 8  # channels: the grain of fp16 tensor cores
CUDNN_LSTM = 2  # cuDNN's number for this kind of cell


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
    """Whether `kernels.py` runs here; everything that it does is written in plain PyTorch too."""
    return x.is_cuda and find_spec("triton") is not None


def joined(
    parts: Sequence[Tensor], ends: Ends, factor: float = 1, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The sum of tensors [B, T, C], zero behind each row's end, and its moments [B, tiles, 2, C]: means and spreads."""
    x = parts[0]
    if has_kernels(x):
        from tutti.model.kokoro import kernels

        return kernels.joined([part.contiguous() for part in parts], ends.n, factor, dtype or x.dtype)
    total = x if len(parts) == 1 else sum(parts[1:], x) * factor * ends.mask
    value = total.float()
    mean = (value * ends.mask).sum(1) / ends.n[:, None]
    spread = ((value - mean[:, None]).square() * ends.mask).sum(1)
    return total.to(dtype or x.dtype), torch.stack([mean, spread], dim=1)[:, None]


def moments(x: Tensor, ends: Ends) -> Tensor:
    return joined([x], ends)[1]


def bent(x: Tensor, moments: Tensor, manner: Tensor, alpha: Tensor | None, ends: Ends, like: Tensor) -> Tensor:
    """x [B, T, C or more] by its norm and the manner [B, 2C], then bent; zero behind each row's end and behind C."""
    if has_kernels(x):
        from tutti.model.kokoro import kernels

        return kernels.bent(x.contiguous(), moments, manner, alpha, ends.n, like)
    scale, shift = manner[:, None].chunk(2, dim=-1)  # [B, 1, C]
    mean, spread = moments[:, 0, :, None, : scale.shape[2]].unbind(1)  # [B, 1, C]
    value = x[:, :, : scale.shape[2]].float() - mean
    value = value * (torch.rsqrt(spread / ends.n[:, None, None] + 1e-5) * (1 + scale)) + shift
    value = F.leaky_relu(value, 0.2) if alpha is None else value + torch.sin(alpha * value).square() / alpha
    return F.pad(value * ends.mask, (0, like.shape[1] - value.shape[2])).to(like.dtype)


def blended(sums: Sequence[tuple[Tensor, Tensor]], bias: Tensor, slope: float, ends: Ends) -> Tensor:
    """LeakyReLU of the mean of three sums [B, T, C] and of one bias [C], zero behind each row's end."""
    x = sums[0][0]
    if has_kernels(x):
        from tutti.model.kokoro import kernels

        return kernels.blended(sums, bias, slope, ends.n)
    mean = sum((a.float() + b for a, b in sums), torch.zeros_like(x, dtype=torch.float32)) / len(sums)
    return (F.leaky_relu(mean + bias, slope) * ends.mask).to(x.dtype)


class Conv(nn.Module):
    """A convolution over time that keeps the length (divided by the stride).

    A [B, T, C] tensor seen as [B, C, 1, T] is a channels-last image, the layout that tensor cores read without a copy.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int = 1, stride: int = 1, dilation: int = 1, bias: bool = True):
        super().__init__()
        self.n_out, self.stride, self.dilation = n_out, (1, stride), (1, dilation)
        self.padding = (0, (kernel - stride + 1) // 2 * dilation)
        self.weight = nn.Parameter(torch.empty(n_out, n_in, kernel))
        self.bias = nn.Parameter(torch.empty(n_out)) if bias else None

    def forward(self, x: Tensor, unbiased: bool = False) -> Tensor:  # [B, T, n_in] -> [B, T / stride, n_out]
        """`unbiased` where a norm follows, which would take the bias away again."""
        if x.shape[2] != self.weight.shape[1]:
            x = F.pad(x, (0, self.weight.shape[1] - x.shape[2]))
        image, bias = _image(x.to(self.weight.dtype)), None if unbiased else self.bias
        y = F.conv2d(image, self.weight[:, :, None], bias, self.stride, self.padding, self.dilation)
        return y[:, : self.n_out, 0].transpose(1, 2)

    def halve(self) -> None:
        """To fp16, with as many channels as tensor cores like; those that are added are zero."""
        n_out, n_in, _ = self.weight.shape
        weight = F.pad(self.weight.data, (0, 0, 0, -n_in % ALIGNED, 0, -n_out % ALIGNED))
        self.weight = nn.Parameter(_channels_last(weight.half()), requires_grad=False)
        if self.bias is not None:
            self.bias = nn.Parameter(F.pad(self.bias.data, (0, -n_out % ALIGNED)).half(), requires_grad=False)


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
        self.register_buffer("taps", torch.empty(0), persistent=False)  # [stride * n_out, n_in, 3]

    taps: Tensor

    def lay_out(self) -> None:
        n_in, n_out, _ = self.weight.shape
        first, last = self.weight.data.permute(2, 1, 0).chunk(2)  # [stride, n_out, n_in]
        half, none = self.stride // 2, torch.zeros(self.stride // 2, n_out, n_in)
        before, now, after = [last[half:], none], [first[half:], last[:half]], [none, first[:half]]
        taps = torch.stack([torch.cat(part) for part in (before, now, after)], dim=-1)
        self.taps = _channels_last(taps.view(-1, n_in, 3))

    def forward(self, x: Tensor) -> Tensor:  # [B, T, n_in] -> [B, T * stride, n_out]
        y = F.conv2d(_image(x.to(self.taps.dtype)), self.taps[:, :, None], padding=(0, 1))[:, :, 0].transpose(1, 2)
        return y.reshape(x.shape[0], x.shape[1] * self.stride, -1)

    def halve(self) -> None:
        self.taps = self.taps.half()


class Doubling(nn.Module):
    """Each channel for itself, twice as many times: a transposed convolution of three taps, written out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, 3))
        self.bias = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:  # [B, T, C], masked -> [B, 2T, C]
        later, now, before = self.weight[:, 0].unbind(-1)
        following = F.pad(x[:, 1:], (0, 0, 0, 1))
        pairs = torch.stack([x * now, x * before + following * later], dim=2) + self.bias  # [B, T, 2, C]
        return pairs.flatten(1, 2)


def _image(x: Tensor) -> Tensor:  # [B, T, C] -> [B, C, 1, T], the same memory
    return x.transpose(1, 2)[:, :, None]


def _channels_last(weight: Tensor) -> Tensor:  # [out, in, kernel], in memory [out, kernel, in]
    return weight.transpose(1, 2).contiguous().transpose(1, 2)


def lay_out(module: nn.Module) -> None:
    """Puts the weights in memory as the convolutions read them."""
    for part in module.modules():
        if isinstance(part, Conv):
            part.weight.data = _channels_last(part.weight.data)
        elif isinstance(part, Upsample):
            part.lay_out()


class AdaIN(nn.Module):
    """Instance norm whose scale and shift come from the style, and the bend that follows it.

    The statistics are fp32 sums over the row's own times: padding must not change a voice.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)
        self.place = slice(0, 0)  # of its scale and shift in the manner that `Manners` tells all norms at once

    def forward(
        self, x: Tensor, moments: Tensor, manner: Tensor, ends: Ends, like: Tensor, alpha: Tensor | None = None
    ) -> Tensor:
        """[B, T, C] -> its norm, then Snake (alpha [C]) or LeakyReLU; ready for a convolution by the weight `like`."""
        return bent(x, moments, manner[:, self.place], alpha, ends, like)


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
        """The largest weight becomes about a thousand, so that the lower half of a small one is not lost in fp16."""
        self.scale = 2.0 ** (math.ceil(math.log2(self.weight.abs().max().item())) - 10)
        scaled = self.weight.T / self.scale
        self.high = scaled.half().contiguous()
        self.low = (scaled - self.high.float()).half().contiguous()

    def forward(self, x: Tensor, gelu: bool = False) -> Tensor:  # [..., K] -> [..., N]
        if has_kernels(x) and self.high.is_cuda:
            from tutti.model.kokoro import kernels

            return kernels.linear(x, self.high, self.low, self.bias, self.scale, gelu)
        y = F.linear(x, self.weight, self.bias)
        return F.gelu(y, approximate="tanh") if gelu else y


def normed_sum(x: Tensor, y: Tensor, norm: nn.LayerNorm) -> Tensor:
    """The layer norm of x + y."""
    if has_kernels(x):
        from tutti.model.kokoro import kernels

        return kernels.normed(x, y, norm.weight, norm.bias, norm.eps)
    return cast(Tensor, norm(x + y))


class StyledNorm(nn.Module):
    """Layer norm over channels whose scale and shift come from the style."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        scale, shift = self.fc(style)[:, None].chunk(2, dim=-1)
        return cast(Tensor, F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift)


class ResBlock(nn.Module):
    """AdaIN, LeakyReLU, convolution, twice; with a shortcut. `up` doubles the times."""

    def __init__(self, n_in: int, n_out: int, up: bool = False) -> None:
        super().__init__()
        self.up = up
        self.norm1, self.norm2 = AdaIN(n_in), AdaIN(n_out)
        self.conv1, self.conv2 = Conv(n_in, n_out, 3), Conv(n_out, n_out, 3)
        self.pool = Doubling(n_in) if up else None
        self.conv1x1 = Conv(n_in, n_out, bias=False) if n_in != n_out else None

    def forward(
        self, x: Tensor, tiles: Tensor, manner: Tensor, ends: Ends, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """[B, T, n_in] and its moments -> [B, T or 2T, n_out] and its moments."""
        y = self.norm1(x, tiles, manner, ends, self.conv1.weight)
        if self.pool is not None:
            x, ends = twice(x), ends.doubled()
            y = self.pool(y[:, :, : self.pool.bias.shape[0]]) * ends.mask
        y = self.conv1(y, unbiased=True)
        y = self.norm2(y, moments(y, ends), manner, ends, self.conv2.weight)
        shortcut = x if self.conv1x1 is None else self.conv1x1(x)
        return joined([shortcut, self.conv2(y)], ends, 1 / math.sqrt(2), dtype)


class BiLSTM(nn.Module):
    """An LSTM in both directions, the backward one from each row's own end.

    A padded batch needs no packing: an extra input, on in the padding alone, shuts the input gate. The backward state
    stays exactly zero until the row's last value, so lengths stay on the device and a CUDA graph can hold it all.
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        hidden = n_out // 2
        shapes = {"weight_ih": (n_in + GATE_CHANNELS,), "weight_hh": (hidden,), "bias_ih": (), "bias_hh": ()}
        self.names = [f"{kind}_l0{way}" for way in ("", "_reverse") for kind in shapes]
        for name in self.names:
            self.register_parameter(name, nn.Parameter(torch.empty(4 * hidden, *shapes[name.split("_l0")[0]])))
        for name in ("entering", "recurrent", "bias"):  # the same, as the kernel for few rows reads them
            self.register_buffer(name, torch.empty(0), persistent=False)
        self.register_load_state_dict_pre_hook(self._widen)  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor, ends: Ends) -> Tensor:  # [B, T, n_in] -> [B, T, n_out]
        if has_kernels(x) and self.recurrent.is_cuda:
            from tutti.model.kokoro import kernels

            if kernels.fits_lstm(x.shape[0], x.device):
                gates = F.linear(x, self.entering, self.bias).view(*x.shape[:2], 2, -1)  # [B, T, 2, 4H]
                return kernels.lstm(gates, self.recurrent, ends.n).masked_fill(~ends.mask, 0)
        gate = (~ends.mask).to(x.dtype).expand(-1, -1, GATE_CHANNELS)
        return cast(Tensor, bilstm(torch.cat([x, gate], dim=-1), [getattr(self, name) for name in self.names]))

    entering: Tensor
    recurrent: Tensor
    bias: Tensor

    def flatten(self) -> None:
        """Lays the weights side by side on a CUDA device, as cuDNN wants them: else it copies them at every call."""
        weights = [getattr(self, name) for name in self.names]
        n_in, hidden = weights[0].shape[1], weights[1].shape[1]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(weights, 4, n_in, CUDNN_LSTM, hidden, 0, 1, True, True)
            entering, recurrent, bias_in, bias_state = (
                torch.stack([weights[i], weights[i + len(weights) // 2]]) for i in range(4)
            )
            self.entering = entering[:, :, :-GATE_CHANNELS].flatten(0, 1).contiguous()  # [2 * 4H, n_in]
            self.recurrent = recurrent.view(2, 4, hidden, hidden).transpose(2, 3).contiguous()  # [2, 4, H, H]
            self.bias = (bias_in + bias_state).flatten()

    @staticmethod
    def _widen(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in ("weight_ih_l0", "weight_ih_l0_reverse"):
            weight = state[prefix + name]  # [4H, n_in], gates i, f, g, o
            shut = weight.new_zeros(len(weight), GATE_CHANNELS)
            shut[: len(weight) // 4] = -1e4
            state[prefix + name] = torch.cat([weight, shut], dim=1)


@torch.library.custom_op("tutti::bilstm", mutates_args=())
def bilstm(x: Tensor, weights: list[Tensor]) -> Tensor:  # [B, T, n_in] -> [B, T, n_out]
    """One call of the fused kernel, which a compiler must not unroll into its steps."""
    zeros = x.new_zeros(2, x.shape[0], weights[1].shape[1])
    return torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, False, True, True)[0].contiguous()


@bilstm.register_fake
def _(x: Tensor, weights: list[Tensor]) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[1], 2 * weights[1].shape[1])
