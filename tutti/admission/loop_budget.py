"""What may begin in a turn of the event loop, by kinds of work, and which requests are refused since it is behind."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from tutti.errors import QueueFull

Kind = Literal["stream", "start", "read"]


class Ration(NamedTuple):
    """How much of a kind may begin in one turn. More delays what is under way, and other kinds."""

    per_turn: int  # pieces
    at_once_s: float | None = None  # while nobody waits, all that come within this time from the first one
    pause_s: float = 0.0  # between two turns with such work, while more waits


RATIONS: dict[Kind, Ration] = {
    "stream": Ration(8, at_once_s=0.002),  # of the engine; by time, since those that begin together share batches
    "start": Ration(8),  # requests to speak, of which each has some 25 turns to its first audio
    "read": Ration(1, pause_s=0.002),  # requests that only read; each takes a millisecond or two
}
ROWS_PER_TURN = 4  # of each batch, that are delivered: their listeners must not keep the worker waiting
# After a turn with so much computing only one more request begins, so that those under way end first. Larger starts all
# of them later, smaller leaves the device with small batches.
LONG_TURN_S = 0.02
MIN_STARTING = 32  # requests that have begun and have no answer; with fewer it is not they that make a turn long
MAX_START_WAIT_S = 0.5  # that a stream may wait here, of the 2 s that it may wait to start; larger accepts more
BURST_S = 0.35  # a queue whose first request has waited for less is a burst, in which nobody is refused
FIRST_START_S = 0.005  # of the event loop for each request, until that is measured
LEARNED_OVER = 32  # requests over which it is averaged; larger is smoother, and reacts later
MAX_LEARNED_S = 0.1  # of a turn: a lone stall of the process says nothing about the next turns
PARSING_S = 0.001  # of bytes in a turn; larger holds the loop for longer, smaller slows uploads
PARSING_PAUSE = 3.0  # times what a turn of more parsing took, for which others have the loop; larger: slower uploads
MAX_HANDLING = 4.0  # times its parsing that an application takes for a message; more is the work of others
INTERVAL_S = 0.05  # between two measurements of the loop's delay; smaller reacts sooner, and costs more
TURNS = 8  # turns of the loop from a stream's start to its first audio; larger refuses streams sooner
# Of an earlier delay at each measurement: so a lone stall, which the next turns do not repeat, counts once and not in
# each of those turns. Larger remembers a stall longer.
DECAY = 1 - 1 / TURNS
NO_DELAY_S = 0.002  # a timer is never exact


class CallerQueue:
    """Requests that wait for their turns. Callers take turns, however many requests each sends."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # the next caller first
        self._in_order: deque[tuple[float, asyncio.Future[None]]] = deque()  # since when; also some that began

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


class Lane:
    """One kind of work: what waits, and what is left of this turn."""

    def __init__(self, ration: Ration) -> None:
        self.ration, self.n_left = ration, ration.per_turn
        self.queue, self.patient = CallerQueue(), CallerQueue()  # both have every second place
        self.is_used = False  # in this turn
        self.ends_s = 0.0  # when no more may begin at once
        self.resumes_s = 0.0  # after a pause
        self._patient_next = False

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self.queue or self.patient)

    def take(self, now: float) -> bool:
        """Take a place in this turn, if there is one."""
        at_once_s = self.ration.at_once_s
        is_full = self.n_left <= 0 if at_once_s is None else self.is_used and now >= self.ends_s
        if is_full:
            return False
        if not self.is_used and at_once_s is not None:
            self.ends_s = now + at_once_s
        self.is_used = True
        self.n_left -= 1
        return True

    def begin_turn(self, per_turn: int, now: float) -> int:
        """Begin what waits; return how much of it there is."""
        if self.is_used and self:
            self.resumes_s = now + self.ration.pause_s
        self.n_left, self.is_used, n_begun = per_turn, False, 0
        while now >= self.resumes_s and n_begun < per_turn and (turn := self._pop()):
            n_begun += self.take(now)
            turn.set_result(None)
        return n_begun

    def _pop(self) -> asyncio.Future[None] | None:
        while self:
            self._patient_next = bool(self.patient) and (self._patient_next or not self.queue)
            if turn := (self.patient if self._patient_next else self.queue).pop():
                self._patient_next = not self._patient_next
                return turn
        return None


