"""Messages between two processes over a socket, in the event loops of both; samples go by descriptor.

A transport of asyncio passes no descriptors, so this reads and writes the socket itself.
"""

import asyncio
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable

from tutti.pickled_messages import MessageReader, PackedMessage, pack

READ_BYTES = 1 << 18  # at once
MAX_READS = 16  # in one turn of the event loop: each ends at a descriptor; more would delay the streams that play
ANCILLARY_BYTES = socket.CMSG_SPACE(4)  # of one descriptor
log = logging.getLogger("tutti.server")


class Link:
    """One end."""

    def __init__(self, receive: Callable[[object], None], lost: Callable[[], None]) -> None:
        """`receive` is called with each message, `lost` when either end is closed."""
        self._receive = receive
        self._lost = lost
        self._incoming = MessageReader()
        self._unsent: deque[PackedMessage] = deque()
        self._rest = memoryview(b"")  # of a message whose start was sent
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop

    async def open(self, end: socket.socket) -> None:
        """Connect it; messages that wait in the socket are received before this returns."""
        self._loop = asyncio.get_running_loop()
        end.setblocking(False)
        self._socket = end
        self._loop.add_reader(end.fileno(), self._read)
        self._read()

    def send(self, message: object, carried: socket.socket | None = None) -> None:
        """Send a message; nothing happens if the other end is closed. A socket that goes with it is closed here."""
        if self._socket is None:
            if carried is not None:
                carried.close()
            return
        is_first = not self._unsent and not self._rest
        self._unsent.append(pack(message, share=True)._replace(carried=carried))
        if is_first and not self._write():
            self._loop.add_writer(self._socket.fileno(), self._write_rest)

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

    def _write_rest(self) -> None:
        if self._socket is not None and self._write():
            self._loop.remove_writer(self._socket.fileno())

    def _write(self) -> bool:
        """Send what the socket takes; False if that is not all."""
        assert self._socket is not None
        try:
            while self._rest or self._unsent:
                if not self._rest:
                    self._begin(self._socket, self._unsent[0])
                    if (carried := self._unsent.popleft().carried) is not None:
                        carried.close()
                else:
                    self._rest = self._rest[self._socket.send(self._rest) :]
        except BlockingIOError:
            return False
        except OSError:
            self._drop_unsent()  # the other end is closed, which is seen when this one reads
            self._rest = memoryview(b"")
        return True

    def _begin(self, end: socket.socket, message: PackedMessage) -> None:
        """Send a message as far as the socket takes it, and keep the rest."""
        parts, descriptor = message.parts, message.descriptor
        try:
            if descriptor is None:
                n_sent = end.sendmsg(parts)
            else:
                n_sent = end.sendmsg(parts, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])
        except OSError as exc:
            if exc.errno != errno.ETOOMANYREFS:
                raise
            if message.carried is not None:
                log.error("a connection is lost: more descriptors are on their way than the system allows")
                return
            parts = message._replace(place=None).parts  # more descriptors are on their way than the system allows
            n_sent = end.sendmsg(parts)
        if n_sent < sum(map(len, parts)):
            self._rest = memoryview(b"".join(parts))[n_sent:]

    def _drop_unsent(self) -> None:
        while self._unsent:
            if (carried := self._unsent.popleft().carried) is not None:
                carried.close()

    def _read(self) -> None:
        """Receive what is there."""
        for _ in range(MAX_READS):
            if self._socket is None:
                return
            try:
                data, ancillary, _, _ = self._socket.recvmsg(READ_BYTES, ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                data, ancillary = b"", []
            if not data:
                self.close()
                return
            self._incoming.take_descriptors(ancillary)
            try:
                for message in self._incoming.feed(data):
                    self._receive(message)
            except Exception:  # what follows cannot be trusted
                log.exception("a link between processes failed")
                self.close()
            if not ancillary:
                return
