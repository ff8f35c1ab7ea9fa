"""Who had more than its share: between callers, and between the urgent and those who can wait."""

from collections import OrderedDict, deque
from math import exp

WINDOW_S = 10.0
SHARE = 0.05  # of the device in any window, for those who can wait
SLACK = 1.1  # predictions err: aim a little above the share
MEMORY_S = 30.0  # how long the use of the device is remembered
GRACE = 0.25  # of the device beyond an even share: callers differ by chance
HOLD_S = 0.5  # who has only just begun to wait lets the urgent go first
GAP_S = 1.0  # gone for less than this is not gone


class _Use:
    """Device seconds of late: what was used counts less and less, by half in 20 s."""

    __slots__ = ("_at_s", "_seconds")

    def __init__(self) -> None:
        self._seconds, self._at_s = 0.0, 0.0

    def add(self, seconds: float, now: float) -> None:
        self._seconds, self._at_s = self.at(now) + seconds, max(now, self._at_s)

    def at(self, now: float) -> float:
        return self._seconds * exp(-max(0.0, now - self._at_s) / MEMORY_S)


class FairShare:
    """A deficit counter for each caller: device seconds are handed out evenly, and taken off by who used them.

    What a caller owes makes its deadlines count as later by as much. So the order stays that of the deadlines between
    callers who keep to their share, and one who sends most of the traffic stands behind them, but never for ever.
    """

    def __init__(self) -> None:
        self._all = _Use()
        self._used: OrderedDict[str, tuple[_Use, float]] = OrderedDict()  # and when last seen, the most silent first

    def seen(self, caller: str, now: float) -> None:
        """This caller is there; those who were silent for long are forgotten, and forgiven."""
        use, _ = self._used.get(caller) or (_Use(), now)
        self._used[caller] = use, now
        self._used.move_to_end(caller)
        while next(iter(self._used.values()))[1] < now - MEMORY_S:
            self._used.popitem(last=False)

    def spent(self, caller: str, seconds: float, now: float) -> None:
        """This caller used the device for so long."""
        self.seen(caller, now)
        self._used[caller][0].add(seconds, now)
        self._all.add(seconds, now)

    def owes_s(self, caller: str, now: float) -> float:
        """Device seconds beyond an even share and some grace; 0 for who keeps to it."""
        if caller not in self._used:
            return 0.0
        even_s = self._all.at(now) / len(self._used)
        return max(0.0, self._used[caller][0].at(now) - even_s - GRACE * MEMORY_S)


class MinimumShare:
    """Sees to it that those who can wait get at least their share of the device in any window."""

    def __init__(self) -> None:
        self._runs: deque[tuple[float, float]] = deque()  # end, device seconds; one after the other
        self._had_s = 0.0  # of all these
        self._waits_since_s: float | None = None
        self._seen_s = float("-inf")

    def ran(self, seconds: float, now: float) -> None:
        self._runs.append((now, seconds))
        self._had_s += seconds

    def exhausted(self, now: float, other_s: float) -> bool:
        """They wait, and would have had less than their share if another batch of `other_s` ran first."""
        if self._waits_since_s is None or now - self._seen_s > GAP_S:
            self._waits_since_s = now
        self._seen_s = now
        start = now + other_s - WINDOW_S
        while self._runs and self._runs[0][0] <= now - WINDOW_S:
            self._had_s -= self._runs.popleft()[1]
        had = self._had_s
        for end, seconds in self._runs:
            if end - seconds >= start:
                break
            had -= min(seconds, start - (end - seconds))
        # The time before they came counts as if they had had their share, so that their turns come evenly.
        had += SHARE * SLACK * max(0.0, min(self._waits_since_s - start, WINDOW_S))
        return now - self._waits_since_s >= HOLD_S and had < SHARE * SLACK * WINDOW_S
