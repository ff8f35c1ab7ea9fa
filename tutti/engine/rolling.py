"""Sums and values over the last seconds. Pure: the time is an argument."""

from collections import Counter, defaultdict, deque

MAX_VALUES = 512  # values kept for percentiles: enough for the 99th, cheap to sort ten times a second


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
