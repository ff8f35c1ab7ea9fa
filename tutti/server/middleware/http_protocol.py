"""One connection, with limits to patience: who neither sends nor reads is cut, and holds up nobody meanwhile."""

import asyncio
import json
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tutti.errors import InvalidInput, TuttiError
from tutti.server.errors import error_body

SLOWEST_BYTES_S = 1024.0  # a request must come at least this fast, after its first seconds
STALLED = 6  # a reader may pause this many times longer than a sender: players stop for a while when they are full
UNSENT_BYTES = 1 << 16  # what the kernel may hold for a slow reader


class Connection(H11Protocol):
    """Uvicorn's HTTP/1.1, which knows no time limit for a request that never ends or an answer that is never read."""

    idle_s = 10.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self.access_log = False  # its lines hold the whole path; ours do not
        self._asked_at = 0.0
        self._n_asked_bytes = 0
        self._unsent = 0
        self._unsent_since = 0.0
        self._check: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._asked_at = self.loop.time()
        if self._max_connections is not None and len(self.connections) > self._max_connections:
            self._refuse(503, _Crowded("too many connections; ask again in a moment"), b"retry-after: 1\r\n")
            return
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(socket, "TCP_NOTSENT_LOWAT") and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._n_asked_bytes == 0:
            self._asked_at = self.loop.time()
        self._n_asked_bytes += len(data)
        super().data_received(data)
        if self._has_asked():
            self._n_asked_bytes = 0

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._look_no_more()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, InvalidInput("this is not HTTP/1.1"))

    def _has_asked(self) -> bool:
        """The request has come to its end."""
        return self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)

    def _look_later(self) -> None:
        self._check = self.loop.call_later(self.idle_s / 2, self._look)

    def _look_no_more(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def _look(self) -> None:
        now = self.loop.time()
        if self._overdue(now) or self._stalled(now):
            self.transport.abort()
        else:
            self._look_later()

    def _overdue(self, now: float) -> bool:
        kept_alive = self.timeout_keep_alive_task is not None  # between requests uvicorn has a timer of its own
        if self._has_asked() or kept_alive:
            return False
        return now > self._asked_at + self.idle_s + self._n_asked_bytes / SLOWEST_BYTES_S

    def _stalled(self, now: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
            return False
        return now > self._unsent_since + STALLED * self.idle_s

    def _refuse(self, status: int, error: TuttiError, more: bytes = b"") -> None:
        body = json.dumps(error_body(error)).encode()
        head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n".encode()
        self.transport.write(head + more + b"connection: close\r\n\r\n" + body)
        self.transport.close()


class Socket(WebSocketsSansIOProtocol):
    """Uvicorn's WebSocket, which would wait for a reader that is gone to take what lies ready for it."""

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()


class _Crowded(TuttiError):
    status, code = 503, "too_many_connections"


def patient(idle_s: float) -> type[Connection]:
    """Connections with this much patience."""
    return type("Connection", (Connection,), {"idle_s": idle_s})
