"""The texts of accepted streams that are not in the queue yet: work that will come, at the pace of their listeners."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import NO_REST, RestOfText

Seconds = TypeVar("Seconds", float, NDArray[np.float64])


class UnqueuedTexts:
    """The sum over all streams."""

    def __init__(self) -> None:
        self._rests: dict[int, RestOfText] = {}
        self._seconds = self._share = 0.0

    def set(self, stream: int, rest: RestOfText) -> None:
        """Note what is left of the text of a stream."""
        before = self._rests.pop(stream, NO_REST)
        self._seconds += rest.seconds - before.seconds
        self._share += rest.share - before.share
        if rest.seconds > 0.0:
            self._rests[stream] = rest
        if not self._rests:
            self._seconds = self._share = 0.0  # no rounding error remains

    def seconds(self, within_s: Seconds, new: RestOfText = NO_REST) -> Seconds:
        """Device seconds that are needed within this time, with those of a new stream; at most."""
        needed: Seconds = np.minimum(self._seconds + new.seconds, (self._share + new.share) * within_s)
        return needed
