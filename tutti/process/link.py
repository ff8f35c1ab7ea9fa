"""Both ends of a socket between two processes: messages in order, each with a descriptor if one goes with it.

`Link` is an end in an event loop. A transport of asyncio passes no descriptors, so it reads and writes the socket
itself. `ChildEnd` is the end of a child without an event loop.
"""

import asyncio
import errno
import logging
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tutti.process.messages import LOST, MessageReader, PackedMessage, close_descriptor, pack

READ_BYTES = 1 << 18  # at once
MAX_READS = 16  # in one turn of the event loop: each ends at a descriptor; more would delay the streams that play
ANCILLARY_BYTES = socket.CMSG_SPACE(4)  # of one descriptor
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # macOS has none
log = logging.getLogger(__name__)


class Link:
    """An end in the event loop, which never waits: what the socket does not take is sent when it does."""

    def __init__(self, receive: Callable[[Any], None], lost: Callable[[], None]) -> None:
        """`receive` is called with each message, `lost` when either end is closed."""
        self._receive = receive
        self._lost = lost
        self._incoming = MessageReader()
        self._unsent: deque[PackedMessage] = deque()
        self._unsent_bytes = memoryview(b"")  # of a message whose start was sent
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop

    @property
    def has_unsent(self) -> bool:
        """Whether the other end has not taken all that was sent: it is slow, or does not read."""
        return bool(self._unsent or self._unsent_bytes)

    def open(self, end: socket.socket) -> None:
        """Connect it; messages that wait in the socket are received before this returns."""
        self._loop = asyncio.get_running_loop()
        end.setblocking(False)
        self._socket = end
        self._loop.add_reader(end.fileno(), self._read)
        self._read()

    def send(self, message: object, descriptor: int | None = None) -> None:
        """Send a message; nothing happens if the other end is closed. A descriptor that goes with it is closed here."""
        if self._socket is None:
            close_descriptor(descriptor)
            return
        is_first = not self.has_unsent
        self._unsent.append(pack(message, share=True, carried=descriptor))
        if is_first and not self._write():
            self._loop.add_writer(self._socket.fileno(), self._write_more)

    def _read(self) -> None:
        """Receive what is there."""
        for _ in range(MAX_READS):
            if self._socket is None:
                return
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(READ_BYTES, ANCILLARY_BYTES, _CLOSE_ON_EXEC)
            except BlockingIOError:
                return
            except OSError:
                data, ancillary, flags = b"", [], 0
            if not data:
                self.close()
                return
            self._incoming.take_descriptors(ancillary, flags)
            try:
                for message in self._incoming.feed(data):
                    self._receive(message)
            except Exception:  # later bytes cannot be trusted
                log.exception("a link between processes failed")
                self.close()
            if not ancillary:
                return

    def close(self) -> None:
        """Close this end; what is not sent is lost."""
        if self._socket is None:
            return
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._socket = None
        self._drop_unsent()
        self._incoming.close()
        self._loop.call_soon(self._lost)

    def _write_more(self) -> None:
        if self._socket is not None and self._write():
            self._loop.remove_writer(self._socket.fileno())

    def _write(self) -> bool:
        """Send what the socket takes; False if that is not all."""
        assert self._socket is not None
        try:
            while self._unsent_bytes or self._unsent:
                if self._unsent_bytes:
                    self._unsent_bytes = self._unsent_bytes[self._socket.send(self._unsent_bytes) :]
                else:
                    self._unsent_bytes = _begin(self._socket, self._unsent[0])
                    close_descriptor(self._unsent.popleft().carried)
        except BlockingIOError:
            return False
        except OSError:  # the other end is closed, which is seen when this one reads
            self._drop_unsent()
        return True

    def _drop_unsent(self) -> None:
        self._unsent_bytes = memoryview(b"")
        while self._unsent:
            close_descriptor(self._unsent.popleft().carried)


class ChildEnd:
    """The end of a child without an event loop, which waits in each call: any thread may send, one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._sending = threading.Lock()
        self._incoming = MessageReader()
        self._received: deque[Any] = deque()

    def send(self, message: object, descriptor: int | None = None) -> None:
        """Raise OSError if the parent has closed its end. The caller closes the descriptor."""
        packed = pack(message, carried=descriptor)
        with self._sending:
            if unsent_bytes := _begin(self._socket, packed):  # else it would fail if the parent had all and has left
                self._socket.sendall(unsent_bytes)

    def receive(self, *, wait: bool = True) -> Any:
        """The next message, if need be after waiting; None if it is not there and that is not wanted.

        EOFError: the parent has closed its end.
        """
        while not self._received:
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(
                    READ_BYTES, ANCILLARY_BYTES, _CLOSE_ON_EXEC | (0 if wait else socket.MSG_DONTWAIT)
                )
            except BlockingIOError:
                return None
            if not data:
                raise EOFError("the parent has closed its end")
            self._incoming.take_descriptors(ancillary, flags)
            self._received += self._incoming.feed(data)
        return self._received.popleft()

    def readable(self) -> bool:
        """Whether a message has arrived, or begins to; for the thread that receives."""
        if self._received:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def shut_down(self) -> None:
        """End the connection for both ends: `receive` raises EOFError."""
        with suppress(OSError):  # the parent has done it
            self._socket.shutdown(socket.SHUT_RDWR)


def _begin(end: socket.socket, message: PackedMessage) -> memoryview:
    """Send a message as far as the socket takes it, and return the bytes that it did not take."""
    parts, descriptor = message.parts, message.descriptor
    try:
        if descriptor is None:
            n_sent = end.sendmsg(parts)
        else:
            n_sent = end.sendmsg(parts, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])
    except OSError as exc:
        if exc.errno != errno.ETOOMANYREFS:  # more descriptors are on their way than the system allows
            raise
        if message.carried is not None:
            log.error("a descriptor is lost: more of them are on their way than the system allows")
        parts = message._replace(place=None, carried=None if message.carried is None else LOST).parts
        n_sent = end.sendmsg(parts)
    return memoryview(b"".join(parts))[n_sent:] if n_sent < sum(map(len, parts)) else memoryview(b"")
