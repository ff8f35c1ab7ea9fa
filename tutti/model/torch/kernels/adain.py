# mypy: ignore-errors
"""What runs between two convolutions: sums and their statistics, AdaIN, Snake and LeakyReLU."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from tutti.model.torch.kernels.launch import kernel

ZERO_TAIL = tl.constexpr(64)  # time steps after a row's end that are zero; what lies further is undefined


@kernel
@triton.jit(do_not_specialize=["T", "n_tiles"])
def _sum_with_moments(x, y0, y1, z, tiles, lengths, T, n_tiles, C, factor,
                      PARTS: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """z = factor (x + y0 + y1); for each tile its mean, and the sum of squared distances from that mean."""
    tile, b = tl.program_id(0), tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tile * TILE + tl.arange(0, TILE)
    end = tl.load(lengths + b)
    if tile * TILE >= end + ZERO_TAIL:
        return
    inside = (t < end)[:, None] & (c < C)[None, :]
    at = (b.to(tl.int64) * T + t[:, None]) * C + c[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if PARTS > 1:
        value += tl.load(y0 + at, mask=inside, other=0.0).to(tl.float32)
    if PARTS > 2:
        value += tl.load(y1 + at, mask=inside, other=0.0).to(tl.float32)
    if PARTS > 1:
        value *= factor
        tl.store(z + at, value.to(z.dtype.element_ty), mask=(t < T)[:, None] & (c < C)[None, :])
    if tile * TILE < end:
        mean = tl.sum(value, 0) / tl.minimum(end - tile * TILE, TILE).to(tl.float32)
        centred = tl.where(inside, value - mean[None, :], 0.0)
        place = tiles + (b * n_tiles + tile) * 2 * C + c
        tl.store(place, mean, mask=c < C)
        tl.store(place + C, tl.sum(centred * centred, 0), mask=c < C)


@kernel
@triton.jit(do_not_specialize=["n_tiles"])
def _affine(tiles, style, affine, lengths, n_tiles, C, width, style_stride,
            TILE: tl.constexpr, TILES: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """Merge the statistics of a row's tiles; with its style they give y = slope x + offset for each channel."""
    b = tl.program_id(0)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    end = tl.load(lengths + b)
    used = (end + TILE - 1) // TILE
    total = end.to(tl.float32)
    mean = tl.zeros((CHANNELS,), tl.float32)
    spread = tl.zeros((CHANNELS,), tl.float32)
    n_seen = 0.0
    for first in range(0, used, TILES):
        i = first + tl.arange(0, TILES)
        known = (i < used)[:, None] & (c < C)[None, :]
        place = tiles + ((b * n_tiles + i) * 2)[:, None] * width + c[None, :]
        means = tl.load(place, mask=known, other=0.0)
        spreads = tl.load(place + width, mask=known, other=0.0)
        counts = tl.where(i < used, tl.minimum(end - i * TILE, TILE), 0).to(tl.float32)
        n_new = tl.sum(counts, 0)
        new_mean = tl.sum(means * counts[:, None], 0) / n_new
        off = means - new_mean[None, :]
        new_spread = tl.sum(tl.where(known, spreads + off * off * counts[:, None], 0.0), 0)
        delta = new_mean - mean
        n_both = n_seen + n_new
        spread += new_spread + delta * delta * (n_seen * n_new / n_both)
        mean += delta * (n_new / n_both)
        n_seen = n_both
    gain = tl.load(style + b * style_stride + c, mask=c < C, other=0.0)
    shift = tl.load(style + b * style_stride + C + c, mask=c < C, other=0.0)
    slope = (1.0 + gain) * tl.rsqrt(spread / total + 1e-5)
    tl.store(affine + b * 2 * C + c, slope, mask=c < C)
    tl.store(affine + b * 2 * C + C + c, shift - mean * slope, mask=c < C)


@triton.jit
def _snake(x, alpha):
    """x + sin(alpha x)^2 / alpha, by a polynomial (2e-7) in the distance to the nearest zero of the sine."""
    cycle = x * alpha * 0.3183098861837907
    cycle -= tl.floor(cycle + 0.5)
    s = cycle * cycle
    p = -3.356592893600464 * s + 13.050100326538086
    p = p * s - 30.10146713256836
    p = p * s + 42.727195739746094
    p = p * s - 32.469669342041016
    p = p * s + 9.869604110717773
    return x + p * s / alpha


