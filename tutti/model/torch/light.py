"""Light: a small vocoder that stands in for Kokoro's generator, at a twentieth of its cost.

It works at 80 steps a second (300 samples each) and speaks through a short-time Fourier transform. For each step it
predicts a filter for a harmonic source, a filter for noise, and a free part. The phase of the source is that of
Kokoro's own harmonics, so all but the noise can be learned by plain regression on the teacher's wave.

There is no norm over time: a step depends on the 27 steps around it, on the timbre and on statistics of the whole row
(tutti/model/light/row.py), which are added to the timbre once. So a window with that much context is exactly the whole.
"""

import math
from collections.abc import Mapping
from typing import Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.light.row import LIMIT, N_STATISTICS
from tutti.model.light.signal import (
    BINS,
    EDGE,
    HOP,
    LOWEST_HZ,
    MAX_LOG_MAGNITUDE,
    REFERENCE_HZ,
    TOP_HZ,
    VOICED_HZ,
    WINDOW,
    WINDOW_POWER,
)
from tutti.model.torch.kokoro import masks
from tutti.speech import SAMPLE_RATE

FEATURES = 512  # channels of the decoder's output
TIMBRE = 128  # the half of the style that steers timbre
TAPS = 7
N_BLOCKS = 8
EPSILON = 1e-5  # of the layer norms


def harmonic_phase(f0: Tensor) -> Tensor:  # [B, L] Hz -> [B, L] turns
    """The phase of the first harmonic in the middle of each step, as Kokoro's source counts it."""
    return torch.frac((f0.double() * (HOP / SAMPLE_RATE)).cumsum(1)).float()


def pulse_train(phase: Tensor, f0: Tensor) -> Tensor:  # [B, L] turns, [B, L] Hz -> [B, 300L]
    """All harmonics up to 11 kHz with equal amplitudes, at constant power; silent where the voice is.

    The sum of cos(2 k t) for k = 1..n is sin(n t) cos((n + 1) t) / sin(t).
    """
    offset = (torch.arange(HOP, device=f0.device) + 0.5) / HOP - 0.5  # from the middle of the step
    behind = f0 * (HOP / SAMPLE_RATE)
    ahead = F.pad(behind[:, 1:], (0, 1))
    turns = phase[:, :, None] + offset * torch.where(offset < 0, behind[:, :, None], ahead[:, :, None])
    angle = math.pi * (turns - turns.floor())
    n = torch.floor(TOP_HZ / f0.clamp(min=LOWEST_HZ))[:, :, None]
    sine = torch.sin(angle)
    at_peak = sine.abs() < 1e-3
    total = torch.sin(n * angle) * torch.cos((n + 1) * angle) / sine.masked_fill(at_peak, 1.0)
    wave = torch.where(at_peak, n, total) * (f0 > VOICED_HZ)[:, :, None] / n.sqrt()
    return wave.flatten(1)


class RealFFT(torch.autograd.Function):
    """rfft as pairs of real numbers; its gradient is one inverse transform of half the usual size."""

    @staticmethod
    def forward(frames: Tensor) -> Tensor:  # [..., n] -> [..., n / 2 + 1, 2]
        spectrum: Tensor = torch.fft.rfft(frames)
        return torch.view_as_real(spectrum)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        ctx.n = inputs[0].shape[-1]

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        halved = gradient * _bin_weights(gradient.shape[-2], 0.5, gradient)
        frames: Tensor = torch.fft.irfft(torch.view_as_complex(halved.contiguous()), n=ctx.n)
        return frames * float(ctx.n)


class InverseRealFFT(torch.autograd.Function):
    """irfft of pairs of real numbers."""

    @staticmethod
    def forward(spectrum: Tensor) -> Tensor:  # [..., n / 2 + 1, 2] -> [..., n]
        frames: Tensor = torch.fft.irfft(torch.view_as_complex(spectrum.contiguous()))
        return frames

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        pass

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        spectrum = torch.view_as_real(torch.fft.rfft(gradient))
        return spectrum * (_bin_weights(spectrum.shape[-2], 2.0, spectrum) / gradient.shape[-1])


