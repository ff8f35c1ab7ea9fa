"""Open, or closing: who is inside, and when the last one has left."""

import asyncio

from tutti.errors import Draining, NotReady
from tutti.server.engine_protocol import EngineProtocol


class Lifecycle:
    """Counts the requests under way; once it is closing, it lets no new work in."""

    def __init__(self, engine: EngineProtocol) -> None:
        self._engine = engine
        self._empty = asyncio.Event()
        self._empty.set()
        self.n_active = 0
        self.draining = False

    @property
    def state(self) -> str:
        if self.draining:
            return "draining"
        return "ready" if self._engine.ready else "starting"

    def check(self) -> None:
        """Raises unless new work may come in."""
        if self.draining:
            raise Draining("the server is going down and takes no new work; ask another, or again in a moment")
        if not self._engine.ready:
            raise NotReady("the model is not warm yet; ask again in a moment")

    def enter(self) -> None:
        self.n_active += 1
        self._empty.clear()

    def leave(self) -> None:
        self.n_active -= 1
        if self.n_active == 0:
            self._empty.set()

    async def drain(self, grace_s: float) -> bool:
        """Closes, and waits until nobody is inside; False if some still were after the grace time."""
        self.draining = True
        try:
            async with asyncio.timeout(grace_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True
