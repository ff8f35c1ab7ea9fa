"""How a row is cut into spans, which the vocoder delivers one by one. All lengths are in frames."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from tutti.speech import VocoderName

# By which a span may end earlier, where the row is quieter: if the next one is late, the gap is heard least there.
SEARCH_FRAMES = 14


@dataclass(frozen=True, slots=True)
class SpanRules:
    """How one vocoder cuts rows, and what a span costs it."""

    first: int  # the first span; larger is heard later
    min_row: int  # shorter rows are not cut: they are nearly done when their first span is
    context: int  # computed on each side of a span
    once: float  # share of the vocoder's work that is done for the whole row before the first span

    @property
    def least(self) -> int:
        """The shortest span after the first; shorter ones would be mostly context."""
        return max(self.first // 2, 3 * self.context)

    def split(self, n_frames: int, growth: float, max_frames: float = inf, first: int = 0) -> list[tuple[int, int]]:
        """Cut a row into (start, end): a short first span, each later one longer than the one before by `growth`.

        None is much longer than `max_frames`, the first is no shorter than `first`. A short row stays whole.
        """
        if n_frames < max(self.min_row, first + self.least):
            return [(0, n_frames)]
        ends = [max(self.first, first)]
        length = min(max(ends[0] * growth, self.least), max_frames)
        while n_frames - ends[-1] > 1.5 * length:
            ends.append(ends[-1] + round(length))
            length = min(length * growth, max_frames)
        return list(zip([0, *ends], [*ends, n_frames], strict=True))

    def cost(self, n_frames: int, start: int, end: int) -> int:
        """The work for a span of a row, in frames of a row that is vocoded whole."""
        if start:
            return round((1 - self.once) * (end - start + 2 * self.context))
        return round(self.once * n_frames + (1 - self.once) * (end + self.context))


# The light vocoder has no norms over time: spans are exactly the whole. Its decoder runs once, a third of the work.
# The exact vocoder has such norms, over the whole row, so it makes no spans.
LIGHT_SPANS = SpanRules(first=14, min_row=60, context=15, once=0.34)
SPAN_RULES: Mapping[VocoderName, SpanRules] = {"light": LIGHT_SPANS, "nano": replace(LIGHT_SPANS, once=0.0)}


def quiet_end(energy: NDArray[np.float32], start: int, end: int) -> int:
    """Move the end of a span back to the quietest frame within SEARCH_FRAMES, by half of it at most. energy [2T].

    The end of the row stays where it is.
    """
    if 2 * end == len(energy):
        return end
    search = min(SEARCH_FRAMES, (end - start) // 2)
    candidates = range(end, end - search - 1, -1)
    return min(candidates, key=lambda frame: float(energy[max(0, 2 * frame - 3) : 2 * frame + 3].max()))
