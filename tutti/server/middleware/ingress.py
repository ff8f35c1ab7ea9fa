"""Ingress middleware: host and origin, API key, state of the server, rate limit, size of the body."""

import asyncio
import re
from collections.abc import Callable, Mapping

from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tutti.admission.loop_budget import MAX_START_WAIT_S
from tutti.errors import InvalidInput, QueueFull, TuttiError
from tutti.server.body_limit import (
    BodyReceiver,
    check_json,
    limit_body,
    read_body,
    refuse_compressed,
    replay_body,
)
from tutti.server.client_key import find_key, may_send_key_later
from tutti.server.client_timeout import WAIT_SHARE, max_start_s
from tutti.server.errors import TooLarge, error_response
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.origin import OriginRules
from tutti.server.service import Service

DISCARD_BYTES = 1 << 25  # a refused body up to this size is read and dropped, so that the client can read the error
READING = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
LARGE_BODY = 1 << 16  # bytes whose check and parsing are worth a turn of the event loop each
STREAMED_PATH = "/v1/jobs"  # a book is larger than other bodies: its route reads and limits it itself
PATIENT_SHARE = 0.5  # of the time that a request may wait to start, which it may wait for the event loop
_WHOLE = re.compile(rb'"stream"\s*:\s*false')  # in a text its quotes would be escaped
_VOICE_STREAM = re.compile(r"/v1/text-to-speech/[^/]+(/stream(?:/with-timestamps)?)")
STREAMS = frozenset((  # other routes whose answers are always sent as they are made
    "/tts/stream", "/tts/bytes", "/tts/sse", "/v1/speak", "/v2/speak", "/v1/text-to-dialogue/stream",
    "/cognitiveservices/v1",
))  # fmt: skip


class Ingress:
    """Refuses POST requests and WebSockets that cannot be served. GET needs only the right host, and waits its turn."""

    def __init__(self, app: ASGIApp, service: Service, keys: ApiKeys) -> None:
        self._app = app
        self._service = service
        self._keys = keys
        self._rules = OriginRules(service.settings)
        self._loop_budget = service.engine.loop_budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope["state"]["headers"]
        try:
            self._rules.check_host(headers)
            if scope["method"] not in READING:
                self._rules.check_origin(headers)
        except TuttiError as error:
            await error_response(error, {"connection": "close"})(scope, receive, send)
            return
        if scope["method"] == "POST":
            await self._post(scope, headers, receive, send)
            return
        key = self._keys.known_caller(find_key(headers, scope["query_string"]))  # for its private voices
        scope["state"] |= {"key": key, "caller": key or self._rules.client_address(scope, headers)}
        await self._loop_budget.turn("read")
        await self._app(scope, receive, send)

    async def _post(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        receive = body_receiver = BodyReceiver(receive)
        if headers.get("connection", "").lower() == "close" and "expect" not in headers:
            send = _after_body(body_receiver, send)
        lifecycle = self._service.lifecycle
        lifecycle.enter()
        try:
            caller = self._identify(scope, headers)
            lifecycle.check()
            self._service.limits.requests.take(caller)
            if scope["path"] == STREAMED_PATH:
                await self._app(scope, receive, send)
                return
            body = await self._read(headers, receive)
            if body is None:
                await Response(status_code=499)(scope, receive, send)  # for the access log only
                return
            allowed_s = max_start_s(headers, self._service.settings.timeout_s)
            route = stream_route(scope["path"], body) if allowed_s is None else None
            if route is not None:
                scope["state"]["route"] = route  # for the log: it may be refused before it is routed
                self._service.check_known_refusal(caller)
            await self._wait_turn(caller, self._max_wait_s(allowed_s, route))
            with self._loop_budget.starting() as answered:
                if "json" in headers.get("content-type", "json"):
                    check_json(body)
                    if len(body) > LARGE_BODY:
                        await asyncio.sleep(0)  # parsing comes next; for 4 MB both take some 10 ms
                await self._app(scope, replay_body(body, receive), _telling(answered, send))
        except TuttiError as error:
            scope["state"]["is_summed"] = isinstance(error, QueueFull)
            length = headers.get("content-length", "")
            too_much = not length.isdecimal() or int(length) > DISCARD_BYTES
            await error_response(error, {"connection": "close"} if too_much else None)(scope, receive, send)
        finally:
            lifecycle.leave()

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a new session. It is not counted as a request, but each text in it is."""
        headers = scope["state"]["headers"]
        try:
            self._rules.check_host(headers)
            self._rules.check_origin(headers)
            self._identify(scope, headers)
            self._service.lifecycle.check()
        except TuttiError as error:
            await error_response(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _identify(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """Return the caller, for the log and for fair shares; raise if the key is unknown.

        The state has None for a key that may still come in the first message of a WebSocket: its route has to check.
        """
        given = find_key(headers, scope["query_string"], scope.get("subprotocols", ()))
        is_later = not given and scope["type"] == "websocket" and may_send_key_later(scope["path"])
        key = None if is_later and self._keys.needed else self._keys.caller(given)
        caller = key or self._rules.client_address(scope, headers)
        scope["state"] |= {"key": key, "caller": caller}
        return caller

    async def _wait_turn(self, caller: str, max_wait_s: float) -> None:
        """Return when a request may begin; raise QueueFull if that would take longer than this."""
        is_patient = max_wait_s > MAX_START_WAIT_S
        self._service.check_start(caller, max_wait_s, is_patient=is_patient)
        await self._loop_budget.turn("start", caller, is_patient=is_patient)

    def _max_wait_s(self, allowed_s: float | None, stream: str | None) -> float:
        """Return how long a request may wait for the event loop: longer if its client says so, or waits for a file."""
        if stream is not None:
            return MAX_START_WAIT_S
        if allowed_s is None:
            allowed_s = WAIT_SHARE * self._service.settings.timeout_s
        return max(MAX_START_WAIT_S, PATIENT_SHARE * allowed_s)

    async def _read(self, headers: Mapping[str, str], receive: Receive) -> bytes | None:
        """Read the body; None if the client disconnected."""
        refuse_compressed(headers)
        max_body = self._service.settings.max_body
        too_large = TooLarge(f"the body is over {max_body:,} bytes (TUTTI_MAX_BODY)")
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise InvalidInput(f"content-length {length[:20]!r} is not a number")
        if int(length) > max_body:
            raise too_large
        return await read_body(limit_body(receive, max_body, too_large))


def stream_route(path: str, body: bytes) -> str | None:
    """The route of a request that asks for audio as it is made, by its path and its JSON that is not parsed yet."""
    if path in STREAMS or (path == "/v1/audio/speech" and not _WHOLE.search(body)):
        return path
    of_voice = _VOICE_STREAM.fullmatch(path)
    return f"/v1/text-to-speech/{{voice_id}}{of_voice[1]}" if of_voice else None


def _telling(answered: Callable[[], None], send: Send) -> Send:
    """Wrap `send`: tell when the answer begins."""

    async def sending(message: Message) -> None:
        answered()
        await send(message)

    return sending


def _after_body(body: BodyReceiver, send: Send) -> Send:
    """Wrap `send`: read the rest of the body before an answer, which a client that closes could otherwise not read.

    Closing a connection that has unread data resets it, and the answer is lost.
    """

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            await body.discard(DISCARD_BYTES)
        await send(message)

    return sending
