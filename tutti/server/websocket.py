"""What WebSockets share: messages in as JSON objects, events and sound out, one at a time, at the listener's pace."""

import asyncio
import json
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tutti.errors import InvalidInput, TuttiError
from tutti.server.encoding import Encoding, open_stream
from tutti.server.errors import as_known, error_body
from tutti.server.middleware.ingress import KEY
from tutti.server.request import SpeechRequest
from tutti.server.responses import SEND_BYTES, cut
from tutti.server.service import Service
from tutti.speech import Speech

Message = dict[str, Any]
log = logging.getLogger("tutti.server")


class Talk:
    """One WebSocket. A send waits for a slow reader, so that nothing piles up for it."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._turn = asyncio.Lock()

    @property
    def state(self) -> Any:
        """What the door has noted: request_id, key, caller."""
        return self._websocket.state

    async def begin(self) -> None:
        offered = self._websocket.scope["subprotocols"]
        spoken = next((name for name in offered if not name.startswith(KEY)), None)
        await self._websocket.accept(subprotocol=spoken)

    async def hear(
        self,
        take: Callable[[Message], Awaitable[None]],
        refuse: Callable[[Message, TuttiError], Awaitable[None]],
    ) -> None:
        """Hands over every message until the client leaves; what is wrong with one is told, and the next is heard."""
        while True:
            message: Message = {}
            try:
                received = await self._websocket.receive()
                if received["type"] == "websocket.disconnect":
                    return
                message = _object(received.get("text"))
                await take(message)
            except TuttiError as error:
                await refuse(message, error)

    async def tell(self, *events: Message, sound: bytes = b"") -> None:
        """Events and the sound that belongs to them, nothing of anyone else between."""
        async with self._turn:
            if self._websocket.application_state is not WebSocketState.CONNECTED:
                raise WebSocketDisconnect
            for event in events:
                # ASCII throughout: a message may quote half of a surrogate pair.
                await self._websocket.send_text(json.dumps(event, separators=(",", ":")))
            for part in cut(sound, SEND_BYTES):
                await self._websocket.send_bytes(part)


def fault(error: Exception, request_id: str) -> Message:
    """What a client hears of an error; of a bug only that it is one."""
    known = as_known(error)
    if known is not error:
        log.error("failed id=%s", request_id, exc_info=error)
    found: Message = error_body(known)["error"]
    return found


async def sound(
    service: Service, ask: SpeechRequest, speeches: AsyncGenerator[Speech], timeout_s: float = math.inf
) -> AsyncGenerator[tuple[Speech, bytes]]:
    """Speech with its bytes, piece by piece: a speech comes as often as it has pieces. Ends with the encoder's rest.

    Raises DeadlineExceeded where the first sound does not come in time.
    """
    encoding = Encoding(ask.encoder(), service.encoder_threads)
    last: Speech | None = None
    async with aclosing(speeches):
        opened = await open_stream(ask, speeches, timeout_s)
        async for speech in opened.speeches():
            last = speech
            async for piece in encoding.pieces(speech):
                yield speech, piece
    if last is not None and (rest := await encoding.flush()):
        yield last, rest


def _object(text: str | None) -> Message:
    if text is None:
        raise InvalidInput("send JSON objects as text; binary messages are not understood")
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"this is not JSON: {str(exc)[:200]}") from None
    if not isinstance(read, dict):
        raise InvalidInput('a message is a JSON object: {"type": ...}')
    return read
