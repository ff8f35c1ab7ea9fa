"""Whole answers, kept for whoever asks the same again; asked twice at once, they are made once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def n_bytes(self) -> int: ...


Kept = TypeVar("Kept", bound=Sized)


@dataclass(slots=True)
class Flight(Generic[Kept]):
    """One making, and how many wait for it."""

    task: asyncio.Task[Kept]
    n_waiting: int = 0


class Cache(Generic[Kept]):
    """Least recently used goes first; nothing is kept that takes more than a quarter of the room."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._flights: dict[Hashable, Flight[Kept]] = {}
        self.n_bytes = 0
        self.n_hits = 0
        self.n_joined = 0
        self.n_made = 0

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, Kept]]) -> Kept:
        """What is kept under `key`, or what `make` gives. A failure is everyone's who waited, and is not kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
            self.n_hits += 1
            return self._kept[key]
        flight = self._flights.get(key)
        if flight is None:
            self.n_made += 1
            flight = self._flights[key] = Flight(asyncio.create_task(self._make(key, make)))
            flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())  # all may have left
        else:
            self.n_joined += 1
        return await self._wait(key, flight)

    async def _wait(self, key: Hashable, flight: Flight[Kept]) -> Kept:
        flight.n_waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.n_waiting -= 1
            if flight.n_waiting == 0 and not flight.task.done():  # the last who waited has left
                self._forget(key, flight)
                flight.task.cancel()
                await asyncio.wait((flight.task,))

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Kept]]) -> Kept:
        flight = self._flights[key]
        try:
            made = await make()
            self._keep(key, made)
            return made
        finally:
            self._forget(key, flight)

    def _forget(self, key: Hashable, flight: Flight[Kept]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    def _keep(self, key: Hashable, made: Kept) -> None:
        if made.n_bytes > self._max_bytes / 4:
            return
        self._kept[key] = made
        self.n_bytes += made.n_bytes
        while self.n_bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.n_bytes -= oldest.n_bytes
