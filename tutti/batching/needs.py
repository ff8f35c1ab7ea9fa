"""Device seconds that somebody is waiting for, in the order in which they should be had."""

import itertools
from array import array
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Need(NamedTuple):
    """What one job, or a stream whose first job is still to come, will take of the device."""

    rank_s: float  # its deadline, later by what its caller owes: who comes before whom
    serial: int
    seconds: float
    due_s: float
    owes_s: float
    stream: int
    then_s: float  # of the seconds: those of the stages after the next


class Columns(NamedTuple):
    """All needs by rank, to be asked about at once. They look at the lists themselves: drop them before a change."""

    rank_s: NDArray[np.float64]
    seconds: NDArray[np.float64]
    due_s: NDArray[np.float64]
    streams: NDArray[np.int64]


class Needs:
    """Sorted by rank, need by need to find one, column by column to add thousands of them up."""

    def __init__(self) -> None:
        self._needs: list[Need] = []
        self._rank_s, self._seconds, self._due_s, self._streams = array("d"), array("d"), array("d"), array("q")
        self._serial = itertools.count()

    def note(self, due_s: float, owes_s: float, seconds: float, stream: int, then_s: float) -> Need:
        need = Need(due_s + owes_s, next(self._serial), seconds, due_s, owes_s, stream, then_s)
        at = bisect_left(self._needs, need)
        self._needs.insert(at, need)
        self._rank_s.insert(at, need.rank_s)
        self._seconds.insert(at, seconds)
        self._due_s.insert(at, due_s)
        self._streams.insert(at, stream)
        return need

    def strike(self, need: Need) -> None:
        at = bisect_left(self._needs, need)
        del self._needs[at], self._rank_s[at], self._seconds[at], self._due_s[at], self._streams[at]

    def columns(self) -> Columns:
        return Columns(*map(np.asarray, (self._rank_s, self._seconds, self._due_s, self._streams)))
