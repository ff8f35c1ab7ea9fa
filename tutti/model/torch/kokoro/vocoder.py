"""The vocoder half: an AdaIN decoder, then iSTFTNet, which filters a harmonic source into speech."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro.acoustic import TEXT
from tutti.model.torch.kokoro.adain import STYLE, AdaIN, Moments, StyleProjections, mean_leaky_relu, moments_of
from tutti.model.torch.kokoro.convs import Conv, ResBlock, Upsample
from tutti.model.torch.kokoro.masks import RowMask, valid_times
from tutti.model.torch.kokoro.side_streams import run_parallel
from tutti.model.torch.kokoro.source import BINS, HOP, STFT, HarmonicSource
from tutti.speech import FULL_SCALE

DECODER = 1024  # channels of the decoder
TEXT_RESIDUAL = 64  # channels of the text features that each decoder block reads again
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
        self, x: Tensor, moments: Moments, styles: Tensor, mask: RowMask, residuals: Sequence[Tensor] = ()
    ) -> tuple[Tensor, Moments]:
        """[B, T, C] and its moments -> the result without `bias` and with the residuals added, and its moments."""
        for i in range(len(DILATIONS)):
            conv1, conv2 = cast(Conv, self.convs1[i]), cast(Conv, self.convs2[i])
            y = self.adain1[i](x, moments, styles, mask, conv1.weight, self.alpha1[i].view(-1))
            y, moments = conv1.sum_with_moments(y, mask, skip_bias=True)
            y = self.adain2[i](y, moments, styles, mask, conv2.weight, self.alpha2[i].view(-1))
            last = residuals if i + 1 == len(DILATIONS) else ()
            x, moments = conv2.sum_with_moments(y, mask, [x, *last], skip_bias=True)
        return x, moments

    def bias(self) -> Tensor:  # [C]
        return torch.stack([cast(Tensor, conv.bias) for conv in self.convs2]).sum(0)


class Generator(nn.Module):
    """iSTFTNet: 2 values a frame become 120 spectra a frame, each scale guided by the harmonic source.

    Each norm subtracts a bias, but the residual sums around it keep it: the biases of a scale add up to one vector.
    """

    def __init__(self) -> None:
        super().__init__()
        self.m_source = HarmonicSource()
        self.stft = STFT()
        self.ups = nn.ModuleList([Upsample(512, 256, 20, 10), Upsample(256, 128, 12, 6)])
        self.noise_convs = nn.ModuleList([Conv(2 * BINS, 256, 12, stride=6), Conv(2 * BINS, 128)])
        self.noise_res = nn.ModuleList([SnakeBlock(256, 7), SnakeBlock(128, 11)])
        self.resblocks = nn.ModuleList(SnakeBlock(channels, kernel) for channels in (256, 128) for kernel in (3, 7, 11))
        self.conv_post = Conv(128, 2 * BINS, 7)
        for scale in range(2):
            self.register_buffer(f"bias{scale}", torch.empty(0), persistent=False)

    def sum_biases(self) -> None:
        """Add up the biases of each scale; once, after the weights were loaded."""
        for scale in range(2):
            up, noise = self.ups[scale].get_parameter("bias"), self.noise_convs[scale].get_parameter("bias")
            blocks = [cast(SnakeBlock, block) for block in (self.noise_res[scale], *self._blocks(scale))]
            first, *others = [block.bias() for block in blocks]
            setattr(self, f"bias{scale}", (up + noise + first + torch.stack(others).mean(0)).detach())

    def _blocks(self, scale: int) -> nn.ModuleList:
        return self.resblocks[3 * scale : 3 * scale + 3]

    def source_spectrum(self, f0: Tensor, n_frames: Tensor) -> Tensor:  # [B, 2T] -> [B, 120T + 1, 22 or more]
        """The harmonic source at the pitch, as spectra."""
        wave, weight = self.m_source(f0), self.noise_convs[0].get_parameter("weight")
        return self.stft.spectrum(wave, RowMask.of(120 * n_frames + 1, wave.shape[1] // HOP + 1), weight)

    def forward(self, x: Tensor, spectrum: Tensor, styles: Tensor, n_frames: Tensor) -> Tensor:
        """x [B, 2T, 512], spectrum of the source -> [B, 600T]."""
        hops = RowMask.of(120 * n_frames + 1, spectrum.shape[1])
        previous = RowMask.of(2 * n_frames, x.shape[1])
        n_pitches = x.shape[1]
        x = torch.where(previous.valid, F.leaky_relu(x, 0.1), 0)
        for scale, mask in enumerate((RowMask.of(20 * n_frames, 10 * x.shape[1]), hops)):
            x = self.ups[scale](x, previous, n_prefix=scale)
            if scale == 1:
                x[:, 0] = x[:, 2]  # reflection padding by one, to as many values as there are hops
            guide, moments = cast(Conv, self.noise_convs[scale]).sum_with_moments(spectrum, mask, skip_bias=True)
            x, moments = self.noise_res[scale](guide, moments, styles, mask, [x])
            branches = [partial(block, x, moments, styles, mask) for block in self._blocks(scale)]
            blocks = [y for y, _ in run_parallel(branches, "generator", x.shape[0] * n_pitches // 2, x.device)]
            x = mean_leaky_relu(blocks, getattr(self, f"bias{scale}"), 0.01 if scale else 0.1, mask)
            previous = mask
        return self.stft.wave(self.conv_post(x, hops), hops)


def downsample(x: Tensor, conv: Conv) -> Tensor:  # [B, 2T] -> [B, T]
    """A convolution of three taps and stride two on one channel, in fp32."""
    return (F.pad(x, (1, 0)).unfold(1, 3, 2) * conv.weight[0, 0]).sum(-1) + cast(Tensor, conv.bias)


def unpadded_curves(curves: Tensor, n_frames: Tensor) -> tuple[Tensor, Tensor]:  # [B, 2T, 2] -> [B, 2T] each
    """Pitch and energy, zero after each row's end."""
    f0, energy = (curves * valid_times(2 * n_frames, curves.shape[1])).unbind(-1)
    return f0, energy


