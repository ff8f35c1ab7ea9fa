"""/v1/stats: the state of the batching, once or as a live stream, and POST /v1/stats/trial to try another policy."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from tutti.errors import QueueFull, TuttiError
from tutti.server.client_key import connection_key
from tutti.server.dashboard import UPDATES_PER_S, Dashboard
from tutti.server.disconnect import ClientDisconnected, cancel_on_disconnect
from tutti.server.middleware.auth import ApiKeys
from tutti.server.notices import ignored_headers
from tutti.server.openapi import only_errors
from tutti.server.responses import json_line, sse_event
from tutti.server.schemas import TrialBody
from tutti.server.service import Service
from tutti.server.shared_answer import SharedAnswer

MAX_SUBSCRIBERS = 64  # clients of /v1/stats/stream; further ones get 429
MAX_OF_CALLER = 16  # of them of one caller: more would leave no place for others
SENT_AT_ONCE = 8  # subscribers that get an event in one turn of the event loop: each takes up to a millisecond
MAX_TICKS = 30  # buffered for a slow subscriber; then the oldest is dropped
MAX_TRIAL_S = 120.0  # then the server's own policy is restored
TRIAL_EVENT_S = 1.0  # between two events of a trial
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
TrialFields = Callable[[], dict[str, Any] | None]  # of the running trial
log = logging.getLogger("tutti.server")


class EventStreamResponse(Response):
    """Server-sent events. The generator may raise before its first event; it is closed when the client disconnects."""

    def __init__(self, events: AsyncGenerator[bytes], more: Mapping[str, str] | None = None) -> None:
        super().__init__(headers={**HEADERS, **(more or {})}, media_type="text/event-stream")
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await cancel_on_disconnect(receive, self._send(send))
        except ClientDisconnected:
            scope["state"]["outcome"] = "left"
        finally:
            await self._events.aclose()

    async def _send(self, send: Send) -> None:
        event = await anext(self._events)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": event, "more_body": True})
        async for event in self._events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Subscriber:
    """The events that wait for one client. If it reads too slowly, the oldest are dropped and counted."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self._events: deque[bytes] = deque()
        self._n_lost = 0
        self._ended = False
        self._changed = asyncio.Event()

    def add(self, event: bytes) -> None:
        if len(self._events) == MAX_TICKS:
            self._events.popleft()
            self._n_lost += 1
        self._events.append(event)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def events(self) -> AsyncGenerator[bytes]:
        while True:
            while self._events:
                # In one piece: ticks that are lost during the send come after the tick that is sent now.
                lost = sse_event({"type": "lost", "ticks": self._n_lost}) if self._n_lost else b""
                self._n_lost = 0
                yield lost + self._events.popleft()
            if self._ended:
                return
            self._changed.clear()
            await self._changed.wait()


class Broadcast:
    """Sends each update to all subscribers. It is computed and encoded once, and not at all without subscribers."""

    def __init__(self, service: Service, trial: TrialFields) -> None:
        self._service = service
        self._trial = trial
        self._subscribers: set[Subscriber] = set()
        self._dashboard: Dashboard | None = None
        self._task: asyncio.Task[None] | None = None
        self._hello: bytes | None = None  # for all who come before the next tick
        self._has_new_subscriber = False

    def new_dashboard(self) -> Dashboard:
        return Dashboard(self._service.engine.monitor, self._service.engine.checkpoints)

    async def watch(self, caller: str) -> AsyncGenerator[bytes]:
        """Yield a hello, then ticks until the server shuts down."""
        with self._subscribed(caller) as (subscriber, dashboard):
            if self._hello is None:
                self._hello = sse_event(dashboard.hello(self._trial()))
            yield self._hello
            async for event in subscriber.events():
                yield event

    @contextmanager
    def _subscribed(self, caller: str) -> Iterator[tuple[Subscriber, Dashboard]]:
        n_own = sum(subscriber.caller == caller for subscriber in self._subscribers)
        if len(self._subscribers) >= MAX_SUBSCRIBERS or n_own >= MAX_OF_CALLER:
            watching = f"{n_own} of yours" if n_own >= MAX_OF_CALLER else f"{MAX_SUBSCRIBERS} clients"
            raise QueueFull(f"{watching} watch already; poll GET /v1/stats instead", retry_after_s=5)
        if self._dashboard is None or self._task is None or self._task.done():
            self._dashboard, self._hello = self.new_dashboard(), None
            self._task = asyncio.create_task(self._run(self._dashboard), name="tutti-broadcast")
        subscriber = Subscriber(caller)
        self._subscribers.add(subscriber)
        self._has_new_subscriber = True
        try:
            yield subscriber, self._dashboard
        finally:
            self._subscribers.discard(subscriber)
            if not self._subscribers and self._task is not None:
                self._task.cancel()
                self._dashboard = self._task = self._hello = None

    async def _run(self, dashboard: Dashboard) -> None:
        lifecycle = self._service.lifecycle
        try:
            while not (lifecycle.draining and lifecycle.n_active == 0):
                tick = dashboard.tick(self._trial(), at_once=self._has_new_subscriber)
                self._has_new_subscriber = False
                if tick is not None:
                    self._hello = None
                    await self._send(sse_event(tick))
                await asyncio.sleep(1 / UPDATES_PER_S)
            await self._send(sse_event({"type": "bye", "reason": "the server is shutting down"}))
        except Exception:  # a bug: end the streams instead of leaving them without events
            log.exception("the dashboard failed")
        finally:
            for subscriber in self._subscribers:
                subscriber.end()

    async def _send(self, event: bytes) -> None:
        """Hand it to all who watch now, a few in each turn of the event loop."""
        for n, subscriber in enumerate(tuple(self._subscribers), start=1):
            subscriber.add(event)
            if n % SENT_AT_ONCE == 0:
                await asyncio.sleep(0)


