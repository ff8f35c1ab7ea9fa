"""What a new stream waits for before the device: the event loop and the text front end."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tutti.admission.loop_budget import LoopBudget

MIN_READING = 8  # texts that make a queue: with fewer, the time between two answers says little about the front end
MIN_ANSWER_S = 0.0005  # a chunk that comes sooner was made together with the one before it
LEARNED_OVER = 32  # answers over which their time is averaged; larger is smoother, and reacts later


class Start:
    """A stream from the moment at which it may begin until its first chunk is queued: it counts as starting."""

    def __init__(self, delay: "StartDelay") -> None:
        self.n_before = delay.n_starting
        self._delay = delay
        self._has_ended = False
        delay.n_starting += 1

    def reading(self) -> AbstractContextManager[None]:
        """While entered, the stream waits for the text front end."""
        return self._delay.reading()

    def end(self) -> None:
        """May be called again."""
        self._delay.n_starting -= not self._has_ended
        self._has_ended = True


class StartDelay:
    """Counts the streams that start, and measures the pace of the text front end while many texts wait for it.

    Later chunks count like first ones: a stream that has started must go on.
    """

    def __init__(self, loop_budget: LoopBudget, clock: Callable[[], float]) -> None:
        self._loop_budget = loop_budget
        self.n_starting = 0  # streams whose first chunk is not queued yet, so that no backlog counts them
        self._clock = clock
        self._n_reading = 0  # streams that wait for the text front end
        self._answer_s = 0.0  # of the front end, between two answers
        self._answered_at = 0.0  # when the last answer came, or the first of those that wait asked

    @property
    def seconds(self) -> float:
        """What a new stream loses until its first audio, beside its time on the device."""
        stuck_s = self._clock() - self._answered_at if self._n_reading >= MIN_READING else 0.0
        return self.after_reading_s + max(self._n_reading * self._answer_s, stuck_s)

    @property
    def after_reading_s(self) -> float:
        """The same for a stream whose first chunk was read."""
        return self._loop_budget.delay_s

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While entered, a stream waits for the text front end."""
        asked_at = self._clock()
        if self._n_reading == 0:
            self._answered_at = asked_at
        self._n_reading += 1
        try:
            yield
            now = self._clock()
            if now - asked_at > MIN_ANSWER_S:
                if self._n_reading >= MIN_READING:
                    self._answer_s += (now - self._answered_at - self._answer_s) / LEARNED_OVER
                self._answered_at = now
        finally:
            self._n_reading -= 1
