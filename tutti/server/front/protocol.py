"""HTTP/1.1 over uvicorn and httptools, with limits on heads, on the time to send a request and to read an answer."""

import json
import re
import socket
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tutti.errors import InvalidInput, TuttiError
from tutti.server.errors import error_body, error_headers
from tutti.server.front.placement import Place
from tutti.server.lifecycle import Lifecycle

MAX_HEAD = 1 << 14  # bytes of a head, and of what comes without a byte of its body: trailers, extensions of chunks
PARSING_S = 0.002  # of chunks in one turn of the event loop; larger holds it for longer, smaller slows uploads
MIN_BYTES_PER_S = 1024.0  # a request must arrive at least this fast, after the first `idle_s` seconds
CHECKS = 10  # of each limit within `idle_s`: a connection is cut at most a tenth of that late
# A reader may pause for this many times `idle_s`: players stop reading while their buffer is full.
READ_STALL_FACTOR = 6
KERNEL_SEND_BYTES = 1 << 16  # that the kernel buffers for a slow reader

_NO_METHOD = re.compile(rb"[^A-Z\r\n]")  # no HTTP, whose end need not be awaited
_OTHER_VERSION = re.compile(rb"[^\n]* HTTP/(?!1\.[01]\r?\n)[0-9]")
# The parser would take what follows for another protocol. Clients that offer HTTP/2 go on with HTTP/1.1.
_OTHER_UPGRADE = re.compile(rb"\r\nupgrade:(?![\t ]*websocket[\t ]*\r\n)[^\n]*(?=\r\n)", re.IGNORECASE)


class _HeadTooLong(TuttiError):
    status, code = 431, "head_too_long"


class _OtherVersion(TuttiError):
    status, code = 505, "http_version_not_supported"


class _TooManyConnections(TuttiError):
    status, code = 503, "too_many_connections"


@dataclass(frozen=True, slots=True)
class Front:
    """What all connections of a process have in common."""

    lifecycle: Lifecycle
    idle_s: float
    place: Callable[[bytes], Place] = lambda _: "here"  # of the request with this head
    transfer: Callable[[int, bytes], None] = lambda *_: None  # a connection to the engine's process, and what was read


class HttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, which gets one request after the other: the next when the one before is answered."""

    def __init__(self, front: Front, **options: Any) -> None:
        super().__init__(**options)
        self._front = front
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self.access_log = False  # its lines contain the whole path; ours do not
        self._head = b""  # of a request, until its end has arrived
        self._n_left = 0.0  # bytes of its body that have not arrived; of one in chunks infinite
        self._n_empty = 0  # bytes since the last one of its body, if it comes in chunks
        self._ahead = b""  # what has arrived and is not parsed yet
        self._started_s, self._n_bytes = self.loop.time(), 0  # when the request began to arrive, and its bytes so far
        self._unsent, self._unsent_since_s = 0, 0.0
        self._timer: TimerHandle

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(socket, "TCP_NOTSENT_LOWAT") and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, KERNEL_SEND_BYTES)
        self._check_later()
        if self._max_connections is not None and len(self.connections) > self._max_connections:
            self._refuse(_TooManyConnections("too many connections; retry in a moment"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._n_bytes += len(data)
        if self._ahead:
            self._hold(self._ahead + data)
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Parse what has arrived, until the next request has to wait, or the event loop."""
        ends_s = inf
        while data and not self._is_over():
            if not self._n_left and self.cycle is not None and not self.cycle.response_complete:
                self._hold(data)  # until `on_response_complete`
                return
            if self._n_left == inf:  # chunks, of which each costs much more than its bytes
                now_s = time.thread_time()
                ends_s = min(ends_s, now_s + PARSING_S)
                if now_s > ends_s:
                    self._hold(data)
                    self.loop.call_soon(self._go_on)
                    return
            data = self._read_body(data) if self._n_left else self._read_head(data)

    def _hold(self, data: bytes) -> None:
        self._ahead = data
        self.transport.pause_reading()
        self.flow.read_paused = False  # or uvicorn would read on when the application wants more

    def _go_on(self) -> None:
        data, self._ahead = self._ahead, b""
        if not self._is_over():
            self._unset_keepalive_if_required()
            self._read(data)
        if not (self._ahead or self._is_over() or self.flow.read_paused):
            self.transport.resume_reading()

    def _is_over(self) -> bool:
        """Whether the connection is closed, or a WebSocket now."""
        return self.transport.is_closing() or self.transport.get_protocol() is not self

    def _read_head(self, data: bytes) -> bytes:
        """Take the head of a request; return what comes after it."""
        if not self._head:
            self._started_s, self._n_bytes = self.loop.time(), len(data)
        self._head += data
        n_bytes = _end_of_head(self._head, max(0, len(self._head) - len(data) - 3))
        if (n_bytes or len(self._head)) > MAX_HEAD:
            self._refuse(_HeadTooLong(f"the head of a request may have {MAX_HEAD:,} bytes"))
            return b""
        if n_bytes == 0:
            return b""
        head, rest, self._head = self._head[:n_bytes], self._head[n_bytes:], b""
        place = self._front.place(head)
        if place == "engine":
            self._transfer(head + rest)
            return b""
        if _OTHER_VERSION.match(head):
            self._refuse(_OtherVersion("this server speaks HTTP/1.1"))
            return b""
        self._parse(_OTHER_UPGRADE.sub(b"", head) if b"pgrade" in head.lower() else head)
        if place == "close" and self.cycle is not None and len(rest) <= self._n_left < inf:  # no request follows
            self.cycle.keep_alive = False
        return rest

    def _read_body(self, data: bytes) -> bytes:
        """Take some of the body; return the rest. What comes in chunks may be the next request already."""
        if self._n_left < inf:
            part = data[: int(self._n_left)]
            self._n_left -= len(part)
        else:
            part = data[:MAX_HEAD]
            self._n_empty += len(part)
        self._parse(part)
        if self._n_empty > 2 * MAX_HEAD:
            self._refuse(_HeadTooLong(f"the trailers of a request may have {MAX_HEAD:,} bytes"))
        return data[len(part) :]

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._timer.cancel()
            self.handle_websocket_upgrade()
        except httptools.HttpParserError as error:
            own = error.__context__
            self._refuse(own if isinstance(own, TuttiError) else InvalidInput("this is not HTTP/1.1"))

    def on_headers_complete(self) -> None:
        names, version = [name for name, _ in self.headers], self.parser.get_http_version()
        n_hosts, n_codings = names.count(b"host"), names.count(b"transfer-encoding")
        is_whole = (version == "1.1" and n_hosts == 1) or (version == "1.0" and n_hosts <= 1 and not n_codings)
        if not is_whole or n_codings > 1:
            raise InvalidInput("this is not HTTP/1.1")
        headers = dict(self.headers)  # the parser refuses two lengths, and one beside chunks
        if n_codings and headers[b"transfer-encoding"].strip().lower() != b"chunked":
            raise InvalidInput("the body of a request may have no other transfer coding than chunked")
        super().on_headers_complete()
        self._n_left, self._n_empty = inf if n_codings else int(headers.get(b"content-length", 0)), 0
        if not self.parser.should_upgrade():
            self.headers = []  # for trailers: the application has the others
            if version == "1.0":
                _end_with_connection(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._n_empty = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._n_left, self._n_empty = 0, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._ahead and not self.pipeline:
            self.loop.call_soon(self._go_on)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._ahead:
            self.transport.set_write_buffer_limits()
            self._go_on()

    def _transfer(self, data: bytes) -> None:
        """Leave the connection to the engine's process, when all is sent: its answer comes after that."""
        if self.transport.get_write_buffer_size():
            self._hold(data)
            self.transport.set_write_buffer_limits(0)  # until `resume_writing`
            return
        self.transport.pause_reading()
        self._front.transfer(self.transport.get_extra_info("socket").fileno(), data)
        self.transport.abort()  # the other process has a descriptor of its own, so the connection stays open

    def _check_later(self) -> None:
        self._timer = self.loop.call_later(self._front.idle_s / CHECKS, self._check)

    def _check(self) -> None:
        now = self.loop.time()
        if self._is_late(now) or self._is_stalled(now):
            self.transport.abort()
        else:
            self._check_later()

    def _is_late(self, now: float) -> bool:
        """Whether the rest of a request should have arrived; between two of them uvicorn has its own timer."""
        is_awaited = self._n_left or self.cycle is None or self.cycle.response_complete
        is_between = self.timeout_keep_alive_task is not None or self.transport.is_closing()
        if not is_awaited or is_between or self._ahead or self.flow.read_paused:
            return False
        return now > self._started_s + self._front.idle_s + self._n_bytes / MIN_BYTES_PER_S

    def _is_stalled(self, now: float) -> bool:
        """Whether the client has read nothing of an answer for long. The rest of one that was cut need not be read."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since_s = unsent, now
            return False
        factor = 1 if self.transport.is_closing() else READ_STALL_FACTOR
        return now > self._unsent_since_s + factor * self._front.idle_s

    def _refuse(self, error: TuttiError) -> None:
        """Close the connection, with an answer unless another one has begun, of which it would become a part."""
        cycle = self.cycle
        if cycle is None or (not cycle.response_started if self._n_left else cycle.response_complete):
            self._front.lifecycle.count_unread(error.status)
            body = json.dumps(error_body(error))
            headers = {"content-type": "application/json", "content-length": len(body), "connection": "close"}
            lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | error_headers(error)).items())
            self.transport.write(f"HTTP/1.1 {error.status} \r\n{lines}\r\n{body}".encode())
        if cycle is not None:
            cycle.disconnected = True  # so it writes no more
        self.transport.close()


def _end_of_head(data: bytes, start: int) -> int:
    """How many bytes the head has at the start of this data; 0 if it goes on, which is known of all before `start`."""
    if _NO_METHOD.match(data):
        return len(data)
    ends = [at + len(end) for end in (b"\n\r\n", b"\n\n") if (at := data.find(end, start)) >= 0]
    return min(ends, default=0)


def _end_with_connection(cycle: RequestResponseCycle) -> None:
    """Let an answer without a length end with its connection: HTTP/1.0 knows no chunks, which uvicorn would send."""
    send, is_sized = cycle.send, True

    async def sending(message: Any) -> None:
        nonlocal is_sized
        if message["type"] == "http.response.start":
            is_sized = any(name.lower() == b"content-length" for name, _ in message["headers"])
            cycle.chunked_encoding = None if is_sized else False
        elif not is_sized:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    cycle.send = sending  # type: ignore[method-assign]
