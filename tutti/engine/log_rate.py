"""Keep the log readable and cheap under load: lines about batches and chunks are limited per second."""

import logging
from collections.abc import Callable
from time import monotonic

LINES_PER_S = 50  # of each kind; a line costs 20 microseconds, and nobody reads more


class LogRate:
    """Lets so many lines a second pass, and reports how many it left out."""

    def __init__(
        self, log: logging.Logger, kind: str, per_s: int = LINES_PER_S, clock: Callable[[], float] = monotonic
    ) -> None:
        self._log = log
        self._kind = kind
        self._per_s = per_s
        self._clock = clock
        self._second = 0
        self._n_lines = 0

    def passes(self) -> bool:
        """Whether one more line may be logged now."""
        second = int(self._clock())
        if second != self._second:
            left_out = self._n_lines - self._per_s
            self._second, self._n_lines = second, 0
            if left_out > 0:
                self._log.info("%s lines left out=%d in one second", self._kind, left_out)
        self._n_lines += 1
        return self._n_lines <= self._per_s
