"""Messages between two processes over a socket, in the event loops of both."""

import asyncio
import pickle
import socket
from collections.abc import Callable
from struct import Struct
from typing import Self, cast

_HEADER = Struct("<II")  # bytes of a message, and of the samples behind it


class Link(asyncio.Protocol):
    """One end. Both ends run this package, so messages may be pickled; samples are sent as they lie in memory."""

    def __init__(self, receive: Callable[[object], None], lost: Callable[[], None]) -> None:
        """`receive` is called with each message, `lost` when the other end is closed."""
        self._receive = receive
        self._lost = lost
        self._unread = bytearray()
        self._transport: asyncio.Transport

    @classmethod
    async def open(cls, end: socket.socket, receive: Callable[[object], None], lost: Callable[[], None]) -> Self:
        _, link = await asyncio.get_running_loop().create_unix_connection(lambda: cls(receive, lost), sock=end)
        return link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is not derived from it

    def send(self, message: object) -> None:
        """Send a message; nothing happens if the other end is closed."""
        if self._transport.is_closing():
            return
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
        samples = [buffer.raw() for buffer in buffers]
        assert len(samples) <= 1, "a message has the samples of one speech"
        self._transport.writelines([_HEADER.pack(len(body), sum(map(len, samples))), body, *samples])

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        start = 0
        with memoryview(self._unread) as unread:
            while len(unread) - start >= _HEADER.size:
                n_body, n_samples = _HEADER.unpack_from(unread, start)
                body_at = start + _HEADER.size
                samples_at = body_at + n_body
                if len(unread) < samples_at + n_samples:
                    break
                start = samples_at + n_samples
                samples = bytes(unread[samples_at:start])  # empty samples are sent like others, so one may be asked for
                self._receive(pickle.loads(unread[body_at:samples_at], buffers=[samples]))
        del self._unread[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()
