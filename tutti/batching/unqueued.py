"""What was accepted and is not in the queue yet, rests of texts and of rows: it comes at the pace of the listeners."""

from math import frexp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutti.batching.job import NO_REST, Job, Rest


class UnqueuedWork:
    """The sum over all rests. Each comes at its own pace until it ends: a long one must not use the pace of short ones.

    Rests that last about as long, within a factor of two, are added up.
    """

    def __init__(self) -> None:
        self._rests: dict[int | Job, Rest] = {}  # of the text of a stream, of the row of a job
        self._sums: dict[int, tuple[int, Rest]] = {}  # by how long they last: how many, and their sum

    def set(self, of: int | Job, rest: Rest) -> None:
        """Note what is left of the text of a stream, or of the row of a job."""
        before = self._rests.pop(of, NO_REST)
        if before.seconds > 0.0:
            self._add(before, -1)
        if rest.seconds > 0.0:
            self._rests[of] = rest
            self._add(rest, 1)

    def _add(self, rest: Rest, n: int) -> None:
        _, lasts = frexp(rest.seconds / rest.share)
        n_rests, (seconds, share) = self._sums.pop(lasts, (0, NO_REST))
        if n_rests + n:  # else no rounding error remains
            self._sums[lasts] = n_rests + n, Rest(seconds + n * rest.seconds, share + n * rest.share)

    def seconds(self, within_s: ArrayLike, new: Rest = NO_REST) -> NDArray[np.float64]:
        """Device seconds that are needed within this time, or each of these, with those of a new stream; at most."""
        rests = np.array([new, *(rest for _, rest in self._sums.values())])
        needed: NDArray[np.float64] = np.minimum(rests[:, 0], np.multiply.outer(np.maximum(within_s, 0.0), rests[:, 1]))
        return np.asarray(needed.sum(-1))