def _bin_weights(n_bins: int, inner: float, like: Tensor) -> Tensor:  # [n_bins, 1]
    """1 for the first and the last bin, which occur once in a real signal's spectrum, `inner` for the others."""
    edges = torch.arange(n_bins, device=like.device) % (n_bins - 1) == 0
    return (inner + (1 - inner) * edges.to(like.dtype))[:, None]


def split_frames(wave: Tensor, hop: int) -> Tensor:  # [B, S] -> [B, S / hop - 3, 4 hop]
    """Frames of four hops, without padding; S is a multiple of the hop."""
    blocks = wave.view(wave.shape[0], -1, hop)
    n = blocks.shape[1] - 3
    return torch.stack([blocks[:, i : i + n] for i in range(4)], dim=2).flatten(2)


def add_frames(frames: Tensor, hop: int) -> Tensor:  # [B, F, 4 hop] -> [B, (F + 3) hop]
    """Overlap-add, the reverse of `split_frames`."""
    quarters = frames.view(*frames.shape[:2], 4, hop)
    shifted = [F.pad(quarters[:, :, i], (0, 0, i, 3 - i)) for i in range(4)]
    return (shifted[0] + shifted[1] + shifted[2] + shifted[3]).flatten(1)


class Transform(nn.Module):
    """The Fourier transforms of 1,200 samples around the middle of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)

    window: Tensor

    def analyse(self, wave: Tensor) -> Tensor:  # [B, 300L] -> [B, L, 601, 2]
        frames = split_frames(F.pad(wave, (EDGE, EDGE)), HOP) * self.window
        return cast(Tensor, RealFFT.apply(frames))  # type: ignore[no-untyped-call]

    def synthesise(self, spectrum: Tensor) -> Tensor:  # [B, L, 601, 2] -> [B, 300L]
        """The wave; its first and last 450 samples fade, as no step lies beyond them."""
        frames = cast(Tensor, InverseRealFFT.apply(spectrum))  # type: ignore[no-untyped-call]
        wave = add_frames(frames * (self.window / float(WINDOW_POWER)), HOP)
        return wave[:, EDGE:-EDGE]


def network_inputs(x: Tensor, f0: Tensor) -> Tensor:  # [B, L, n], [B, L] -> [B, L, n + 2]
    """What a network reads of a step: features, voiced or not, and the logarithm of the pitch."""
    voiced = f0 > VOICED_HZ
    pitch = torch.log(f0.clamp(min=VOICED_HZ) / REFERENCE_HZ).masked_fill(~voiced, 0.0)
    return torch.cat([x, voiced[:, :, None].to(x.dtype), pitch[:, :, None].to(x.dtype)], dim=-1)


def row_statistics(x: Tensor, f0: Tensor, valid: Tensor) -> Tensor:  # [B, L, n], [B, L], [B, L, 1] -> [B, 2n + 4]
    """Mean and standard deviation of each input over the row, whatever lies after its end."""
    inputs, n_steps = network_inputs(x.float(), f0), valid.sum(1).clamp(min=1)
    mean = inputs.masked_fill(~valid, 0.0).sum(1) / n_steps
    variance = (inputs - mean[:, None]).square().masked_fill(~valid, 0.0).sum(1) / n_steps
    return torch.cat([mean, variance.sqrt()], dim=-1)


class RowSteering(nn.Module):
    """What the statistics of a row add to its timbre: nothing until they were measured and learned."""

    def __init__(self, n_statistics: int = N_STATISTICS) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(TIMBRE, n_statistics))
        self.register_buffer("mean", torch.zeros(n_statistics))
        self.register_buffer("scale", torch.zeros(n_statistics))

    mean: Tensor
    scale: Tensor

    def measure(self, statistics: Tensor) -> None:  # [rows, n_statistics]
        """Normalise by these rows from now on."""
        self.mean.copy_(statistics.mean(0))
        self.scale.copy_(1 / statistics.std(0).clamp(min=1e-2))

    def forward(self, timbre: Tensor, statistics: Tensor) -> Tensor:  # [B, 128], [B, n_statistics] -> [B, 128]
        normalised = ((statistics - self.mean) * self.scale).clamp(-LIMIT, LIMIT) * len(self.mean) ** -0.5
        return timbre + F.linear(normalised.to(self.weight.dtype), self.weight)


class LightBlock(nn.Module):
    """ConvNeXt: a convolution of each channel by itself, then two wide layers; the style steers the norm between."""

    def __init__(self, width: int, expansion: int, taps: int = TAPS) -> None:
        super().__init__()
        self.along = nn.Conv1d(width, width, taps, padding=taps // 2, groups=width)
        self.style = nn.Linear(TIMBRE, 2 * width)
        self.expand = nn.Linear(width, expansion * width)
        self.contract = nn.Linear(expansion * width, width)
        self.gain = nn.Parameter(torch.full((width,), 0.125))
        nn.init.zeros_(self.style.weight)
        nn.init.zeros_(self.style.bias)

    def forward(self, x: Tensor, timbre: Tensor, valid: Tensor | None) -> Tensor:  # [B, L, width], [B, 128], [B, L, 1]
        y = self._steered_conv(x, self.style(timbre), valid)
        y = cast(Tensor, self.contract(F.gelu(self.expand(y))))
        return x + self.gain * y

    def _steered_conv(self, x: Tensor, steering: Tensor, valid: Tensor | None) -> Tensor:
        """Beyond a row's end its input is zero, whatever its neighbours are."""
        if valid is not None and masks.has_kernels(x):
            from tutti.model.torch import kernels

            return kernels.steered_conv(x, valid, self.along.weight, cast(Tensor, self.along.bias), steering, EPSILON)
        y = self.along(masked(x, valid).transpose(1, 2)).transpose(1, 2)
        scale, shift = steering[:, None].chunk(2, dim=-1)
        return F.layer_norm(y, y.shape[-1:], eps=EPSILON) * (1 + scale) + shift


