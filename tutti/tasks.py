"""Tasks that end together."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any


async def cancel_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until all of them have ended, however each one ends."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def wait_for_all(awaitables: Iterable[Awaitable[object]]) -> None:
    """Wait until all have ended, also if one raises; then raise the first error."""
    for result in await asyncio.gather(*awaitables, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
