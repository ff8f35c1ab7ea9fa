"""Whether the server's process answers requests for speech itself: while few streams run, that saves two hops each."""

import multiprocessing
import time
from collections.abc import Callable
from ctypes import c_double

MAX_DIRECT = 4  # streams at once up to which it does; more would take computing from the engine
# For which it does not after more streams than that were there. Longer leaves connections where they are between two
# bursts, shorter serves a lone client sooner after one.
BUSY_S = 2.0


class DirectAnswers:
    """Shared by the server's process, which counts its streams, and the HTTP processes, which hand connections on.

    It goes to an HTTP process as an argument of its main function; nowhere else can it be pickled.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy_until_s = multiprocessing.get_context("spawn").RawValue(c_double, 0.0)

    @property
    def are_allowed(self) -> bool:
        return self._clock() >= self._busy_until_s.value

    def count(self, n_streams: int) -> None:
        """Note that so many streams run at once."""
        if n_streams > MAX_DIRECT:
            self._busy_until_s.value = self._clock() + BUSY_S