class SpectralNetwork(nn.Module):
    """What a student hears of a step, as 601 bins of five spectra -> samples. How it listens is the subclass's."""

    def __init__(self, width: int, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features  # that it reads of a step, besides the pitch
        self.head = nn.Linear(width, 5 * BINS)
        self.row = RowSteering(2 * (n_features + 2))
        self.transform = Transform()
        nn.init.normal_(self.head.weight, std=0.01)
        with torch.no_grad():  # start quiet, the source louder than the rest
            self.head.bias.copy_(torch.tensor([-4.0, 0.0, -6.0, -6.0, 0.0]).repeat_interleave(BINS))

    context: int  # steps on each side that the spectrum of a step depends on

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> Self:
        """The network with these weights."""
        raise NotImplementedError

    def hidden(self, x: Tensor, f0: Tensor, timbre: Tensor, valid: Tensor | None = None) -> Tensor:
        """x [B, L, n_features], f0 [B, L], timbre [B, 128], valid [B, L, 1] (default: all) -> [B, L, width]."""
        raise NotImplementedError

    def spectra(self, hidden: Tensor, source: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """hidden [B, L, width], spectra of source and noise [B, L, 601, 2] -> predictable part, noise."""
        magnitude, phase, noise_magnitude, free_magnitude, free_phase = self.head(hidden).float().chunk(5, dim=-1)
        magnitude, noise_magnitude, free_magnitude = (
            each.clamp(max=MAX_LOG_MAGNITUDE).exp() for each in (magnitude, noise_magnitude, free_magnitude)
        )
        real, imaginary = magnitude * phase.cos(), magnitude * phase.sin()
        predictable = torch.stack(
            [
                real * source[..., 0] - imaginary * source[..., 1] + free_magnitude * free_phase.cos(),
                real * source[..., 1] + imaginary * source[..., 0] + free_magnitude * free_phase.sin(),
            ],
            dim=-1,
        )
        return predictable, noise_magnitude[..., None] * noise

    def sources(self, f0: Tensor, phase: Tensor, noise: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """f0 and phase [B, L], noise [B, 300L], valid [B, L, 1] -> spectra of pulses and noise [B, L, 601, 2].

        Here and in `filter_sources` the pitch is zero after each row's end.
        """
        noise = masked(noise.view(*f0.shape, HOP), valid).flatten(1)
        return self.transform.analyse(pulse_train(phase, f0)), self.transform.analyse(noise)

    def filter_sources(
        self, x: Tensor, f0: Tensor, timbre: Tensor, source: Tensor, noise: Tensor, valid: Tensor | None = None
    ) -> Tensor:
        """x [B, L, n_features], f0 [B, L], timbre [B, 128], spectra of the sources -> samples [B, 300L]."""
        hidden = self.hidden(x, f0, timbre, valid)
        if valid is not None and masks.has_kernels(x):
            from tutti.model.torch import kernels

            weight, bias = self._aligned_head()
            spectra = kernels.filter_sources(F.linear(hidden, weight, bias), source, noise, valid, MAX_LOG_MAGNITUDE)
            return self.transform.synthesise(spectra)
        predictable, noise = self.spectra(hidden, source, noise)
        return self.transform.synthesise(masked(predictable + noise, None if valid is None else valid[..., None]))

    def _aligned_head(self) -> tuple[Tensor, Tensor]:
        """Weight and bias for a multiple of eight outputs: without them the product takes five times as long."""
        missing = -len(self.head.bias) % 8
        return F.pad(self.head.weight, (0, 0, 0, missing)), F.pad(self.head.bias, (0, missing))

    def forward(
        self, x: Tensor, f0: Tensor, phase: Tensor, timbre: Tensor, noise: Tensor, valid: Tensor | None = None
    ) -> Tensor:
        """x [B, L, n_features], f0 and phase [B, L], timbre [B, 128], noise [B, 300L] -> [B, 300L]."""
        f0 = masked(f0[:, :, None], valid)[:, :, 0]
        return self.filter_sources(x, f0, timbre, *self.sources(f0, phase, noise, valid), valid)


class LightNetwork(SpectralNetwork):
    """The decoder's output, pitch and timbre, steered by the row's statistics -> samples."""

    def __init__(self, width: int = 512, n_blocks: int = N_BLOCKS, expansion: int = 3) -> None:
        super().__init__(width, FEATURES)
        self.context = (n_blocks + 1) * (TAPS // 2)
        self.entry = nn.Conv1d(FEATURES + 2, width, TAPS, padding=TAPS // 2)
        self.blocks = nn.ModuleList(LightBlock(width, expansion) for _ in range(n_blocks))

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> Self:
        """The network with these weights; those from before `row` steer nothing by it."""
        width = len(state["entry.bias"])
        n_blocks = sum(name.endswith(".gain") for name in state)
        network = cls(width, n_blocks, len(state["blocks.0.expand.bias"]) // width)
        network.load_state_dict({**network.row.state_dict(prefix="row."), **state})
        return network

    def hidden(self, x: Tensor, f0: Tensor, timbre: Tensor, valid: Tensor | None = None) -> Tensor:
        h = self.entry(masked(network_inputs(x, f0), valid).transpose(1, 2)).transpose(1, 2)
        if masks.has_kernels(x):
            h = h.contiguous()
        for block in self.blocks:
            h = block(h, timbre, valid)
        return F.layer_norm(h, h.shape[-1:])


def masked(x: Tensor, valid: Tensor | None) -> Tensor:
    """Zero where no row is."""
    return x if valid is None else x * valid.to(x.dtype)
