# mypy: ignore-errors
"""What lies between the convolutions, as Triton kernels: they know where each row ends, and need no compiling by shape.

A tensor is [B, T, C], `ends` [B] int32 counts each row's own times. Kernels read nothing behind a row's end, and write
zeros there, so the next convolution sees silence. `layers.py` and `source.py` hold the same in plain PyTorch.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

TILE = 128  # times whose statistics are taken together
FEW_ROWS_PER_SM = 32  # programs that a row's LSTM asks for, all of which must be on the device at once


@triton.jit(do_not_specialize=["T", "n_tiles"])
def _join(x, y0, y1, z, tiles, ends, T, n_tiles, C, factor,
          PARTS: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """z = factor (x + y0 + y1); the mean of every tile, and the sum of its squared distances from that mean."""
    tile, b = tl.program_id(0), tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tile * TILE + tl.arange(0, TILE)
    end = tl.load(ends + b)
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
    inside = (t < tl.load(ends + b))[:, None] & (c < C)[None, :]
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
def _blend(x0, y0, x1, y1, x2, y2, bias, z, ends, T, C, slope, TILE: tl.constexpr, CHANNELS: tl.constexpr):
    """z = LeakyReLU of the mean of three sums, and of one bias."""
    b = tl.program_id(2)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = (t < tl.load(ends + b))[:, None] & (c < C)[None, :]
    at = (b.to(tl.int64) * T + t[:, None]) * C + c[None, :]
    value = tl.load(x0 + at, mask=inside, other=0.0).to(tl.float32) + tl.load(y0 + at, mask=inside, other=0.0)
    value += tl.load(x1 + at, mask=inside, other=0.0).to(tl.float32) + tl.load(y1 + at, mask=inside, other=0.0)
    value += tl.load(x2 + at, mask=inside, other=0.0).to(tl.float32) + tl.load(y2 + at, mask=inside, other=0.0)
    value = value / 3.0 + tl.load(bias + c, mask=c < C, other=0.0)[None, :]
    value = tl.where(value < 0, slope * value, value)
    value = tl.where(inside, value, 0.0)
    tl.store(z + at, value.to(z.dtype.element_ty), mask=(t < T)[:, None] & (c < C)[None, :])


@triton.jit(do_not_specialize=["T"])
def _lstm(gates, weights, out, ends, T, H: tl.constexpr, UNITS: tl.constexpr):
    """Some units of one row in one direction, from the row's own end; the others' states are awaited at each step.

    `out` is full of a pattern that no state has. A value that still shows it has not been computed: the data are the
    barrier, which takes a third of the time of a kernel for each step.
    """
    way, b = tl.program_id(1), tl.program_id(2)
    k = tl.arange(0, H)
    u = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    end = tl.load(ends + b)
    place = weights + way * 4 * H * H + k[:, None] * H + u[None, :]
    w_in, w_forget = tl.load(place), tl.load(place + H * H)
    w_cell, w_out = tl.load(place + 2 * H * H), tl.load(place + 3 * H * H)
    cell = tl.zeros((UNITS,), tl.float32)
    state = tl.zeros((H,), tl.float32)
    for step in range(end):
        t = tl.where(way == 0, step, end - 1 - step)
        row = (b * T + t) * 2 + way
        gate = gates + row * 4 * H + u
        g_in, g_forget = tl.load(gate), tl.load(gate + H)
        g_cell, g_out = tl.load(gate + 2 * H), tl.load(gate + 3 * H)
        if step > 0:
            before = out + (row + tl.where(way == 0, -2, 2)) * H + k
            bits = tl.load(before, volatile=True)
            while tl.max((bits == -1).to(tl.int32), 0) > 0:
                bits = tl.load(before, volatile=True)
            state = bits.to(tl.float32, bitcast=True)
        g_in += tl.sum(state[:, None] * w_in, 0)
        g_forget += tl.sum(state[:, None] * w_forget, 0)
        g_cell += tl.sum(state[:, None] * w_cell, 0)
        g_out += tl.sum(state[:, None] * w_out, 0)
        cell = tl.sigmoid(g_forget) * cell + tl.sigmoid(g_in) * (2 * tl.sigmoid(2 * g_cell) - 1)
        state_here = tl.sigmoid(g_out) * (2 * tl.sigmoid(2 * cell) - 1)
        tl.store(out + row * H + u, state_here.to(tl.int32, bitcast=True))


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
    tl.store(place + BINS, tl.where(inside, angle, 0.0).to(spectrum.dtype.element_ty),
             mask=keep & (k < wide - BINS)[None, :])  # fmt: skip


@triton.jit(do_not_specialize=["H"])
def _sound(spectra, power, synthesis, wave, ends, H, stride, loudness,
           BINS: tl.constexpr, HOP: tl.constexpr, OVERLAP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Log-magnitudes and phases of hops -> samples: each hop's five samples are shared by four spectra."""
    b = tl.program_id(1)
    end = tl.load(ends + b)
    h = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # in samples: HOP * h and the next four
    j = tl.arange(0, 8)
    total = tl.zeros((BLOCK, 8), tl.float32)
    envelope = tl.zeros((BLOCK, 8), tl.float32)
    for i in tl.static_range(OVERLAP):
        hop = h + OVERLAP // 2 - i
        known = (hop >= 0) & (hop < end)
        place = spectra + (b.to(tl.int64) * H + hop) * stride
        window = tl.load(power + i * HOP + j, mask=j < HOP, other=0.0)
        envelope += tl.where(known[:, None], window[None, :], 0.0)
        for k in tl.static_range(BINS):
            magnitude = tl.exp(tl.load(place + k, mask=known, other=0.0).to(tl.float32))
            angle = tl.sin(tl.load(place + BINS + k, mask=known, other=0.0).to(tl.float32))
            real = tl.where(known, magnitude * tl.cos(angle), 0.0)
            imaginary = tl.where(known, magnitude * tl.sin(angle), 0.0)
            row = synthesis + i * HOP + j
            total += real[:, None] * tl.load(row + k * OVERLAP * HOP, mask=j < HOP, other=0.0)[None, :]
            total += imaginary[:, None] * tl.load(row + (k + BINS) * OVERLAP * HOP, mask=j < HOP, other=0.0)[None, :]
    total = loudness * total / tl.maximum(envelope, 1e-3)
    samples = (b.to(tl.int64) * (H - 1) + h[:, None]) * HOP + j[None, :]
    keep = (h < H - 1)[:, None] & (j < HOP)[None, :]
    tl.store(wave + samples, tl.where((h < end - 1)[:, None], total, 0.0), mask=keep)


