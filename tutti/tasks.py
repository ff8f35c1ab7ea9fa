"""Tasks that end together or are tried again, and a call that comes soon or later."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from math import inf
from typing import Any, TypeVar

from tutti.errors import QueueFull, TuttiError

MAX_ATTEMPTS = 5  # of work that nobody listens to
RETRY_WAIT_S = 1.0  # before the second attempt; doubles with each further one
MAX_WAIT_S = 30.0  # longest wait for a full queue
Value = TypeVar("Value")
log = logging.getLogger(__name__)


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


def cause(error: BaseException) -> BaseException:
    """The error to report of several at once: an expected one rather than what follows from it."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [cause(each) for each in error.exceptions]
    return next((each for each in causes if isinstance(each, TuttiError)), causes[0])


async def with_retries(attempt: Callable[[], Awaitable[Value]], passing: tuple[type[TuttiError], ...]) -> Value:
    """Try again after errors that pass, a few times; wait for a full queue as long as it asks for, any number."""
    n_failures = 0
    while True:
        try:
            return await attempt()
        except QueueFull as full:
            await asyncio.sleep(min(full.retry_after_s, MAX_WAIT_S))
        except passing as exc:
            n_failures += 1
            if n_failures == MAX_ATTEMPTS:
                raise
            log.warning("trying again code=%s attempt=%d: %s", exc.code, n_failures + 1, exc)
            await asyncio.sleep(RETRY_WAIT_S * 2 ** (n_failures - 1))


class Wakeup:
    """Calls a function in the event loop, never twice for one reason, and not before `start` nor after `stop`."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self.is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """The first call comes soon."""
        self._loop = asyncio.get_running_loop()
        self.soon()

    def stop(self) -> None:
        self.began()
        self._loop, self.is_stopped = None, True

    def soon(self) -> None:
        """In the next turn of the event loop."""
        if self._soon is None and self._loop is not None:
            self._soon = self._loop.call_soon(self.at_once)

    def after(self, seconds: float) -> None:
        """After this number of seconds instead of the last one; never if it is infinite."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, seconds), self.at_once) if self._loop and seconds < inf else None

    def at_once(self) -> None:
        if self._loop is not None:
            self._call()

    def began(self) -> None:
        """Drop the calls that are still to come: one runs now."""
        self.after(inf)
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
