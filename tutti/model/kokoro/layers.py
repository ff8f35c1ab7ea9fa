"""What both halves of Kokoro are built from. All tensors are [B, T, C]; a mask is [B, T, 1], true within the row."""

import math
from typing import cast

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

    def forward(self, x: Tensor) -> Tensor:  # [B, T, n_in] -> [B, T / stride, n_out]
        x = F.pad(x.to(self.weight.dtype), (0, self.weight.shape[1] - x.shape[2]))  # nothing, unless halved
        y = F.conv2d(_image(x), self.weight[:, :, None], self.bias, self.stride, self.padding, self.dilation)
        return y[:, : self.n_out, 0].transpose(1, 2)

    def halve(self) -> None:
        """To fp16, with as many channels as tensor cores like; those that are added are zero."""
        n_out, n_in, _ = self.weight.shape
        weight = F.pad(self.weight.data, (0, 0, 0, -n_in % ALIGNED, 0, -n_out % ALIGNED))
        self.weight = nn.Parameter(_channels_last(weight.half()), requires_grad=False)
        if self.bias is not None:
            self.bias = nn.Parameter(F.pad(self.bias.data, (0, -n_out % ALIGNED)).half(), requires_grad=False)


class Upsample(nn.Module):
    """A transposed convolution over time: `stride` values out for each value in."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.stride, self.padding = (1, stride), (0, (kernel - stride) // 2)
        self.weight = nn.Parameter(torch.empty(n_in, n_out, kernel))
        self.bias = nn.Parameter(torch.empty(n_out))

    def forward(self, x: Tensor) -> Tensor:  # [B, T, n_in] -> [B, T * stride, n_out]
        image = _image(x.to(self.weight.dtype))
        y = F.conv_transpose2d(image, self.weight[:, :, None], self.bias, self.stride, self.padding)
        return y[:, :, 0].transpose(1, 2)

    def halve(self) -> None:
        self.half()


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
        if isinstance(part, Conv | Upsample):
            part.weight.data = _channels_last(part.weight.data)


class AdaIN(nn.Module):
    """Instance norm whose scale and shift come from the style.

    The statistics are fp32 sums over the row's own times: padding must not change a voice.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor, mask: Tensor) -> Tensor:  # [B, T, C] -> [B, T, C], fp32, not masked
        scale, shift = self.fc(style)[:, None].chunk(2, dim=-1)  # [B, 1, C]
        x, n = x.float(), mask.sum(1, keepdim=True)
        mean = (x * mask).sum(1, keepdim=True) / n
        variance = ((x - mean).square() * mask).sum(1, keepdim=True) / n
        return cast(Tensor, (x - mean) * (torch.rsqrt(variance + 1e-5) * (1 + scale)) + shift)


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

    def forward(self, x: Tensor, style: Tensor, mask: Tensor) -> Tensor:  # [B, T, n_in] -> [B, T or 2T, n_out], masked
        dtype = self.conv1.weight.dtype
        y = F.leaky_relu(self.norm1(x, style, mask), 0.2) * mask
        if self.pool is not None:
            x, mask = twice(x), twice(mask)
            y = self.pool(y) * mask
        y = self.conv2(F.leaky_relu(self.norm2(self.conv1(y), style, mask), 0.2) * mask)
        shortcut = x if self.conv1x1 is None else self.conv1x1(x)
        return cast(Tensor, (y + shortcut) * (mask / math.sqrt(2)).to(dtype))


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
        self.register_load_state_dict_pre_hook(self._widen)  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # [B, T, n_in] -> [B, T, n_out]
        gate = (~mask).to(x.dtype).expand(-1, -1, GATE_CHANNELS)
        return cast(Tensor, bilstm(torch.cat([x, gate], dim=-1), [getattr(self, name) for name in self.names]))

    def flatten(self) -> None:
        """Lays the weights side by side on a CUDA device, as cuDNN wants them: else it copies them at every call."""
        weights = [getattr(self, name) for name in self.names]
        n_in, hidden = weights[0].shape[1], weights[1].shape[1]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(weights, 4, n_in, CUDNN_LSTM, hidden, 0, 1, True, True)

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
