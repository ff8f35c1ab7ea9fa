"""Discriminators that listen to a wave folded at prime periods and to its spectrograms.

They are trained to tell light from its teacher, and light to please them: what plain distances leave blurred (noise
that is too smooth, onsets that are too soft) is what they find first.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from tutti.model.torch.light import RealFFT, split_frames

PERIODS = (2, 3, 5, 7, 11)
WINDOWS = (2048, 1024, 512)
SLOPE = 0.1
Judgement = tuple[Tensor, list[Tensor]]  # the verdict at each place, and the feature maps below it


class PeriodCritic(nn.Module):
    """Sees every p-th sample as a column of its own."""

    def __init__(self, period: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.period = period
        pairs = zip((1, *channels[:-1]), channels, strict=True)
        self.convs = nn.ModuleList(weight_norm(nn.Conv2d(n_in, n_out, (5, 1), (3, 1), (2, 0))) for n_in, n_out in pairs)
        self.last = weight_norm(nn.Conv2d(channels[-1], channels[-1], (5, 1), 1, (2, 0)))
        self.verdict = weight_norm(nn.Conv2d(channels[-1], 1, (3, 1), 1, (1, 0)))

    def forward(self, wave: Tensor) -> Judgement:  # [B, S]
        n = wave.shape[1] // self.period * self.period
        x, maps = wave[:, :n].reshape(wave.shape[0], 1, -1, self.period), []
        for conv in (*self.convs, self.last):
            x = F.leaky_relu(conv(x), SLOPE)
            maps.append(x)
        return self.verdict(x), maps


class SpectralCritic(nn.Module):
    """Sees the complex spectrogram with compressed magnitudes; the compression has no infinite slope at zero."""

    def __init__(self, window: int, channels: int) -> None:
        super().__init__()
        self.hop = window // 4
        self.register_buffer("window", torch.hann_window(window), persistent=False)
        wide = [weight_norm(nn.Conv2d(channels, channels, (3, 9), (1, 2), (1, 4))) for _ in range(3)]
        first, last = nn.Conv2d(2, channels, (3, 9), padding=(1, 4)), nn.Conv2d(channels, channels, 3, padding=1)
        self.convs = nn.ModuleList([weight_norm(first), *wide, weight_norm(last)])
        self.verdict = weight_norm(nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, wave: Tensor) -> Judgement:  # [B, S]
        with torch.autocast(wave.device.type, enabled=False):
            frames = split_frames(wave[:, : wave.shape[1] // self.hop * self.hop].float(), self.hop)
            spectrum: Tensor = RealFFT.apply(frames * self.window)
            compressed = spectrum / (spectrum.square().sum(-1, keepdim=True) + 1e-4).pow(0.3)
        x, maps = compressed.permute(0, 3, 1, 2), []  # [B, 2, frames, bins]
        for conv in self.convs:
            x = F.leaky_relu(conv(x), SLOPE)
            maps.append(x)
        return self.verdict(x), maps


class Critic(nn.Module):
    """All discriminators; `shrink` divides their widths."""

    def __init__(self, shrink: int = 1) -> None:
        super().__init__()
        channels = tuple(n // shrink for n in (32, 96, 256, 384))
        parts = [*(PeriodCritic(period, channels) for period in PERIODS),
                 *(SpectralCritic(window, 32 // shrink) for window in WINDOWS)]  # fmt: skip
        self.parts = nn.ModuleList(parts)

    def forward(self, wave: Tensor) -> list[Judgement]:
        return [part(wave) for part in self.parts]


def critic_loss(real: list[Judgement], fake: list[Judgement]) -> Tensor:
    """Hinge: real above 1, fake below -1."""
    losses = [
        F.relu(1 - r.float()).mean() + F.relu(1 + f.float()).mean() for (r, _), (f, _) in zip(real, fake, strict=True)
    ]
    return torch.stack(losses).mean()


def generator_loss(real: list[Judgement], fake: list[Judgement], feature_weight: float) -> Tensor:
    """Please the critics, and have the same features as the real wave inside them."""
    verdicts = torch.stack([-f.float().mean() for f, _ in fake]).mean()
    features = [
        (f.float() - r.detach().float()).abs().mean() / r.detach().float().abs().mean().clamp(min=1e-3)
        for (_, real_maps), (_, fake_maps) in zip(real, fake, strict=True)
        for r, f in zip(real_maps, fake_maps, strict=True)
    ]
    return verdicts + feature_weight * torch.stack(features).mean()
