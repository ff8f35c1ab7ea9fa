# mypy: ignore-errors
"""Self-attention in fp32, which durations depend on: for a few tokens in half the time of PyTorch's own."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tutti.model.torch.kernels.launch import kernel

QUERIES, KEYS = 16, 64  # of a program at a time


@kernel
@triton.jit(do_not_specialize=["T"])
def _attention(qkv, y, lengths, T, scale, HEADS: tl.constexpr, SIZE: tl.constexpr,
               QUERIES: tl.constexpr, KEYS: tl.constexpr):  # fmt: skip
    """The queries of one head of one row, with a running softmax over its keys; zero after the row's end."""
    first_query, b, head = tl.program_id(0) * QUERIES, tl.program_id(1), tl.program_id(2)
    end = tl.load(lengths + b)
    i, d = first_query + tl.arange(0, QUERIES), tl.arange(0, SIZE)
    width: tl.constexpr = HEADS * SIZE
    own = qkv + b * T * 3 * width + head * SIZE
    total = tl.zeros((QUERIES, SIZE), tl.float32)
    if first_query < end:
        q = tl.load(own + i[:, None] * 3 * width + d[None, :], mask=(i < T)[:, None], other=0.0) * scale
        top = tl.full((QUERIES,), float("-inf"), tl.float32)
        weight = tl.zeros((QUERIES,), tl.float32)
        for first in range(0, end, KEYS):
            j = first + tl.arange(0, KEYS)
            k = tl.load(own + width + j[None, :] * 3 * width + d[:, None], mask=(j < end)[None, :], other=0.0)
            score = tl.where((j < end)[None, :], tl.dot(q, k, input_precision="ieee"), float("-inf"))
            new_top = tl.maximum(top, tl.max(score, 1))
            score, kept = tl.exp(score - new_top[:, None]), tl.exp(top - new_top)
            v = tl.load(own + 2 * width + j[:, None] * 3 * width + d[None, :], mask=(j < end)[:, None], other=0.0)
            total = total * kept[:, None] + tl.dot(score, v, input_precision="ieee")
            weight, top = weight * kept + tl.sum(score, 1), new_top
        total /= weight[:, None]
    tl.store(y + (b * T + i)[:, None] * width + head * SIZE + d[None, :], total, mask=(i < T)[:, None])


def attention(qkv: Tensor, n_heads: int, lengths: Tensor) -> Tensor:
    """qkv [B, T, 3 * C] -> [B, T, C]; the rows attend to their own `lengths` [B]."""
    n_rows, n_times, width = qkv.shape
    size = width // 3 // n_heads
    y = torch.empty(n_rows, n_times, width // 3, device=qkv.device)
    grid = (triton.cdiv(n_times, QUERIES), n_rows, n_heads)
    _attention[grid](qkv, y, lengths, n_times, size**-0.5, n_heads, size, QUERIES, KEYS, num_warps=4)
    return y
