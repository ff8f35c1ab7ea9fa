"""Call a function soon or later in the event loop, never twice for one reason."""

import asyncio
from collections.abc import Callable
from math import inf


class Wakeup:
    """Nothing is called before `start` and after `stop`."""

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
        """After so many seconds instead of those given before; never if they are infinite."""
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