def to_pcm(samples: Tensor, volumes: Tensor) -> Tensor:  # samples [B, S], volumes [B]
    """The same as `speech.to_pcm`."""
    return (samples * volumes[:, None]).clamp_(-1, 1).mul_(FULL_SCALE).round_().to(torch.int16)


class Vocoder(nn.Module):
    """Text features, pitch, energy and the timbre half of the style -> samples."""

    def __init__(self) -> None:
        super().__init__()
        self.F0_conv, self.N_conv = Conv(1, 1, 3, stride=2), Conv(1, 1, 3, stride=2)
        self.asr_res = nn.ModuleList([Conv(TEXT, TEXT_RESIDUAL)])
        self.encode = ResBlock(TEXT + 2, DECODER)
        n_in = DECODER + TEXT_RESIDUAL + 2
        self.decode = nn.ModuleList([*(ResBlock(n_in, DECODER) for _ in range(3)), ResBlock(n_in, TEXT, up=True)])
        self.generator = Generator()
        self.style_projections = StyleProjections()

    def use_fp16(self) -> None:
        """Use fp16 for the wide convolutions. Pitch, source, norms and Fourier transforms stay fp32."""
        for name, module in self.named_modules():
            if isinstance(module, Conv | Upsample) and name not in ("F0_conv", "N_conv"):
                module.use_fp16()

    def forward(self, features: Tensor, curves: Tensor, n_frames: Tensor, style: Tensor) -> Tensor:
        """features [B, T, 512], pitch and energy [B, 2T, 2], n_frames [B], style [B, 256] -> samples [B, 600T]."""
        f0, energy = unpadded_curves(curves, n_frames)

        def decode() -> tuple[Tensor, Tensor]:
            return self.decoder_output(features, f0, energy, n_frames, style)

        def spectrum() -> tuple[Tensor]:
            return (self.generator.source_spectrum(f0, n_frames),)

        branches: list[Callable[[], tuple[Tensor, ...]]] = [decode, spectrum]
        (x, styles), (source,) = run_parallel(branches, "vocoder", f0.numel() // 2, f0.device)
        return cast(Tensor, self.generator(x, source, styles, n_frames))

    def decoder_output(
        self, features: Tensor, f0: Tensor, energy: Tensor, n_frames: Tensor, style: Tensor
    ) -> tuple[Tensor, Tensor]:
        """All but the generator: its input [B, 2T, 512 or more], and the styles."""
        mask = RowMask.of(n_frames, features.shape[1])
        styles = self.style_projections(style[:, :STYLE])
        dtype = self.encode.conv1.weight.dtype
        features = (features * mask.valid).to(dtype)
        curves = torch.stack([downsample(f0, self.F0_conv), downsample(energy, self.N_conv)], dim=-1).to(dtype)
        # Pad to the width of the weights, which may have some zero channels more.
        padded = F.pad(curves, (0, self.encode.conv1.weight.shape[1] - TEXT - 2))
        x = torch.cat([features, padded], dim=-1)  # [B, T, 514 or more]
        x, moments = self.encode(x, moments_of(x, mask), styles, mask, dtype)
        residual = torch.cat([self.asr_res[0](features, mask), curves], dim=-1)
        width = cast(ResBlock, self.decode[0]).conv1.weight.shape[1]
        residual = F.pad(residual, (0, width - DECODER - TEXT_RESIDUAL - 2))
        residual_moments = moments_of(residual, mask, moments.size)
        for block in self.decode:
            x, moments = torch.cat([x, residual], dim=-1), moments.concat(residual_moments)  # [B, T, 1090 or more]
            x, moments = block(x, moments, styles, mask, dtype)
        return x, styles
