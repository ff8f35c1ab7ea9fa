"""A limit for readers that take an answer too slowly: it is held in memory until they have read it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import inf

from starlette.types import Message, Send

from tutti.errors import TuttiError

STREAM_BYTES_PER_S = 1024.0  # of a stream; less than the quietest format needs while it is played
WHOLE_BYTES_PER_S = 64 * 1024.0  # of a whole answer, which is held completely until its last byte is read
CHECKS = 10  # within the grace time: a reader is cut at most a tenth of that late


class SlowReader(TuttiError):
    status, code = 408, "slow_reader"


class PacedSend:
    """Wraps `send` for one answer: `run` raises SlowReader when the reader is `grace_s` behind its minimum pace.

    A timer looks at the message that is being sent now and then: a timeout for each costs more than sending it.
    """

    def __init__(self, send: Send, grace_s: float, min_bytes_per_s: float) -> None:
        self._send = send
        self._grace_s = self._left_s = grace_s
        self._min_bytes_per_s = min_bytes_per_s
        self._due_s = inf  # when the message that is being sent must have been read
        self._timer: asyncio.TimerHandle

    async def __call__(self, message: Message) -> None:
        started_s = time.monotonic()
        allowed_s = self._left_s + len(message.get("body", b"")) / self._min_bytes_per_s
        self._due_s = started_s + allowed_s
        await self._send(message)
        self._due_s = inf
        self._left_s = min(self._grace_s, allowed_s - (time.monotonic() - started_s))

    async def run(self, sending: Callable[[Send], Awaitable[None]]) -> None:
        """Send an answer at the pace of its reader."""
        try:
            async with asyncio.timeout(None) as timeout:
                self._check_later(timeout)
                await sending(self)
        except TimeoutError:
            if timeout.expired():
                raise SlowReader("the client reads too slowly") from None
            raise
        finally:
            self._timer.cancel()

    def _check_later(self, timeout: asyncio.Timeout) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._grace_s / CHECKS, self._check, timeout)

    def _check(self, timeout: asyncio.Timeout) -> None:
        if time.monotonic() >= self._due_s:
            timeout.reschedule(0.0)  # now
        else:
            self._check_later(timeout)
