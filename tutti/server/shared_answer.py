"""Compute an answer once for all who ask for it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable

MANY = 8  # callers of one answer
PAUSE_S = 0.2  # from an answer for many to the next; larger costs less, and makes those who ask again wait


class SharedAnswer:
    """Runs a computation once for all who wait for its start, one run at a time.

    So a caller gets an answer that was computed after it asked, and any number of callers cost at most what one does
    who asks without a pause. After an answer for many there is a pause: those who ask again and again would keep the
    event loop busy with nothing but answers.
    """

    def __init__(self, compute: Callable[[], Awaitable[bytes]]) -> None:
        self._compute = compute
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[bytes] | None = None  # has not started to compute
        self._n_asking = 0  # who wait for its start
        self._not_before_s = 0.0  # on the clock of the event loop

    async def __call__(self) -> bytes:
        self._n_asking += 1
        if self._next is None:
            self._next = asyncio.create_task(self._run())
        return await asyncio.shield(self._next)  # a caller that leaves must not end it for the others

    async def _run(self) -> bytes:
        loop = asyncio.get_running_loop()
        async with self._lock:
            await asyncio.sleep(self._not_before_s - loop.time())
            if self._n_asking >= MANY:
                self._not_before_s = loop.time() + PAUSE_S
            self._next, self._n_asking = None, 0
            return await self._compute()
