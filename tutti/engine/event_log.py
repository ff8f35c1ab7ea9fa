"""The last moments of the batching, each noted as a small tuple where it happens, told only to those who watch."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic
from typing import Literal, NamedTuple

from tutti.batching.job import Batch

Outcome = Literal["done", "failed", "lost"]
Event = Literal["spoken", "failed", "cancelled", "rejected", "underrun", "retried"]
LENGTH = 2048  # moments; a batch of 64 rows is some 13 kB, one of a processor below 1 kB


class Began(NamedTuple):
    """A batch went to its worker."""

    at_s: float
    number: int
    worker: str
    batch: Batch
    streams: Sequence[int]  # whose each of its rows is


class Ended(NamedTuple):
    """It came back; without seconds where it broke."""

    at_s: float
    number: int
    took_s: float | None
    outcome: Outcome


class First(NamedTuple):
    """The first audio of a stream was handed over."""

    at_s: float
    after_s: float
    in_time: bool


class Heard(NamedTuple):
    """A chunk was handed over."""

    at_s: float
    audio_s: float
    in_time: bool


class Happened(NamedTuple):
    """Something that is only counted."""

    at_s: float
    event: Event
    n: int


class Turned(NamedTuple):
    """Another policy was put in force."""

    at_s: float
    before: str
    policy: str


Moment = Began | Ended | First | Heard | Happened | Turned


class EventLog:
    """A ring: the newest moment pushes out the oldest. To note one costs an append, whoever watches."""

    def __init__(self, length: int = LENGTH, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.began_s = clock()
        self.n_noted = 0
        self._moments: deque[Moment] = deque(maxlen=length)

    def note(self, moment: Moment) -> None:
        self.n_noted += 1
        self._moments.append(moment)

    def since(self, n: int) -> list[Moment]:
        """Those after the first `n` that were ever noted, oldest first, as far as they are still there."""
        n_new = min(self.n_noted - n, len(self._moments))
        return list(islice(reversed(self._moments), n_new))[::-1]
