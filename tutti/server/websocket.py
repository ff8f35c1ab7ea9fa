"""Shared by the WebSocket routes: messages in as JSON objects, events and audio out, at the pace of the reader."""

import asyncio
import json
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tutti.errors import InvalidInput, TuttiError
from tutti.server.body_limit import check_json
from tutti.server.client_key import select_subprotocol
from tutti.server.encoding import PieceEncoder, open_stream
from tutti.server.errors import error_body, error_response, note_cut, public_error
from tutti.server.request import SpeechRequest
from tutti.server.responses import split_bytes
from tutti.server.service import Service
from tutti.speech import Speech

Message = dict[str, Any]
MESSAGE_BYTES = 1 << 16  # of audio; even, so that no sample is split
LARGE_TEXT = 100_000  # characters of an event after which others have their turn
log = logging.getLogger("tutti.server")


class MessageSocket:
    """One WebSocket. A send waits for a slow reader, so that nothing is buffered without limit."""

    def __init__(self, websocket: WebSocket, idle_s: float) -> None:
        self._websocket = websocket
        self.idle_s = idle_s  # without any message until it is closed
        self._active_s = asyncio.get_running_loop().time()  # of the last message, in or out
        self._sending = asyncio.Lock()

    @property
    def state(self) -> Any:
        """What the ingress middleware noted: request_id, key, caller."""
        return self._websocket.state

    async def deny(self, error: TuttiError) -> None:
        """Answer with an error instead of the upgrade."""
        await self._websocket.send_denial_response(error_response(error))

    async def accept(self) -> None:
        await self._websocket.accept(subprotocol=select_subprotocol(self._websocket.scope["subprotocols"]))

    async def receive_all(
        self,
        handle: Callable[[Message], Awaitable[None]],
        refuse: Callable[[Message, TuttiError], Awaitable[None]],
    ) -> None:
        """Handle every message until the client disconnects or says nothing for `idle_s` while nothing is spoken.

        An error in a message is reported, and the next is read.
        """
        while True:
            message: Message = {}
            try:
                received = await self._receive()
                if received is None:
                    await self._websocket.close(1000, "idle")
                    return
                if received["type"] == "websocket.disconnect":
                    return
                await asyncio.sleep(0)  # a thousand waiting messages must not keep the event loop from others
                message = _parse(received.get("text"))
                await handle(message)
            except TuttiError as error:
                await refuse(message, error)

    async def _receive(self) -> Message | None:
        """Return the next message; None once the socket is idle."""
        receiving = asyncio.ensure_future(self._websocket.receive())
        loop = asyncio.get_running_loop()
        try:
            while (left_s := self._active_s + self.idle_s - loop.time()) > 0:
                if (await asyncio.wait((receiving,), timeout=left_s))[0]:
                    self._active_s = loop.time()
                    return dict(receiving.result())
            return None
        finally:
            receiving.cancel()

    async def close(self, code: int, reason: str = "") -> None:
        """Close the socket; nothing more can be sent."""
        async with self._sending:
            if self._websocket.application_state is WebSocketState.CONNECTED:
                await self._websocket.close(code, reason)

    def failed(self, error: Exception) -> Message:
        """Note that a text ended with this error, and return it as JSON."""
        fields: Message = error_body(note_cut(self._websocket.scope["state"], error))["error"]
        return fields

    async def send(self, *events: Message, audio: bytes = b"") -> None:
        """Send events and their audio, with nothing else between them."""
        self._active_s = asyncio.get_running_loop().time()
        async with self._sending:
            if self._websocket.application_state is not WebSocketState.CONNECTED:
                raise WebSocketDisconnect
            for event in events:
                # As ASCII: a message may quote half of a surrogate pair.
                text = json.dumps(event, separators=(",", ":"))
                if len(text) > LARGE_TEXT:
                    await asyncio.sleep(0)  # it repeats a part of a large message; each takes some 20 ms
                await self._websocket.send_text(text)
            for part in split_bytes(audio, MESSAGE_BYTES):
                await self._websocket.send_bytes(part)


def error_fields(error: Exception, request_id: str) -> Message:
    """Return an error as JSON; a bug is logged, and only reported as an internal error."""
    public = public_error(error)
    if public is not error:
        log.error("failed id=%s", request_id, exc_info=error)
    fields: Message = error_body(public)["error"]
    return fields


async def encoded_speech(
    service: Service, request: SpeechRequest, speeches: AsyncGenerator[Speech], timeout_s: float = math.inf
) -> AsyncGenerator[tuple[Speech, bytes]]:
    """Yield each speech once for every piece of its bytes, one without samples once, and the last for the rest.

    Raises DeadlineExceeded if the first audio does not come in time.
    """
    encoder = PieceEncoder(service.encoders, request)
    last: Speech | None = None
    async with aclosing(speeches):
        stream = await open_stream(request, speeches, timeout_s)
        async for speech in stream.speeches():
            last = speech
            if not len(speech.samples):  # it only names what was not spoken
                yield speech, b""
            async for piece in encoder.pieces(speech):
                yield speech, piece
    if last is not None and (rest := await encoder.flush()):
        yield last, rest


def _parse(text: str | None) -> Message:
    if text is None:
        raise InvalidInput("send JSON objects as text; binary messages are not supported")
    check_json(text.encode("utf-8", "surrogatepass"))
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"the message is not JSON: {str(exc)[:200]}") from None
    if not isinstance(message, dict):
        raise InvalidInput('a message is a JSON object: {"type": ...}')
    return message
