"""How many replicas there should be: grow on the predicted wait, shrink on the busy share. Pure, without Ray."""

from collections.abc import Sequence
from math import ceil

MAX_GROWTH = 2.0  # times the present number at once; larger overshoots, since a new replica takes a while to help
# Share of the device time that the remaining replicas may have after one less. Larger saves devices, and leaves less
# room for a peak while a new replica starts.
MAX_BUSY = 0.7


def wanted_replicas(n_replicas: int, waits: Sequence[float], busy: Sequence[float]) -> int:
    """The number of replicas for these figures of the present ones.

    `waits`: predicted wait as a share of the target for first audio; a mean above 1 adds replicas. It falls to nothing
    as soon as there are enough, so it never removes one. `busy`: share of the time in which the device computes. One
    replica is removed if the others could do its work; the caller requires that for minutes before it acts.
    """
    if not waits or len(busy) != len(waits):
        return n_replicas  # no figures yet
    wait = sum(waits) / len(waits)
    if wait > 1.0:
        return min(ceil(MAX_GROWTH * n_replicas), ceil(wait * n_replicas))
    if n_replicas > 1 and len(busy) >= n_replicas and sum(busy) / (n_replicas - 1) < MAX_BUSY:
        return n_replicas - 1
    return n_replicas
