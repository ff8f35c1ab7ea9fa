"""Which requests begin in a turn of the event loop, and which are refused because the loop is behind."""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tutti.errors import QueueFull

# Requests that may begin in one turn of the event loop. More would delay the streams that are playing.
MAX_STARTS_PER_TURN = 8
# After a turn of this length only one more request begins, so that those under way end first. An answer takes some 25
# turns to its first audio: larger starts all of them later, smaller leaves the device with small batches.
LONG_TURN_S = 0.02
MIN_RUNNING = 32  # requests under way; with fewer it is not they that make a turn long
MAX_START_WAIT_S = 0.5  # that a stream may wait here, of the 2 s that it may wait to start; larger accepts more
PATIENT_SHARE = 0.5  # the same for others, as a share of the time that they may wait to start
FIRST_START_S = 0.005  # of the event loop for each request, until that is measured
LEARNED_OVER = 32  # requests over which it is averaged; larger is smoother, and reacts later
_WHOLE = re.compile(rb'"stream"\s*:\s*false')  # in a text its quotes would be escaped
MAX_LEARNED_S = 0.1  # of a turn: a lone stall of the process says nothing about the next turns


class StartRule:
    """The decision: how many requests begin in a turn, and how long a new one would wait. Pure."""

    def __init__(self) -> None:
        self.start_s = FIRST_START_S  # seconds between two starts while requests wait

    def n_starts(self, turn_s: float, n_running: int) -> int:
        """How many requests may begin after a turn that took so long, while so many are under way."""
        return 1 if turn_s >= LONG_TURN_S and n_running >= MIN_RUNNING else MAX_STARTS_PER_TURN

    def learn(self, turn_s: float, n_starts: int) -> None:
        """Note a turn that began while requests waited, and how many of them begin in it."""
        self.start_s += (min(turn_s, MAX_LEARNED_S) - n_starts * self.start_s) / LEARNED_OVER

    def wait_s(self, n_ahead: int, n_others: int) -> float:
        """How long a request waits behind those of its kind, while the other kind has every second place."""
        return (n_ahead + min(n_ahead, n_others)) * self.start_s


class StartQueue:
    """Requests that have arrived but not begun: streams, and those that may wait longer, which take turns.

    A request that waits costs nothing; one that has begun takes its part of every turn of the event loop. So the time
    in this queue is what admission control cannot see, and new requests are refused if it would be too long.
    """

    def __init__(self, refusal: type[QueueFull] = QueueFull, clock: Callable[[], float] = time.monotonic) -> None:
        self.rule = StartRule()
        self._refusal = refusal
        self._clock = clock
        self._streams: deque[asyncio.Future[None]] = deque()
        self._patient: deque[asyncio.Future[None]] = deque()
        self._n_left = MAX_STARTS_PER_TURN  # that may begin in this turn
        self._turn_at: float | None = None  # when this turn began; none: nothing has begun in it or in the last one
        self._patient_next = False
        self._n_running = 0  # requests that have begun and not ended

    @property
    def refusal(self) -> QueueFull | None:
        """Why a new stream would be refused; none if it would not."""
        n_ahead, n_others = len(self._streams), len(self._patient)
        return self._full(n_ahead, n_others) if self.rule.wait_s(n_ahead, n_others) > MAX_START_WAIT_S else None

    @asynccontextmanager
    async def turn(self, max_wait_s: float = MAX_START_WAIT_S) -> AsyncIterator[None]:
        """Enter when the request may begin; raise QueueFull if that would take longer than `max_wait_s`."""
        await self._wait_turn(max_wait_s)
        self._n_running += 1
        try:
            yield
        finally:
            self._n_running -= 1

    async def _wait_turn(self, max_wait_s: float) -> None:
        is_patient = max_wait_s > MAX_START_WAIT_S
        queue, others = (self._patient, self._streams) if is_patient else (self._streams, self._patient)
        if self.rule.wait_s(len(queue), len(others)) > max_wait_s:
            raise self._full(len(queue), len(others))
        if self._turn_at is None:
            self._turn_at = self._clock()
            asyncio.get_running_loop().call_soon(self._turn)
        if self._n_left and not queue and not others:
            self._n_left -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        await turn

    def _turn(self) -> None:
        """Let some of the waiting requests begin; called once in every turn of the loop while there are any."""
        assert self._turn_at is not None
        now = self._clock()
        turn_s, self._turn_at = now - self._turn_at, now
        has_begun = self._n_left < MAX_STARTS_PER_TURN
        self._n_left = n_starts = self.rule.n_starts(turn_s, self._n_running)
        had_waiting = bool(self._streams or self._patient)
        while self._n_left and (turn := self._next()):
            turn.set_result(None)
            self._n_left -= 1
        if had_waiting:
            self.rule.learn(turn_s, n_starts - self._n_left)
        if had_waiting or has_begun:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._turn_at, self._n_left = None, MAX_STARTS_PER_TURN

    def _next(self) -> asyncio.Future[None] | None:
        """The next request to begin; one whose task was cancelled is dropped."""
        while self._streams or self._patient:
            self._patient_next = bool(self._patient) and (self._patient_next or not self._streams)
            turn = (self._patient if self._patient_next else self._streams).popleft()
            if not turn.done():
                self._patient_next = not self._patient_next
                return turn
        return None

    def _full(self, n_ahead: int, n_others: int) -> QueueFull:
        wait_s = self.rule.wait_s(n_ahead, n_others)
        return self._refusal("too many requests at once; try again later", retry_after_s=max(1.0, round(wait_s, 1)))


def is_stream(path: str, body: bytes) -> bool:
    """Whether a request asks for audio as it is made, by its path and its JSON that is not parsed yet."""
    return path.endswith("/stream") or (path == "/v1/audio/speech" and not _WHOLE.search(body))
