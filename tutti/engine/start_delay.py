"""What a new stream waits for before the device: its turn of the event loop, the loop itself, the text front end."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

INTERVAL_S = 0.05  # between two measurements; smaller reacts sooner, and costs more
TURNS = 8  # turns of the loop from a request to its first audio; larger refuses streams sooner
# Of an earlier delay at each measurement: so a lone stall, which the next turns do not repeat, counts once and not in
# each of those turns. Larger remembers a stall longer.
DECAY = 1 - 1 / TURNS
MIN_READING = 8  # texts that make a queue: with fewer, the time between two answers says little about the front end
MIN_ANSWER_S = 0.0005  # a chunk that comes sooner was made together with the one before it
LEARNED_OVER = 32  # answers over which their time is averaged; larger is smoother, and reacts later
PER_TURN = 8  # of those that wait; more makes turns longer, fewer costs more turns


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
    """Measures the delay of a timer again and again, and the pace of the text front end while many texts wait for it.

    Later chunks count like first ones: a stream that has started must go on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.n_starting = 0  # streams whose first chunk is not queued yet, so that no backlog counts them
        self._clock = clock
        self._loop_s = 0.0
        self._n_reading = 0  # streams that wait for the text front end
        self._answer_s = 0.0  # of the front end, between two answers
        self._answered_at = 0.0  # when the last answer came, or the first of those that wait asked
        self._timer: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """What a new stream loses until its first audio, beside its time on the device."""
        stuck_s = self._clock() - self._answered_at if self._n_reading >= MIN_READING else 0.0
        return self.after_reading_s + max(self._n_reading * self._answer_s, stuck_s)

    @property
    def after_reading_s(self) -> float:
        """The same for a stream whose first chunk was read."""
        return TURNS * self._loop_s

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + INTERVAL_S
        self._timer = loop.call_at(due_s, self._measure, loop, due_s)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

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

    def record_loop(self, delay_s: float) -> None:
        """Note one delay; a timer is never exact to the millisecond, so less does not count."""
        self._loop_s = DECAY * self._loop_s + (1 - DECAY) * (delay_s if delay_s > 0.002 else 0.0)

    def _measure(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self.record_loop(loop.time() - due_s)
        self.start()


class Turns:
    """Without it, fifty streams that arrive together are all begun in one turn, and a worker that has ended its batch
    waits for its next one until then.
    """

    def __init__(self, turn_s: float, clock: Callable[[], float] | None = None) -> None:
        self._turn_s = turn_s
        self._clock = clock or time.monotonic
        self._ends_s: float | None = None  # none: nobody has gone on in this turn
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once, but in one of the next turns if this one is used up; first come, first served."""
        now = self._clock()
        if self._ends_s is None:
            self._begin(now)
        elif self._waiting or now >= self._ends_s:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _begin(self, now: float) -> None:
        self._ends_s = now + self._turn_s
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._ends_s = None
        n_gone = 0
        while self._waiting and n_gone < PER_TURN:
            waiting = self._waiting.popleft()
            if not waiting.done():  # else its caller has left
                waiting.set_result(None)
                n_gone += 1
        if n_gone:
            self._begin(self._clock())
