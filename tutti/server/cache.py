"""Cache of whole answers. Concurrent requests for the same key share one computation (single flight)."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def n_bytes(self) -> int: ...


Value = TypeVar("Value", bound=Sized)


@dataclass(slots=True)
class InFlight(Generic[Value]):
    """A computation under way, and how many callers wait for it."""

    task: asyncio.Task[Value]
    n_waiting: int = 0


class ResponseCache(Generic[Value]):
    """LRU cache by bytes. A value larger than a quarter of the limit is not stored."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._in_flight: dict[Hashable, InFlight[Value]] = {}
        self.n_bytes = 0
        self.n_joined = 0  # callers that joined a computation under way

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Return the stored value or the result of `make`. An error is raised to every waiter and is not cached."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        flight = self._in_flight.get(key)
        if flight is None:
            flight = self._in_flight[key] = InFlight(asyncio.create_task(self._make(key, make)))
            # Retrieve the exception even if every waiter has left, or asyncio logs it.
            flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        else:
            self.n_joined += 1
        return await self._wait(key, flight)

    async def _wait(self, key: Hashable, flight: InFlight[Value]) -> Value:
        flight.n_waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.n_waiting -= 1
            if flight.n_waiting == 0 and not flight.task.done():  # the last waiter was cancelled
                self._discard(key, flight)
                flight.task.cancel()
                await asyncio.wait((flight.task,))

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Value]]) -> Value:
        flight = self._in_flight[key]
        try:
            value = await make()
            self._store(key, value)
            return value
        finally:
            self._discard(key, flight)

    def _discard(self, key: Hashable, flight: InFlight[Value]) -> None:
        if self._in_flight.get(key) is flight:
            del self._in_flight[key]

    def _store(self, key: Hashable, value: Value) -> None:
        if value.n_bytes > self._max_bytes / 4:
            return
        self._values[key] = value
        self.n_bytes += value.n_bytes
        while self.n_bytes > self._max_bytes:
            _, oldest = self._values.popitem(last=False)
            self.n_bytes -= oldest.n_bytes