class StartRule:
    """How many requests begin in a turn, and how long a new one would wait. Pure."""

    def __init__(self) -> None:
        self.start_s = FIRST_START_S  # seconds between two starts while requests wait

    def n_starts(self, busy_s: float, n_starting: int) -> int:
        """How many requests may begin after a turn of so much computing, while so many others have no answer yet."""
        return 1 if busy_s >= LONG_TURN_S and n_starting >= MIN_STARTING else RATIONS["start"].per_turn

    def learn(self, turn_s: float, n_starts: int) -> None:
        """Note a turn that began while requests waited, and how many of them begin in it."""
        self.start_s += (min(turn_s, MAX_LEARNED_S) - n_starts * self.start_s) / LEARNED_OVER

    def wait_s(self, n_ahead: int, n_others: int, waited_s: float) -> float:
        """How long a request waits behind those of its kind, while the other kind has every second place.

        `waited_s`: how long the first of its kind has waited.
        """
        return (n_ahead + min(n_ahead, n_others)) * self.start_s if waited_s >= BURST_S else 0.0


class Parsing:
    """What parses bytes for clients that may send without a pause: a little in a turn, and after that a pause."""

    def __init__(self, cpu_clock: Callable[[], float]) -> None:
        self._cpu_clock = cpu_clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._used_s = 0.0  # of computing in this turn
        self._last_s = 0.0  # of the last one, until it is known what its messages took
        self._call_began_s: float | None = None  # of the call that runs now
        self.resumes_s = 0.0  # after a pause

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def run(self, call: Callable[[], None], now: float) -> None:
        """Call it now if this turn has time, else in a later one."""
        has_time = now >= self.resumes_s and not self._last_s and self._used_s <= PARSING_S
        if has_time and not self._waiting and self._call_began_s is None:
            self._measured(call)
        else:
            self._waiting.append(call)

    def goes_on(self) -> bool:
        """Whether the call that runs now may parse some more."""
        began_s = self._call_began_s
        return began_s is not None and self._used_s + self._cpu_clock() - began_s <= PARSING_S

    def begin_turn(self, busy_s: float, now: float) -> bool:
        """Parse what waits; return whether there was anything. Applications get their messages in the turn after one of
        parsing: if both took long, a pause comes next.
        """
        if self._used_s:
            self._last_s, self._used_s = self._used_s, 0.0
            return True
        took_s, self._last_s = self._last_s + min(busy_s, MAX_HANDLING * self._last_s), 0.0
        if took_s > PARSING_S:
            self.resumes_s = now + PARSING_PAUSE * took_s
        n_calls = len(self._waiting) if now >= self.resumes_s else 0
        for _ in range(n_calls):
            self._measured(self._waiting.popleft())
            if self._used_s > PARSING_S:
                break
        return n_calls > 0

    def _measured(self, call: Callable[[], None]) -> None:
        self._call_began_s = self._cpu_clock()
        try:
            call()
        finally:
            self._used_s += self._cpu_clock() - self._call_began_s
            self._call_began_s = None


