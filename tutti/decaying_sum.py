"""A sum of seconds that is forgotten with time."""

from math import exp


class DecayingSum:
    """Seconds, forgotten exponentially with the time constant `memory_s`."""

    __slots__ = ("_memory_s", "_seconds", "at_s")

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._seconds = 0.0
        self.at_s = 0.0  # when something was added last

    def add(self, seconds: float, now: float) -> None:
        self._seconds, self.at_s = self.at(now) + seconds, max(now, self.at_s)

    def at(self, now: float) -> float:
        return self._seconds * exp(-max(0.0, now - self.at_s) / self._memory_s)