@kernel
@triton.jit(do_not_specialize=["T"])
def _affine_activation(x, y, affine, alpha, lengths, T, C, width, out_width,
                       SNAKE: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """y = Snake or LeakyReLU of slope x + offset; `width` channels in, `out_width` out, zero after channel C."""
    b = tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.program_id(0) * TILE + tl.arange(0, TILE)
    end = tl.load(lengths + b)
    if tl.program_id(0) * TILE >= end + ZERO_TAIL:
        return
    inside = (t < end)[:, None] & (c < C)[None, :]
    row = b.to(tl.int64) * T + t[:, None]
    slope = tl.load(affine + b * 2 * C + c, mask=c < C, other=0.0)[None, :]
    offset = tl.load(affine + b * 2 * C + C + c, mask=c < C, other=0.0)[None, :]
    value = tl.load(x + row * width + c[None, :], mask=inside, other=0.0).to(tl.float32) * slope + offset
    if SNAKE:
        value = _snake(value, tl.load(alpha + c, mask=c < C, other=1.0)[None, :])
    else:
        value = tl.where(value < 0, 0.2 * value, value)
    value = tl.where(inside, value, 0.0).to(y.dtype.element_ty)
    tl.store(y + row * out_width + c[None, :], value, mask=(t < T)[:, None] & (c < out_width)[None, :])


@kernel
@triton.jit(do_not_specialize=["T"])
def _mean_leaky_relu(x0, x1, x2, bias, z, lengths, T, C, slope, TILE: tl.constexpr, CHANNELS: tl.constexpr):
    """z = LeakyReLU of the mean of three tensors plus a bias."""
    b = tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.program_id(0) * TILE + tl.arange(0, TILE)
    end = tl.load(lengths + b)
    if tl.program_id(0) * TILE >= end + ZERO_TAIL:
        return
    inside = (t < end)[:, None] & (c < C)[None, :]
    at = (b.to(tl.int64) * T + t[:, None]) * C + c[None, :]
    value = tl.load(x0 + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(x1 + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(x2 + at, mask=inside, other=0.0).to(tl.float32)
    value = value / 3.0 + tl.load(bias + c, mask=c < C, other=0.0)[None, :]
    value = tl.where(inside, tl.where(value < 0, slope * value, value), 0.0)
    tl.store(z + at, value.to(z.dtype.element_ty), mask=(t < T)[:, None] & (c < C)[None, :])


def sum_with_moments(
    parts: Sequence[Tensor], lengths: Tensor, factor: float, dtype: torch.dtype, size: int
) -> tuple[Tensor, Tensor]:
    """The sum of one to three tensors [B, T, C] times a factor, and its moments [B, tiles, 2, C] by `size` steps."""
    x, *others = parts
    n_rows, n_times, channels = x.shape
    n_tiles, block = triton.cdiv(n_times, size), _block(channels)
    tiles = torch.empty(n_rows, n_tiles, 2, channels, device=x.device)
    z = torch.empty_like(x, dtype=dtype) if others else x
    y0, y1 = [*others, x, x][:2]
    grid = (n_tiles, triton.cdiv(channels, block), n_rows)
    _sum_with_moments[grid](x, y0, y1, z, tiles, lengths, n_times, n_tiles, channels, factor, len(parts), size, block,
                            num_warps=8)  # fmt: skip
    return z, tiles


def adain(
    x: Tensor, tiles: Tensor, size: int, style: Tensor, alpha: Tensor | None, lengths: Tensor, like: Tensor
) -> Tensor:
    """Normalise by the moments, apply scale and shift, then Snake or LeakyReLU; dtype and width as in `like`."""
    n_rows, n_times, width = x.shape
    channels, out_width = style.shape[1] // 2, like.shape[1]
    affine = torch.empty(n_rows, 2, channels, device=x.device)
    tile_block = min(256, triton.next_power_of_2(tiles.shape[1]))
    grid = (n_rows, triton.cdiv(channels, 16))
    _affine[grid](tiles, style, affine, lengths, tiles.shape[1], channels, width, style.stride(0), size, tile_block, 16)
    y = torch.empty(n_rows, n_times, out_width, dtype=like.dtype, device=x.device)
    block = _block(out_width)
    grid = (triton.cdiv(n_times, 32), triton.cdiv(out_width, block), n_rows)
    _affine_activation[grid](x, y, affine, affine if alpha is None else alpha, lengths, n_times, channels, width,
                             out_width, alpha is not None, 32, block)  # fmt: skip
    return y


def mean_leaky_relu(parts: Sequence[Tensor], bias: Tensor, slope: float, lengths: Tensor) -> Tensor:
    """LeakyReLU of the mean of three tensors plus a bias."""
    n_rows, n_times, channels = parts[0].shape
    z, block = torch.empty_like(parts[0]), _block(channels)
    grid = (triton.cdiv(n_times, 32), triton.cdiv(channels, block), n_rows)
    _mean_leaky_relu[grid](*parts, bias, z, lengths, n_times, channels, slope, 32, block)
    return z


def _block(channels: int) -> int:
    return min(128, triton.next_power_of_2(channels))