class LoopBudget:
    """Shares the turns of an event loop between kinds of work, and measures how late the loop is.

    What waits costs nothing; what has begun takes its part of every turn of the loop. So the time that requests wait
    here is what admission control cannot see, and new ones are refused if it would be too long.
    """

    def __init__(
        self, clock: Callable[[], float] | None = None, cpu_clock: Callable[[], float] = time.thread_time
    ) -> None:
        self.rule = StartRule()
        self._clock, self._cpu_clock = clock or time.monotonic, cpu_clock
        self._lanes = {kind: Lane(ration) for kind, ration in RATIONS.items()}
        self._parsing = Parsing(cpu_clock)
        self._n_starting = 0  # requests that have begun and have no answer
        self._turn_at: float | None = None  # when this turn began; none: nothing has begun in it or in the last one
        self._cpu_s = 0.0  # of this thread when this turn began
        self._wake: asyncio.TimerHandle | None = None  # after a pause
        self._loop_s = 0.0  # by which a timer was late
        self._timer: asyncio.TimerHandle | None = None  # for that

    # -- turns -----------------------------------------------------------------------------------------------------

    async def turn(self, kind: Kind, caller: str = "", *, is_patient: bool = False) -> None:
        """Return at once if this turn has room and nobody waits, else in a later one."""
        lane, now = self._lanes[kind], self._clock()
        self._be_called(now)
        if lane or not lane.take(now):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (lane.patient if is_patient else lane.queue).add(caller, now, turn)
            await turn

    def parse(self, call: Callable[[], None]) -> None:
        """Call this now if this turn has time, else in a later one. It may be called again before it has run."""
        now = self._clock()
        self._be_called(now)
        self._parsing.run(call, now)

    def goes_on_parsing(self) -> bool:
        """Whether the call of `parse` that runs now may parse some more."""
        return self._parsing.goes_on()

    def check_start(self, caller: str, max_wait_s: float, *, is_patient: bool = False) -> None:
        """Raise QueueFull if a request would wait for longer than this."""
        lane = self._lanes["start"]
        queue, others = (lane.patient, lane.queue) if is_patient else (lane.queue, lane.patient)
        if not queue:
            return
        wait_s = self.rule.wait_s(queue.n_ahead(caller), len(others), queue.waited_s(self._clock()))
        if wait_s > max_wait_s:
            raise QueueFull("too many requests at once; try again later", retry_after_s=max(1.0, round(wait_s, 1)))

    @contextmanager
    def starting(self) -> Iterator[Callable[[], None]]:
        """Count a request that has begun until it ends, or until what this yields is called: it has an answer."""
        n_starting = 1
        self._n_starting += 1

        def answered() -> None:
            nonlocal n_starting
            self._n_starting, n_starting = self._n_starting - n_starting, 0

        try:
            yield answered
        finally:
            answered()

    def _be_called(self, now: float) -> None:
        """Have `_turn` called at the end of this turn of the loop."""
        if self._turn_at is None:
            self._turn_at, self._cpu_s = now, self._cpu_clock()
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Let some of what waits begin; called once in every turn of the loop while anything does."""
        assert self._turn_at is not None
        now, cpu_s = self._clock(), self._cpu_clock()
        turn_s, self._turn_at = now - self._turn_at, now
        busy_s, self._cpu_s = cpu_s - self._cpu_s, cpu_s  # other threads and processes do not end sooner if we wait
        is_active = self._parsing.begin_turn(busy_s, now)
        for kind, lane in self._lanes.items():
            was_used, had_waiting, per_turn = lane.is_used, bool(lane), lane.ration.per_turn
            if kind == "start":
                per_turn = self.rule.n_starts(busy_s, self._n_starting)
            n_begun = lane.begin_turn(per_turn, now)
            if kind == "start" and had_waiting:
                self.rule.learn(turn_s, n_begun)
            is_active = is_active or was_used or n_begun > 0
        if is_active:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._turn_at = None
            self._wake_after_pause(now)

    def _wake_after_pause(self, now: float) -> None:
        resting = [lane.resumes_s for lane in self._lanes.values() if lane]
        resting += [self._parsing.resumes_s] if self._parsing else []
        if self._wake is not None:
            self._wake.cancel()
        if resting:
            delay_s = max(0.0, min(resting) - now)
            self._wake = asyncio.get_running_loop().call_later(delay_s, lambda: self._be_called(self._clock()))

    # -- the delay -------------------------------------------------------------------------------------------------

    @property
    def delay_s(self) -> float:
        """What a stream loses in the loop until its first audio."""
        return TURNS * self._loop_s

    def start_measuring(self) -> None:
        """Measure the delay of a timer again and again."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + INTERVAL_S
        self._timer = loop.call_at(due_s, self._measure, loop, due_s)

    def stop_measuring(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def record_delay(self, delay_s: float) -> None:
        self._loop_s = DECAY * self._loop_s + (1 - DECAY) * (delay_s if delay_s > NO_DELAY_S else 0.0)

    def _measure(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self.record_delay(loop.time() - due_s)
        self.start_measuring()
