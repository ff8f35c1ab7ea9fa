# mypy: ignore-errors
"""Linear layers that durations depend on, and the layer norms between them."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tutti.model.torch.kernels.launch import kernel

FEW = 256  # values of a pass, at most, that leave most of the device idle


@kernel
@triton.jit(do_not_specialize=["M", "T"])
def _linear(x, high, low, bias, y, lengths, M, T, N, K, scale, GELU: tl.constexpr, PARTS: tl.constexpr,
            ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):  # fmt: skip
    """y = x w + bias by two-term fp16 emulation of fp32; as a sum of PARTS, each over a part of K.

    Each factor is the sum of two fp16 values; three of the four products matter. The matrix units' accumulators lose
    bits, so each sums only `DEPTH` products and the rest is added in fp32.
    """
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    k, part_index = tl.arange(0, DEPTH), tl.program_id(2)
    place = y + (part_index * M + m)[:, None] * N + n[None, :]
    inside = (m % T < tl.load(lengths + m // T, mask=m < M, other=0)) & (m < M)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    if tl.max(inside.to(tl.int32), 0) == 0:  # padding; attention needs finite values there
        tl.store(place, total, mask=(m < M)[:, None])
        return
    for first in range(part_index * (K // PARTS), (part_index + 1) * (K // PARTS), DEPTH):
        value = tl.load(x + m[:, None] * K + (first + k)[None, :], mask=(m < M)[:, None], other=0.0)
        coarse = value.to(tl.float16)
        fine = (value - coarse.to(tl.float32)).to(tl.float16)
        weight = (first + k)[:, None] * N + n[None, :]
        w = tl.load(high + weight)
        part = tl.dot(fine, w)
        part = tl.dot(coarse, tl.load(low + weight), part)
        part = tl.dot(coarse, w, part)
        total += part * scale
    if part_index == 0:
        total += tl.load(bias + n)[None, :]
    if GELU:
        inner = 0.7978845608028654 * (total + 0.044715 * total * total * total)
        total = total * tl.sigmoid(2 * inner)
    tl.store(place, total, mask=(m < M)[:, None])


@kernel
@triton.jit
def _add_layer_norm(x, y, weight, bias, z, C, part_size, eps, PARTS: tl.constexpr, CHANNELS: tl.constexpr):
    """Layer norm of x and all parts of y."""
    row = tl.program_id(0).to(tl.int64) * C
    c = tl.arange(0, CHANNELS)
    value = tl.load(x + row + c, mask=c < C, other=0.0)
    for part in tl.static_range(PARTS):
        value += tl.load(y + part * part_size + row + c, mask=c < C, other=0.0)
    mean = tl.sum(value, 0) / C
    centred = tl.where(c < C, value - mean, 0.0)
    value = centred * tl.rsqrt(tl.sum(centred * centred, 0) / C + eps)
    value = value * tl.load(weight + c, mask=c < C) + tl.load(bias + c, mask=c < C)
    tl.store(z + row + c, value, mask=c < C)


def linear(
    x: Tensor,
    high: Tensor,
    low: Tensor,
    bias: Tensor,
    scale: float,
    lengths: Tensor,
    gelu: bool = False,
    parts: int = 1,
) -> Tensor:
    """x [B, T, K] fp32, weight / scale [K, N] as two fp16 parts -> [parts, B, T, N] fp32, to be added up."""
    depth, width = high.shape
    n = x.numel() // depth
    y = torch.empty(parts, *x.shape[:-1], width, device=x.device)
    rows, columns, warps = (64, 32, 4) if n <= 128 else (64, 64, 4) if n <= 1024 else (128, 64, 8)
    grid = (triton.cdiv(n, rows), width // columns, parts)
    _linear[grid](x.contiguous(), high, low, bias, y, lengths, n, x.shape[1], width, depth, scale, gelu, parts,
                  rows, columns, 64, num_warps=warps, num_stages=3)  # fmt: skip
    return y


def n_parts(n: int, depth: int) -> int:
    """Into how many parts a sum over `depth` is split for n values: a few alone do not fill the device."""
    return 1 if n > FEW else 8 if depth >= 2048 else 4


def add_layer_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Layer norm of x [..., C] and all parts of y [parts, ..., C]."""
    z, channels = torch.empty_like(x), x.shape[-1]
    _add_layer_norm[(x.numel() // channels,)](x, y, weight, bias, z, channels, x.numel(), eps, len(y),
                                              triton.next_power_of_2(channels))  # fmt: skip
    return z
