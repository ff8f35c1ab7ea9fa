"""Clients of the wires of other services, and the same texts over our own for comparison."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.server.harness import RunningServer

Message = dict[str, Any]


class WireClient:
    """A socket that sends JSON and collects what comes."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[Message] = []
        self.audio = b""  # of binary messages

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def receive(self) -> Message:
        """Return the next message that is JSON."""
        while isinstance(received := await self.socket.recv(), bytes):
            self.audio += received
        self.events.append(json.loads(received))
        return self.events[-1]

    async def until(self, is_last: Callable[[Message], object]) -> Message:
        while not is_last(event := await self.receive()):
            pass
        return event


@asynccontextmanager
async def wire(url: str, path: str, **options: Any) -> AsyncIterator[WireClient]:
    async with connect(f"{url}{path}", max_size=None, **options) as socket:
        yield WireClient(socket)


def run_wire(server: RunningServer, path: str, test: Callable[[WireClient], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with wire(server.socket_url, path, **options) as client:
            await test(client)

    asyncio.run(run())


async def own_speech(url: str, pieces: Iterable[str], **config: Any) -> tuple[bytes, list[Message]]:
    """Return audio and words of a text over our own socket; each piece is flushed."""
    words: list[Message] = []
    async with wire(url, "/v1/audio/speech/stream") as client:
        await client.send(type="session.config", **config)
        for piece in pieces:
            await client.send(type="input.text", text=piece)
            await client.send(type="input.flush")
        await client.send(type="input.done")
        await client.until(lambda event: event["type"] == "session.done")
        for event in client.events:
            words += event.get("words", [])
        return client.audio, words
