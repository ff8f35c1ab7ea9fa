# mypy: ignore-errors
"""The harmonic source, its spectrum, and the sound of spectra."""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice


@triton.jit(do_not_specialize=["n"])
def _hum(phase, step, f0, weight, bias, wave, n, HARMONICS: tl.constexpr, EVERY: tl.constexpr, BLOCK: tl.constexpr):
    """`EVERY` samples for each pitch value: sines of a phase that is a straight line between two values' middles."""
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    place = (j + 0.5) / EVERY - 0.5
    total = tl.zeros((BLOCK,), tl.float32)
    for h in tl.static_range(HARMONICS):
        # step has one value more for each row, in front; it was laid out so that i and i + n are its two sides
        slope = tl.where(place < 0, tl.load(step + i * HARMONICS + h), tl.load(step + (i + n) * HARMONICS + h))
        turns = tl.load(phase + i * HARMONICS + h) + place * slope
        turns -= tl.floor(turns)
        total += tl.load(weight + h) * (0.1 * tl.sin(6.283185307179586 * turns))
    total = tl.where(tl.load(f0 + i) > 10.0, total, 0.0) + tl.load(bias)
    value = 2 * tl.sigmoid(2 * total) - 1
    tl.store(wave + i * EVERY + j, value, mask=j < EVERY)


@triton.jit(do_not_specialize=["S", "H"])
def _analyse(wave, analysis, lean, quiet, spectrum, ends, S, H, wide,
             BINS: tl.constexpr, TAPS: tl.constexpr, HOP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Samples -> magnitudes and angles of hops; in fp64, for the network hears the phase's last bits."""
    b = tl.program_id(1)
    end = tl.load(ends + b)  # hops
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
        at = tl.maximum(last - tl.abs(last - at), 0)  # mirrored at the row's own end
        sample = tl.load(wave + b.to(tl.int64) * S + at, mask=h < end, other=0.0).to(tl.float64)
        real += sample[:, None] * tl.load(analysis + n * 2 * BINS + k, mask=bin_, other=0.0)[None, :]
        imaginary += sample[:, None] * tl.load(analysis + n * 2 * BINS + BINS + k, mask=bin_, other=0.0)[None, :]
    x, y = real.to(tl.float32), imaginary.to(tl.float32)
    magnitude = tl.sqrt(x * x + y * y)
    angle = libdevice.atan2(y + tl.load(lean + k, mask=bin_, other=0.0)[None, :], x)
    angle = tl.where(magnitude < 1e-6, tl.load(quiet + k, mask=bin_, other=0.0)[None, :], angle)
    inside = (h < end)[:, None] & bin_[None, :]
    place = spectrum + (b.to(tl.int64) * H + h[:, None]) * wide + k[None, :]
    keep = (h < H)[:, None]
    tl.store(place, tl.where(inside, magnitude, 0.0).to(spectrum.dtype.element_ty), mask=keep & bin_[None, :])
    angle = tl.where(inside, angle, 0.0).to(spectrum.dtype.element_ty)
    tl.store(place + BINS, angle, mask=keep & (k < wide - BINS)[None, :])
    tl.store(place + 2 * BINS, tl.zeros_like(angle), mask=keep & (k < wide - 2 * BINS)[None, :])


@triton.jit
def _sine(x):
    """By the special unit, after the turns are taken away: exact to 5e-7."""
    return libdevice.fast_sinf(x - 6.283185307179586 * tl.floor(x * 0.15915494309189535 + 0.5))


@triton.jit(do_not_specialize=["H"])
def _invert(spectra, synthesis, frames, ends, H, stride, BINS: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """Log-magnitudes and phases of a hop -> its windowed samples."""
    b = tl.program_id(1)
    end = tl.load(ends + b)
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


@triton.jit(do_not_specialize=["H"])
def _overlap(frames, power, wave, ends, H, loudness, HOP: tl.constexpr, OVERLAP: tl.constexpr, BLOCK: tl.constexpr):
    """A sample is the sum of what four hops say of it, by the sum of their windows; zero behind the row's end."""
    b = tl.program_id(1)
    end = tl.load(ends + b)
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    envelope = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(OVERLAP):
        hop, tap = s // HOP + OVERLAP // 2 - i, s % HOP + i * HOP
        known = (hop >= 0) & (hop < end)
        total += tl.load(frames + (b.to(tl.int64) * H + hop) * HOP * OVERLAP + tap, mask=known, other=0.0)
        envelope += tl.load(power + tap, mask=known, other=0.0)
    value = tl.where(s < (end - 1) * HOP, loudness * total / tl.maximum(envelope, 1e-3), 0.0)
    tl.store(wave + b.to(tl.int64) * (H - 1) * HOP + s, value, mask=s < (H - 1) * HOP)


def hum(phase: Tensor, steps: Tensor, f0: Tensor, weight: Tensor, bias: Tensor, every: int) -> Tensor:
    """phase [B, 2T, 9], steps [B, 2T + 1, 9], f0 [B, 2T] -> [B, 2T * every]."""
    n = f0.numel()
    sides = torch.cat([steps[:, :-1].reshape(n, -1), steps[:, 1:].reshape(n, -1)])  # [2 * B * 2T, 9]
    wave = torch.empty(f0.shape[0], f0.shape[1] * every, device=f0.device)
    _hum[(n,)](phase, sides, f0.contiguous(), weight, bias, wave, n, phase.shape[-1], every,
               triton.next_power_of_2(every), num_warps=4)  # fmt: skip
    return wave


def analysed(wave: Tensor, analysis: Tensor, lean: Tensor, quiet: Tensor, ends: Tensor, like: Tensor) -> Tensor:
    """wave [B, S], `ends` [B] in hops -> magnitudes and angles [B, S / 5 + 1, channels of the weight `like`]."""
    n_rows, n_samples = wave.shape
    n_hops, wide = n_samples // 5 + 1, like.shape[1]
    spectrum = torch.empty(n_rows, n_hops, wide, dtype=like.dtype, device=wave.device)
    _analyse[(triton.cdiv(n_hops, 64), n_rows)](wave, analysis, lean, quiet, spectrum, ends, n_samples, n_hops, wide,
                                                len(quiet), len(analysis), 5, 64)  # fmt: skip
    return spectrum


def sound(spectra: Tensor, power: Tensor, synthesis: Tensor, ends: Tensor, loudness: float) -> Tensor:
    """spectra [B, H, 22 or more] log-magnitudes and phases, `ends` [B] in hops -> samples [B, 5(H - 1)]."""
    n_rows, n_hops, _ = spectra.shape
    taps, hop = len(power), 5
    frames = torch.empty(n_rows, n_hops, taps, device=spectra.device)
    wave = torch.empty(n_rows, hop * (n_hops - 1), device=spectra.device)
    grid = (triton.cdiv(n_hops, 64), n_rows)
    _invert[grid](spectra, synthesis, frames, ends, n_hops, spectra.stride(1), len(synthesis) // 2, taps, 64)
    grid = (triton.cdiv(wave.shape[1], 1024), n_rows)
    _overlap[grid](frames, power, wave, ends, n_hops, loudness, hop, taps // hop, 1024)
    return wave
