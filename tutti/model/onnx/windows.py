"""Rows spoken by a network of bounded context: a piece is exactly a part of the whole, so rows are cut anywhere."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutti.model.light import signal
from tutti.model.light.noise import normal, row_seed
from tutti.model.light.signal import HOP, REACH, Spectra
from tutti.model.validation import finish_samples
from tutti.speech import Frames, Samples, Span

Floats = NDArray[np.float32]
Range = tuple[int, int]
READ = "read by the network"  # in the cache of a row's spans
SHORT_FRAMES = 375  # up to which a row leaves its workspace to the next one; 9 s
MIN_PIECE = 20  # frames; shorter ones would be mostly context
# Steps or frames: the int8 products take up to four together, and sum in another order what is left over at the end.
# Pieces that begin and end at multiples of it are left with the same ones as the whole row.
GROUP = 4


class WindowedVocoder(ABC):
    """What a network reads is made row by row. A row alone runs on all cores; of several, each core takes pieces."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vocoder")

    @abstractmethod
    def read_row(self, row: Frames) -> Any:
        """What the network reads of the whole row."""

    @abstractmethod
    def predict(self, read: Any, row: Frames, low: int, high: int) -> Spectra:
        """The spectra of these steps."""

    def read(self, row: Frames) -> Any:
        """The same, kept for the row's later spans."""
        cache = row.cache if isinstance(row, Span) else {}
        if READ not in cache:
            cache[READ] = self.read_row(row)
        return cache[READ]

    def __call__(self, rows: Sequence[Frames]) -> list[Samples]:
        inputs = [self.read(row) for row in rows]
        ranges = [(row.start, row.end) if isinstance(row, Span) else (0, row.n_frames) for row in rows]
        n_frames = sum(end - start for start, end in ranges)
        share = n_frames / self._threads if len(rows) > 1 else n_frames  # of a core
        pieces = [(i, piece) for i, (start, end) in enumerate(ranges) for piece in split_evenly(start, end, share)]
        samples = list(self._pool.map(lambda piece: self._generate(inputs[piece[0]], rows[piece[0]], piece[1]), pieces))
        by_row: list[list[Samples]] = [[] for _ in rows]
        for (i, _), part in zip(pieces, samples, strict=True):
            by_row[i].append(part)
        return [finish_samples(row, np.concatenate(parts)) for row, parts in zip(rows, by_row, strict=True)]

    def close(self) -> None:
        self._pool.shutdown()

    def _generate(self, read: Any, row: Frames, piece: Range) -> Samples:
        return generate(lambda low, high: self.predict(read, row, low, high), row, *piece)


def generate(predict: Callable[[int, int], Spectra], row: Frames, start: int, end: int) -> Samples:
    """The samples of the frames `start` to `end`: the same in any piece."""
    n_steps, first, last = 2 * row.n_frames, 2 * start, 2 * end
    low, high = max(0, first - REACH), min(n_steps, last + REACH)  # spectra that reach into the piece
    samples = signal.speak(predict(low, high), _sources(row, low - REACH, high + REACH))
    return samples[(first - low) * HOP : (last - low) * HOP]


def split_evenly(start: int, end: int, length: float) -> Iterator[Range]:
    """Cut frames into equal pieces of about this length, and at least MIN_PIECE."""
    n = max(1, min(round((end - start) / length), (end - start) // MIN_PIECE))
    cuts = [start + (end - start) * i // n for i in range(n + 1)]
    yield from pairwise(cuts)


def needed(low: int, high: int, n: int, context: int) -> Range:
    """These steps or frames of `n`, with so many on both sides, in whole groups."""
    return max(0, low - context) // GROUP * GROUP, min(n, -(-(high + context) // GROUP) * GROUP)


def relative(ranges: Sequence[Range]) -> list[int]:
    """Start and end of each range in the one before it."""
    return [one - before[0] for before, now in pairwise(ranges) for one in now]


def _sources(row: Frames, low: int, high: int) -> Floats:  # [2, 300 (high - low)]
    """Pulses and noise of these steps; zero outside the row."""
    n_steps = len(row.f0)
    begin, stop = max(0, low), min(n_steps, high)
    next_f0 = np.append(row.f0[begin + 1 : stop + 1], np.zeros(max(0, stop + 1 - n_steps), np.float32))
    seed = np.array([row_seed(row.durations, row.style)], np.uint32)  # an array wraps around silently, unlike a scalar
    sources = np.zeros((2, (high - low) * HOP), np.float32)
    inside = slice((begin - low) * HOP, (stop - low) * HOP)
    sources[0, inside] = signal.pulses(row.f0[begin:stop], signal.pitch_phase(row.f0)[begin:stop], next_f0)
    sources[1, inside] = normal(seed, np.arange(begin * HOP, stop * HOP, dtype=np.uint32))
    return sources
