"""Share the device: fairly between callers, with a minimum for late and for bulk work."""

from collections import OrderedDict, deque
from math import inf

from tutti.decaying_sum import DecayingSum

WINDOW_S = 10.0  # window of the minimum share
MIN_SHARE = 0.05 * 1.1  # of the device in any window; a tenth above the promised 5 %, since predictions err
MEMORY_S = 30.0  # time constant with which past use of the device is forgotten; larger punishes a burst longer
GRACE = 0.25  # share of the device that a caller may use beyond an even share; smaller reacts to chance differences
DEMOTED_S = 2.0  # for which a caller that had to make room counts as over its share; larger leaves it gaps for longer
HOLD_S = 0.5  # minimum wait of late or bulk work before it may claim its minimum share
GAP_S = 1.0  # a queue that was empty for less than this counts as waiting all the time


class FairShare:
    """Tells which callers recently used more than an even share of the device, or had to make room for another one.

    Callers within their share keep the order of their deadlines; the jobs of one over its share count as late.
    """

    def __init__(self) -> None:
        self._total = DecayingSum(MEMORY_S)
        self._used: OrderedDict[str, tuple[DecayingSum, float]] = OrderedDict()  # and when last seen, oldest first
        self._heavy: set[str] = set()  # callers that used more than the grace at their last charge: a few at most
        self._demoted: dict[str, float] = {}  # callers that had to make room, and until when

    def add_caller(self, caller: str, now: float) -> None:
        """Count this caller as present; forget callers without requests for MEMORY_S."""
        used, _ = self._used.get(caller) or (DecayingSum(MEMORY_S), now)
        self._used[caller] = used, now
        self._used.move_to_end(caller)
        while next(iter(self._used.values()))[1] < now - MEMORY_S:
            gone, (used, _) = self._used.popitem(last=False)
            self._total.add(-used.at(now), now)
            self._heavy.discard(gone)

    @property
    def n_callers(self) -> int:
        """That had requests in the last MEMORY_S."""
        return len(self._used)

    def demote(self, caller: str, now: float) -> None:
        """Count this caller as over its share for a moment: another one that has no stream needs its place."""
        self._demoted = {other: until_s for other, until_s in self._demoted.items() if now < until_s}
        self._demoted[caller] = now + DEMOTED_S

    def charge(self, caller: str, seconds: float, now: float) -> None:
        """Charge device seconds to this caller."""
        self.add_caller(caller, now)
        used = self._used[caller][0]
        used.add(seconds, now)
        self._total.add(seconds, now)
        (self._heavy.add if used.at(now) > GRACE * MEMORY_S else self._heavy.discard)(caller)

    def over(self, now: float) -> set[str]:
        """The callers of whom `is_over` is true; use is forgotten, so none that was not heavy at its last charge."""
        return {caller for caller in (*self._heavy, *self._demoted) if self.is_over(caller, now)}

    def is_over(self, caller: str, now: float) -> bool:
        """Whether a caller used more of the device than an even share and the grace, or had to make room."""
        if now < self._demoted.get(caller, -inf):
            return True
        if caller not in self._used:
            return False
        even_s = self._total.at(now) / len(self._used)
        return self._used[caller][0].at(now) > even_s + GRACE * MEMORY_S


class MinimumShare:
    """Ageing: lets late or bulk work claim its minimum share of the device in any window."""

    def __init__(self) -> None:
        self._runs: deque[tuple[float, float]] = deque()  # end, device seconds; in order
        self._used_s = 0.0  # sum over these runs
        self._waiting_since_s: float | None = None
        self._last_checked_s = float("-inf")

    def charge(self, seconds: float, now: float) -> None:
        self._runs.append((now, seconds))
        self._used_s += seconds

    def is_due(self, now: float, other_s: float) -> bool:
        """Whether the waiting work would miss its share if another batch of `other_s` ran first."""
        if self._waiting_since_s is None or now - self._last_checked_s > GAP_S:
            self._waiting_since_s = now
        self._last_checked_s = now
        start = now + other_s - WINDOW_S
        while self._runs and self._runs[0][0] <= now - WINDOW_S:
            self._used_s -= self._runs.popleft()[1]
        used = self._used_s
        for end, seconds in self._runs:
            if end - seconds >= start:
                break
            used -= min(seconds, start - (end - seconds))
        # The time before the work arrived counts as served, else all of its share would be due at once.
        used += MIN_SHARE * max(0.0, min(self._waiting_since_s - start, WINDOW_S))
        return now - self._waiting_since_s >= HOLD_S and used < MIN_SHARE * WINDOW_S
