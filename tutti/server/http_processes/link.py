"""Messages between two processes over a socket, in the event loops of both."""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from tutti.pickled_messages import MessageReader, pack


class Link(asyncio.Protocol):
    """One end."""

    def __init__(self, receive: Callable[[object], None], lost: Callable[[], None]) -> None:
        """`receive` is called with each message, `lost` when the other end is closed."""
        self._receive = receive
        self._lost = lost
        self._incoming = MessageReader()
        self._transport: asyncio.Transport

    async def open(self, end: socket.socket) -> None:
        """Connect it; messages that wait in the socket are received before this returns."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=end)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is not derived from it

    def send(self, message: object) -> None:
        """Send a message; nothing happens if the other end is closed."""
        if not self._transport.is_closing():
            self._transport.writelines(pack(message))

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        for message in self._incoming.feed(data):
            self._receive(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()
