# mypy: ignore-errors
"""Between two convolutions: sums and their statistics, instance norm by style, Snake and LeakyReLU."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BEHIND = tl.constexpr(64)  # times behind a row's end that are zero; what lies further is unset


@triton.jit(do_not_specialize=["T", "n_tiles"])
def _join(x, y0, y1, z, tiles, ends, T, n_tiles, C, factor,
          PARTS: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """z = factor (x + y0 + y1); the mean of every tile, and the sum of its squared distances from that mean."""
    tile, b = tl.program_id(0), tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tile * TILE + tl.arange(0, TILE)
    end = tl.load(ends + b)
    if tile * TILE >= end + BEHIND:
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
        away = tl.where(inside, value - mean[None, :], 0.0)
        place = tiles + (b * n_tiles + tile) * 2 * C + c
        tl.store(place, mean, mask=c < C)
        tl.store(place + C, tl.sum(away * away, 0), mask=c < C)


@triton.jit(do_not_specialize=["n_tiles"])
def _settle(tiles, manner, line, ends, n_tiles, C, width, manner_stride,
            TILE: tl.constexpr, TILES: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """The statistics of all tiles of a row and its style become one line for each channel: y = slope x + offset."""
    b = tl.program_id(0)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    end = tl.load(ends + b)
    used = (end + TILE - 1) // TILE
    total = end.to(tl.float32)
    mean = tl.zeros((CHANNELS,), tl.float32)
    spread = tl.zeros((CHANNELS,), tl.float32)
    seen = 0.0
    for first in range(0, used, TILES):
        i = first + tl.arange(0, TILES)
        known = (i < used)[:, None] & (c < C)[None, :]
        place = tiles + ((b * n_tiles + i) * 2)[:, None] * width + c[None, :]
        means = tl.load(place, mask=known, other=0.0)
        spreads = tl.load(place + width, mask=known, other=0.0)
        many = tl.where(i < used, tl.minimum(end - i * TILE, TILE), 0).to(tl.float32)
        here = tl.sum(many, 0)
        its_mean = tl.sum(means * many[:, None], 0) / here
        off = means - its_mean[None, :]
        its_spread = tl.sum(tl.where(known, spreads + off * off * many[:, None], 0.0), 0)
        apart = its_mean - mean
        both = seen + here
        spread += its_spread + apart * apart * (seen * here / both)
        mean += apart * (here / both)
        seen = both
    gain = tl.load(manner + b * manner_stride + c, mask=c < C, other=0.0)
    shift = tl.load(manner + b * manner_stride + C + c, mask=c < C, other=0.0)
    slope = (1.0 + gain) * tl.rsqrt(spread / total + 1e-5)
    tl.store(line + b * 2 * C + c, slope, mask=c < C)
    tl.store(line + b * 2 * C + C + c, shift - mean * slope, mask=c < C)


@triton.jit
def _snake(x, alpha):
    """x + sin(alpha x)^2 / alpha, by a polynomial (2e-7) in the distance to the nearest zero of the sine."""
    turn = x * alpha * 0.3183098861837907
    turn -= tl.floor(turn + 0.5)
    s = turn * turn
    p = -3.356592893600464 * s + 13.050100326538086
    p = p * s - 30.10146713256836
    p = p * s + 42.727195739746094
    p = p * s - 32.469669342041016
    p = p * s + 9.869604110717773
    return x + p * s / alpha


@triton.jit(do_not_specialize=["T"])
def _bend(x, y, line, alpha, ends, T, C, width, wide,
          SNAKE: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """y = Snake or LeakyReLU of slope x + offset; `width` channels in, `wide` out, those behind C are zero."""
    b = tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.program_id(0) * TILE + tl.arange(0, TILE)
    end = tl.load(ends + b)
    if tl.program_id(0) * TILE >= end + BEHIND:
        return
    inside = (t < end)[:, None] & (c < C)[None, :]
    row = b.to(tl.int64) * T + t[:, None]
    slope = tl.load(line + b * 2 * C + c, mask=c < C, other=0.0)[None, :]
    offset = tl.load(line + b * 2 * C + C + c, mask=c < C, other=0.0)[None, :]
    value = tl.load(x + row * width + c[None, :], mask=inside, other=0.0).to(tl.float32) * slope + offset
    if SNAKE:
        value = _snake(value, tl.load(alpha + c, mask=c < C, other=1.0)[None, :])
    else:
        value = tl.where(value < 0, 0.2 * value, value)
    value = tl.where(inside, value, 0.0).to(y.dtype.element_ty)
    tl.store(y + row * wide + c[None, :], value, mask=(t < T)[:, None] & (c < wide)[None, :])


@triton.jit(do_not_specialize=["T"])
def _blend(x0, x1, x2, bias, z, ends, T, C, slope, TILE: tl.constexpr, CHANNELS: tl.constexpr):
    """z = LeakyReLU of the mean of three tensors, and of one bias."""
    b = tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.program_id(0) * TILE + tl.arange(0, TILE)
    end = tl.load(ends + b)
    if tl.program_id(0) * TILE >= end + BEHIND:
        return
    inside = (t < end)[:, None] & (c < C)[None, :]
    at = (b.to(tl.int64) * T + t[:, None]) * C + c[None, :]
    value = tl.load(x0 + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(x1 + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(x2 + at, mask=inside, other=0.0).to(tl.float32)
    value = value / 3.0 + tl.load(bias + c, mask=c < C, other=0.0)[None, :]
    value = tl.where(inside, tl.where(value < 0, slope * value, value), 0.0)
    tl.store(z + at, value.to(z.dtype.element_ty), mask=(t < T)[:, None] & (c < C)[None, :])


def joined(
    parts: Sequence[Tensor], ends: Tensor, factor: float, dtype: torch.dtype, size: int
) -> tuple[Tensor, Tensor]:
    """The sum of one to three tensors [B, T, C], times a factor; and its moments [B, tiles, 2, C] by `size` times."""
    x, *others = parts
    n_rows, n_times, channels = x.shape
    n_tiles, block = triton.cdiv(n_times, size), _block(channels)
    tiles = torch.empty(n_rows, n_tiles, 2, channels, device=x.device)
    z = torch.empty_like(x, dtype=dtype) if others else x
    y0, y1 = [*others, x, x][:2]
    grid = (n_tiles, triton.cdiv(channels, block), n_rows)
    _join[grid](x, y0, y1, z, tiles, ends, n_times, n_tiles, channels, factor, len(parts), size, block, num_warps=8)
    return z, tiles


def bent(
    x: Tensor, tiles: Tensor, size: int, manner: Tensor, alpha: Tensor | None, ends: Tensor, like: Tensor
) -> Tensor:
    """Normalised by the moments, styled, bent by Snake or LeakyReLU; in the dtype and width of the weight `like`."""
    n_rows, n_times, width = x.shape
    channels, wide = manner.shape[1] // 2, like.shape[1]
    line = torch.empty(n_rows, 2, channels, device=x.device)
    some = min(256, triton.next_power_of_2(tiles.shape[1]))
    grid = (n_rows, triton.cdiv(channels, 16))
    _settle[grid](tiles, manner, line, ends, tiles.shape[1], channels, width, manner.stride(0), size, some, 16)
    y = torch.empty(n_rows, n_times, wide, dtype=like.dtype, device=x.device)
    block = _block(wide)
    grid = (triton.cdiv(n_times, 32), triton.cdiv(wide, block), n_rows)
    _bend[grid](x, y, line, line if alpha is None else alpha, ends, n_times, channels, width, wide, alpha is not None,
                32, block)  # fmt: skip
    return y


def blended(parts: Sequence[Tensor], bias: Tensor, slope: float, ends: Tensor) -> Tensor:
    """LeakyReLU of the mean of three tensors and of one bias."""
    n_rows, n_times, channels = parts[0].shape
    z, block = torch.empty_like(parts[0]), _block(channels)
    grid = (triton.cdiv(n_times, 32), triton.cdiv(channels, block), n_rows)
    _blend[grid](*parts, bias, z, ends, n_times, channels, slope, 32, block)
    return z


def _block(channels: int) -> int:
    return min(128, triton.next_power_of_2(channels))
