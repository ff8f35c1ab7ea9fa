"""Which padded shapes exist, and which rows share one: pure arithmetic.

A graph is captured for each shape, so shapes are few; a row is padded to its shape, so shapes are close together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf


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


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of one stage, and what a group costs beside its padded values, in values that could be padding."""

    rows: tuple[int, ...]
    ladder: Ladder
    longest: int  # rows up to here find their shape captured; 0: nothing is captured
    per_group: int
    per_step: int = 0  # for each value of a group's length: an LSTM takes as many steps, however many rows it has

    def cost(self, n_rows: int, length: int) -> int:
        return self.per_group + (n_rows + self.per_step) * length

    def group(self, lengths: Sequence[int], cap: int) -> list[Group]:
        """Every row in exactly one group, at the least cost; no group passes `cap`, unless a single row does.

        Rows of a cheapest grouping are neighbours once sorted by length, so the best cut is found from the left.
        """
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        fits = [self.ladder.fit(lengths[i]) for i in order]
        # Of the first i rows: the least cost, and the rows of its last group.
        costs, last = [0.0], [0]
        for end, length in enumerate(fits, 1):
            # As many rows as a shape holds: fewer would cost the same, and leave more to the groups before.
            least, best_rows = inf, self.rows[0]
            for n_rows in self.rows:
                if n_rows * length > cap and n_rows > self.rows[0]:
                    break
                cost = costs[max(0, end - n_rows)] + self.cost(n_rows, length)
                if cost <= least:
                    least, best_rows = cost, n_rows
                if n_rows >= end:
                    break  # it holds them all
            costs.append(least)
            last.append(best_rows)
        found: list[Group] = []
        end = len(order)
        while end:
            start = max(0, end - last[end])
            found.append(Group(tuple(order[start:end]), last[end], fits[end - 1]))
            end = start
        return found[::-1]

    def captured(self, cap: int) -> list[tuple[int, int]]:
        """(rows, length) of every group that `group` can make of rows up to `longest`."""
        lengths = self.ladder.upto(self.longest) if self.longest else []
        return [(n, length) for length in lengths for n in self.rows if n == 1 or n * length <= cap]


@dataclass(frozen=True, slots=True)
class Plan:
    """The shapes of the three steps: read tokens, intone frames, sound them."""

    tokens: Shapes
    curves: Shapes
    frames: Shapes


ROWS = (1, 2, 4, 8, 16, 32, 64)
FEW = (1, 4, 16, 64)
# Costs as fitted on one H200 by benchmarks/gpu.py: a group of frames takes about as long as 4,000 padded ones, since
# our kernels skip padding. A processor computes padding as it computes all else.
TOKENS = Shapes(ROWS, Ladder(16, 128), 512, per_group=2000, per_step=100)
CURVES = Shapes(FEW, Ladder(32, 128), 1024, per_group=4000, per_step=32)
FRAMES = Shapes(ROWS, Ladder(32, 128), 1024, per_group=4400)
ON_CPU = Shapes(ROWS, Ladder(16, 256), 0, per_group=50)
PLANS = {
    "full": Plan(TOKENS, CURVES, FRAMES),
    "reduced": Plan(
        replace(TOKENS, rows=FEW, ladder=Ladder(32, 64), longest=256),
        replace(CURVES, ladder=Ladder(64, 128), longest=512),
        replace(FRAMES, rows=FEW, ladder=Ladder(64, 128), longest=512),
    ),
    "off": Plan(replace(TOKENS, longest=0), replace(CURVES, longest=0), replace(FRAMES, longest=0)),
    "cpu": Plan(ON_CPU, ON_CPU, replace(ON_CPU, rows=(1, 2))),  # more rows of frames than that outgrow its caches
}
