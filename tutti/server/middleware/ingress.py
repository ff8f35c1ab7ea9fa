"""The way in: who may ask for work, how often, and how much of a body is read."""

import asyncio
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tutti.errors import InvalidInput, TuttiError
from tutti.server.errors import NotJson, TooLarge, answer
from tutti.server.middleware.auth import Keys
from tutti.server.service import Service

KEY = "openai-insecure-api-key."  # a subprotocol with the key in it: browsers cannot send headers with a WebSocket
AT_ONCE = 8  # requests that begin in one turn of the event loop
DISCARD_BYTES = 1 << 25  # a refused body up to here is read and dropped, so that its sender can read why


STREAMED = "/v1/jobs"  # a book is larger than other bodies; its route reads it piece by piece and keeps count


class WrongOrigin(TuttiError):
    status, code = 403, "origin_not_allowed"


class Ingress:
    """Stops a POST or a WebSocket at the door where it cannot be served; GET is open to all and costs nothing."""

    def __init__(self, app: ASGIApp, service: Service, keys: Keys) -> None:
        self._app = app
        self._service = service
        self._keys = keys
        self._beginning = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        lifecycle = self._service.lifecycle
        lifecycle.enter()
        try:
            self._admit(scope, headers)
            if scope["path"] == STREAMED:
                await self._app(scope, receive, send)
                return
            body = await self._read(headers, receive)
            async with self._beginning:  # a crowd that comes at once must not hold up those who listen
                await asyncio.sleep(0)
            if body is not None:
                await self._app(scope, _replay(body, receive), send)
        except TuttiError as error:
            too_much = int(headers.get("content-length") or DISCARD_BYTES + 1) > DISCARD_BYTES
            await answer(error, {"connection": "close"} if too_much else None)(scope, receive, send)
        finally:
            lifecycle.leave()

    def _admit(self, scope: Scope, headers: Headers) -> None:
        """Notes who calls, or raises where the key, the server's state or the rate forbid it."""
        caller = self._known(scope, headers.get("authorization", ""))
        self._service.lifecycle.check()
        self._service.limits.requests.take(caller)

    def _known(self, scope: Scope, authorization: str) -> str:
        """Whoever this is, for the log and for fair shares; raises where nobody knows the key."""
        key = self._keys.caller(authorization)
        caller: str = key or (scope["client"] or ("",))[0]
        scope["state"] |= {"key": key, "caller": caller}
        return caller

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A session costs nothing; each text that is said in it counts as a request."""
        headers = Headers(scope=scope)
        try:
            check_origin(headers, self._service.settings.cors_origins)
            offered = (name.removeprefix(KEY) for name in scope["subprotocols"] if name.startswith(KEY))
            self._known(scope, headers.get("authorization") or f"Bearer {next(offered, '')}")
            self._service.lifecycle.check()
        except TuttiError as error:
            await answer(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """The body, or nothing where the client hung up."""
        max_body = self._service.settings.max_body
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise NotJson("send the body as plain JSON, not compressed")
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise InvalidInput(f"content-length {length[:20]!r} is not a number")
        body = bytearray()
        more = True
        while more and max(int(length), len(body)) <= max_body:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if max(int(length), len(body)) > max_body:
            raise TooLarge(f"the body is over {max_body:,} bytes (TUTTI_MAX_BODY)")
        return bytes(body)


def check_origin(headers: Headers, allowed: Sequence[str]) -> None:
    """Browsers let any page open a WebSocket to anyone; only the server can tell that a page may not."""
    origin = headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
        return
    if origin.partition("://")[2] != headers.get("host", ""):
        raise WrongOrigin(f"pages of {origin[:100]} may not speak here; list it in TUTTI_CORS_ORIGINS")


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
