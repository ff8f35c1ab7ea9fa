"""How long a book still takes: an estimate that follows the pace without swinging with each passage."""

from dataclasses import dataclass, field
from math import exp

from tutti.decaying_sum import DecayingSum

FIRST_S = 20.0  # before that, too little is known to say anything
FIRST_STEPS = 3  # passages that must be done
MEMORY_S = 3600.0  # over which the pace is averaged; less follows the load of the machine, more notices it late
SETTLING_S = 60.0  # in which the estimate goes most of the way to a new one; and this share of the time that is left:
SETTLING_SHARE = 0.05


@dataclass(slots=True)
class TimeLeft:
    """Follows one run; `update` gives the time at which it will end."""

    _start: tuple[float, int] | None = None  # when it began, and what was done before
    _last: tuple[float, int] = (0.0, 0)
    _n_steps: int = 0
    _seconds: DecayingSum = field(default_factory=lambda: DecayingSum(MEMORY_S))
    _done: DecayingSum = field(default_factory=lambda: DecayingSum(MEMORY_S))
    _end: float | None = None

    def update(self, now: float, n_done: int, of: int) -> float | None:
        """Take note of how much is done of how much; None while nothing can be said."""
        if self._start is None:
            self._start = self._last = now, n_done
            return None
        passed, more = now - self._last[0], n_done - self._last[1]
        self._last = now, n_done
        self._n_steps += more > 0
        self._seconds.add(passed, now)
        self._done.add(more, now)
        if self._n_steps < FIRST_STEPS or now - self._start[0] < FIRST_S:
            return None
        left_s = self._seconds.at(now) / self._done.at(now) * (of - n_done)
        end = now + left_s
        self._end = end if self._end is None else self._end + self._share(passed, left_s) * (end - self._end)
        return max(now, self._end)

    @staticmethod
    def _share(passed: float, left_s: float) -> float:
        """How much of the way to a new estimate is gone in this time."""
        return 1 - exp(-passed / (SETTLING_S + SETTLING_SHARE * left_s))


def spoken_duration(seconds: float) -> str:
    """A time left, no more precise than it is known."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    if minutes < 60:
        return f"{minutes} min"
    if minutes >= 600:
        return f"{round(minutes / 60)} h"
    hours, rest = divmod(round(minutes, -1), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
