"""A limit for readers that take an answer too slowly: it is held in memory until they have read it."""

import asyncio
import time

from starlette.types import Message, Send

from tutti.errors import TuttiError

STREAM_BYTES_PER_S = 1024.0  # of a stream; less than the quietest format needs while it is played
WHOLE_BYTES_PER_S = 64 * 1024.0  # of a whole answer, which is held completely until its last byte is read


class SlowReader(TuttiError):
    status, code = 408, "slow_reader"


class PacedSend:
    """Wraps `send`: raises SlowReader when the reader is `grace_s` behind its minimum pace."""

    def __init__(self, send: Send, grace_s: float, min_bytes_per_s: float) -> None:
        self._send = send
        self._grace_s = self._left_s = grace_s
        self._min_bytes_per_s = min_bytes_per_s

    async def __call__(self, message: Message) -> None:
        started_s = time.monotonic()
        allowed_s = self._left_s + len(message.get("body", b"")) / self._min_bytes_per_s
        try:
            async with asyncio.timeout(allowed_s):
                await self._send(message)
        except TimeoutError:
            raise SlowReader("the client reads too slowly") from None
        self._left_s = min(self._grace_s, allowed_s - (time.monotonic() - started_s))
