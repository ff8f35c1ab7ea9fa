"""What was accepted and is not in the queue yet, rests of texts and of rows: it comes at the pace of the listeners."""

from math import frexp

import numpy as np
from numpy.typing import NDArray

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

    def seconds(self, within_s: float, new: Rest = NO_REST) -> float:
        """Device seconds that are needed within this time, with those of a new stream; at most."""
        needed_s = min(new.seconds, new.share * within_s)
        for _, (seconds, share) in self._sums.values():
            needed_s += min(seconds, share * within_s)
        return max(0.0, needed_s)

    def seconds_each(self, within_s: NDArray[np.float64], new: Rest) -> NDArray[np.float64]:
        """The same for each of these times."""
        times_s, needed_s = np.maximum(within_s, 0.0), np.zeros(len(within_s))
        if len(times_s):
            for seconds, share in (new, *(rest for _, rest in self._sums.values())):
                needed_s += np.minimum(seconds, share * times_s)
        return needed_s
