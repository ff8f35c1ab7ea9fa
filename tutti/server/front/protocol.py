"""HTTP/1.1 over uvicorn and httptools, with limits on heads, on the time to send a request and to read an answer."""

import json
import socket
from asyncio import Transport
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import httptools
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tutti.admission.loop_budget import LoopBudget
from tutti.errors import InvalidInput, TuttiError
from tutti.server.errors import error_body, error_headers
from tutti.server.front.limits import READ_STALL_FACTOR, Arriving, Unsent, Watch, body_length, parsable
from tutti.server.front.placement import Place
from tutti.server.lifecycle import Lifecycle

KERNEL_SEND_BYTES = 1 << 16  # that the kernel buffers for a slow reader


class _TooManyConnections(TuttiError):
    status, code = 503, "too_many_connections"


@dataclass(frozen=True, slots=True)
class Front:
    """What all connections of a process have in common."""

    lifecycle: Lifecycle
    loop_budget: LoopBudget
    idle_s: float
    place: Callable[[bytes], Place] = lambda _: "here"  # of the request with this head
    transfer: Callable[[int, bytes], None] = lambda *_: None  # a connection to the engine's process, and what was read


class HttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, which gets one request after the other: the next when the one before is answered."""

    def __init__(self, front: Front, received: bytes = b"", **options: Any) -> None:
        """`received`: what another process has read from the connection."""
        super().__init__(**options)
        self._front, self._received, self._application = front, received, self.app
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self.access_log = False  # its lines contain the whole path; ours do not
        self._arriving, self._unsent = Arriving(self.loop.time()), Unsent()
        self._ahead = b""  # what has arrived and is not parsed yet

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _limit_kernel_buffer(transport.get_extra_info("socket"))
        self._watch = Watch(self.loop, self._front.idle_s, self._is_slow, transport.abort)
        if self._max_connections is not None and len(self.connections) > self._max_connections:
            self._refuse(_TooManyConnections("too many connections; retry in a moment"))
        elif self._received:
            self.data_received(self._received)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._arriving.count(len(data))
        if self._ahead:
            self._hold(self._ahead + data)
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Parse what has arrived, until the next request has to wait, or the event loop."""
        arriving = self._arriving
        while data and not self._is_over():
            if not arriving.n_left and not self._is_answered():
                self._hold(data)  # until `on_response_complete`
                return
            if arriving.n_left == inf and not self._front.loop_budget.goes_on_parsing():
                self._hold(data)  # chunks, of which each costs much more than its bytes
                self._front.loop_budget.parse(self._go_on)
                return
            try:
                data = self._read_body(data) if arriving.n_left else self._read_head(data)
            except TuttiError as error:
                self._refuse(error)

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

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _read_head(self, data: bytes) -> bytes:
        """Take the head of a request; return what comes after it."""
        head, rest = self._arriving.take_head(data, self.loop.time())
        if not head:
            return b""
        place = self._front.place(head)
        if place == "engine":
            self._transfer(head + rest)
            return b""
        self._parse(parsable(head))
        if place == "close" and self.cycle is not None and len(rest) <= self._arriving.n_left < inf:  # no other follows
            self.cycle.keep_alive = False
        return rest

    def _read_body(self, data: bytes) -> bytes:
        """Take some of the body; return the rest."""
        part = self._arriving.take_body(data)
        self._parse(part)
        self._arriving.check_trailers()
        return data[len(part) :]

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._watch.end()
            self.handle_websocket_upgrade()
        except httptools.HttpParserError as error:
            own = error.__context__
            raise (own if isinstance(own, TuttiError) else InvalidInput("this is not HTTP/1.1")) from None

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        n_left = body_length(version, self.headers)
        self.app = self._application if version == "1.1" else _ending_with_connection(self._application)
        super().on_headers_complete()
        self._arriving.head_ended(n_left)
        if not self.parser.should_upgrade():
            self.headers = []  # for trailers: the application has the others

    def on_body(self, body: bytes) -> None:
        self._arriving.body_came()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._arriving.body_ended()
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

    def _is_slow(self, now: float) -> bool:
        """Whether the client sends its request, or reads its answer, too slowly."""
        idle_s, is_closing = self._front.idle_s, self.transport.is_closing()
        is_between = self.timeout_keep_alive_task is not None  # two requests: uvicorn has a timer of its own
        is_read = not (self._ahead or self.flow.read_paused or is_closing or is_between)
        is_late = is_read and (self._arriving.n_left or self._is_answered()) and self._arriving.is_late(now, idle_s)
        allowed_s = idle_s if is_closing else READ_STALL_FACTOR * idle_s  # an answer that was cut need not be read
        return self._unsent.is_stalled(self.transport.get_write_buffer_size(), now, allowed_s) or bool(is_late)

    def _refuse(self, error: TuttiError) -> None:
        """Close the connection, with an answer unless another one has begun, of which it would become a part."""
        cycle = self.cycle
        if cycle is None or (not cycle.response_started if self._arriving.n_left else cycle.response_complete):
            self._front.lifecycle.count_unread(error.status)
            self.transport.write(_error_answer(error))
        if cycle is not None:
            cycle.disconnected = True  # so it writes no more
        self.transport.close()


def _limit_kernel_buffer(sock: socket.socket | None) -> None:
    if sock is not None and hasattr(socket, "TCP_NOTSENT_LOWAT") and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, KERNEL_SEND_BYTES)


def _error_answer(error: TuttiError) -> bytes:
    body = json.dumps(error_body(error))
    headers = {"content-type": "application/json", "content-length": len(body), "connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | error_headers(error)).items())
    return f"HTTP/1.1 {error.status} \r\n{lines}\r\n{body}".encode()


def _ending_with_connection(application: ASGIApp) -> ASGIApp:
    """Let an answer without a length end with its connection: HTTP/1.0 knows no chunks, which uvicorn would send."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        cycle: RequestResponseCycle = send.__self__  # type: ignore[attr-defined]
        is_sized = True

        async def sending(message: Message) -> None:
            nonlocal is_sized
            if message["type"] == "http.response.start":
                is_sized = any(name.lower() == b"content-length" for name, _ in message["headers"])
                cycle.chunked_encoding = None if is_sized else False
            elif not is_sized:
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await application(scope, receive, sending)

    return answer
