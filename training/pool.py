"""The training data, all of it on the device, in arrays of fixed size: a CUDA graph can draw its batch from them.

Rows are only ever added, and a row counts from the moment it is complete, so a thread may fill the pool while
another trains from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.teacher import Example
from tutti.model.light.signal import HOP
from tutti.model.torch.light import FEATURES, TIMBRE, harmonic_phase

STEPS_PER_S = 80
STEPS_PER_ROW = 60  # rows are on average longer: the tables of rows never fill first


@dataclass(frozen=True, slots=True)
class Segments:
    """A batch: segments of rows with some context on both sides; what lies outside of its row is zero."""

    features: Tensor  # [B, L, 512]
    f0: Tensor  # [B, L]
    phase: Tensor  # [B, L]
    timbre: Tensor  # [B, 128]
    valid: Tensor  # [B, L, 1]
    samples: Tensor  # [B, 300 (L - 2 context)], without the context


class Pool:
    """Rows one after the other, with tables of where each starts."""

    def __init__(self, seconds: float, device: torch.device) -> None:
        self.device = device
        self.capacity = int(seconds * STEPS_PER_S)
        n_rows = self.capacity // STEPS_PER_ROW + 1
        half, index = {"dtype": torch.float16, "device": device}, {"dtype": torch.int64, "device": device}
        self._features = torch.zeros(self.capacity, FEATURES, **half)
        self._samples = torch.zeros(self.capacity, HOP, **half)
        self._f0 = torch.zeros(self.capacity, device=device)
        self._phase = torch.zeros(self.capacity, device=device)
        self._row = torch.zeros(self.capacity, **index)  # the row of each step
        self._timbre = torch.zeros(n_rows, TIMBRE, device=device)
        self._start = torch.zeros(n_rows, **index)
        self._length = torch.ones(n_rows, **index)
        self._size = torch.zeros((), dtype=torch.float64, device=device)  # read inside the graph
        self.n_steps = self.n_rows = 0

    @property
    def seconds(self) -> float:
        return self.n_steps / STEPS_PER_S

    def add(self, examples: Sequence[Example]) -> bool:
        """Add the examples that fit; False if the pool is full."""
        fits = []
        n_steps = self.n_steps
        for example in examples:
            n = len(example.f0)
            if n_steps + n > self.capacity or self.n_rows + len(fits) >= len(self._start):
                break
            fits.append(example)
            n_steps += n
        if fits:
            self._write(fits)
        return len(fits) == len(examples)

    def _write(self, examples: Sequence[Example]) -> None:
        device = self.device
        lengths = torch.tensor([len(example.f0) for example in examples])
        starts = self.n_steps + lengths.cumsum(0) - lengths
        steps = slice(self.n_steps, self.n_steps + int(lengths.sum()))
        rows = slice(self.n_rows, self.n_rows + len(examples))
        self._features[steps] = torch.cat([example.features for example in examples])
        self._samples[steps] = torch.cat([example.samples for example in examples]).view(-1, HOP)
        self._f0[steps] = torch.cat([example.f0 for example in examples])
        self._phase[steps] = torch.cat([harmonic_phase(example.f0[None])[0] for example in examples])
        self._row[steps] = torch.repeat_interleave(torch.arange(rows.start, rows.stop), lengths).to(device)
        self._timbre[rows] = torch.stack([example.timbre for example in examples])
        self._start[rows], self._length[rows] = starts.to(device), lengths.to(device)
        if device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        self.n_steps, self.n_rows = steps.stop, rows.stop
        self._size.fill_(self.n_steps)

    def draw(self, n: int, n_steps: int, context: int) -> Segments:
        """Random segments of `n_steps` and context; a row is drawn by its length, the place in it uniformly."""
        device = self.device
        full = n_steps + 2 * context
        place, where = torch.rand(2, n, dtype=torch.float64, device=device)
        row = self._row[(place * self._size).long()]
        start, length = self._start[row][:, None], self._length[row][:, None]
        span = (length + 2 * context - full).clamp(min=0)  # a short row lies at the start of its segment
        first = -context + (where[:, None] * (span + 1)).long()
        steps = first + torch.arange(full, device=device)  # [n, full] of the row
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
        )
