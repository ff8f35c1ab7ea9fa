"""Which requests begin in a turn of the event loop, and which are refused because the loop is behind."""

import asyncio
import re
import time
from collections import OrderedDict, deque
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
READ_PAUSE_S = 0.002  # between two requests that only read; larger slows them, and leaves more to speech
_WHOLE = re.compile(rb'"stream"\s*:\s*false')  # in a text its quotes would be escaped
_VOICE_STREAM = re.compile(r"/v1/text-to-speech/[^/]+/stream")
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


class Arrivals:
    """Requests that wait, each for its turn. Their callers have turns one after the other, however many each sends."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # the next caller first
        self._in_order: deque[tuple[float, asyncio.Future[None]]] = deque()  # when each arrived; also some that began

    def __bool__(self) -> bool:
        return bool(self._turns)

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def add(self, caller: str, now: float, turn: asyncio.Future[None]) -> None:
        self._turns.setdefault(caller, deque()).append(turn)
        self._in_order.append((now, turn))

    def pop(self) -> asyncio.Future[None] | None:
        """The turn that comes next; one whose request was cancelled is dropped."""
        while self._turns:
            caller, turns = self._turns.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._turns[caller] = turns
            if not turn.done():
                return turn
        return None

    def n_ahead(self, caller: str) -> int:
        """How many begin before a new one of this caller."""
        own = self._turns.get(caller)
        if own is None:
            return len(self._turns)
        return sum(min(len(turns), len(own) + (turns is not own)) for turns in self._turns.values())

    def waited_s(self, now: float) -> float:
        """How long the first of them has waited."""
        while self._in_order and self._in_order[0][1].done():
            self._in_order.popleft()
        return now - self._in_order[0][0] if self._in_order else 0.0


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
        self._streams = Arrivals()
        self._patient = Arrivals()
        self._n_left = MAX_STARTS_PER_TURN  # that may begin in this turn
        self._turn_at: float | None = None  # when this turn began; none: nothing has begun in it or in the last one
        self._cpu_s = 0.0  # of this thread when this turn began
        self._patient_next = False
        self._n_starting = 0  # requests that have begun and have no answer

    @asynccontextmanager
    async def turn(self, send: Send, caller: str, max_wait_s: float = MAX_START_WAIT_S) -> AsyncIterator[Send]:
        """Enter when the request may begin; raise QueueFull if that would take longer than `max_wait_s`.

        Yields a `send` for its answer.
        """
        await self._wait_turn(caller, max_wait_s)
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

    async def _wait_turn(self, caller: str, max_wait_s: float) -> None:
        is_patient = max_wait_s > MAX_START_WAIT_S
        queue, others = (self._patient, self._streams) if is_patient else (self._streams, self._patient)
        if refusal := self._refusal_of(caller, queue, others, max_wait_s):
            raise refusal
        if self._turn_at is None:
            self._turn_at, self._cpu_s = self._clock(), self._cpu_clock()
            asyncio.get_running_loop().call_soon(self._turn)
        if self._n_left and not queue and not others:
            self._n_left -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.add(caller, self._clock(), turn)
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
        """The next request to begin."""
        while self._streams or self._patient:
            self._patient_next = bool(self._patient) and (self._patient_next or not self._streams)
            if turn := (self._patient if self._patient_next else self._streams).pop():
                self._patient_next = not self._patient_next
                return turn
        return None

    def _refusal_of(self, caller: str, queue: Arrivals, others: Arrivals, max_wait_s: float) -> QueueFull | None:
        if not queue:
            return None
        wait_s = self.rule.wait_s(queue.n_ahead(caller), len(others), queue.waited_s(self._clock()))
        if wait_s <= max_wait_s:
            return None
        return self._refusal("too many requests at once; try again later", retry_after_s=max(1.0, round(wait_s, 1)))


class PacedReads:
    """Lets requests that only read begin one in a turn of the event loop, in order, and with a pause while more wait.

    Each takes a millisecond or two. A request for speech has some 25 turns to its first audio: a hundred that begin in
    one of them, or one in each, would make it wait.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._n_waiting = 0

    async def wait(self) -> None:
        self._n_waiting += 1
        try:
            async with self._lock:
                await asyncio.sleep(READ_PAUSE_S if self._n_waiting > 1 else 0)
        finally:
            self._n_waiting -= 1


def stream_route(path: str, body: bytes) -> str | None:
    """The route of a request that asks for audio as it is made, by its path and its JSON that is not parsed yet."""
    if path == "/tts/stream" or (path == "/v1/audio/speech" and not _WHOLE.search(body)):
        return path
    return "/v1/text-to-speech/{voice_id}/stream" if _VOICE_STREAM.fullmatch(path) else None
