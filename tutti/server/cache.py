"""Cache of whole answers. Concurrent requests for the same key share one computation (single flight)."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from tutti.admission.ticket import NO_CLIENT, Ticket
from tutti.server.errors import no_audio_within


class Sized(Protocol):
    @property
    def n_bytes(self) -> int: ...


Value = TypeVar("Value", bound=Sized)


@dataclass(slots=True)
class InFlight(Generic[Value]):
    """A computation under way, and how many callers wait for it."""

    task: asyncio.Task[Value]
    began: asyncio.Event  # set by `make` when its first audio is there
    n_waiting: int = 0


Make = Callable[[asyncio.Event], Coroutine[Any, Any, Value]]


class ResponseCache(Generic[Value]):
    """LRU cache by bytes. A value larger than a quarter of the limit is not stored."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._in_flight: dict[Hashable, InFlight[Value]] = {}
        self.n_bytes = 0
        self.n_joined = 0  # callers that joined a computation under way

    async def get(self, key: Hashable, make: Make[Value], timeout_s: float = inf, ticket: Ticket = NO_CLIENT) -> Value:
        """Return the stored value or the result of `make`. An error is raised to every waiter and is not cached.

        Raises DeadlineExceeded if the computation has not begun within `timeout_s` of the arrival of this request. That
        is the time of this caller alone: those that joined later wait on.
        """
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        flight = self._in_flight.get(key)
        if flight is None:
            began = asyncio.Event()
            flight = self._in_flight[key] = InFlight(asyncio.create_task(self._make(key, make, began)), began)
            # Retrieve the exception even if every waiter has left, or asyncio logs it.
            flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        else:
            self.n_joined += 1
        return await self._wait(key, flight, timeout_s, ticket)

    async def _wait(self, key: Hashable, flight: InFlight[Value], timeout_s: float, ticket: Ticket) -> Value:
        flight.n_waiting += 1
        try:
            try:
                async with asyncio.timeout(ticket.left_s(timeout_s, time.monotonic())):
                    await flight.began.wait()
            except TimeoutError:
                raise no_audio_within(timeout_s) from None
            return await asyncio.shield(flight.task)
        finally:
            flight.n_waiting -= 1
            if flight.n_waiting == 0 and not flight.task.done():  # the last waiter was cancelled
                self._discard(key, flight)
                flight.task.cancel()
                await asyncio.wait((flight.task,))

    async def _make(self, key: Hashable, make: Make[Value], began: asyncio.Event) -> Value:
        flight = self._in_flight[key]
        try:
            value = await make(began)
            self._store(key, value)
            return value
        finally:
            began.set()
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