@triton.jit(do_not_specialize=["M"])
def _linear(x, high, low, bias, y, M, N, K, scale, GELU: tl.constexpr,
            ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):  # fmt: skip
    """y = x w + bias as exact as fp32, by fp16 matrix units.

    A number is the sum of two of fp16; three of the four products count. The units' own sums lose bits, so each holds
    `DEPTH` products alone and the rest is added in true fp32.
    """
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, K, DEPTH):
        value = tl.load(x + m[:, None] * K + (first + k)[None, :], mask=(m < M)[:, None], other=0.0)
        coarse = value.to(tl.float16)
        fine = (value - coarse.to(tl.float32)).to(tl.float16)
        place = (first + k)[:, None] * N + n[None, :]
        w = tl.load(high + place)
        part = tl.dot(fine, w)
        part = tl.dot(coarse, tl.load(low + place), part)
        part = tl.dot(coarse, w, part)
        total += part * scale
    total += tl.load(bias + n)[None, :]
    if GELU:
        inner = 0.7978845608028654 * (total + 0.044715 * total * total * total)
        total = total * tl.sigmoid(2 * inner)
    tl.store(y + m[:, None] * N + n[None, :], total, mask=(m < M)[:, None])


@triton.jit
def _norm(x, y, weight, bias, z, C, eps, CHANNELS: tl.constexpr):
    """Layer norm of a sum."""
    row = tl.program_id(0).to(tl.int64) * C
    c = tl.arange(0, CHANNELS)
    value = tl.load(x + row + c, mask=c < C, other=0.0) + tl.load(y + row + c, mask=c < C, other=0.0)
    mean = tl.sum(value, 0) / C
    away = tl.where(c < C, value - mean, 0.0)
    value = away * tl.rsqrt(tl.sum(away * away, 0) / C + eps)
    value = value * tl.load(weight + c, mask=c < C) + tl.load(bias + c, mask=c < C)
    tl.store(z + row + c, value, mask=c < C)


