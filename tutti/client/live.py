"""Speech for a text that is still being written: WS /v1/audio/speech/stream, in both faces."""

import asyncio
import json
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import httpx2

from tutti.client.audio import SAMPLE_RATE, Piece, words_from
from tutti.client.call_stats import Call, Watch
from tutti.client.decoders import Cutter
from tutti.client.errors import ClientClosed, CutShort, Unreachable, named, refusal, worded
from tutti.client.request import NAMES
from tutti.client.sync_bridge import LoopThread
from tutti.client.transport import Wire
from tutti.errors import MissingExtra, TuttiError

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

PATH = "/v1/audio/speech/stream"
MAX_MESSAGE_BYTES = 4 << 20


class AsyncLive:
    """Send text as it comes, `finish`, and iterate: the pieces end with the text. Then the next text may begin."""

    def __init__(
        self,
        wire: Wire,
        wishes: Mapping[str, object],
        chunk_bytes: int,
        watch: Callable[[], Watch],
        told: Callable[[Call], None],
    ) -> None:
        asked = {NAMES.get(name, name): value for name, value in wishes.items() if value is not None}
        self._config = {"type": "session.config", "response_format": "pcm", "word_timestamps": True, **asked}
        self._wire = wire
        self._chunk_bytes = chunk_bytes
        self._cutter = self._cutter_for("pcm", SAMPLE_RATE)
        self._turn = 0  # a cancelled turn may still sound for a moment: its messages have another name
        self._sounding: object = None
        self._n_sent = 0
        self._new_watch = watch
        self._tell_call = told
        self._watch: Watch | None = None  # of the text that is being said, from its first bit
        self._ready: list[Piece] = []
        self._socket: asyncio.Future[AsyncWebSocketSession] | None = None
        self._leave = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._receiving: asyncio.Task[object] | None = None

    async def send(self, text: str) -> None:
        """The next words, in whatever bits they come."""
        if text:
            self._watch = self._watch or self._new_watch()
            self._n_sent += 1
            await self._tell({"type": "input.text", "text": text})

    async def say(self, words: AsyncIterable[str]) -> None:
        """Everything an LLM writes, bit by bit, and then the end."""
        async for bit in words:
            await self.send(bit)
        await self.finish()

    async def finish(self) -> None:
        """That was all of this text: what is left is spoken, then the pieces end."""
        await self._tell({"type": "input.done"})

    async def cancel(self) -> None:
        """The listener spoke: whatever was not yet heard is dropped, here and there. Go on with new text."""
        await self._tell({"type": "input.cancel"})
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
        """The pieces of the next message, or none at the end of the text."""
        from httpx2.websockets import WebSocketDisconnect, WebSocketNetworkError
        from wsproto.events import BytesMessage, TextMessage

        while True:
            try:
                self._receiving = asyncio.create_task((await self._opened()).receive())
                message = await self._receiving
            except asyncio.CancelledError:
                if self._leave.is_set():
                    return []
                raise
            except (WebSocketDisconnect, WebSocketNetworkError) as error:
                if self._leave.is_set():
                    return []
                n_bytes = self._cutter.n_bytes
                raise CutShort(f"the server hung up after {n_bytes} bytes of audio", n_bytes=n_bytes) from error
            if isinstance(message, BytesMessage):
                pieces = self._heard(bytes(message.data)) if self._sounding == self._name else []
            elif isinstance(message, TextMessage):
                event = json.loads(message.data)
                if self._ends(event):
                    return []
                pieces = self._told(event)
            if pieces:
                return pieces

    async def __aenter__(self) -> Self:
        self._socket = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(self._socket))
        await self._opened()
        await self._send(self._config)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._leave.set()
        if self._receiving:
            self._receiving.cancel()  # who listens in another task has heard the last
        if self._owner:
            await self._owner

    async def _own(self, opened: "asyncio.Future[AsyncWebSocketSession]") -> None:
        """Holds the socket: who opened it must close it, whichever task asks for that."""
        address = self._wire.url.replace("http", "ws", 1) + PATH
        try:
            from httpx2.websockets import HTTPXWSException, WebSocketUpgradeError
        except ImportError:
            opened.set_exception(MissingExtra('live speech needs WebSockets: pip install "httpx2[ws]"'))
            return
        try:
            async with self._wire.sockets.websocket(address, max_message_size_bytes=MAX_MESSAGE_BYTES) as socket:
                opened.set_result(socket)
                await self._leave.wait()
        except WebSocketUpgradeError as error:
            opened.set_exception(refusal(error.response.status_code, error.response.headers, b"").error)
        except (HTTPXWSException, httpx2.TransportError) as error:
            if not opened.done():
                opened.set_exception(Unreachable(f"{address} did not answer: {error or type(error).__name__}"))

    def _ends(self, event: Mapping[str, Any]) -> bool:
        match event.get("type"):
            case "audio.done":
                ended = event.get("context") in (None, self._name) and not event.get("cancelled")
                if ended and self._watch:
                    self._tell_call(self._watch.call())
                    self._watch = None
                self._n_sent = 0 if ended else self._n_sent
                return ended
            case "session.done":
                return self._n_sent == 0 and self._turn == 0  # a text without words has no audio.done
        return False

    def _heard(self, data: bytes) -> list[Piece]:
        if self._watch:
            if not self._watch.n_bytes:
                self._watch.answered("")
            self._watch.n_bytes += len(data)
        return self._cutter.feed(data)

    def _told(self, event: Mapping[str, Any]) -> list[Piece]:
        mine = event.get("context") in (None, self._name)
        match event.get("type"):
            case "audio.start":
                self._sounding = event.get("context") or self._name
                self._cutter = self._cutter_for(event.get("format", "pcm"), event.get("sample_rate", SAMPLE_RATE))
            case "audio.next":
                self._sounding = event.get("context")
            case "audio.words" if mine:
                words = words_from(event.get("words"))
                return [Piece(b"", words)] if words else []
            case "error" if mine:
                raise _error(event)
        return []

    @property
    def _name(self) -> str:
        return f"turn-{self._turn}"

    def _cutter_for(self, format: str, sample_rate: int) -> Cutter:
        return Cutter(self._chunk_bytes, sample_rate if format == "pcm" else None)

    async def _tell(self, event: dict[str, str]) -> None:
        await self._send({**event, "context": self._name})

    async def _send(self, event: Mapping[str, object]) -> None:
        from httpx2.websockets import HTTPXWSException

        try:
            await (await self._opened()).send_text(json.dumps(event))
        except HTTPXWSException as error:
            raise Unreachable("the server hung up") from error

    async def _opened(self) -> "AsyncWebSocketSession":
        if self._socket is None:
            raise ClientClosed("enter it first: async with client.live() as live")
        if self._leave.is_set():
            raise ClientClosed("this live session is over")
        return await asyncio.shield(self._socket)


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
        self.close()

    def close(self) -> None:
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


def _error(event: Mapping[str, Any]) -> TuttiError:
    message, code, param = worded(json.dumps({"error": event.get("error")}).encode(), 500)
    return named(message, code, param, 500)
