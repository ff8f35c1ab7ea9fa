"""An id for every request, and one line in the log for each; never what was said in it."""

import logging
import re
import time
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tutti.server.errors import answer, internal

SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}\Z")
log = logging.getLogger("tutti.access")


class Access:
    """The outermost layer: it sees every answer, also those of the layers below that refuse."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
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
            if message["type"] == "http.response.start":
                status, first_s = message["status"], time.monotonic() - started
                MutableHeaders(scope=message)["x-request-id"] = request_id
            else:
                n_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, told)
        except Exception:
            log.exception("failed id=%s", request_id)
            state["outcome"] = "failed"
            if status == 0:  # else the connection is closed without the end of its answer
                await answer(internal())(scope, receive, told)
        finally:
            route = getattr(scope.get("route"), "path", "-")  # the path itself may hold anything
            log.info(
                "request id=%s caller=%s method=%s route=%s status=%d outcome=%s bytes=%d first_ms=%.1f ms=%.1f",
                *(request_id, state["caller"] or "-", scope["method"], route, status),
                *("left" if status == 499 else state["outcome"], n_bytes),
                *(1000 * first_s, 1000 * (time.monotonic() - started)),
            )
