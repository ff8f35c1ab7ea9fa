"""How a row is cut into spans, which the vocoder delivers one by one."""

from math import inf

import numpy as np
from numpy.typing import NDArray

# Precisions in which spans sound as good as the whole row. In int8 each run has its own ranges: joins are audible.
INCREMENTAL_PRECISIONS = frozenset(("fp32",))
FIRST_FRAMES = 40  # of the first span: one second, of which Kokoro is silent for about a third
CONTEXT_FRAMES = 4  # that the generator reads on each side of a span; more changes no sample by 1e-4
SEARCH_FRAMES = 14  # by which a span may end earlier, where the row is quieter
MIN_FRAMES = 200  # shorter rows are not cut: they are nearly done when their first span is


def split_spans(n_frames: int, growth: float, max_frames: float = inf) -> list[tuple[int, int]]:
    """Cut a row into (start, end) frames: a short first span, each later one longer than the one before by `growth`.

    None is much longer than `max_frames`. A row shorter than MIN_FRAMES stays whole.
    """
    if n_frames < MIN_FRAMES:
        return [(0, n_frames)]
    ends = [FIRST_FRAMES]
    length = min(FIRST_FRAMES * growth, max_frames)
    while n_frames - ends[-1] > 1.5 * length:
        ends.append(ends[-1] + round(length))
        length = min(length * growth, max_frames)
    return list(zip([0, *ends], [*ends, n_frames], strict=True))


def quiet_end(energy: NDArray[np.float32], start: int, end: int) -> int:
    """Move the end of a span back to the quietest frame within SEARCH_FRAMES. energy [2T].

    The end of the row stays where it is.
    """
    if 2 * end == len(energy):
        return end
    candidates = range(end, max(start, end - SEARCH_FRAMES - 1), -1)
    return min(candidates, key=lambda frame: float(energy[max(0, 2 * frame - 3) : 2 * frame + 3].max()))
