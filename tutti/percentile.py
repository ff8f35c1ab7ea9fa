"""One definition of a percentile for the server's dashboard, the client's statistics and the benchmarks."""

from collections.abc import Sequence
from math import ceil


def percentile(ordered: Sequence[float], p: float) -> float | None:
    """Return the smallest value that at least `p` per cent of the sorted values do not exceed; None of no values.

    Nearest rank, not interpolation: the result is a latency that a request really had, and it is what
    `/v1/stats` and docs/stats.md have always reported.
    """
    return ordered[max(0, ceil(p / 100 * len(ordered)) - 1)] if ordered else None
