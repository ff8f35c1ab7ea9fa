"""Filters of FFmpeg, through PyAV."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tutti.speech import SAMPLE_RATE, Samples


class FilterChain:
    """A chain of FFmpeg's filters on mono audio at 24 kHz."""

    def __init__(self, *filters: tuple[str, str]) -> None:
        import av

        self._av = av
        self._graph = av.filter.Graph()
        source = self._graph.add_abuffer(
            format="flt", sample_rate=SAMPLE_RATE, layout="mono", time_base=Fraction(1, SAMPLE_RATE)
        )
        nodes = [self._graph.add(name, options) for name, options in filters]
        self._graph.link_nodes(source, *nodes, self._graph.add("abuffersink")).configure()
        self._n_samples = 0

    def push(self, samples: Samples) -> Iterator[Any]:
        if len(samples):
            frame = self._av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, self._n_samples, Fraction(1, SAMPLE_RATE)
            self._n_samples += len(samples)
            self._graph.push(frame)
        return self._ready()

    def end(self) -> Iterator[Any]:
        self._graph.push(None)
        return self._ready()

    def _ready(self) -> Iterator[Any]:
        while True:
            try:
                yield self._graph.pull()
            except (self._av.BlockingIOError, self._av.EOFError):
                return


def joined(frames: Iterable[Any]) -> Samples:
    parts = [frame.to_ndarray().reshape(-1).astype(np.float32) for frame in frames]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
