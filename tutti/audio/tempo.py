"""Faster speech of the same pitch: FFmpeg's atempo, an overlap of similar waves (WSOLA)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tutti.audio.filters import FilterChain, joined
from tutti.speech import FULL_SCALE, Samples, is_pcm, to_pcm

MAX_FACTOR = 2.0  # of one filter; beyond, it skips samples instead of blending them
BLOCK = 480  # samples that the filters get at once: what they say of a piece depends on where it ends


class Tempo:
    """Makes the pieces of one audio shorter by a factor; all together are as long as that says, to the sample."""

    def __init__(self, factor: float) -> None:
        n_filters = 1 if factor <= MAX_FACTOR else 2
        self._factor = factor
        self._filters = FilterChain(*[("atempo", f"tempo={factor ** (1 / n_filters):.9f}")] * n_filters)
        self._rest = np.zeros(0, np.float32)  # of the last block
        self._n_in = self._n_out = 0

    def write(self, samples: Samples, *, last: bool) -> Samples:
        """Return what is finished by now, in the format of the samples; with the last piece all that is left."""
        as_pcm = is_pcm(samples)
        floats = samples.astype(np.float32) / np.float32(FULL_SCALE) if as_pcm else samples
        self._n_in += len(samples)
        faster = joined(self._push(floats, last=last))
        if last:
            faster = self._cut(np.concatenate([faster, joined(self._filters.end())]))
        self._n_out += len(faster)
        return to_pcm(faster) if as_pcm else faster  # type: ignore[return-value]

    def _push(self, samples: Samples, *, last: bool) -> Iterator[Any]:
        """Give the filters whole blocks, and at last what is left."""
        waiting = np.concatenate([self._rest, samples])
        n_whole = len(waiting) if last else len(waiting) // BLOCK * BLOCK
        self._rest = waiting[n_whole:]
        for start in range(0, n_whole, BLOCK):
            yield from self._filters.push(waiting[start : min(start + BLOCK, n_whole)])

    def _cut(self, samples: Samples) -> Samples:
        """The last samples, as many as are owed: the filter is off by some milliseconds."""
        n_owed = max(0, round(self._n_in / self._factor) - self._n_out)
        return np.pad(samples[:n_owed], (0, max(0, n_owed - len(samples))))
