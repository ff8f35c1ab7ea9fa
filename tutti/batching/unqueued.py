"""What was accepted and is not in the queue yet, rests of texts and of rows: it comes at the pace of the listeners."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import NO_REST, Job, Rest

Seconds = TypeVar("Seconds", float, NDArray[np.float64])


class UnqueuedWork:
    """The sum over all streams."""

    def __init__(self) -> None:
        self._rests: dict[int | Job, Rest] = {}  # of the text of a stream, of the row of a job
        self._seconds = self._share = 0.0

    def set(self, of: int | Job, rest: Rest) -> None:
        """Note what is left of the text of a stream, or of the row of a job."""
        before = self._rests.pop(of, NO_REST)
        self._seconds += rest.seconds - before.seconds
        self._share += rest.share - before.share
        if rest.seconds > 0.0:
            self._rests[of] = rest
        if not self._rests:
            self._seconds = self._share = 0.0  # no rounding error remains

    def seconds(self, within_s: Seconds, new: Rest = NO_REST) -> Seconds:
        """Device seconds that are needed within this time, with those of a new stream; at most."""
        needed: Seconds = np.minimum(self._seconds + new.seconds, (self._share + new.share) * within_s)
        return needed
