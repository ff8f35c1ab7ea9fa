"""The harmonic source that the vocoder filters, and the short-time Fourier transforms before and after it.

All of it stays fp32 or better: the vocoder is chaotic in the phase of its source, so rounding here becomes audible.
Like the official ONNX file, and unlike upstream's PyTorch, the source has no random phase and no noise.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.masks import RowMask
from tutti.speech import SAMPLE_RATE

HARMONICS = 9
SAMPLES_PER_PITCH = 300  # two pitch values a frame
VOICED_HZ = 10
N_FFT, HOP = 20, 5
BINS = N_FFT // 2 + 1
OVERLAP = N_FFT // HOP
# The official file does not divide by the sum of its squared windows, so it is 1.5 times as loud as upstream's PyTorch.
OUTPUT_GAIN = 1.5
# In unvoiced parts the source is constant and most bins are empty. The angle of an empty bin is rounding noise, but it
# changes the output. These are the angles of the official file there; they are the same in every unvoiced part.
QUIET = 1e-6  # magnitude below which a bin counts as empty
QUIET_ANGLES = (0.0, 0.0, 2.4903617, -2.1253965, 0.7934672, -2.12916, 0.1729747, 2.926799, -1.3449425, 2.7359736,
                -1.5468424)  # fmt: skip


class HarmonicSource(nn.Module):
    """Nine harmonics of the pitch, mixed into one wave."""

    def __init__(self) -> None:
        super().__init__()
        self.l_linear = nn.Linear(HARMONICS, 1)

    def forward(self, f0: Tensor) -> Tensor:  # [B, 2T] Hz, 0 after the row's end -> [B, 600T]
        harmonic = torch.arange(1, HARMONICS + 1, device=f0.device)
        cycles = f0[:, :, None].double() * harmonic / SAMPLE_RATE  # [B, 2T, 9] cycles a sample
        centres = (cycles - cycles.floor()).cumsum(1) * SAMPLES_PER_PITCH  # phase at the middle of each pitch value
        # The phase is linear between the middles of two pitch values, and constant before the first and after the last.
        steps = F.pad(centres.diff(dim=1), (0, 0, 1, 1)).float()  # [B, 2T + 1, 9]
        if masks.has_kernels(f0):
            from tutti.model.torch import kernels

            weight, bias = self.l_linear.weight, self.l_linear.bias
            return kernels.harmonic_source(centres.frac().float(), steps, f0, weight, bias, SAMPLES_PER_PITCH)
        steps = steps[:, :, None]
        offset = ((torch.arange(SAMPLES_PER_PITCH, device=f0.device) + 0.5) / SAMPLES_PER_PITCH - 0.5)[:, None]
        step = torch.where(offset < 0, steps[:, :-1], steps[:, 1:])
        phase = centres.frac().float()[:, :, None] + offset * step  # [B, 2T, 300, 9]
        sines = 0.1 * torch.sin(2 * math.pi * phase.frac()) * (f0 > VOICED_HZ)[:, :, None, None]
        # Not a matrix product, which might run in reduced precision.
        wave = torch.tanh((sines * self.l_linear.weight[0]).sum(-1) + self.l_linear.bias)
        return wave.flatten(1)


class STFT(nn.Module):
    """The transform with a Hann window of 20 samples and a hop of 5; each row is reflected at its own end."""

    def __init__(self) -> None:
        super().__init__()
        window = torch.hann_window(N_FFT, dtype=torch.float64)
        angle = 2 * math.pi * torch.outer(torch.arange(N_FFT), torch.arange(BINS)).double() / N_FFT  # [20, 11]
        forward = torch.cat([angle.cos(), -angle.sin()], dim=1)
        forward[:, [BINS, -1]] = 0  # the first and the last bin of a real signal are real
        multiplicity = torch.full((BINS,), 2.0, dtype=torch.float64)
        multiplicity[[0, -1]] = 1
        self.register_buffer("analysis", window[:, None] * forward, persistent=False)  # [20, 22]
        inverse = torch.cat([angle.cos() * multiplicity, -angle.sin() * multiplicity], dim=1).T / N_FFT * window
        self.register_buffer("synthesis", inverse.float().contiguous(), persistent=False)  # [22, 20]
        # The angle of a negative real bin, +pi or -pi, must not depend on the sign of a zero.
        tie_break = torch.zeros(BINS)
        tie_break[[0, -1]] = torch.tensor([1e-30, -1e-30])
        self.register_buffer("tie_break", tie_break, persistent=False)
        self.register_buffer("quiet_angles", torch.tensor(QUIET_ANGLES), persistent=False)
        self.register_buffer("window_power", window.square().float(), persistent=False)  # [20]

    analysis: Tensor
    synthesis: Tensor
    tie_break: Tensor
    quiet_angles: Tensor
    window_power: Tensor

    def spectrum(self, wave: Tensor, hops: RowMask, like: Tensor) -> Tensor:  # [B, S] -> [B, S / 5 + 1, 22 or more]
        """Eleven magnitudes and eleven angles a hop, in the dtype and width of the weight `like`."""
        if masks.has_kernels(wave):
            from tutti.model.torch import kernels

            return kernels.stft(wave, self.analysis, self.tie_break, self.quiet_angles, hops.lengths, like)
        half = N_FFT // 2
        index = torch.arange(-half, wave.shape[1] + half, device=wave.device).abs()
        last = HOP * (hops.lengths[:, None] - 1) - 1
        reflected = (last - (last - index).abs()).clamp(min=0)
        padded = wave.gather(1, reflected)
        # float64: reduced-precision matrix products would change the phase, and twenty taps cost little.
        parts = padded.double().unfold(1, N_FFT, HOP) @ self.analysis  # [B, S / 5 + 1, 22]
        real, imaginary = parts.float().chunk(2, dim=-1)
        magnitude = torch.hypot(real, imaginary)
        angle = torch.where(magnitude < QUIET, self.quiet_angles, torch.atan2(imaginary + self.tie_break, real))
        spectrum = torch.cat([magnitude, angle], dim=-1) * hops.valid
        return F.pad(spectrum, (0, like.shape[1] - spectrum.shape[2])).to(like.dtype)

    def wave(self, spectra: Tensor, hops: RowMask) -> Tensor:  # [B, S / 5 + 1, 22] -> [B, S]
        """From log-magnitudes, and angles before their sine."""
        if masks.has_kernels(spectra):
            from tutti.model.torch import kernels

            return kernels.istft(spectra, self.window_power, self.synthesis, hops.lengths, OUTPUT_GAIN)
        log_magnitude, angle = spectra[:, :, : 2 * BINS].float().chunk(2, dim=-1)
        return self.inverse(log_magnitude.exp(), angle.sin(), hops)

    def inverse(self, magnitude: Tensor, angle: Tensor, hops: RowMask) -> Tensor:  # [B, S / 5 + 1, 11] twice -> [B, S]
        parts = torch.cat([magnitude * angle.cos(), magnitude * angle.sin()], dim=-1) * hops.valid
        wave = overlap_add(parts @ self.synthesis)
        envelope = overlap_add(hops.valid * self.window_power)
        half = N_FFT // 2
        return (OUTPUT_GAIN * wave / envelope.clamp(min=1e-3))[:, half:-half]


def overlap_add(frames: Tensor) -> Tensor:  # [B, F, 20] -> [B, 5F + 15]
    parts = frames.view(*frames.shape[:2], OVERLAP, HOP)  # [B, F, 4, 5]
    shifted = [F.pad(parts[:, :, i], (0, 0, i, OVERLAP - 1 - i)) for i in range(OVERLAP)]
    return torch.stack(shifted).sum(0).flatten(1)
