"""State of the server (starting, ready, draining) and the number of active requests."""

import asyncio
from collections.abc import Callable

from tutti.errors import Draining, NotReady
from tutti.server.engine_protocol import EngineProtocol


class Lifecycle:
    """Counts active requests. While draining, new work is refused."""

    def __init__(self, engine: EngineProtocol) -> None:
        self._engine = engine
        self._idle = asyncio.Event()
        self._idle.set()
        self.n_active = 0
        self.draining = False
        self.count_unread: Callable[[int], None] = lambda _: None  # by the status of an answer before any application
        self.http_processes_answer: Callable[[], bool] = lambda: True  # in the server's process, if there are any

    @property
    def state(self) -> str:
        if self.draining:
            return "draining"
        return "ready" if self._engine.ready else "starting"

    def check(self) -> None:
        """Raise unless new work is accepted."""
        if self.draining:
            raise Draining("the server is shutting down and takes no new work; retry in a moment")
        if not self._engine.ready:
            raise NotReady("the model is still loading; retry in a moment")

    def check_processes(self) -> None:
        """Raise unless new work is accepted, and the processes are there that it needs."""
        self.check()
        if self._engine.workers()["readyWorkers"] == 0:
            raise NotReady("no worker is ready; one is being started")
        if not self._engine.frontend_ready:
            raise NotReady("the text front end does not answer; it is replaced in a moment")
        if not self.http_processes_answer():
            raise NotReady("an HTTP process does not answer; it is replaced in a moment")

    def enter(self) -> None:
        self.n_active += 1
        self._idle.clear()

    def leave(self) -> None:
        self.n_active -= 1
        if self.n_active == 0:
            self._idle.set()

    async def drain(self, grace_s: float) -> bool:
        """Refuse new work and wait until no request is active; False if some still are after the grace time."""
        self.draining = True
        try:
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
