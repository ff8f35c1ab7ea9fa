"""Which rows the vocoder runs in parallel, one core each, and which run alone on all cores."""

from collections.abc import Sequence
from heapq import heapreplace

# The vocoder needs about half a megabyte for each frame in flight; 14 s in parallel keep the process below 1.2 GB.
MAX_PARALLEL_FRAMES = 560
SPEEDUP = 0.85  # a row alone is n_cores ** SPEEDUP times as fast as on one core: 1.8 times on two


def assign_cores(sizes: Sequence[int], n_cores: int) -> list[list[int]]:
    """Split the rows (by index) into groups that run one after the other; the rows of a group run in parallel.

    Cores would idle if there is one row too many for them, or one much longer than the others. So the longest rows run
    alone on all cores: as many of them as gives the earliest end.
    """
    longest_first = sorted(range(len(sizes)), key=lambda row: -sizes[row])
    plans = [
        [*([row] for row in longest_first[:n_alone]), *_parallel_groups(longest_first[n_alone:], sizes)]
        for n_alone in range(len(sizes) + 1)
    ]
    return min(plans, key=lambda plan: sum(_cost([sizes[row] for row in group], n_cores) for group in plan))


def _parallel_groups(rows: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """As many rows in a group as memory allows."""
    groups: list[list[int]] = []
    n_frames = 0
    for row in rows:
        n_frames += sizes[row]
        if not groups or n_frames > MAX_PARALLEL_FRAMES:
            groups.append([])
            n_frames = sizes[row]
        groups[-1].append(row)
    return groups


def _cost(sizes: Sequence[int], n_cores: int) -> float:
    """Time of a group, in frames of a row alone: longest-processing-time-first list scheduling."""
    if len(sizes) == 1:
        return sizes[0]
    ends = [0] * n_cores
    for size in sizes:
        heapreplace(ends, ends[0] + size)
    return float(max(ends) * n_cores**SPEEDUP)
