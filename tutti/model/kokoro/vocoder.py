"""The vocoder half: an AdaIN decoder, then iSTFTNet, which shapes a harmonic source into speech."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.kokoro.acoustic import TEXT
from tutti.model.kokoro.layers import STYLE, AdaIN, Conv, ResBlock, Upsample, valid
from tutti.model.kokoro.source import BINS, Fourier, Source

WIDE = 1024  # channels of the decoder
HINT = 64  # channels of the text features that every decoder block sees again
DILATIONS = (1, 3, 5)
SAMPLES_PER_FRAME = 600


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

    def forward(self, x: Tensor, style: Tensor, mask: Tensor) -> Tensor:  # [B, T, C], masked in and out
        for i in range(len(DILATIONS)):
            y = snake(self.adain1[i](x, style, mask), self.alpha1[i]) * mask
            y = self.convs1[i](y)
            y = snake(self.adain2[i](y, style, mask), self.alpha2[i]) * mask
            x = x + self.convs2[i](y) * mask
        return x


def snake(x: Tensor, alpha: Tensor) -> Tensor:  # [B, T, C], [1, C, 1]
    """A bend that repeats itself: sound is periodic."""
    a = alpha.view(-1)
    return x + torch.sin(a * x).square() / a


class Generator(nn.Module):
    """iSTFTNet: 2 values a frame become 120 spectra a frame, each scale guided by the harmonic source."""

    def __init__(self) -> None:
        super().__init__()
        self.m_source = Source()
        self.fourier = Fourier()
        self.ups = nn.ModuleList([Upsample(512, 256, 20, 10), Upsample(256, 128, 12, 6)])
        self.noise_convs = nn.ModuleList([Conv(2 * BINS, 256, 12, stride=6), Conv(2 * BINS, 128)])
        self.noise_res = nn.ModuleList([SnakeBlock(256, 7), SnakeBlock(128, 11)])
        self.resblocks = nn.ModuleList(SnakeBlock(channels, kernel) for channels in (256, 128) for kernel in (3, 7, 11))
        self.conv_post = Conv(128, 2 * BINS, 7)

    def forward(self, x: Tensor, f0: Tensor, style: Tensor, n_frames: Tensor) -> Tensor:  # x [B, 2T, 512] -> [B, 600T]
        wave = self.m_source(f0)
        hops = valid(120 * n_frames + 1, wave.shape[1] // 5 + 1)
        spectrum = self.fourier.spectrum(wave, SAMPLES_PER_FRAME * n_frames) * hops  # [B, 120T + 1, 22]
        for scale, mask in enumerate((valid(20 * n_frames, 10 * x.shape[1]), hops)):
            x = self.ups[scale](F.leaky_relu(x, 0.1))
            if scale == 1:
                x = torch.cat([x[:, 1:2], x], dim=1)  # mirrored by one, to as many values as there are hops
            guide = self.noise_convs[scale](spectrum) * mask
            x = (x + self.noise_res[scale](guide, style, mask)) * mask
            small, middle, large = (block(x, style, mask) for block in self.resblocks[3 * scale : 3 * scale + 3])
            x = (small + middle + large) / 3
        magnitude, phase = self.conv_post(F.leaky_relu(x, 0.01)).float().chunk(2, dim=-1)
        return self.fourier.wave(magnitude.exp(), phase.sin(), hops)


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

    def halve(self) -> None:
        """fp16 for the wide convolutions. Pitch, source, norms and Fourier transforms stay fp32."""
        for name, module in self.named_modules():
            if isinstance(module, Conv | Upsample) and name not in ("F0_conv", "N_conv"):
                module.halve()

    def forward(self, features: Tensor, f0: Tensor, energy: Tensor, n_frames: Tensor, style: Tensor) -> Tensor:
        """features [B, T, 512], f0 and energy [B, 2T], n_frames [B], style [B, 256] -> samples [B, 600T]."""
        mask, halves = valid(n_frames, features.shape[1]), valid(2 * n_frames, f0.shape[1])
        f0, energy, timbre = f0 * halves[:, :, 0], energy * halves[:, :, 0], style[:, :STYLE]
        features = (features * mask).to(self.encode.conv1.weight.dtype)
        curves = torch.cat([self.F0_conv(f0[:, :, None]), self.N_conv(energy[:, :, None])], dim=-1) * mask
        curves = curves.to(features.dtype)
        hint = torch.cat([self.asr_res[0](features) * mask, curves], dim=-1)
        x = self.encode(torch.cat([features, curves], dim=-1), timbre, mask)
        for block in self.decode:
            x = block(torch.cat([x, hint], dim=-1), timbre, mask)
        return cast(Tensor, self.generator(x, f0, timbre, n_frames))
