"""The last seconds in numbers: sums that forget, and percentiles. Pure: told the time."""

from collections import Counter, defaultdict, deque

MOST = 512  # values of which percentiles are taken: enough for the 99th, cheap to sort ten times a second


class Sums:
    """What was counted in the last `over_s` seconds, by name."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._facts: deque[tuple[float, str, float]] = deque()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._n: Counter[str] = Counter()

    def add(self, at_s: float, name: str, amount: float = 1.0) -> None:
        self._facts.append((at_s, name, amount))
        self._sums[name] += amount
        self._n[name] += 1

    def forget(self, now: float) -> None:
        while self._facts and self._facts[0][0] < now - self._over_s:
            _, name, amount = self._facts.popleft()
            self._sums[name] -= amount
            self._n[name] -= 1
            if not self._n[name]:  # and no rounding error outlives what it came from
                del self._sums[name]

    def __getitem__(self, name: str) -> float:
        return self._sums.get(name, 0.0)

    def ratio(self, part: str, whole: str) -> float | None:
        """None where there is no whole."""
        return self[part] / self[whole] if self[whole] else None


class Spread:
    """The values of the last `over_s` seconds, at most the last 512 of them."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._values: deque[tuple[float, float]] = deque(maxlen=MOST)

    def add(self, at_s: float, value: float) -> None:
        self._values.append((at_s, value))

    def forget(self, now: float) -> None:
        while self._values and self._values[0][0] < now - self._over_s:
            self._values.popleft()

    def values(self) -> list[float]:
        """From the smallest to the largest."""
        return sorted(value for _, value in self._values)
