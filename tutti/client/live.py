"""Speech for a text that is still being written: WS /v1/audio/speech/stream, in both faces."""

import json
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

import httpx2

from tutti.client.audio import SAMPLE_RATE, Piece, words_from
from tutti.client.errors import ClientClosed, CutShort, Refusal, Unreachable, named, refusal, worded
from tutti.client.loop import LoopThread
from tutti.client.readers import Cutter
from tutti.client.wire import Wire
from tutti.errors import MissingExtra, TuttiError

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

PATH = "/v1/audio/speech/stream"
MAX_MESSAGE_BYTES = 4 << 20


class AsyncLive:
    """Send text as it comes, `finish`, and iterate over the pieces; `cancel` drops what is not yet spoken."""

    def __init__(self, wire: Wire, wishes: Mapping[str, object], chunk_bytes: int) -> None:
        self._wire = wire
        config = {name: value for name, value in wishes.items() if value is not None}
        config["response_format"] = config.pop("format", "pcm")
        self._config = {"type": "session.config", **config}
        rate = config.get("sample_rate")
        self._cutter = Cutter(chunk_bytes, rate if isinstance(rate, int) else SAMPLE_RATE)
        self._stack = AsyncExitStack()
        self._socket: AsyncWebSocketSession | None = None
        self._ready: list[Piece] = []
        self._over = False

    async def __aenter__(self) -> Self:
        try:
            from httpx2.websockets import HTTPXWSException, WebSocketUpgradeError
        except ImportError:
            raise MissingExtra('live speech needs WebSockets: pip install "httpx2[ws]"') from None
        address = self._wire.url.replace("http", "ws", 1) + PATH
        try:
            self._socket = await self._stack.enter_async_context(
                self._wire.http.websocket(address, max_message_size_bytes=MAX_MESSAGE_BYTES)
            )
            await self._send(self._config)
        except WebSocketUpgradeError as error:
            raise _refused(error.response).error from error
        except (HTTPXWSException, httpx2.TransportError) as error:
            raise Unreachable(f"{address} did not answer: {error or type(error).__name__}") from error
        return self

    async def send(self, text: str) -> None:
        """The next words, in whatever bits they come."""
        if text:
            await self._send({"type": "input.text", "text": text})

    async def finish(self) -> None:
        """That was all: what is left is spoken, then the pieces end."""
        await self._send({"type": "input.done"})

    async def cancel(self) -> None:
        """The listener spoke: whatever was not yet said is dropped, here and on the server."""
        self._ready = []
        await self._send({"type": "input.cancel"})

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        while not self._ready:
            if not (pieces := await self.batch()):
                raise StopAsyncIteration
            self._ready = pieces[::-1]
        return self._ready.pop()

    async def batch(self) -> list[Piece]:
        """The pieces of the next message, or none at the end."""
        from httpx2.websockets import WebSocketDisconnect, WebSocketNetworkError
        from wsproto.events import BytesMessage, TextMessage

        while not self._over:
            try:
                message = await self._opened().receive()
            except (WebSocketDisconnect, WebSocketNetworkError) as error:
                self._over = True
                n_bytes = self._cutter.n_bytes
                raise CutShort(f"the server hung up after {n_bytes} bytes of audio", n_bytes=n_bytes) from error
            pieces: list[Piece] = []
            if isinstance(message, BytesMessage):
                pieces = self._cutter.feed(bytes(message.data))
            elif isinstance(message, TextMessage):
                pieces = self._told(json.loads(message.data))
            if pieces:
                return pieces
        return []

    async def aclose(self) -> None:
        self._over = True
        await self._stack.aclose()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _told(self, event: dict[str, Any]) -> list[Piece]:
        match event.get("type"):
            case "audio.words":
                words = words_from(event.get("words"))
                return [Piece(b"", words)] if words else []
            case "session.done":
                self._over = True
            case "error":
                raise _error(event)
        return []

    async def _send(self, event: Mapping[str, object]) -> None:
        await self._opened().send_text(json.dumps(event))

    def _opened(self) -> "AsyncWebSocketSession":
        if self._socket is None:
            raise ClientClosed("enter it first: async with client.live() as live")
        return self._socket


class Live:
    """The same for code that waits. One thread may send while another listens."""

    def __init__(self, live: AsyncLive, loop: LoopThread) -> None:
        self._live = live
        self._loop = loop
        self._ready: list[Piece] = []

    def __enter__(self) -> Self:
        self._loop.run(self._live.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._live.aclose())

    def send(self, text: str) -> None:
        self._loop.run(self._live.send(text))

    def say(self, words: Iterable[str]) -> None:
        """Everything an LLM writes, bit by bit, and then the end."""
        for bit in words:
            self.send(bit)
        self.finish()

    def finish(self) -> None:
        self._loop.run(self._live.finish())

    def cancel(self) -> None:
        self._ready = []
        self._loop.run(self._live.cancel())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        if not self._ready:
            self._ready = self._loop.run(self._live.batch())[::-1]
        if not self._ready:
            raise StopIteration
        return self._ready.pop()


def _error(event: dict[str, Any]) -> TuttiError:
    status = event.get("status")
    message, code, param = worded(json.dumps(event).encode(), 500)
    return named(message, code, param, status if isinstance(status, int) else 500)


def _refused(response: httpx2.Response) -> Refusal:
    return refusal(response.status_code, response.headers, b"")
