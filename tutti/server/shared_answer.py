"""Compute an answer once for all who ask for it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable


class SharedAnswer:
    """Runs a computation once for all who wait for its start, one run at a time.

    So a caller gets an answer that was computed after it asked, and any number of callers cost at most what one does
    who asks without a pause.
    """

    def __init__(self, compute: Callable[[], Awaitable[bytes]]) -> None:
        self._compute = compute
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[bytes] | None = None  # has not started to compute

    async def __call__(self) -> bytes:
        if self._next is None:
            self._next = asyncio.create_task(self._run())
        return await asyncio.shield(self._next)  # a caller that leaves must not end it for the others

    async def _run(self) -> bytes:
        async with self._lock:
            self._next = None
            return await self._compute()
