"""The training data, all of it on the device, in arrays of fixed size: a CUDA graph can draw its batch from them.

The arrays are a ring: when they are full, new rows take the place of the oldest. A row is drawn from the moment it is
complete, and no longer when it is about to be replaced, so a thread may fill the pool while another trains from it.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.teacher import Example
from tutti.model.light.signal import HOP
from tutti.model.torch.light import FEATURES, TIMBRE, harmonic_phase

STEPS_PER_S = 80
STEPS_PER_FRAME = 2  # segments start with a frame
STEPS_PER_ROW = 60  # rows are on average longer: their tables never fill first
SETTLE_S = 0.05  # after which no training step still reads rows that are not drawn any more


@dataclass(frozen=True, slots=True)
class Segments:
    """A batch: segments of rows with some context on both sides; what lies outside of its row is zero."""

    features: Tensor  # [B, L, n_features]
    f0: Tensor  # [B, L]
    phase: Tensor  # [B, L]
    timbre: Tensor  # [B, 128]
    valid: Tensor  # [B, L, 1]
    samples: Tensor  # [B, 300 (L - 2 context)], without the context
    statistics: Tensor  # [B, 2 n_features + 4] of the whole rows
    hidden: Tensor  # [B, L - 2 context, n] of the network that the student imitates


class Pool:
    """Rows one after the other, with tables of where each starts."""

    def __init__(self, seconds: float, device: torch.device, n_features: int = FEATURES, n_hidden: int = 0) -> None:
        self.device = device
        self.capacity = int(seconds * STEPS_PER_S)
        n_rows = self.capacity // STEPS_PER_ROW + 1
        half, index = {"dtype": torch.float16, "device": device}, {"dtype": torch.int64, "device": device}
        self._features = torch.zeros(self.capacity, n_features, **half)
        self._hidden = torch.zeros(self.capacity, n_hidden, **half)
        self._samples = torch.zeros(self.capacity, HOP, **half)
        self._f0 = torch.zeros(self.capacity, device=device)
        self._phase = torch.zeros(self.capacity, device=device)
        self._row = torch.zeros(self.capacity, **index)  # the row of each step
        self._timbre = torch.zeros(n_rows, TIMBRE, device=device)
        self._statistics = torch.zeros(n_rows, 2 * (n_features + 2), device=device)
        self._start = torch.zeros(n_rows, **index)
        self._length = torch.ones(n_rows, **index)
        self._drawn = torch.zeros(2, dtype=torch.float64, device=device)  # first step, number; read inside the graph
        self._extents: deque[tuple[int, int]] = deque()  # of the rows, oldest first: the steps that stand for each
        self._end = 0  # where the next row goes
        self.is_full = False
        self.n_steps = self.n_rows = 0  # that were ever added

    @property
    def seconds(self) -> float:
        """Of all speech that was ever added."""
        return self.n_steps / STEPS_PER_S

    @property
    def statistics(self) -> Tensor:  # [rows, 2 n_features + 4]
        """Of the rows that were added."""
        return self._statistics[: self.n_rows]

    def add(self, examples: Sequence[Example]) -> None:
        """Add the examples; if there is no space, in place of the oldest."""
        n = sum(len(example.f0) for example in examples)
        if n > self.capacity // 2:
            raise ValueError(f"{n / STEPS_PER_S:.0f} s at once are too much for {self.capacity / STEPS_PER_S:.0f} s")
        if self._end + n > self.capacity:
            while self._extents[0][0] >= self._end:
                self._extents.popleft()
            self._stretch_newest(self.capacity)
            self._end, self.is_full = 0, True
        end = replaced = self._end + n
        while self.is_full and self._extents and self._end <= self._extents[0][0] < end:
            replaced = max(end, self._extents.popleft()[1])
        if self.is_full:
            self._draw_from(replaced, self.capacity - (replaced - self._end))
            time.sleep(SETTLE_S if self.device.type == "cuda" else 0.0)
        self._write(examples)
        if self.is_full:
            self._stretch_newest(replaced)
            self._end = replaced
        self._draw_from(0, self.capacity if self.is_full else self._end)

    def _write(self, examples: Sequence[Example]) -> None:
        device = self.device
        lengths = torch.tensor([len(example.f0) for example in examples])
        ends = self._end + lengths.cumsum(0)
        starts = ends - lengths
        steps = slice(self._end, int(ends[-1]))
        rows = torch.arange(self.n_rows, self.n_rows + len(examples)) % len(self._start)
        self._features[steps] = torch.cat([example.features for example in examples])
        self._hidden[steps] = torch.cat([example.hidden for example in examples])
        self._samples[steps] = torch.cat([example.samples for example in examples]).view(-1, HOP)
        self._f0[steps] = torch.cat([example.f0 for example in examples])
        self._phase[steps] = torch.cat([harmonic_phase(example.f0[None])[0] for example in examples])
        self._row[steps] = torch.repeat_interleave(rows, lengths).to(device)
        rows = rows.to(device)
        self._timbre[rows] = torch.stack([example.timbre for example in examples])
        self._statistics[rows] = torch.stack([example.statistics for example in examples])
        self._start[rows], self._length[rows] = starts.to(device), lengths.to(device)
        self._extents.extend(zip(starts.tolist(), ends.tolist(), strict=True))
        self._end = steps.stop
        self.n_steps += int(lengths.sum())
        self.n_rows += len(examples)

    def _stretch_newest(self, end: int) -> None:
        """Let the newest row stand for the steps up to `end` as well: what was there before is cut or too short."""
        start, before = self._extents.pop()
        self._row[before:end] = (self.n_rows - 1) % len(self._start)
        self._extents.append((start, end))

    def _draw_from(self, first: int, n_steps: int) -> None:
        """Draw from these steps of the ring, from now on."""
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        self._drawn.copy_(torch.tensor([first, n_steps], dtype=torch.float64))
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    def draw(self, n: int, n_steps: int, context: int) -> Segments:
        """Random segments of `n_steps` and context; a row is drawn by its length, the place in it uniformly."""
        device = self.device
        full = n_steps + 2 * context
        place, where = torch.rand(2, n, dtype=torch.float64, device=device)
        oldest, size = self._drawn
        row = self._row[(oldest + place * size).long() % self.capacity]
        start, length = self._start[row][:, None], self._length[row][:, None]
        span = (length + 2 * context - full).clamp(min=0)  # a short row lies at the start of its segment
        first = STEPS_PER_FRAME * (where[:, None] * (span // STEPS_PER_FRAME + 1)).long() - context
        steps = first + torch.arange(full, device=device)  # [n, full]
        valid = (steps >= 0) & (steps < length)
        index = start + steps.clamp(min=0).minimum(length - 1)
        inner = slice(context, context + n_steps)
        mask = valid[:, :, None].float()
        return Segments(
            self._features[index].float() * mask,
            self._f0[index] * mask[:, :, 0],
            self._phase[index],
            self._timbre[row],
            mask,
            (self._samples[index[:, inner]].float() * mask[:, inner]).flatten(1),
            self._statistics[row],
            self._hidden[index[:, inner]].float() * mask[:, inner],
        )
