"""Which padded shapes exist, and which rows share one: pure arithmetic.

A CUDA graph is captured for each shape, so shapes are few; a row is padded to its shape, so shapes are close together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

# Padded frames of one pass, by device. More would only need more memory: a CUDA device is fully busy long before, and a
# processor outgrows its caches. The engine and the PyTorch backend both read this limit.
MAX_PADDED_FRAMES = {"cuda": 32_768, "cpu": 2_000}


@dataclass(frozen=True, slots=True)
class Group:
    """Rows (by index in the batch) that run together, and the shape they are padded to."""

    members: tuple[int, ...]
    n_rows: int
    length: int

    @property
    def padded(self) -> int:
        return self.n_rows * self.length


@dataclass(frozen=True, slots=True)
class Ladder:
    """Allowed lengths: multiples of `step`, which doubles at every doubling past `linear_to`.

    So padding stays below a fixed share of a row.
    """

    step: int
    linear_to: int  # up to here the steps are equal; a multiple of `step`

    def fit(self, length: int) -> int:
        """The smallest allowed length that holds this one."""
        step, end = self.step, self.linear_to
        while length > end:
            step, end = 2 * step, 2 * end
        return max(1, -(-length // step)) * step

    def up_to(self, longest: int) -> list[int]:
        """All allowed lengths, until one holds `longest`."""
        lengths = [self.step]
        while lengths[-1] < longest:
            lengths.append(self.fit(lengths[-1] + 1))
        return lengths


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of one stage, and the fixed cost of a group, in padded values that take as long."""

    rows: tuple[int, ...]
    ladder: Ladder
    longest: int  # rows up to this length have a captured shape; 0: none is captured
    per_group: int
    per_step: int = 0  # for each value of a group's length: an LSTM takes as many steps for any number of rows

    def cost(self, n_rows: int, length: int) -> int:
        return self.per_group + (n_rows + self.per_step) * length

    def group(self, lengths: Sequence[int], cap: int) -> list[Group]:
        """Put each row in one group, at the least total cost; no group exceeds `cap`, except for a single row.

        In the best grouping the rows of a group are neighbours in order of length, so dynamic programming over the
        sorted rows finds it.
        """
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        fits = [self.ladder.fit(lengths[i]) for i in order]
        # For the first i rows: the least cost, and the number of rows in its last group.
        costs, last = [0.0], [0]
        for end, length in enumerate(fits, 1):
            # Fill the shape: fewer rows would cost the same, and leave more to the groups before.
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
        groups: list[Group] = []
        end = len(order)
        while end:
            start = max(0, end - last[end])
            groups.append(Group(tuple(order[start:end]), last[end], fits[end - 1]))
            end = start
        return groups[::-1]

    def captured_shapes(self, cap: int) -> list[tuple[int, int]]:
        """(rows, length) of every group that `group` can make of rows up to `longest`."""
        lengths = self.ladder.up_to(self.longest) if self.longest else []
        return [(n, length) for length in lengths for n in self.rows if n == 1 or n * length <= cap]


@dataclass(frozen=True, slots=True)
class Plan:
    """The shapes of the three passes: token encoder, pitch and energy curves, vocoder."""

    tokens: Shapes
    curves: Shapes
    frames: Shapes


ROWS = (1, 2, 4, 8, 16, 32, 64)  # rows of a shape; more kinds pad less, but each is one more CUDA graph
FEW_ROWS = (1, 4, 16, 64)
# Costs as fitted on one H200 by benchmarks/gpu.py: a group of frames takes about as long as 4,000 padded frames, since
# our kernels skip padding. A processor computes padding like everything else.
TOKENS = Shapes(ROWS, Ladder(16, 128), 512, per_group=2000, per_step=100)
CURVES = Shapes(FEW_ROWS, Ladder(32, 128), 1024, per_group=4000, per_step=32)
FRAMES = Shapes(ROWS, Ladder(32, 128), 1024, per_group=4400)
ON_CPU = Shapes(ROWS, Ladder(16, 256), 0, per_group=50)
PLANS = {
    "full": Plan(TOKENS, CURVES, FRAMES),
    "reduced": Plan(
        replace(TOKENS, rows=FEW_ROWS, ladder=Ladder(32, 64), longest=256),
        replace(CURVES, ladder=Ladder(64, 128), longest=512),
        replace(FRAMES, rows=FEW_ROWS, ladder=Ladder(64, 128), longest=512),
    ),
    "off": Plan(replace(TOKENS, longest=0), replace(CURVES, longest=0), replace(FRAMES, longest=0)),
    "plain": Plan(replace(TOKENS, longest=0), replace(CURVES, longest=0), replace(FRAMES, longest=0)),
    "cpu": Plan(ON_CPU, ON_CPU, replace(ON_CPU, rows=(1, 2))),  # more rows of frames outgrow its caches
}
