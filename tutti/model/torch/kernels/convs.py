# mypy: ignore-errors
"""Convolutions over time as implicit matrix products, fused with the sum and the statistics after them.

cuDNN's best kernels are a tenth (eleven taps) to a third (three taps) faster, but cannot skip padding or fuse what
follows, and cuDNN's choice of a kernel varies: in some shapes one convolution took longer than all others together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from tutti.model.torch.kernels.launch import kernel


@kernel
@triton.jit(do_not_specialize=["T", "n_tiles"])
def _convolve(x, w, bias, r0, r1, y, tiles, lengths, T, n_tiles, factor,
              C_IN: tl.constexpr, C_OUT: tl.constexpr, KERNEL: tl.constexpr, DILATION: tl.constexpr,
              BIASED: tl.constexpr, RESIDUALS: tl.constexpr, STATS: tl.constexpr, HALF: tl.constexpr,
              TIMES: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):  # fmt: skip
    """y = factor (x * w + bias + r0 + r1); x and w, in fp16 also r0, r1 and y, are tensor descriptors (TMA)."""
    tile, n0, b = tl.program_id(0), tl.program_id(1) * COLUMNS, tl.program_id(2)
    end = tl.load(lengths + b)
    t0 = tile * TIMES
    if t0 >= end:
        return
    first = t0 - (KERNEL - 1) // 2 * DILATION  # reads zeros before the first and after the last time step
    total = tl.zeros((TIMES, COLUMNS), tl.float32)
    PARTS: tl.constexpr = C_IN // DEPTH
    for i in range(KERNEL * PARTS):
        value = x.load([b, first + (i // PARTS) * DILATION, (i % PARTS) * DEPTH]).reshape(TIMES, DEPTH)
        total = tl.dot(value, w.load([i * DEPTH, n0]), total)
    t = t0 + tl.arange(0, TIMES)
    n = n0 + tl.arange(0, COLUMNS)
    at = (b.to(tl.int64) * T + t[:, None]) * C_OUT + n[None, :]
    inside = (t < end)[:, None]
    if BIASED:
        total += tl.load(bias + n)[None, :]
    if RESIDUALS > 0:
        if HALF:
            total += r0.load([b, t0, n0]).reshape(TIMES, COLUMNS).to(tl.float32)
        else:
            total += tl.load(r0 + at, mask=inside, other=0.0).to(tl.float32)
    if RESIDUALS > 1:
        if HALF:
            total += r1.load([b, t0, n0]).reshape(TIMES, COLUMNS).to(tl.float32)
        else:
            total += tl.load(r1 + at, mask=inside, other=0.0).to(tl.float32)
    total = tl.where(inside, total * factor, 0.0)
    if STATS:
        mean = tl.sum(total, 0) / tl.minimum(end - t0, TIMES).to(tl.float32)
        centred = tl.where(inside, total - mean[None, :], 0.0)
        place = tiles + (b * n_tiles + tile) * 2 * C_OUT + n
        tl.store(place, mean)
        tl.store(place + C_OUT, tl.sum(centred * centred, 0))
    if HALF:
        y.store([b, t0, n0], total.to(tl.float16).reshape(1, TIMES, COLUMNS))
    else:
        tl.store(y + at, total, mask=(t < T)[:, None])


class Filters(NamedTuple):
    """The weights of a convolution."""

    taps: Tensor  # [kernel, C_in, C_out] fp16
    bias: Tensor | None  # [C_out] fp32
    dilation: int


def conv(
    x: Tensor,  # [B, T, C_in] fp16
    filters: Filters,
    residuals: Sequence[Tensor],  # none to two [B, T, C_out]
    lengths: Tensor,
    factor: float,
    stats: bool,
    out: Tensor,  # [B, T, C_out], any row stride
) -> tuple[Tensor, int]:
    """Fill `out`, undefined far after each row's end; return moments [B, tiles, 2, C_out] and the steps of a tile."""
    taps, bias, dilation = filters
    n_rows, n_times, n_out = out.shape
    kernel, n_in, _ = taps.shape
    columns, depth = min(128, n_out), min(64, n_in)
    fills = n_rows * triton.cdiv(n_times, 256) * (n_out // columns) >= 2 * n_processors(x.device)
    times, warps, stages = (256, 8, 3) if fills else (64, 4, 4)
    n_tiles, half = triton.cdiv(n_times, times), out.dtype == torch.float16
    tiles = torch.empty((n_rows, n_tiles, 2, n_out) if stats else 1, device=x.device)

    def descriptor(tensor: Tensor) -> Tensor | TensorDescriptor:
        return TensorDescriptor.from_tensor(tensor, [1, times, columns]) if half else tensor

    y = descriptor(out)
    r0, r1 = [*(descriptor(residual) for residual in residuals), y, y][:2]
    _convolve[n_tiles, n_out // columns, n_rows](
        TensorDescriptor.from_tensor(x, [1, times, depth]),
        TensorDescriptor.from_tensor(taps.view(-1, n_out), [depth, columns]),
        tiles if bias is None else bias, r0, r1, y, tiles, lengths, n_times, n_tiles, factor,
        n_in, n_out, kernel, dilation, bias is not None, len(residuals), stats, half, times, columns, depth,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return tiles, times


def n_processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
