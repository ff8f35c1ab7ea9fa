"""GET /v1/stats and its stream: one picture for all who watch, drawn only while somebody does."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from tutti.errors import QueueFull
from tutti.server.dashboard import UPDATES_PER_S, Picture
from tutti.server.disconnect import ClientGone, while_here
from tutti.server.middleware.auth import Keys
from tutti.server.openapi import only
from tutti.server.service import Service

MAX_SEATS = 64  # who watch at once
MAX_TICKS = 30  # that wait for a slow one, then the oldest are dropped
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
Trial = Callable[[], dict[str, Any] | None]  # the one under way, in words
log = logging.getLogger("tutti.server")


def event(content: dict[str, Any]) -> bytes:
    """One event; in a quarter of the time that the standard library takes."""
    return b"data: " + to_json(content) + b"\n\n"


class Events(Response):
    """Server-sent events. Whoever makes them is closed when they end or the client leaves, and may refuse at first."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        super().__init__(headers=HEADERS, media_type="text/event-stream")
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_here(receive, self._send(send))
        except ClientGone:
            scope["state"]["outcome"] = "left"
        finally:
            await self._events.aclose()

    async def _send(self, send: Send) -> None:
        told = await anext(self._events)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": told, "more_body": True})
        async for told in self._events:
            await send({"type": "http.response.body", "body": told, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Seat:
    """One who watches. What cannot be read in time makes room for what is newer."""

    def __init__(self) -> None:
        self._ticks: deque[bytes] = deque()
        self._n_lost = 0
        self._over = False
        self._changed = asyncio.Event()

    def show(self, tick: bytes) -> None:
        if len(self._ticks) == MAX_TICKS:
            self._ticks.popleft()
            self._n_lost += 1
        self._ticks.append(tick)
        self._changed.set()

    def end(self) -> None:
        self._over = True
        self._changed.set()

    async def seen(self) -> AsyncGenerator[bytes]:
        while True:
            while self._ticks:
                # In one go: what is lost while this is being sent comes after the tick that is taken now.
                lost = event({"type": "lost", "ticks": self._n_lost}) if self._n_lost else b""
                self._n_lost = 0
                yield lost + self._ticks.popleft()
            if self._over:
                return
            self._changed.clear()
            await self._changed.wait()


class Gallery:
    """Where all who watch sit. Each update is drawn and encoded once for all of them; with nobody there, not at all."""

    def __init__(self, service: Service, trial: Trial) -> None:
        self._service = service
        self._trial = trial
        self._seats: set[Seat] = set()
        self._picture: Picture | None = None
        self._showing: asyncio.Task[None] | None = None
        self._newcomer = False

    def picture(self) -> Picture:
        return Picture(self._service.engine.monitor, self._service.engine.checkpoints)

    async def watch(self) -> AsyncGenerator[bytes]:
        """A hello, then ticks until the server goes down."""
        with self._seated() as (seat, picture):
            yield event(picture.hello(self._trial()))
            async for told in seat.seen():
                yield told

    @contextmanager
    def _seated(self) -> Iterator[tuple[Seat, Picture]]:
        if len(self._seats) >= MAX_SEATS:
            raise QueueFull(f"{MAX_SEATS} watch already; ask for /v1/stats now and then", retry_after_s=5)
        if self._picture is None or self._showing is None or self._showing.done():
            self._picture = self.picture()
            self._showing = asyncio.create_task(self._show(self._picture), name="tutti-gallery")
        seat = Seat()
        self._seats.add(seat)
        self._newcomer = True
        try:
            yield seat, self._picture
        finally:
            self._seats.discard(seat)
            if not self._seats and self._showing is not None:
                self._showing.cancel()
                self._picture = self._showing = None

    async def _show(self, picture: Picture) -> None:
        lifecycle = self._service.lifecycle
        try:
            while not (lifecycle.draining and lifecycle.n_active == 0):
                tick = picture.tick(self._trial(), at_once=self._newcomer)
                self._newcomer = False
                if tick is not None:
                    self._tell(event(tick))
                await asyncio.sleep(1 / UPDATES_PER_S)
            self._tell(event({"type": "bye", "reason": "the server is going down"}))
        except Exception:
            log.exception("the picture broke")
        finally:
            for seat in self._seats:
                seat.end()

    def _tell(self, told: bytes) -> None:
        for seat in self._seats:
            seat.show(told)


def watching_routes(service: Service, trial: Trial) -> APIRouter:
    routes = APIRouter(tags=["stats"])
    gallery = Gallery(service, trial)
    keys = Keys(service.settings.api_keys)

    @routes.get("/v1/stats", responses=only(401))
    async def stats(request: Request) -> dict[str, Any]:
        """How the batching fares now: queue, last batches, the last seconds in numbers, settings."""
        keys.caller(request.headers.get("authorization", ""))
        return gallery.picture().stats(trial())

    # It has no end, which an OpenAPI document cannot say; docs/stats.md does.
    @routes.get("/v1/stats/stream", response_class=Response, include_in_schema=False)
    async def stream(request: Request) -> Response:
        """The same, live."""
        keys.caller(request.headers.get("authorization", ""))
        return Events(gallery.watch())

    return routes
