"""A timer that runs while nothing is being spoken."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class IdleTimer:
    """Calls `action` when it has run for `idle_s` without being stopped; never if that is None."""

    def __init__(self, idle_s: float | None, action: Callable[[], Awaitable[object]]) -> None:
        self._idle_s = idle_s
        self._action = action
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.stop()
        if self._idle_s is not None:
            self._task = asyncio.create_task(self._run(self._idle_s), name="tutti-idle")

    def stop(self) -> None:
        if self._task:
            self._task.cancel()
            self._task = None

    async def _run(self, idle_s: float) -> None:
        await asyncio.sleep(idle_s)
        log.info("unloading idle_s=%g", idle_s)
        await self._action()
