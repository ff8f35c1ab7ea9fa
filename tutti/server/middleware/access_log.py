"""An id for every request, and one line in the log for each; never what was said in it."""

import asyncio
import logging
import re
import time
from uuid import uuid4

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tutti.errors import Draining
from tutti.metrics import SECONDS
from tutti.server.errors import answer, internal

SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}\Z")
METHODS = frozenset(("GET", "HEAD", "POST", "DELETE", "OPTIONS", "WS"))
BEGINS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
log = logging.getLogger("tutti.access")


class Access:
    """The outermost layer: it sees every answer, also those of the layers below that refuse."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        labels = ("method", "route", "status", "outcome")
        self._answers = Counter("tutti_http_answers", "Answers, by how they ended.", labels, registry=registry)
        self._first_byte = Histogram(
            "tutti_http_first_byte_seconds", "From a request to the first byte of its answer.", ("route",),
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._inside = Gauge("tutti_http_requests", "Requests under way.", registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if SAFE_ID.match(given) else uuid4().hex
        # Middleware and routes share this dictionary; the server hands out a fresh copy for each request.
        state = scope.setdefault("state", {})
        state |= {"request_id": request_id, "key": "", "caller": "", "outcome": "done"}
        started = time.monotonic()
        status, n_bytes, first_s = 0, 0, 0.0

        async def told(message: Message) -> None:
            nonlocal status, n_bytes, first_s
            if message["type"] in BEGINS:
                status, first_s = message.get("status", 101), time.monotonic() - started
                MutableHeaders(scope=message)["x-request-id"] = request_id
            elif message["type"] == "websocket.close" and status == 0:
                status = 403  # as uvicorn answers where no route accepts
            else:
                n_bytes += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
            await send(message)

        self._inside.inc()
        try:
            await self._app(scope, receive, told)
        except asyncio.CancelledError:  # the grace time is over; this is the task's last frame
            state["outcome"] = "cut:draining"
            if status == 0:
                await answer(Draining("the server went down before this was done"))(scope, receive, told)
        except Exception:
            log.exception("failed id=%s", request_id)
            state["outcome"] = "failed"
            if status == 0:  # else the connection is closed without the end of its answer
                await answer(internal())(scope, receive, told)
        finally:
            # Path and method may hold anything; what is logged and counted may not.
            route = getattr(scope.get("route"), "path", "-")
            method = scope.get("method", "WS")
            method = method if method in METHODS else "-"
            outcome = "left" if status == 499 else state["outcome"]
            self._inside.dec()
            self._answers.labels(method, route, status, outcome.partition(":")[0]).inc()
            self._first_byte.labels(route).observe(first_s)
            log.info(
                "request id=%s caller=%s method=%s route=%s status=%d outcome=%s bytes=%d first_ms=%.1f ms=%.1f",
                *(request_id, state["caller"] or "-", method, route, status, outcome, n_bytes),
                *(1000 * first_s, 1000 * (time.monotonic() - started)),
            )
