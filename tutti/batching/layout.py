"""How rows lie in one pass: what the device computes, padding included, and the features of its cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Features = tuple[float, float, float, float]


class RowSizes(NamedTuple):
    """What a cost model needs to know of some rows; adding a row takes constant time."""

    n_rows: int
    longest: int
    total: int

    def with_row(self, size: int) -> "RowSizes":
        return RowSizes(self.n_rows + 1, size if size > self.longest else self.longest, self.total + size)


def row_sizes(sizes: Sequence[int]) -> RowSizes:
    return RowSizes(len(sizes), max(sizes, default=0), sum(sizes))


class Layout(Protocol):
    """How a backend arranges the rows of a batch."""

    def in_memory(self, rows: RowSizes) -> int:
        """Tokens or frames held in memory at once."""

    def padded_size(self, sizes: Sequence[int]) -> int:
        """Tokens or frames that these rows become, padding included."""

    def padded_lengths(self, sizes: Sequence[int]) -> list[int]:
        """Length of each row in its pass, padding included."""

    def features(self, rows: RowSizes) -> Features:
        """What the seconds of a batch are linear in."""

    def lower_bound(self, rows: RowSizes) -> RowSizes | None:
        """Rows that cannot take longer than `rows`; none if the features imply it."""


class Pass(Protocol):
    """Rows, by their index in the batch, that run together and are padded to one length."""

    @property
    def members(self) -> tuple[int, ...]: ...

    @property
    def length(self) -> int: ...

    @property
    def padded(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Regrouped:
    """The backend splits a batch into passes of similar length, so a long row hardly pads a short one."""

    split: Callable[[Sequence[int]], Sequence[Pass]]

    def in_memory(self, rows: RowSizes) -> int:
        return rows.total

    def padded_size(self, sizes: Sequence[int]) -> int:
        return sum(part.padded for part in self.split(sizes))

    def padded_lengths(self, sizes: Sequence[int]) -> list[int]:
        length_of = {row: part.length for part in self.split(sizes) for row in part.members}
        return [length_of[row] for row in range(len(sizes))]

    def features(self, rows: RowSizes) -> Features:
        return (1.0, rows.n_rows, rows.total, rows.longest)

    def lower_bound(self, rows: RowSizes) -> RowSizes | None:
        return None


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A lone row uses all cores; several rows use one core each, so the longest chain on one core counts."""

    cores: int = 1

    def in_memory(self, rows: RowSizes) -> int:
        return rows.total

    def padded_size(self, sizes: Sequence[int]) -> int:
        return sum(sizes)

    def padded_lengths(self, sizes: Sequence[int]) -> list[int]:
        return list(sizes)

    def features(self, rows: RowSizes) -> Features:
        if rows.n_rows == 1:  # the third feature is what splitting a row over the cores loses
            return (1.0, 1.0, rows.total, rows.total / self.cores)
        return (1.0, rows.n_rows, 0.0, max(rows.longest, rows.total / self.cores))

    def lower_bound(self, rows: RowSizes) -> RowSizes | None:
        return RowSizes(1, rows.longest, rows.longest) if rows.n_rows > 1 else None
