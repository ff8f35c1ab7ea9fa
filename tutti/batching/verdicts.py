"""Recent answers to the question whether a typical stream is refused: under overload it is asked all the time."""

from math import inf
from typing import NamedTuple

from tutti.errors import QueueFull

VERDICT_S = 0.02  # for which a verdict holds; larger costs less under overload, but reacts later
MAX_VERDICTS = 32  # that are kept; clients may name any allowed wait


class Question(NamedTuple):
    """What a verdict depends on, beside the state of the queue."""

    checkpoint: str
    max_start_s: float | None = None  # how long the stream may wait
    over_share: bool = False  # of its caller
    crowding: str | None = None  # the caller that would have to make room for it


class Verdict(NamedTuple):
    until_s: float
    refusal: QueueFull | None
    n_starting: int  # streams whose first chunk was not queued yet

    def holds(self, n_starting: int, now: float) -> bool:
        """Whether it still answers the question: streams that have begun since then may have taken the place."""
        return now < self.until_s and (self.refusal is not None or n_starting <= self.n_starting)


class Verdicts:
    """The last verdict on each question."""

    def __init__(self) -> None:
        self._verdicts: dict[Question, Verdict] = {}
        self.refuses_until_s = -inf  # the last refusal holds no longer than this

    def known(self, question: Question, n_starting: int, now: float) -> Verdict | None:
        verdict = self._verdicts.get(question)
        return verdict if verdict and verdict.holds(n_starting, now) else None

    def keep(self, question: Question, refusal: QueueFull | None, n_starting: int, now: float) -> None:
        if len(self._verdicts) >= MAX_VERDICTS:
            self._verdicts.clear()
        if refusal is not None:
            self.refuses_until_s = now + VERDICT_S
        self._verdicts[question] = Verdict(now + VERDICT_S, refusal, n_starting)
