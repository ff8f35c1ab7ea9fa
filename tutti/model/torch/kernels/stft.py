# mypy: ignore-errors
"""The harmonic source, its spectrum (STFT), and the samples of spectra (inverse STFT)."""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from tutti.model.torch.kernels.launch import kernel


@kernel
@triton.jit(do_not_specialize=["n"])
def _harmonic_source(phase, step, f0, weight, bias, wave, n,
                     HARMONICS: tl.constexpr, EVERY: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """`EVERY` samples for each pitch value: sines of a phase that is linear between the middles of two values."""
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    offset = (j + 0.5) / EVERY - 0.5
    total = tl.zeros((BLOCK,), tl.float32)
    for h in tl.static_range(HARMONICS):
        # step[i] and step[i + n] are the slopes before and after the middle of pitch value i
        slope = tl.where(offset < 0, tl.load(step + i * HARMONICS + h), tl.load(step + (i + n) * HARMONICS + h))
        cycles = tl.load(phase + i * HARMONICS + h) + offset * slope
        cycles -= tl.floor(cycles)
        total += tl.load(weight + h) * (0.1 * tl.sin(6.283185307179586 * cycles))
    total = tl.where(tl.load(f0 + i) > 10.0, total, 0.0) + tl.load(bias)
    value = 2 * tl.sigmoid(2 * total) - 1
    tl.store(wave + i * EVERY + j, value, mask=j < EVERY)


@kernel
@triton.jit(do_not_specialize=["S", "H"])
def _stft(wave, analysis, tie_break, quiet_angles, spectrum, lengths, S, H, out_width,
          BINS: tl.constexpr, TAPS: tl.constexpr, HOP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Samples -> magnitudes and angles of hops; in fp64, since the network is sensitive to the phase's last bits."""
    b = tl.program_id(1)
    end = tl.load(lengths + b)  # hops
    h = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) * BLOCK >= end + BLOCK:
        return
    k = tl.arange(0, 16)
    bin_ = k < BINS
    last = (end - 1) * HOP - 1
    real = tl.zeros((BLOCK, 16), tl.float64)
    imaginary = tl.zeros((BLOCK, 16), tl.float64)
    for n in tl.static_range(TAPS):
        at = tl.abs(h * HOP + n - TAPS // 2)
        at = tl.maximum(last - tl.abs(last - at), 0)  # reflected at the row's own end
        sample = tl.load(wave + b.to(tl.int64) * S + at, mask=h < end, other=0.0).to(tl.float64)
        real += sample[:, None] * tl.load(analysis + n * 2 * BINS + k, mask=bin_, other=0.0)[None, :]
        imaginary += sample[:, None] * tl.load(analysis + n * 2 * BINS + BINS + k, mask=bin_, other=0.0)[None, :]
    x, y = real.to(tl.float32), imaginary.to(tl.float32)
    magnitude = tl.sqrt(x * x + y * y)
    angle = libdevice.atan2(y + tl.load(tie_break + k, mask=bin_, other=0.0)[None, :], x)
    angle = tl.where(magnitude < 1e-6, tl.load(quiet_angles + k, mask=bin_, other=0.0)[None, :], angle)
    inside = (h < end)[:, None] & bin_[None, :]
    place = spectrum + (b.to(tl.int64) * H + h[:, None]) * out_width + k[None, :]
    keep = (h < H)[:, None]
    tl.store(place, tl.where(inside, magnitude, 0.0).to(spectrum.dtype.element_ty), mask=keep & bin_[None, :])
    angle = tl.where(inside, angle, 0.0).to(spectrum.dtype.element_ty)
    tl.store(place + BINS, angle, mask=keep & (k < out_width - BINS)[None, :])
    tl.store(place + 2 * BINS, tl.zeros_like(angle), mask=keep & (k < out_width - 2 * BINS)[None, :])


@triton.jit
def _sine(x):
    """Sine by the special function unit, after reduction to one cycle: exact to 5e-7."""
    return libdevice.fast_sinf(x - 6.283185307179586 * tl.floor(x * 0.15915494309189535 + 0.5))


@kernel
@triton.jit(do_not_specialize=["H"])
def _inverse_dft(spectra, synthesis, frames, lengths, H, stride,
                 BINS: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Log-magnitudes and phases of a hop -> its windowed samples."""
    b = tl.program_id(1)
    end = tl.load(lengths + b)
    h = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) * BLOCK >= end:
        return
    j = tl.arange(0, 32)
    tap, known = j < TAPS, h < end
    place = spectra + (b.to(tl.int64) * H + h) * stride
    total = tl.zeros((BLOCK, 32), tl.float32)
    for k in tl.static_range(BINS):
        magnitude = tl.exp(tl.load(place + k, mask=known, other=0.0).to(tl.float32))
        angle = _sine(tl.load(place + BINS + k, mask=known, other=0.0).to(tl.float32))
        real, imaginary = magnitude * libdevice.fast_cosf(angle), magnitude * libdevice.fast_sinf(angle)
        total += real[:, None] * tl.load(synthesis + k * TAPS + j, mask=tap, other=0.0)[None, :]
        total += imaginary[:, None] * tl.load(synthesis + (k + BINS) * TAPS + j, mask=tap, other=0.0)[None, :]
    place = frames + (b.to(tl.int64) * H + h)[:, None] * TAPS + j[None, :]
    tl.store(place, total, mask=known[:, None] & tap[None, :])


@kernel
@triton.jit(do_not_specialize=["H"])
def _overlap_add(frames, window_power, wave, lengths, H, gain,
                 HOP: tl.constexpr, OVERLAP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Weighted overlap-add: the sum of the hops over the sum of their squared windows; zero after the row's end."""
    b = tl.program_id(1)
    end = tl.load(lengths + b)
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    envelope = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(OVERLAP):
        hop, tap = s // HOP + OVERLAP // 2 - i, s % HOP + i * HOP
        known = (hop >= 0) & (hop < end)
        total += tl.load(frames + (b.to(tl.int64) * H + hop) * HOP * OVERLAP + tap, mask=known, other=0.0)
        envelope += tl.load(window_power + tap, mask=known, other=0.0)
    value = tl.where(s < (end - 1) * HOP, gain * total / tl.maximum(envelope, 1e-3), 0.0)
    tl.store(wave + b.to(tl.int64) * (H - 1) * HOP + s, value, mask=s < (H - 1) * HOP)


def harmonic_source(phase: Tensor, steps: Tensor, f0: Tensor, weight: Tensor, bias: Tensor, every: int) -> Tensor:
    """phase [B, 2T, 9], steps [B, 2T + 1, 9], f0 [B, 2T] -> [B, 2T * every]."""
    n = f0.numel()
    slopes = torch.cat([steps[:, :-1].reshape(n, -1), steps[:, 1:].reshape(n, -1)])  # [2 * B * 2T, 9]
    wave = torch.empty(f0.shape[0], f0.shape[1] * every, device=f0.device)
    _harmonic_source[(n,)](phase, slopes, f0.contiguous(), weight, bias, wave, n, phase.shape[-1], every,
                           triton.next_power_of_2(every), num_warps=4)  # fmt: skip
    return wave


def stft(
    wave: Tensor, analysis: Tensor, tie_break: Tensor, quiet_angles: Tensor, lengths: Tensor, like: Tensor
) -> Tensor:
    """wave [B, S], `lengths` [B] in hops -> magnitudes and angles [B, S / 5 + 1, channels of the weight `like`]."""
    n_rows, n_samples = wave.shape
    n_hops, out_width = n_samples // 5 + 1, like.shape[1]
    spectrum = torch.empty(n_rows, n_hops, out_width, dtype=like.dtype, device=wave.device)
    _stft[(triton.cdiv(n_hops, 64), n_rows)](wave, analysis, tie_break, quiet_angles, spectrum, lengths, n_samples,
                                             n_hops, out_width, len(quiet_angles), len(analysis), 5, 64)  # fmt: skip
    return spectrum


def istft(spectra: Tensor, window_power: Tensor, synthesis: Tensor, lengths: Tensor, gain: float) -> Tensor:
    """spectra [B, H, 22 or more] log-magnitudes and phases, `lengths` [B] in hops -> samples [B, 5(H - 1)]."""
    n_rows, n_hops, _ = spectra.shape
    taps, hop = len(window_power), 5
    frames = torch.empty(n_rows, n_hops, taps, device=spectra.device)
    wave = torch.empty(n_rows, hop * (n_hops - 1), device=spectra.device)
    grid = (triton.cdiv(n_hops, 64), n_rows)
    _inverse_dft[grid](spectra, synthesis, frames, lengths, n_hops, spectra.stride(1), len(synthesis) // 2, taps, 64)
    grid = (triton.cdiv(wave.shape[1], 1024), n_rows)
    _overlap_add[grid](frames, window_power, wave, lengths, n_hops, gain, hop, taps // hop, 1024)
    return wave
