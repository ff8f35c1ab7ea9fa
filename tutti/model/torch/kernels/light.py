# mypy: ignore-errors
"""The light vocoder: the first half of a block, and the filters on its sources."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tutti.model.torch.kernels.launch import kernel


@kernel
@triton.jit(do_not_specialize=["T"])
def _steered_conv(x, valid, taps, bias, steering, y, T, C, eps, TAPS: tl.constexpr, CHANNELS: tl.constexpr):
    """A convolution of each channel by itself, then a layer norm that the style scales and shifts."""
    t, b = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, CHANNELS)
    total = tl.load(bias + c, mask=c < C, other=0.0).to(tl.float32)
    for tap in tl.static_range(TAPS):
        place = t + tap - TAPS // 2
        near = tl.minimum(tl.maximum(place, 0), T - 1)
        inside = (tl.load(valid + b * T + near) != 0) & (place == near)
        value = tl.load(x + (b * T + near) * C + c, mask=c < C, other=0.0).to(tl.float32)
        total += tl.where(inside, value, 0.0) * tl.load(taps + c * TAPS + tap, mask=c < C, other=0.0).to(tl.float32)
    centred = tl.where(c < C, total - tl.sum(total, 0) / C, 0.0)
    value = centred * tl.rsqrt(tl.sum(centred * centred, 0) / C + eps)
    scale = tl.load(steering + b * 2 * C + c, mask=c < C, other=0.0).to(tl.float32)
    shift = tl.load(steering + b * 2 * C + C + c, mask=c < C, other=0.0).to(tl.float32)
    tl.store(y + (b * T + t) * C + c, value * (1 + scale) + shift, mask=c < C)


@kernel
@triton.jit(do_not_specialize=["T"])
def _filter(predicted, source, noise, valid, y, T, stride, top, BINS: tl.constexpr, SIZE: tl.constexpr):
    """The spectra of a step: both sources through their filters, and what is added; zero after the row's end."""
    t, b = tl.program_id(0), tl.program_id(1)
    k = tl.arange(0, SIZE)
    inside, step = k < BINS, b * T + t
    own = predicted + step * stride + k
    magnitude = tl.exp(tl.minimum(tl.load(own, mask=inside, other=0.0).to(tl.float32), top))
    phase = tl.load(own + BINS, mask=inside, other=0.0).to(tl.float32)
    noise_magnitude = tl.exp(tl.minimum(tl.load(own + 2 * BINS, mask=inside, other=0.0).to(tl.float32), top))
    free_magnitude = tl.exp(tl.minimum(tl.load(own + 3 * BINS, mask=inside, other=0.0).to(tl.float32), top))
    free_phase = tl.load(own + 4 * BINS, mask=inside, other=0.0).to(tl.float32)
    place = (step * BINS + k) * 2
    real, imaginary = magnitude * tl.cos(phase), magnitude * tl.sin(phase)
    source_real = tl.load(source + place, mask=inside, other=0.0)
    source_imaginary = tl.load(source + place + 1, mask=inside, other=0.0)
    noise_real = tl.load(noise + place, mask=inside, other=0.0)
    noise_imaginary = tl.load(noise + place + 1, mask=inside, other=0.0)
    y_real = real * source_real - imaginary * source_imaginary + free_magnitude * tl.cos(free_phase)
    y_imaginary = real * source_imaginary + imaginary * source_real + free_magnitude * tl.sin(free_phase)
    is_valid = tl.load(valid + step) != 0
    tl.store(y + place, tl.where(is_valid, y_real + noise_magnitude * noise_real, 0.0), mask=inside)
    tl.store(y + place + 1, tl.where(is_valid, y_imaginary + noise_magnitude * noise_imaginary, 0.0), mask=inside)


def steered_conv(x: Tensor, valid: Tensor, taps: Tensor, bias: Tensor, steering: Tensor, eps: float) -> Tensor:
    """x [B, L, C], valid [B, L, 1], taps [C, 1, n], bias [C], steering [B, 2C] (scale, then shift) -> [B, L, C].

    All of them contiguous.
    """
    y, (n_rows, n_steps, channels) = torch.empty_like(x), x.shape
    _steered_conv[n_steps, n_rows](x, valid.view(torch.uint8), taps, bias, steering, y, n_steps, channels, eps,
                                   taps.shape[2], triton.next_power_of_2(channels), num_warps=4)  # fmt: skip
    return y


def filter_sources(predicted: Tensor, source: Tensor, noise: Tensor, valid: Tensor, top: float) -> Tensor:
    """predicted [B, L, 5 bins or more], source and noise [B, L, bins, 2], valid [B, L, 1] -> [B, L, bins, 2]."""
    y, (n_rows, n_steps, n_bins, _) = torch.empty_like(source), source.shape
    _filter[n_steps, n_rows](predicted, source, noise, valid.view(torch.uint8), y, n_steps, predicted.shape[2], top,
                             n_bins, triton.next_power_of_2(n_bins), num_warps=4)  # fmt: skip
    return y
