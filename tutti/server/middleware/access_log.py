"""Request ids, the access log and HTTP metrics. The text of a request is never logged."""

import asyncio
import logging
import re
import time
from collections import Counter as Counts
from functools import cache
from random import getrandbits

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tutti.errors import Draining
from tutti.metrics import SECONDS
from tutti.server.errors import error_response, internal_error
from tutti.server.lifecycle import Lifecycle
from tutti.server.spans import Spans
from tutti.trace import current_trace

SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}\Z")
READING = ("GET", "HEAD", "OPTIONS")  # probes and listings have no span
METHODS = frozenset(("GET", "HEAD", "POST", "DELETE", "OPTIONS", "WS"))
START_MESSAGES = ("http.response.start", "websocket.accept", "websocket.http.response.start")
SUMMED_S = 1.0  # between two lines about requests that were refused for want of room, or are none
LINE = "request id=%s caller=%s method=%s route=%s status=%d outcome=%s bytes=%d first_ms=%s ms=%.1f trace=%s"
log = logging.getLogger("tutti.access")


def new_request_id() -> str:
    """An id for the log and the answer; it is no secret, so it need not cost a call of the system."""
    return f"{getrandbits(128):032x}"


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers by name; of one that is there twice the first, as Starlette does."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


class AccessLog:
    """The outermost middleware: it also sees the answers of other middleware."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, lifecycle: Lifecycle, spans: Spans) -> None:
        self._app = app
        self._spans = spans
        self._lifecycle = lifecycle
        labels = ("method", "route", "status", "outcome")
        answers = Counter("tutti_http_answers", "Answers, by how they ended.", labels, registry=registry)
        self._answers = cache(answers.labels)
        self._summed: Counts[tuple[str, str, int]] = Counts()  # since the last line about them
        lifecycle.count_unread = self._count_unread
        first_byte = Histogram(
            "tutti_http_first_byte_seconds", "From a request to the first byte of its answer.", ("route",),
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._first_byte = cache(first_byte.labels)
        self._active = Gauge("tutti_http_requests", "Requests under way.", registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            self._log_summed()
            return
        headers = headers_of(scope)
        client_id = headers.get("x-request-id", "")
        request_id = client_id if SAFE_ID.match(client_id) else new_request_id()
        # Middleware and routes share this dictionary; uvicorn makes a fresh copy for each request.
        state = scope.setdefault("state", {})
        started = time.monotonic()
        state |= {"request_id": request_id, "key": "", "caller": "", "route": "-", "is_summed": False}
        state |= {"outcome": "done", "arrived_s": started, "headers": headers}
        span = self._spans.start(headers, is_recorded=scope.get("method") not in READING)
        trace_id = span.trace.id
        own_headers = [(b"x-request-id", request_id.encode())]
        if trace_id:
            own_headers.append((b"x-trace-id", trace_id.encode()))
        current_trace.set(span.trace)
        status, n_bytes = 0, 0
        first_s: float | None = None

        async def observe(message: Message) -> None:
            nonlocal status, n_bytes, first_s
            if message["type"] in START_MESSAGES:
                status = message.get("status", 101)
                first_s = None if status == 499 else time.monotonic() - started  # nobody was there to get it
                message["headers"] = [*message.get("headers", ()), *own_headers]
            elif message["type"] == "websocket.close" and status == 0:
                status, first_s = 403, time.monotonic() - started  # uvicorn's answer where no route accepts
            else:
                n_bytes += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
            await send(message)

        self._active.inc()
        try:
            await self._app(scope, receive, observe)
        except asyncio.CancelledError:
            if not self._lifecycle.draining:  # some ASGI servers cancel the task of a client that disconnected
                state["outcome"] = "left"
                status = status or 499  # for the log only
                raise
            state["outcome"] = "cut:draining"  # the grace time is over
            if status == 0:
                await error_response(Draining("the server shut down before this was done"))(scope, receive, observe)
        except Exception:  # a bug: log it, and answer if nothing was sent yet
            log.exception("failed id=%s trace=%s", request_id, trace_id or "-")
            state["outcome"] = "failed"
            if status == 0:  # else the connection closes before the end of the answer
                await error_response(internal_error())(scope, receive, observe)
        finally:
            # A client can send any path and method: log and count only known ones.
            route = getattr(scope.get("route"), "path", state["route"])
            method = scope.get("method", "WS")
            method = method if method in METHODS else "-"
            outcome = "left" if status == 499 else state["outcome"]
            self._active.dec()
            self._answers(method, route, status, outcome.partition(":")[0]).inc()
            if first_s is not None:
                self._first_byte(route).observe(first_s)
            if state["is_summed"]:
                self._sum(method, route, status)
            else:
                log.info(
                    LINE,
                    *(request_id, state["caller"] or "-", method, route, status, outcome, n_bytes),
                    "-" if first_s is None else f"{1000 * first_s:.1f}",
                    *(1000 * (time.monotonic() - started), trace_id or "-"),
                )
            names = {"http.request.method": method, "http.route": route, "tutti.request_id": request_id}
            span.end(f"{method} {route}", status, **names, **{"tutti.outcome": outcome})

    def _count_unread(self, status: int) -> None:
        """Count an answer to what is no proper request, which no application has seen."""
        self._answers("-", "-", status, "done").inc()
        self._sum("-", "-", status)

    def _sum(self, method: str, route: str, status: int) -> None:
        """Log an answer together with others: a line for each would cost more than the answer."""
        if not self._summed:
            asyncio.get_running_loop().call_later(SUMMED_S, self._log_summed)
        self._summed[method, route, status] += 1

    def _log_summed(self) -> None:
        for (method, route, status), n_requests in self._summed.items():
            log.info("requests=%d method=%s route=%s status=%d", n_requests, method, route, status)
        self._summed.clear()
