"""Recent refusals of a typical stream: under overload it is asked all the time whether one would be refused.

That one was accepted is not kept: it takes the place of the next.
"""

from math import inf
from typing import NamedTuple

from tutti.errors import QueueFull

REFUSAL_S = 0.02  # for which a refusal holds; larger costs less under overload, but reacts later


class Question(NamedTuple):
    """What a refusal depends on, beside the state of the queue."""

    model: str
    max_start_s: float | None = None  # how long the stream may wait
    over_share: bool = False  # of its caller
    dominant: str | None = None  # the caller that would have to make room for it


class RefusalCache:
    """The last refusal for each question, and until when it holds."""

    def __init__(self) -> None:
        self._refusals: dict[Question, tuple[float, QueueFull]] = {}
        self.refuses_until_s = -inf  # none holds longer than this

    def known(self, question: Question, now: float) -> QueueFull | None:
        until_s, refusal = self._refusals.get(question, (-inf, None))
        return refusal if now < until_s else None

    def keep(self, question: Question, refusal: QueueFull, now: float) -> None:
        """Note a refusal; clients may name any allowed wait, so those that no longer hold are forgotten."""
        self._refusals = {each: kept for each, kept in self._refusals.items() if now < kept[0]}
        self.refuses_until_s = now + REFUSAL_S
        self._refusals[question] = self.refuses_until_s, refusal
