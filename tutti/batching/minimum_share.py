"""A minimum share of the device for late and for bulk work."""

from collections import deque

WINDOW_S = 10.0  # window of the minimum share
MIN_SHARE = 0.05 * 1.1  # of the device in any window; a tenth above the promised 5 %, since predictions err
HOLD_S = 0.5  # minimum wait of late or bulk work before it may claim its minimum share
GAP_S = 1.0  # a queue that was empty for less than this counts as waiting all the time


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
