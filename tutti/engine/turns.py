"""Limits how long a turn of the event loop takes, so that nothing else waits long for its turn there."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

PER_TURN = 8  # of those that wait; more makes turns longer, fewer costs more turns


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
