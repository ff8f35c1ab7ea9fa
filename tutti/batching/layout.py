"""How rows lie in one pass: what a device works through, padding included, and what its seconds are linear in."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Features = tuple[float, float, float, float]


class Extent(NamedTuple):
    """All that a cost needs to know of some rows; grown row by row in constant time."""

    rows: int
    longest: int
    total: int

    def with_row(self, size: int) -> "Extent":
        return Extent(self.rows + 1, size if size > self.longest else self.longest, self.total + size)


def extent(sizes: Sequence[int]) -> Extent:
    return Extent(len(sizes), max(sizes, default=0), sum(sizes))


class Layout(Protocol):
    """How a backend lays rows out."""

    def padded(self, rows: Extent) -> int:
        """Tokens or frames in memory at once."""

    def laid_out(self, sizes: Sequence[int]) -> int:
        """Tokens or frames that these rows become, padding included."""

    def lengths(self, sizes: Sequence[int]) -> list[int]:
        """What each of these rows takes in its pass, padding included."""

    def features(self, rows: Extent) -> Features:
        """What the seconds are linear in."""

    def covers(self, rows: Extent) -> Extent | None:
        """Rows that take at least as long alone as part of `rows`; none if the features say so themselves."""


def _as_it_is(length: int) -> int:
    return length


@dataclass(frozen=True, slots=True)
class Padded:
    """One pass over rows of equal length: lengths are rounded up by `fit`, the number of rows to one of `rows`."""

    fit: Callable[[int], int] = _as_it_is
    rows: tuple[int, ...] = ()

    def _rows(self, n: int) -> int:
        place = bisect_left(self.rows, n)
        return self.rows[place] if place < len(self.rows) else n

    def padded(self, rows: Extent) -> int:
        return self._rows(rows.rows) * self.fit(rows.longest)

    def laid_out(self, sizes: Sequence[int]) -> int:
        return self.padded(extent(sizes))

    def lengths(self, sizes: Sequence[int]) -> list[int]:
        return [self.fit(max(sizes, default=0))] * len(sizes)

    def features(self, rows: Extent) -> Features:
        n, length = self._rows(rows.rows), self.fit(rows.longest)
        return (1.0, n, n * length, length)

    def covers(self, rows: Extent) -> Extent | None:
        return None


class Pass(Protocol):
    """Rows, by their place in the batch, that run together, each as long as the longest of them is padded to."""

    @property
    def members(self) -> tuple[int, ...]: ...

    @property
    def length(self) -> int: ...

    @property
    def padded(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Regrouped:
    """The backend cuts a batch into passes of like lengths itself, so a long row hardly pads a short one."""

    cut: Callable[[Sequence[int]], Sequence[Pass]]

    def padded(self, rows: Extent) -> int:
        return rows.total

    def laid_out(self, sizes: Sequence[int]) -> int:
        return sum(part.padded for part in self.cut(sizes))

    def lengths(self, sizes: Sequence[int]) -> list[int]:
        found = {row: part.length for part in self.cut(sizes) for row in part.members}
        return [found[row] for row in range(len(sizes))]

    def features(self, rows: Extent) -> Features:
        return (1.0, rows.rows, rows.total, rows.longest)

    def covers(self, rows: Extent) -> Extent | None:
        return None


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A lone row has all lanes; of several, each has one lane, so the longest chain of a lane counts."""

    lanes: int = 1

    def padded(self, rows: Extent) -> int:
        return rows.total

    def laid_out(self, sizes: Sequence[int]) -> int:
        return sum(sizes)

    def lengths(self, sizes: Sequence[int]) -> list[int]:
        return list(sizes)

    def features(self, rows: Extent) -> Features:
        if rows.rows == 1:  # its part on every lane, and what cutting it up loses: no row gains more than its lanes
            return (1.0, 1.0, rows.total, rows.total / self.lanes)
        return (1.0, rows.rows, 0.0, max(rows.longest, rows.total / self.lanes))

    def covers(self, rows: Extent) -> Extent | None:
        return Extent(1, rows.longest, rows.longest) if rows.rows > 1 else None
