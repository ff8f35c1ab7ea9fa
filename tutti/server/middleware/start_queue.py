"""Which requests begin in a turn of the event loop, and which are refused because the loop is behind."""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import Message, Send

from tutti.errors import QueueFull

# Requests that may begin in one turn of the event loop. More would delay the streams that are playing.
MAX_STARTS_PER_TURN = 8
# After a turn with so much computing only one more request begins, so that those under way end first. An answer takes
# some 25 turns to its first audio: larger starts all of them later, smaller leaves the device with small batches.
LONG_TURN_S = 0.02
MIN_STARTING = 32  # requests that have begun and have no answer; with fewer it is not they that make a turn long
MAX_START_WAIT_S = 0.5  # that a stream may wait here, of the 2 s that it may wait to start; larger accepts more
BURST_S = 0.35  # a queue whose first request has waited for less is a burst, in which nobody is refused
PATIENT_SHARE = 0.5  # the same for others, as a share of the time that they may wait to start
FIRST_START_S = 0.005  # of the event loop for each request, until that is measured
LEARNED_OVER = 32  # requests over which it is averaged; larger is smoother, and reacts later
_WHOLE = re.compile(rb'"stream"\s*:\s*false')  # in a text its quotes would be escaped
MAX_LEARNED_S = 0.1  # of a turn: a lone stall of the process says nothing about the next turns


class StartRule:
    """The decision: how many requests begin in a turn, and how long a new one would wait. Pure."""

    def __init__(self) -> None:
        self.start_s = FIRST_START_S  # seconds between two starts while requests wait

    def n_starts(self, busy_s: float, n_starting: int) -> int:
        """How many requests may begin after a turn of so much computing, while so many others have no answer yet."""
        return 1 if busy_s >= LONG_TURN_S and n_starting >= MIN_STARTING else MAX_STARTS_PER_TURN

    def learn(self, turn_s: float, n_starts: int) -> None:
        """Note a turn that began while requests waited, and how many of them begin in it."""
        self.start_s += (min(turn_s, MAX_LEARNED_S) - n_starts * self.start_s) / LEARNED_OVER

    def wait_s(self, n_ahead: int, n_others: int, waited_s: float) -> float:
        """How long a request waits behind those of its kind, while the other kind has every second place.

        `waited_s`: how long the first of its kind has waited.
        """
        return (n_ahead + min(n_ahead, n_others)) * self.start_s if waited_s >= BURST_S else 0.0


Arrivals = deque[tuple[float, asyncio.Future[None]]]  # when each request arrived, and its turn


class StartQueue:
    """Requests that have arrived but not begun: streams, and those that may wait longer, which take turns.

    A request that waits costs nothing; one that has begun takes its part of every turn of the event loop. So the time
    in this queue is what admission control cannot see, and new requests are refused if it would be too long.
    """

    def __init__(
        self,
        refusal: type[QueueFull] = QueueFull,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.rule = StartRule()
        self._refusal = refusal
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._streams: Arrivals = deque()
        self._patient: Arrivals = deque()
        self._n_left = MAX_STARTS_PER_TURN  # that may begin in this turn
        self._turn_at: float | None = None  # when this turn began; none: nothing has begun in it or in the last one
        self._cpu_s = 0.0  # of this thread when this turn began
        self._patient_next = False
        self._n_starting = 0  # requests that have begun and have no answer

    @property
    def refusal(self) -> QueueFull | None:
        """Why a new stream would be refused; none if it would not."""
        return self._refusal_of(self._streams, self._patient, MAX_START_WAIT_S)

    @asynccontextmanager
    async def turn(self, send: Send, max_wait_s: float = MAX_START_WAIT_S) -> AsyncIterator[Send]:
        """Enter when the request may begin; raise QueueFull if that would take longer than `max_wait_s`.

        Yields a `send` for its answer.
        """
        await self._wait_turn(max_wait_s)
        n_starting = 1  # of this request: until its answer begins
        self._n_starting += 1

        async def sending(message: Message) -> None:
            nonlocal n_starting
            self._n_starting, n_starting = self._n_starting - n_starting, 0
            await send(message)

        try:
            yield sending
        finally:
            self._n_starting -= n_starting

    async def _wait_turn(self, max_wait_s: float) -> None:
        is_patient = max_wait_s > MAX_START_WAIT_S
        queue, others = (self._patient, self._streams) if is_patient else (self._streams, self._patient)
        if refusal := self._refusal_of(queue, others, max_wait_s):
            raise refusal
        if self._turn_at is None:
            self._turn_at, self._cpu_s = self._clock(), self._cpu_clock()
            asyncio.get_running_loop().call_soon(self._turn)
        if self._n_left and not queue and not others:
            self._n_left -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append((self._clock(), turn))
        await turn

    def _turn(self) -> None:
        """Let some of the waiting requests begin; called once in every turn of the loop while there are any."""
        assert self._turn_at is not None
        now, cpu_s = self._clock(), self._cpu_clock()
        turn_s, self._turn_at = now - self._turn_at, now
        busy_s, self._cpu_s = cpu_s - self._cpu_s, cpu_s  # other threads and processes do not end sooner if we wait
        has_begun = self._n_left < MAX_STARTS_PER_TURN
        self._n_left = n_starts = self.rule.n_starts(busy_s, self._n_starting)
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
            _, turn = (self._patient if self._patient_next else self._streams).popleft()
            if not turn.done():
                self._patient_next = not self._patient_next
                return turn
        return None

    def _refusal_of(self, queue: Arrivals, others: Arrivals, max_wait_s: float) -> QueueFull | None:
        waited_s = self._clock() - queue[0][0] if queue else 0.0
        wait_s = self.rule.wait_s(len(queue), len(others), waited_s)
        if wait_s <= max_wait_s:
            return None
        return self._refusal("too many requests at once; try again later", retry_after_s=max(1.0, round(wait_s, 1)))


def is_stream(path: str, body: bytes) -> bool:
    """Whether a request asks for audio as it is made, by its path and its JSON that is not parsed yet."""
    return path.endswith("/stream") or (path == "/v1/audio/speech" and not _WHOLE.search(body))