class TrialRefused(TuttiError):
    status, code = 409, "trial_refused"


@dataclass(frozen=True, slots=True)
class Trial:
    """A running trial of a policy."""

    policy: str
    caller: str
    until_s: float


class PolicyTrials:
    """At most one trial at a time. When it ends, for any reason, the server's own policy is restored."""

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._trial: Trial | None = None

    def fields(self) -> dict[str, Any] | None:
        """Return the running trial as JSON."""
        trial = self._trial
        return None if trial is None else {"policy": trial.policy, "left_s": self._left_s(trial)}

    async def run(self, policy: str, caller: str) -> AsyncGenerator[bytes]:
        """Use `policy` until the time is over, another caller sends work, or the generator is closed."""
        monitor = self._service.engine.monitor
        if self._trial is not None:
            raise TrialRefused("another trial is running; wait for its end")
        if monitor.has_other_callers(caller):
            raise TrialRefused("other callers are being served; a trial needs a server without other load")
        own_policy = monitor.policy
        monitor.use(policy)
        self._trial = trial = Trial(policy, caller, self._clock() + MAX_TRIAL_S)
        try:
            yield sse_event({"type": "trial", "policy": policy, "instead_of": own_policy, "max_s": MAX_TRIAL_S})
            while (reason := self._end_reason(trial)) is None:
                await asyncio.sleep(min(TRIAL_EVENT_S, self._left_s(trial)))
                yield sse_event({"type": "held", "policy": policy, "left_s": self._left_s(trial)})
        finally:
            monitor.use(own_policy)
            self._trial = None
        yield sse_event({"type": "end", "reason": reason})

    def _end_reason(self, trial: Trial) -> str | None:
        """Return why the trial must end, or None."""
        if self._service.lifecycle.draining:
            return "draining"
        if self._service.engine.monitor.has_other_callers(trial.caller):
            return "others"
        return "over" if self._clock() >= trial.until_s else None

    def _left_s(self, trial: Trial) -> float:
        return round(max(0.0, trial.until_s - self._clock()), 1)


def stats_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["stats"])
    trials = PolicyTrials(service)
    broadcast = Broadcast(service, trials.fields)
    keys = ApiKeys(service.settings.api_keys)

    async def render_stats() -> bytes:
        return json_line(broadcast.new_dashboard().stats(trials.fields()))

    stats_json = SharedAnswer(render_stats)

    @routes.get("/v1/stats", response_model=dict[str, Any], responses=only_errors(401))
    async def stats(request: Request) -> Response:
        """The batching now: queue, last batches, statistics of the last seconds, settings."""
        keys.caller(connection_key(request))
        return Response(await stats_json(), media_type="application/json")

    @routes.get("/v1/stats/costs", responses=only_errors(401))
    async def costs(request: Request) -> dict[str, Any]:
        """What batches cost on this device, as learned: for `tutti plan --measure`."""
        keys.caller(connection_key(request))
        engine = service.engine
        return {
            "max_batch_size": engine.monitor.settings()["max_batch_size"],
            "workers": len(engine.monitor.worker_names),
            "models": engine.monitor.costs(),
        }

    # Not in the schema: OpenAPI cannot describe an answer without an end. docs/stats.md does.
    @routes.get("/v1/stats/stream", response_class=Response, include_in_schema=False)
    async def stream(request: Request) -> Response:
        """The same as a stream of events."""
        caller = keys.caller(connection_key(request)) or request.state.caller
        return EventStreamResponse(broadcast.watch(caller))

    @routes.post("/v1/stats/trial", response_class=Response, include_in_schema=False)
    async def trial(request: Request, body: TrialBody) -> Response:
        """Use another policy while this connection stays open."""
        ignored = ignored_headers(body.ignored_options())
        return EventStreamResponse(trials.run(body.policy, request.state.caller), ignored)

    return routes
