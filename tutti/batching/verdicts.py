"""Recent refusals of a typical stream: under overload it is asked all the time whether one would be refused.

That one was accepted is not kept: it takes the place of the next.
"""

from math import inf
from typing import NamedTuple

from tutti.errors import QueueFull

VERDICT_S = 0.02  # for which a refusal holds; larger costs less under overload, but reacts later
MAX_VERDICTS = 32  # that are kept; clients may name any allowed wait


class Question(NamedTuple):
    """What a refusal depends on, beside the state of the queue."""

    checkpoint: str
    max_start_s: float | None = None  # how long the stream may wait
    over_share: bool = False  # of its caller
    crowding: str | None = None  # the caller that would have to make room for it


class Verdicts:
    """The last refusal for each question, and until when it holds."""

    def __init__(self) -> None:
        self._refusals: dict[Question, tuple[float, QueueFull]] = {}
        self.refuses_until_s = -inf  # none holds longer than this

    def known(self, question: Question, now: float) -> QueueFull | None:
        until_s, refusal = self._refusals.get(question, (-inf, None))
        return refusal if now < until_s else None

    def keep(self, question: Question, refusal: QueueFull, now: float) -> None:
        if len(self._refusals) >= MAX_VERDICTS:
            self._refusals.clear()
        self.refuses_until_s = now + VERDICT_S
        self._refusals[question] = self.refuses_until_s, refusal
