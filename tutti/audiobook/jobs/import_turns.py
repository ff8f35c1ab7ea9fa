"""One book of each caller is imported at a time; some more of its books wait, others are refused."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tutti.errors import QueueFull

MAX_WAITING = 16  # books of one caller; more would hold more uploads in memory and on the disk
RETRY_S = 5.0  # after which a refused upload may try again; most books take less to read


class ImportTurns:
    """The callers whose books are being imported, and how many more of them wait."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._n_books: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait until no other book of this caller is imported; raise QueueFull if too many wait."""
        if self._n_books[caller] > MAX_WAITING:
            raise QueueFull(
                f"{self._n_books[caller]} of your books are being read; send this one when some are done",
                retry_after_s=RETRY_S,
                param="book",
            )
        self._n_books[caller] += 1
        try:
            async with self._locks.setdefault(caller, asyncio.Lock()):
                yield
        finally:
            self._n_books[caller] -= 1
            if not self._n_books[caller]:
                del self._n_books[caller], self._locks[caller]