def linear(x: Tensor, high: Tensor, low: Tensor, bias: Tensor, scale: float, gelu: bool) -> Tensor:
    """x [..., K] fp32, weight [K, N] as fp16 / scale in two parts -> [..., N] fp32."""
    depth, width = high.shape
    n = x.numel() // depth
    y = torch.empty(*x.shape[:-1], width, device=x.device)
    rows, columns, warps = (64, 32, 4) if n <= 128 else (64, 64, 4) if n <= 1024 else (128, 64, 8)
    grid = (triton.cdiv(n, rows), width // columns)
    _linear[grid](x.contiguous(), high, low, bias, y, n, width, depth, scale, gelu, rows, columns, 64,
                  num_warps=warps, num_stages=3)  # fmt: skip
    return y


def normed(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The layer norm of x + y [..., C]."""
    z, channels = torch.empty_like(x), x.shape[-1]
    _norm[(x.numel() // channels,)](x, y, weight, bias, z, channels, eps, triton.next_power_of_2(channels))
    return z


def joined(parts: Sequence[Tensor], ends: Tensor, factor: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The sum of one to three tensors [B, T, C], times a factor; and its moments [B, tiles, 2, C]."""
    x, *others = parts
    n_rows, n_times, channels = x.shape
    n_tiles, block = triton.cdiv(n_times, TILE), _block(channels)
    tiles = torch.empty(n_rows, n_tiles, 2, channels, device=x.device)
    z = torch.empty_like(x, dtype=dtype) if others else x
    y0, y1 = [*others, x, x][:2]
    grid = (n_tiles, triton.cdiv(channels, block), n_rows)
    _join[grid](x, y0, y1, z, tiles, ends, n_times, n_tiles, channels, factor, len(parts), TILE, block, num_warps=8)
    return z, tiles


def bent(x: Tensor, tiles: Tensor, manner: Tensor, alpha: Tensor | None, ends: Tensor, like: Tensor) -> Tensor:
    """Normalised by the moments, styled, bent by Snake or LeakyReLU; in the dtype and width of the weight `like`."""
    n_rows, n_times, width = x.shape
    channels, wide = manner.shape[1] // 2, like.shape[1]
    line = torch.empty(n_rows, 2, channels, device=x.device)
    some = min(256, triton.next_power_of_2(tiles.shape[1]))
    grid = (n_rows, triton.cdiv(channels, 16))
    _settle[grid](tiles, manner, line, ends, tiles.shape[1], channels, width, manner.stride(0), TILE, some, 16)
    y = torch.empty(n_rows, n_times, wide, dtype=like.dtype, device=x.device)
    block = _block(wide)
    grid = (triton.cdiv(n_times, 32), triton.cdiv(wide, block), n_rows)
    _bend[grid](x, y, line, line if alpha is None else alpha, ends, n_times, channels, width, wide, alpha is not None,
                32, block)  # fmt: skip
    return y


def blended(sums: Sequence[tuple[Tensor, Tensor]], bias: Tensor, slope: float, ends: Tensor) -> Tensor:
    """LeakyReLU of the mean of three sums and of one bias."""
    x = sums[0][0]
    n_rows, n_times, channels = x.shape
    z, block = torch.empty_like(x), _block(channels)
    grid = (triton.cdiv(n_times, 32), triton.cdiv(channels, block), n_rows)
    _blend[grid](*(part for pair in sums for part in pair), bias, z, ends, n_times, channels, slope, 32, block)
    return z


def fits_lstm(n_rows: int, device: torch.device) -> bool:
    return FEW_ROWS_PER_SM * n_rows <= torch.cuda.get_device_properties(device).multi_processor_count


def lstm(gates: Tensor, weights: Tensor, ends: Tensor) -> Tensor:  # [B, T, 2, 4H], [2, 4, H, H] -> [B, T, 2H]
    """The recurrent half of a BiLSTM, for as few rows as `fits_lstm` allows. Unset (not zero) behind a row's end."""
    n_rows, n_times, _, four = gates.shape
    hidden, units = four // 4, 16
    out = torch.full((n_rows, n_times, 2, hidden), -1, dtype=torch.int32, device=gates.device)
    _lstm[(hidden // units, 2, n_rows)](gates, weights, out, ends, n_times, hidden, units, num_warps=4)
    return out.view(torch.float32).flatten(2)


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
    bins = synthesis.shape[0] // 2
    wave = torch.empty(n_rows, 5 * (n_hops - 1), device=spectra.device)
    grid, stride = (triton.cdiv(n_hops - 1, 128), n_rows), spectra.stride(1)
    _sound[grid](spectra, power, synthesis, wave, ends, n_hops, stride, loudness, bins, 5, 4, 128)
    return wave


def _block(channels: int) -> int:
    return min(128, triton.next_power_of_2(channels))
