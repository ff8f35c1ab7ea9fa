"""Which rows sound side by side, one core each, and which have all cores, one after the other."""

from collections.abc import Sequence
from heapq import heapreplace

# The vocoder needs about half a megabyte for each frame in flight; 14 s side by side keep the process below 1.2 GB.
MAX_FRAMES = 560
SPEEDUP = 0.85  # a lone row is as much faster as this power of its cores: 1.8 times on two


def laid_out(sizes: Sequence[int], lanes: int) -> list[list[int]]:
    """Places of the rows, in groups that follow each other; a group of several has a lane for each row.

    Cores would idle beside one row too many for the lanes, or one much longer than the others. So the longest have all
    cores, as many of them as brings the end nearest.
    """
    places = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    plans = [[*([place] for place in places[:n]), *_together(places[n:], sizes)] for n in range(len(sizes) + 1)]
    return min(plans, key=lambda plan: sum(_takes([sizes[place] for place in group], lanes) for group in plan))


def _together(places: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """As many at a time as memory allows."""
    groups: list[list[int]] = []
    n_frames = 0
    for place in places:
        n_frames += sizes[place]
        if not groups or n_frames > MAX_FRAMES:
            groups.append([])
            n_frames = sizes[place]
        groups[-1].append(place)
    return groups


def _takes(sizes: Sequence[int], lanes: int) -> float:
    """In frames of a lone row. The longest come first, each in the lane that is free first."""
    if len(sizes) == 1:
        return sizes[0]
    ends = [0] * lanes
    for size in sizes:
        heapreplace(ends, ends[0] + size)
    return float(max(ends) * lanes**SPEEDUP)
