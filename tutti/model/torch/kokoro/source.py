"""The harmonic source that the vocoder shapes, and the short-time Fourier transform on both sides of it.

All of it stays fp32 or better: the vocoder is chaotic in the phase of its source, what is only rounded here is heard.
Unlike upstream's PyTorch, and like the official ONNX file, the source has no random phase and no noise.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks as rows
from tutti.model.torch.kokoro.masks import Ends

SAMPLE_RATE = 24_000
HARMONICS = 9
SAMPLES_PER_PITCH = 300  # two pitch values a frame
VOICED_HZ = 10
N_FFT, HOP = 20, 5
BINS = N_FFT // 2 + 1
OVERLAP = N_FFT // HOP
# The official file does not divide by the sum of its squared windows, so it is 1.5 times as loud as upstream's PyTorch.
LOUDNESS = 1.5
# Where the voice is silent the source is constant and most bins are empty. The angle of an empty bin is rounding noise,
# yet the network hears it. These are the angles that the official file finds there, the same in every silence.
QUIET = 1e-6
QUIET_ANGLES = (
    0.0,
    0.0,
    2.4903617,
    -2.1253965,
    0.7934672,
    -2.12916,
    0.1729747,
    2.926799,
    -1.3449425,
    2.7359736,
    -1.5468424,
)


class Source(nn.Module):
    """Nine harmonics of the pitch, mixed into one wave."""

    def __init__(self) -> None:
        super().__init__()
        self.l_linear = nn.Linear(HARMONICS, 1)

    def forward(self, f0: Tensor) -> Tensor:  # [B, 2T] Hz, 0 behind the row's end -> [B, 600T]
        order = torch.arange(1, HARMONICS + 1, device=f0.device)
        turns = f0[:, :, None].double() * order / SAMPLE_RATE  # [B, 2T, 9] circles a sample
        ends = (turns - turns.floor()).cumsum(1) * SAMPLES_PER_PITCH
        # Between the middles of two pitch values the phase is a straight line; outside the first and the last it rests.
        steps = F.pad(ends.diff(dim=1), (0, 0, 1, 1)).float()  # [B, 2T + 1, 9]
        if rows.has_kernels(f0):
            from tutti.model.torch import kernels

            mix = self.l_linear.weight, self.l_linear.bias
            return kernels.hum(ends.frac().float(), steps, f0, *mix, SAMPLES_PER_PITCH)
        steps = steps[:, :, None]
        place = ((torch.arange(SAMPLES_PER_PITCH, device=f0.device) + 0.5) / SAMPLES_PER_PITCH - 0.5)[:, None]
        step = torch.where(place < 0, steps[:, :-1], steps[:, 1:])
        phase = ends.frac().float()[:, :, None] + place * step  # [B, 2T, 300, 9]
        sines = 0.1 * torch.sin(2 * math.pi * phase.frac()) * (f0 > VOICED_HZ)[:, :, None, None]
        # Not a matrix product: that might be computed in reduced precision.
        wave = torch.tanh((sines * self.l_linear.weight[0]).sum(-1) + self.l_linear.bias)
        return wave.flatten(1)


class Fourier(nn.Module):
    """The transform with a Hann window of 20 samples, a hop of 5; each row mirrors itself at its own end."""

    def __init__(self) -> None:
        super().__init__()
        window = torch.hann_window(N_FFT, dtype=torch.float64)
        angle = 2 * math.pi * torch.outer(torch.arange(N_FFT), torch.arange(BINS)).double() / N_FFT  # [20, 11]
        forward = torch.cat([angle.cos(), -angle.sin()], dim=1)
        forward[:, [BINS, -1]] = 0  # the first and the last bin of a real wave are real
        twins = torch.full((BINS,), 2.0, dtype=torch.float64)
        twins[[0, -1]] = 1
        self.register_buffer("analysis", window[:, None] * forward, persistent=False)  # [20, 22]
        inverse = torch.cat([angle.cos() * twins, -angle.sin() * twins], dim=1).T / N_FFT * window
        self.register_buffer("synthesis", inverse.float().contiguous(), persistent=False)  # [22, 20]
        # Which way a negative real number turns, +pi or -pi, must not hang on the last bit of a zero.
        lean = torch.zeros(BINS)
        lean[[0, -1]] = torch.tensor([1e-30, -1e-30])
        self.register_buffer("lean", lean, persistent=False)
        self.register_buffer("quiet", torch.tensor(QUIET_ANGLES), persistent=False)
        self.register_buffer("power", window.square().float(), persistent=False)  # [20]

    analysis: Tensor
    synthesis: Tensor
    lean: Tensor
    quiet: Tensor
    power: Tensor

    def spectrum(self, wave: Tensor, hops: Ends, like: Tensor) -> Tensor:  # [B, S] -> [B, S / 5 + 1, 22 or more]
        """Eleven magnitudes and eleven angles a hop, in the dtype and width of the weight `like`."""
        if rows.has_kernels(wave):
            from tutti.model.torch import kernels

            return kernels.analysed(wave, self.analysis, self.lean, self.quiet, hops.n, like)
        half = N_FFT // 2
        at = torch.arange(-half, wave.shape[1] + half, device=wave.device).abs()
        last = HOP * (hops.n[:, None] - 1) - 1
        mirrored = (last - (last - at).abs()).clamp(min=0)
        padded = wave.gather(1, mirrored)
        # float64: reduced-precision matrix products must not touch the phase, and twenty taps cost little.
        parts = padded.double().unfold(1, N_FFT, HOP) @ self.analysis  # [B, S / 5 + 1, 22]
        real, imaginary = parts.float().chunk(2, dim=-1)
        magnitude = torch.hypot(real, imaginary)
        angle = torch.where(magnitude < QUIET, self.quiet, torch.atan2(imaginary + self.lean, real))
        found = torch.cat([magnitude, angle], dim=-1) * hops.mask
        return F.pad(found, (0, like.shape[1] - found.shape[2])).to(like.dtype)

    def wave(self, spectra: Tensor, hops: Ends) -> Tensor:  # [B, S / 5 + 1, 22] -> [B, S]
        """Logarithms of magnitudes, and angles before their sine."""
        if rows.has_kernels(spectra):
            from tutti.model.torch import kernels

            return kernels.sound(spectra, self.power, self.synthesis, hops.n, LOUDNESS)
        size, angle = spectra[:, :, : 2 * BINS].float().chunk(2, dim=-1)
        return self.inverse(size.exp(), angle.sin(), hops)

    def inverse(self, magnitude: Tensor, angle: Tensor, hops: Ends) -> Tensor:  # [B, S / 5 + 1, 11] twice -> [B, S]
        parts = torch.cat([magnitude * angle.cos(), magnitude * angle.sin()], dim=-1) * hops.mask
        wave = overlap_add(parts @ self.synthesis)
        envelope = overlap_add(hops.mask * self.power)
        half = N_FFT // 2
        return (LOUDNESS * wave / envelope.clamp(min=1e-3))[:, half:-half]


def overlap_add(frames: Tensor) -> Tensor:  # [B, F, 20] -> [B, 5F + 15]
    parts = frames.view(*frames.shape[:2], OVERLAP, HOP)  # [B, F, 4, 5]
    shifted = [F.pad(parts[:, :, i], (0, 0, i, OVERLAP - 1 - i)) for i in range(OVERLAP)]
    return torch.stack(shifted).sum(0).flatten(1)
