"""The vocoder half: an AdaIN decoder, then iSTFTNet, which shapes a harmonic source into speech."""

from collections.abc import Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro.acoustic import TEXT
from tutti.model.torch.kokoro.adain import STYLE, AdaIN, Manners, Moments, blended, moments
from tutti.model.torch.kokoro.convs import Conv, ResBlock, Upsample
from tutti.model.torch.kokoro.masks import Ends, valid
from tutti.model.torch.kokoro.side_streams import side_by_side
from tutti.model.torch.kokoro.source import BINS, HOP, Fourier, Source

WIDE = 1024  # channels of the decoder
HINT = 64  # channels of the text features that every decoder block sees again
DILATIONS = (1, 3, 5)


class SnakeBlock(nn.Module):
    """Three residual steps of AdaIN, Snake and convolution, twice each; the dilation grows."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(Conv(channels, channels, kernel, dilation=dilation) for dilation in DILATIONS)
        self.convs2 = nn.ModuleList(Conv(channels, channels, kernel) for _ in DILATIONS)
        self.adain1, self.adain2 = (nn.ModuleList(AdaIN(channels) for _ in DILATIONS) for _ in range(2))
        self.alpha1, self.alpha2 = (
            nn.ParameterList(nn.Parameter(torch.empty(1, channels, 1)) for _ in DILATIONS) for _ in range(2)
        )

    def forward(
        self, x: Tensor, its: Moments, manner: Tensor, ends: Ends, beside: Sequence[Tensor] = ()
    ) -> tuple[Tensor, Moments]:
        """[B, T, C] and its moments -> the result, less `bias` and with what is `beside` it, and its moments."""
        for i in range(len(DILATIONS)):
            conv1, conv2 = cast(Conv, self.convs1[i]), cast(Conv, self.convs2[i])
            y = self.adain1[i](x, its, manner, ends, conv1.weight, self.alpha1[i].view(-1))
            y, its = conv1.joined(y, ends, unbiased=True)
            y = self.adain2[i](y, its, manner, ends, conv2.weight, self.alpha2[i].view(-1))
            others = beside if i + 1 == len(DILATIONS) else ()
            x, its = conv2.joined(y, ends, [x, *others], unbiased=True)
        return x, its

    def bias(self) -> Tensor:  # [C]
        return torch.stack([cast(Tensor, conv.bias) for conv in self.convs2]).sum(0)


class Generator(nn.Module):
    """iSTFTNet: 2 values a frame become 120 spectra a frame, each scale guided by the harmonic source.

    Every norm takes a bias away, but the residual sums around it carry it on: all biases of a scale add up to one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.m_source = Source()
        self.fourier = Fourier()
        self.ups = nn.ModuleList([Upsample(512, 256, 20, 10), Upsample(256, 128, 12, 6)])
        self.noise_convs = nn.ModuleList([Conv(2 * BINS, 256, 12, stride=6), Conv(2 * BINS, 128)])
        self.noise_res = nn.ModuleList([SnakeBlock(256, 7), SnakeBlock(128, 11)])
        self.resblocks = nn.ModuleList(SnakeBlock(channels, kernel) for channels in (256, 128) for kernel in (3, 7, 11))
        self.conv_post = Conv(128, 2 * BINS, 7)
        for scale in range(2):
            self.register_buffer(f"bias{scale}", torch.empty(0), persistent=False)

    def lay_out(self) -> None:
        for scale in range(2):
            up, noise = self.ups[scale].get_parameter("bias"), self.noise_convs[scale].get_parameter("bias")
            blocks = [cast(SnakeBlock, block) for block in (self.noise_res[scale], *self._blocks(scale))]
            first, *three = [block.bias() for block in blocks]
            setattr(self, f"bias{scale}", (up + noise + first + torch.stack(three).mean(0)).detach())

    def _blocks(self, scale: int) -> nn.ModuleList:
        return self.resblocks[3 * scale : 3 * scale + 3]

    def forward(self, x: Tensor, f0: Tensor, manner: Tensor, n_frames: Tensor) -> Tensor:  # x [B, 2T, 512] -> [B, 600T]
        wave = self.m_source(f0)
        hops = Ends.of(120 * n_frames + 1, wave.shape[1] // HOP + 1)
        spectrum = self.fourier.spectrum(
            wave, hops, self.noise_convs[0].get_parameter("weight")
        )  # [B, 120T + 1, 22 or more]
        rough = Ends.of(2 * n_frames, x.shape[1])
        x = torch.where(rough.mask, F.leaky_relu(x, 0.1), 0)
        for scale, ends in enumerate((Ends.of(20 * n_frames, 10 * x.shape[1]), hops)):
            x = self.ups[scale](x, rough, ahead=scale)
            if scale == 1:
                x[:, 0] = x[:, 2]  # mirrored by one, to as many values as there are hops
            guide, its = cast(Conv, self.noise_convs[scale]).joined(spectrum, ends, unbiased=True)
            x, its = self.noise_res[scale](guide, its, manner, ends, [x])
            acts = [partial(block, x, its, manner, ends) for block in self._blocks(scale)]
            blocks = [y for y, _ in side_by_side(acts, "generator", f0.numel() // 2, x.device)]
            x, rough = blended(blocks, getattr(self, f"bias{scale}"), 0.01 if scale else 0.1, ends), ends
        return self.fourier.wave(self.conv_post(x, hops), hops)


def halved(x: Tensor, conv: Conv) -> Tensor:  # [B, 2T] -> [B, T]
    """A convolution of three taps and stride two on one channel, in fp32."""
    return (F.pad(x, (1, 0)).unfold(1, 3, 2) * conv.weight[0, 0]).sum(-1) + cast(Tensor, conv.bias)


class Vocoder(nn.Module):
    """Text features, pitch and energy, and the timbre half of the style, to samples."""

    def __init__(self) -> None:
        super().__init__()
        self.F0_conv, self.N_conv = Conv(1, 1, 3, stride=2), Conv(1, 1, 3, stride=2)
        self.asr_res = nn.ModuleList([Conv(TEXT, HINT)])
        self.encode = ResBlock(TEXT + 2, WIDE)
        self.decode = nn.ModuleList(
            [*(ResBlock(WIDE + HINT + 2, WIDE) for _ in range(3)), ResBlock(WIDE + HINT + 2, TEXT, up=True)]
        )
        self.generator = Generator()
        self.manners = Manners()

    def halve(self) -> None:
        """fp16 for the wide convolutions. Pitch, source, norms and Fourier transforms stay fp32."""
        for name, module in self.named_modules():
            if isinstance(module, Conv | Upsample) and name not in ("F0_conv", "N_conv"):
                module.halve()

    def forward(self, features: Tensor, f0: Tensor, energy: Tensor, n_frames: Tensor, style: Tensor) -> Tensor:
        """features [B, T, 512], f0 and energy [B, 2T], n_frames [B], style [B, 256] -> samples [B, 600T]."""
        ends, halves = Ends.of(n_frames, features.shape[1]), valid(2 * n_frames, f0.shape[1])
        manner = self.manners(style[:, :STYLE])
        f0, energy = f0 * halves[:, :, 0], energy * halves[:, :, 0]
        dtype = self.encode.conv1.weight.dtype
        features = (features * ends.mask).to(dtype)
        curves = torch.stack([halved(f0, self.F0_conv), halved(energy, self.N_conv)], dim=-1).to(dtype)
        # As wide as the weights, which may have a few channels of zeros more.
        beside = F.pad(curves, (0, self.encode.conv1.weight.shape[1] - TEXT - 2))
        x = torch.cat([features, beside], dim=-1)  # [B, T, 514 or more]
        x, its = self.encode(x, moments(x, ends), manner, ends, dtype)
        hint = torch.cat([self.asr_res[0](features, ends), curves], dim=-1)
        wide = self.decode.get_parameter("0.conv1.weight").shape[1]
        hint = F.pad(hint, (0, wide - WIDE - HINT - 2))
        of_hint = moments(hint, ends, its.size)
        for block in self.decode:
            x, its = torch.cat([x, hint], dim=-1), its.beside(of_hint)  # [B, T, 1090 or more]
            x, its = block(x, its, manner, ends, dtype)
        return cast(Tensor, self.generator(x, f0, manner, n_frames))
