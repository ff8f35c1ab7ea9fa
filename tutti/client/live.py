"""Speech for text that is still being written: WS /v1/audio/speech/stream, for async and for blocking code."""

import asyncio
import json
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, Self

import httpx2

from tutti.client.audio import SAMPLE_RATE, Piece, parse_facts
from tutti.client.call_stats import Call, Stopwatch
from tutti.client.decoders import AudioSplitter
from tutti.client.errors import ClientClosed, CutShort, Unreachable, event_error, parse_error_response
from tutti.client.request import TimeKind, check_text, wire_options, wire_times
from tutti.client.sync_bridge import LoopThread
from tutti.client.transport import Transport
from tutti.errors import MissingExtra

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

PATH = "/v1/audio/speech/stream"
MAX_MESSAGE_BYTES = 4 << 20  # of one WebSocket message


class AsyncLive:
    """Send text as it is written, `finish`, and iterate: the pieces end with the text. Then send the next text."""

    def __init__(
        self,
        transport: Transport,
        options: Mapping[str, object],
        times: Set[TimeKind],
        chunk_bytes: int,
        new_watch: Callable[[], Stopwatch],
        on_call: Callable[[Call], None],
    ) -> None:
        self._config = {
            "type": "session.config",
            "response_format": "pcm",
            **wire_options(options),
            **wire_times(times),
        }
        self._transport = transport
        self._chunk_bytes = chunk_bytes
        self._splitter = self._new_splitter("pcm", SAMPLE_RATE)
        self._turn = 0  # names the context: late audio of a cancelled turn carries another name
        self._audio_context: object = None  # the context of the binary messages
        self._n_sent = 0
        self._new_watch = new_watch
        self._on_call = on_call
        self._watch: Stopwatch | None = None  # of the current text, from its first fragment
        self._ready: list[Piece] = []
        self._socket: asyncio.Future[AsyncWebSocketSession] | None = None
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._receiving: asyncio.Task[object] | None = None

    async def send(self, text: str) -> None:
        """Send the next fragment of the text, of any length."""
        check_text(text)
        if text:
            self._watch = self._watch or self._new_watch()
            self._n_sent += 1
            await self._send_event({"type": "input.text", "text": text})

    async def say(self, words: AsyncIterable[str]) -> None:
        """Send everything an LLM writes, fragment by fragment, then finish."""
        async for fragment in words:
            await self.send(fragment)
        await self.finish()

    async def finish(self) -> None:
        """End this text: the rest of it is spoken, then the pieces end."""
        await self._send_event({"type": "input.done"})

    async def cancel(self) -> None:
        """Drop all audio that was not delivered yet, as when the listener interrupts. New text may follow."""
        await self._send_event({"type": "input.cancel"})
        self._turn += 1
        self._n_sent = 0
        self._watch = None
        self._ready = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        if not self._ready:
            self._ready = (await self.batch())[::-1]
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.pop()

    async def batch(self) -> list[Piece]:
        """Return the pieces of the next message, or an empty list at the end of the text."""
        from httpx2.websockets import WebSocketDisconnect, WebSocketNetworkError
        from wsproto.events import BytesMessage, TextMessage

        while True:
            try:
                self._receiving = asyncio.create_task((await self._opened()).receive())
                message = await self._receiving
            except asyncio.CancelledError:
                if self._closing.is_set():
                    return []
                raise
            except (WebSocketDisconnect, WebSocketNetworkError) as error:
                if self._closing.is_set():
                    return []
                n_bytes = self._splitter.n_bytes
                raise CutShort(
                    f"the server closed the connection after {n_bytes} bytes of audio", n_bytes=n_bytes
                ) from error
            if isinstance(message, BytesMessage):
                pieces = self._take_audio(bytes(message.data)) if self._audio_context == self._context else []
            elif isinstance(message, TextMessage):
                event = json.loads(message.data)
                if self._is_end(event):
                    return []
                pieces = self._take_event(event)
            if pieces:
                return pieces

    async def __aenter__(self) -> Self:
        self._socket = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._hold_socket(self._socket))
        await self._opened()
        await self._send(self._config)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._closing.set()
        if self._receiving:
            self._receiving.cancel()  # ends an iteration in another task
        if self._owner:
            await self._owner

    async def _hold_socket(self, opened: "asyncio.Future[AsyncWebSocketSession]") -> None:
        """Open and close the socket in one task, as its library requires, whichever task calls `aclose`."""
        address = self._transport.url.replace("http", "ws", 1) + PATH
        try:
            from httpx2.websockets import HTTPXWSException, WebSocketUpgradeError
        except ImportError:
            opened.set_exception(MissingExtra('live speech needs WebSockets: pip install "httpx2[ws]"'))
            return
        try:
            async with self._transport.websockets.websocket(
                address, max_message_size_bytes=MAX_MESSAGE_BYTES
            ) as socket:
                opened.set_result(socket)
                await self._closing.wait()
        except WebSocketUpgradeError as error:
            response = error.response
            opened.set_exception(parse_error_response(response.status_code, response.headers, b"").error)
        except (HTTPXWSException, httpx2.TransportError) as error:
            if not opened.done():
                opened.set_exception(Unreachable(f"{address} did not answer: {error or type(error).__name__}"))

    def _is_end(self, event: Mapping[str, Any]) -> bool:
        match event.get("type"):
            case "audio.done":
                ended = event.get("context") in (None, self._context) and not event.get("cancelled")
                if ended and self._watch:
                    self._on_call(self._watch.call())
                    self._watch = None
                self._n_sent = 0 if ended else self._n_sent
                return ended
            case "session.done":
                return self._n_sent == 0 and self._turn == 0  # a text with nothing to speak has no audio.done
        return False

    def _take_audio(self, data: bytes) -> list[Piece]:
        if self._watch:
            if not self._watch.n_bytes:
                self._watch.mark_first_byte("")
            self._watch.n_bytes += len(data)
        return self._splitter.feed(data)

    def _take_event(self, event: Mapping[str, Any]) -> list[Piece]:
        current = event.get("context") in (None, self._context)
        match event.get("type"):
            case "audio.start":
                self._audio_context = event.get("context") or self._context
                self._splitter = self._new_splitter(event.get("format", "pcm"), event.get("sample_rate", SAMPLE_RATE))
            case "audio.next":
                self._audio_context = event.get("context")
            case "audio.words" | "audio.phonemes" | "audio.visemes" | "audio.notice" if current:
                return parse_facts(event)
            case "error" if current:
                raise event_error(event)
        return []

    @property
    def _context(self) -> str:
        return f"turn-{self._turn}"

    def _new_splitter(self, format: str, sample_rate: int) -> AudioSplitter:
        return AudioSplitter(self._chunk_bytes, sample_rate if format == "pcm" else None)

    async def _send_event(self, event: dict[str, str]) -> None:
        await self._send({**event, "context": self._context})

    async def _send(self, event: Mapping[str, object]) -> None:
        from httpx2.websockets import HTTPXWSException

        try:
            await (await self._opened()).send_text(json.dumps(event))
        except HTTPXWSException as error:
            raise Unreachable("the server closed the connection") from error

    async def _opened(self) -> "AsyncWebSocketSession":
        if self._socket is None:
            raise ClientClosed("open the live session first: with client.live() as live")
        if self._closing.is_set():
            raise ClientClosed("this live session is closed")
        return await asyncio.shield(self._socket)


class Live:
    """`AsyncLive` for blocking code. One thread may send while another iterates."""

    def __init__(self, live: AsyncLive, loop: LoopThread) -> None:
        self._live = live
        self._loop = loop
        self._ready: list[Piece] = []

    def __enter__(self) -> Self:
        self._loop.run(self._live.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._loop.run(self._live.aclose())

    def send(self, text: str) -> None:
        self._loop.run(self._live.send(text))

    def say(self, words: Iterable[str]) -> None:
        """Send everything an LLM writes, fragment by fragment, then finish."""
        for fragment in words:
            self.send(fragment)
        self.finish()

    def finish(self) -> None:
        self._loop.run(self._live.finish())

    def cancel(self) -> None:
        self._loop.run(self._live.cancel())
        self._ready = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        if not self._ready:
            self._ready = self._loop.run(self._live.batch())[::-1]
        if not self._ready:
            raise StopIteration
        return self._ready.pop()
