"""Sums, values and the busy share of the last seconds. Pure: the time is an argument."""

from collections import Counter, defaultdict, deque
from math import exp

MAX_VALUES = 512  # values kept for percentiles: enough for the 99th, cheap to sort ten times a second
BUSY_OVER_S = 10.0  # time constant of the busy share of a worker; larger is smoother, and reacts later


class Sums:
    """Sums over the last `over_s` seconds, by name."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._entries: deque[tuple[float, str, float]] = deque()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._n: Counter[str] = Counter()

    def add(self, at_s: float, name: str, amount: float = 1.0) -> None:
        self._entries.append((at_s, name, amount))
        self._sums[name] += amount
        self._n[name] += 1

    def forget(self, now: float) -> None:
        while self._entries and self._entries[0][0] < now - self._over_s:
            _, name, amount = self._entries.popleft()
            self._sums[name] -= amount
            self._n[name] -= 1
            if not self._n[name]:  # so that no rounding error remains
                del self._sums[name]

    def __getitem__(self, name: str) -> float:
        return self._sums.get(name, 0.0)

    def ratio(self, part: str, whole: str) -> float | None:
        """None if the whole is zero."""
        return self[part] / self[whole] if self[whole] else None


class Spread:
    """The values of the last `over_s` seconds, at most the last 512."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._values: deque[tuple[float, float]] = deque(maxlen=MAX_VALUES)

    def add(self, at_s: float, value: float) -> None:
        self._values.append((at_s, value))

    def forget(self, now: float) -> None:
        while self._values and self._values[0][0] < now - self._over_s:
            self._values.popleft()

    def values(self) -> list[float]:
        """In ascending order."""
        return sorted(value for _, value in self._values)


class BusyShare:
    """Share of the last seconds in which something ran; older time is forgotten exponentially."""

    def __init__(self, over_s: float, now: float) -> None:
        self._over_s = over_s
        self._at_s = now
        self._busy = False
        self._busy_s = self._known_s = 0.0  # both decayed

    def set(self, now: float, *, busy: bool) -> None:
        """Something starts to run, or nothing runs any more."""
        self._busy_s, self._known_s = self._until(now)
        self._at_s, self._busy = max(now, self._at_s), busy

    def ratio(self, now: float) -> float:
        """From 0 to 1; what runs now counts until now."""
        busy_s, known_s = self._until(now)
        return busy_s / known_s if known_s else 0.0

    def _until(self, now: float) -> tuple[float, float]:
        decay = exp(-max(0.0, now - self._at_s) / self._over_s)
        new_s = self._over_s * (1.0 - decay)
        return self._busy_s * decay + new_s * self._busy, self._known_s * decay + new_s
