# mypy: ignore-errors
"""The recurrent half of a BiLSTM in one kernel.

The units of a direction are spread over sixteen programs, each with its weights in registers. `out` is filled with a
bit pattern that no state has: a program polls a value until the pattern is gone. So the data themselves are the
barrier, and a step takes 1.6 microseconds for few rows, 6 for many; one kernel launch a step takes 5, and 10 to 19.

Gates are [B, T, 2, H, 4], the last axis i, f, g, o. A program with one row reads the weights by gate, one with several
their two fp16 parts.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tutti.model.torch.kernels.convs import n_processors
from tutti.model.torch.kernels.launch import kernel
from tutti.model.torch.kernels.lstm_cluster import fits_cluster, lstm_cluster
from tutti.model.torch.kokoro.lstm import RecurrentWeights
from tutti.model.torch.kokoro.masks import valid_times

UNITS = 16  # hidden units of a program
UNSET = -1  # as int32; as a float it is a NaN that no arithmetic produces


@triton.jit
def _cell(g_in, g_forget, g_cell, g_out, cell):
    cell = tl.sigmoid(g_forget) * cell + tl.sigmoid(g_in) * (2 * tl.sigmoid(2 * g_cell) - 1)
    return cell, tl.sigmoid(g_out) * (2 * tl.sigmoid(2 * cell) - 1)


@kernel
@triton.jit(do_not_specialize=["T"])
def _one_row(gates, weights, out, lengths, T, H: tl.constexpr, UNITS: tl.constexpr):
    direction, b = tl.program_id(1), tl.program_id(2)
    k = tl.arange(0, H)
    u = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    end = tl.load(lengths + b)
    place = weights + direction * 4 * H * H + k[:, None] * H + u[None, :]
    w_in, w_forget = tl.load(place), tl.load(place + H * H)
    w_cell, w_out = tl.load(place + 2 * H * H), tl.load(place + 3 * H * H)
    cell = tl.zeros((UNITS,), tl.float32)
    state = tl.zeros((H,), tl.float32)
    for step in range(end):
        row = (b * T + tl.where(direction == 0, step, end - 1 - step)) * 2 + direction
        gate = gates + (row * H + u) * 4
        g_in, g_forget, g_cell, g_out = tl.load(gate), tl.load(gate + 1), tl.load(gate + 2), tl.load(gate + 3)
        if step > 0:
            before = out + (row + tl.where(direction == 0, -2, 2)) * H + k
            bits = tl.load(before, volatile=True)
            while tl.max((bits == -1).to(tl.int32), 0) > 0:
                bits = tl.load(before, volatile=True)
            state = bits.to(tl.float32, bitcast=True)
        g_in += tl.sum(state[:, None] * w_in, 0)
        g_forget += tl.sum(state[:, None] * w_forget, 0)
        g_cell += tl.sum(state[:, None] * w_cell, 0)
        g_out += tl.sum(state[:, None] * w_out, 0)
        cell, hidden = _cell(g_in, g_forget, g_cell, g_out, cell)
        tl.store(out + row * H + u, hidden.to(tl.int32, bitcast=True))


@kernel
@triton.jit(do_not_specialize=["B", "T"])
def _rows(gates, high, low, out, lengths, B, T, scale, H: tl.constexpr, UNITS: tl.constexpr, ROWS: tl.constexpr):
    """`_one_row` for several rows; a product is three fp16 products, as in linear.py."""
    direction = tl.program_id(1)
    b = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, H)
    u = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    v = tl.program_id(0) * UNITS * 4 + tl.arange(0, UNITS * 4)
    end = tl.load(lengths + b, mask=b < B, other=0)
    place = direction * 4 * H * H + k[:, None] * 4 * H + v[None, :]
    w_high, w_low = tl.load(high + place), tl.load(low + place)
    cell = tl.zeros((ROWS, UNITS), tl.float32)
    state = tl.zeros((ROWS, H), tl.float32)
    for step in range(tl.max(end, 0)):
        active = (step < end)[:, None]
        row = (b * T + tl.where(direction == 0, step, end - 1 - step)) * 2 + direction
        gate = tl.load(gates + row[:, None] * 4 * H + v[None, :], mask=active, other=0.0)
        if step > 0:
            before = out + (row + tl.where(direction == 0, -2, 2))[:, None] * H + k[None, :]
            bits = tl.load(before, mask=active, other=0, volatile=True)
            while tl.max(tl.max((bits == -1).to(tl.int32), 1), 0) > 0:
                bits = tl.load(before, mask=active, other=0, volatile=True)
            state = bits.to(tl.float32, bitcast=True)
        coarse = state.to(tl.float16)
        fine = (state - coarse.to(tl.float32)).to(tl.float16)
        part = tl.dot(fine, w_high)
        part = tl.dot(coarse, w_low, part)
        part = tl.dot(coarse, w_high, part)
        gate += part * scale
        even, odd = tl.split(gate.reshape(ROWS, UNITS, 2, 2))
        g_in, g_cell = tl.split(even)
        g_forget, g_out = tl.split(odd)
        cell, hidden = _cell(g_in, g_forget, g_cell, g_out, cell)
        tl.store(out + row[:, None] * H + u[None, :], hidden.to(tl.int32, bitcast=True), mask=active)


def fits_lstm(n_rows: int, hidden: int, device: torch.device) -> bool:
    """Whether all programs fit on the device at once: they wait for each other."""
    return _n_programs(triton.cdiv(n_rows, 16), hidden) <= n_processors(device)


def lstm(gates: Tensor, weights: RecurrentWeights, lengths: Tensor) -> Tensor:
    """gates [B, T, 2, H, 4] -> [B, T, 2H], zero after each row's end; for as many rows as `fits_lstm` allows."""
    n_rows, n_times, _, hidden, _ = gates.shape
    if fits_cluster(n_rows, hidden):
        return lstm_cluster(gates, weights.by_thread, lengths)
    out = torch.full((n_rows, n_times, 2, hidden), UNSET, dtype=torch.int32, device=gates.device)
    parts = hidden // UNITS
    if _n_programs(n_rows, hidden) <= n_processors(gates.device):
        _one_row[parts, 2, n_rows](gates, weights.by_gate, out, lengths, n_times, hidden, UNITS, num_warps=4)
    else:
        _rows[parts, 2, triton.cdiv(n_rows, 16)](gates, weights.high, weights.low, out, lengths, n_rows, n_times,
                                                 weights.scale, hidden, UNITS, 16, num_warps=8)  # fmt: skip
    return out.view(torch.float32).flatten(2).masked_fill_(~valid_times(lengths, n_times), 0)


def _n_programs(n_groups: int, hidden: int) -> int:
    return 2 * n_groups * (hidden // UNITS)
