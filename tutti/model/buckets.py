"""Which padded shapes exist, and which rows share one: pure arithmetic.

A graph is captured for each shape, so shapes are few; a row is padded to its shape, so shapes are close together.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """Rows (by their place in the batch) that run together, and the shape they are padded to."""

    members: tuple[int, ...]
    n_rows: int
    length: int

    @property
    def padded(self) -> int:
        return self.n_rows * self.length


@dataclass(frozen=True, slots=True)
class Ladder:
    """Allowed lengths: steps of `step`, doubled at every doubling past `fine`, so padding stays below a fixed share."""

    step: int
    fine: int  # up to here the steps are even; a multiple of `step`

    def fit(self, length: int) -> int:
        """The smallest allowed length that holds this one."""
        step, end = self.step, self.fine
        while length > end:
            step, end = 2 * step, 2 * end
        return max(1, -(-length // step)) * step

    def upto(self, longest: int) -> list[int]:
        """All allowed lengths, until one holds `longest`."""
        lengths = [self.step]
        while lengths[-1] < longest:
            lengths.append(self.fit(lengths[-1] + 1))
        return lengths


TOKENS = Ladder(step=16, fine=128)
FRAMES = Ladder(step=16, fine=256)
ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)

# What starting one more group costs, in frames that could have been padding instead: half of a lone 5 s row's time.
GROUP_COST = 200


def groups(lengths: Sequence[int], ladder: Ladder, cap: int, rows: Sequence[int] = ROWS) -> list[Group]:
    """Every row in exactly one group, at the least padded cost; no group passes `cap`, unless a single row does.

    Rows of a cheapest grouping are neighbours once sorted by length, so the best cut is found from the left.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    best: list[tuple[int, int]] = [(0, 0)]  # cheapest cost of the first i rows, and where its last group starts
    for end in range(1, len(order) + 1):
        length = ladder.fit(lengths[order[end - 1]])
        choices = []
        for start in range(end - 1, max(-1, end - 1 - rows[-1]), -1):
            padded = rows[bisect_left(rows, end - start)] * length
            if padded > cap and end - start > 1:
                break
            choices.append((best[start][0] + GROUP_COST + padded, start))
        best.append(min(choices))
    found: list[Group] = []
    end = len(order)
    while end:
        start = best[end][1]
        members = tuple(order[start:end])
        found.append(Group(members, rows[bisect_left(rows, len(members))], ladder.fit(lengths[members[-1]])))
        end = start
    return found[::-1]


def shapes(ladder: Ladder, longest: int, cap: int, rows: Sequence[int] = ROWS) -> list[tuple[int, int]]:
    """(rows, length) of every group that `groups` can make of rows up to `longest`."""
    return [(n, length) for length in ladder.upto(longest) for n in rows if n == 1 or n * length <= cap]
