"""HTTP and WebSocket connections with time limits: a client that neither sends nor reads is disconnected."""

import asyncio
import json
import re
import socket
import time
from typing import Any, cast

import h11
from h11._writers import ChunkedWriter
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from tutti.errors import InvalidInput, QueueFull, TuttiError
from tutti.server.errors import error_body, error_headers
from tutti.server.middleware.access_log import new_request_id
from tutti.server.middleware.parsing_share import ParsingShare
from tutti.server.middleware.plain_request import MAX_HEAD, plain_request
from tutti.server.service import Service

MIN_BYTES_PER_S = 1024.0  # a request must arrive at least this fast, after the first `idle_s` seconds
CHECKS = 10  # of each limit within `idle_s`: a connection is cut at most a tenth of that late
# A reader may pause for this many times `idle_s`: players stop reading while their buffer is full.
READ_STALL_FACTOR = 6
PARSED_AT_ONCE = 8192  # bytes of WebSocket messages in one turn of the event loop; more holds it for longer
LONG_TURN_S = 0.001  # after a turn with messages that takes longer, as with a hundred pings, the next has half as many
MAX_HANDLING = 4.0  # times their parsing that the application takes for them; more is the work of others
FIRST_PARSED, MIN_PARSED = 512, 128  # bytes of them in the first turn, which doubles while turns are short; at least
EVENTS_AT_ONCE = 100  # of an HTTP connection in one turn of the event loop: each chunk of a body is one, some 20 us
MAX_FRAGMENTS = 10_000  # of a WebSocket message: empty ones cost memory and count for no limit on its size
MAX_UNREAD = 1 << 16  # bytes of a body that are kept until its end has arrived
KERNEL_SEND_BYTES = 1 << 16  # that the kernel buffers for a slow reader


_HEAD_END = re.compile(rb"\n\r?\n")
_BOTH_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))
_FRAMING = frozenset((b"content-length", b"transfer-encoding", b"connection"))  # headers that are up to h11
_CLOSE = ((b"connection", b"close"),)


class HttpProtocol(H11Protocol):
    """Uvicorn's HTTP/1.1 with time limits for requests that never end and answers that are never read."""

    idle_s = 10.0
    service: Service

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self.access_log = False  # its lines contain the whole path; ours do not
        self._request_started_s = 0.0
        self._n_request_bytes = 0
        self._unread = b""  # the start of a request whose end has not arrived
        self._n_awaited = 0  # bytes of its end, if it is to begin then
        self._unparsed = b""  # what arrived together with what is being handled, and comes after it
        self._share = ParsingShare()
        self._is_resting = False  # from handling what has arrived
        self._unsent = 0
        self._unsent_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.conn.__class__ = PacedConnection  # uvicorn offers no other way

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._request_started_s = self.loop.time()
        if self._max_connections is not None and len(self.connections) > self._max_connections:
            self._refuse(_TooManyConnections("too many connections; retry in a moment"))
            return
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(socket, "TCP_NOTSENT_LOWAT") and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, KERNEL_SEND_BYTES)
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_check()
        if self._n_awaited:
            self.service.lifecycle.count_unread("POST", "-", 499)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._n_request_bytes == 0:
            self._request_started_s = self.loop.time()
        self._n_request_bytes += len(data)
        self._unset_keepalive_if_required()
        if self._n_awaited > len(data):
            self._unread, self._n_awaited = self._unread + data, self._n_awaited - len(data)
            return
        data, self._unread, self._n_awaited = self._unread + data, b"", 0
        request = plain_request(data) if self._is_between_requests() else None
        if request and 0 < request.n_missing <= MAX_UNREAD - len(request.body):
            # It begins when its end has arrived: so one that is left half sent never reaches the application, and
            # head and body are read in one turn.
            self._unread, self._n_awaited = data, request.n_missing
            return
        if request and request.n_missing == 0 and (route := request.stream_route):
            # Asked only for a whole stream: one that is let through asks the engine on behalf of all others.
            refusal = self.service.known_refusal(self.client[0] if self.client else "")
            if refusal:
                self._refuse_unread(refusal, route)
                return
        cycle = self.cycle
        for at in range(0, len(data), MAX_HEAD):  # in parts, so that h11 sees a head or trailers that are too long
            self._unparsed = data[at + MAX_HEAD :]
            self.conn.receive_data(data[at : at + MAX_HEAD])
            if not self._is_resting:
                self.handle_events()
            if self._is_over():
                return
        if self.cycle is not cycle and self.cycle is not None:
            self.cycle.__class__ = StreamingCycle  # its task has not run yet; uvicorn offers no other way
        if self._request_complete():
            self._n_request_bytes = 0

    def handle_events(self) -> None:
        """Handle what has arrived, or some of it: a body may have a million chunks."""
        conn = cast(PacedConnection, self.conn)
        conn.n_left = EVENTS_AT_ONCE
        started_s = time.thread_time()
        super().handle_events()
        rest_s = self._share.rest_s(time.thread_time() - started_s, self.loop.time())
        goes_on = conn.n_left == 0 or (rest_s and not self._request_complete())
        if goes_on and not self._is_over():
            self._is_resting = True
            self.transport.pause_reading()
            self.loop.call_later(rest_s, self._handle_rest)

    def _handle_rest(self) -> None:
        self._is_resting = False
        if self._is_over():
            return
        if not self.flow.read_paused:
            self.transport.resume_reading()
        self.handle_events()
        if self._request_complete():
            self._n_request_bytes = 0

    def _is_over(self) -> bool:
        """Whether the connection is closed, or a WebSocket now."""
        return self.transport.is_closing() or self.transport.get_protocol() is not self

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._cancel_check()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()  # its answer has begun: another one would be taken for a part of it
        elif cast(PacedConnection, self.conn).is_other_version:
            self._refuse(_OtherVersion("this server speaks HTTP/1.1"))
        else:
            self._refuse(InvalidInput("this is not HTTP/1.1"))

    def _is_between_requests(self) -> bool:
        return self.conn.our_state is self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    def _request_complete(self) -> bool:
        """Whether the request has arrived completely."""
        return self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)

    def _schedule_check(self) -> None:
        self._timer = self.loop.call_later(self.idle_s / CHECKS, self._check_limits)

    def _cancel_check(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_limits(self) -> None:
        now = self.loop.time()
        if self._request_overdue(now) or self._reader_stalled(now):
            self.transport.abort()
        else:
            self._schedule_check()

    def _request_overdue(self, now: float) -> bool:
        kept_alive = self.timeout_keep_alive_task is not None  # between requests uvicorn has its own timer
        if self._request_complete() or kept_alive:
            return False
        return now > self._request_started_s + self.idle_s + self._n_request_bytes / MIN_BYTES_PER_S

    def _reader_stalled(self, now: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
            return False
        # What is left of an answer that was cut need not be read.
        return now > self._unsent_since + (1 if self.transport.is_closing() else READ_STALL_FACTOR) * self.idle_s

    def _refuse(self, error: TuttiError) -> None:
        self._write_error(error, {"connection": "close"})
        self.transport.close()

    def _write_error(self, error: TuttiError, more: dict[str, str], method: str = "-", route: str = "-") -> None:
        self.service.lifecycle.count_unread(method, route, error.status)
        body = json.dumps(error_body(error))
        headers = {"content-type": "application/json", "content-length": len(body), **more}
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | error_headers(error)).items())
        self.transport.write(f"HTTP/1.1 {error.status} \r\n{lines}\r\n{body}".encode())

    @property
    def _closes_refused(self) -> bool:
        """Whether a connection ends when a stream is refused unread."""
        return False

    def _refuse_unread(self, refusal: QueueFull, route: str) -> None:
        """Refuse a stream as the routes would do it, for a twentieth of the time."""
        self.service.engine.count_refusal()
        self._n_request_bytes = 0
        closing = {"connection": "close"} if self._closes_refused else {}
        self._write_error(refusal, {"x-request-id": new_request_id(), **closing}, "POST", route)
        if closing:
            self.transport.close()
            return
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)


class PacedConnection(h11.Connection):
    """A connection that hands out `n_left` events, and then says that it needs more data.

    Refuses heads that h11 lets pass: too long, of another version of HTTP, or with two ways to find the body's end.
    """

    n_left = EVENTS_AT_ONCE
    is_other_version = False

    def next_event(self) -> Any:
        if self.n_left == 0:
            return h11.NEED_DATA
        self.n_left -= 1
        if self.their_state is not h11.IDLE:
            return super().next_event()
        data, _ = self.trailing_data
        if len(data) > MAX_HEAD and not _HEAD_END.search(data, 0, MAX_HEAD):
            raise h11.RemoteProtocolError("the head is too long", error_status_hint=431)
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._check(event)
        return event

    def _check(self, request: h11.Request) -> None:
        self.is_other_version = not request.http_version.startswith(b"1.")
        if self.is_other_version or _BOTH_LENGTHS.issubset(name for name, _ in request.headers):
            raise h11.RemoteProtocolError("this is not HTTP/1.1")


class StreamingCycle(RequestResponseCycle):
    """Writes the head and the parts of a chunked answer itself: for h11 each is an event to be checked, and all headers
    are copied three times.
    """

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and self._write_head(message):
            return
        if not (message["type"] == "http.response.body" and message.get("more_body") and self._is_chunked()):
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        body = message.get("body", b"")
        if body and not self.disconnected:
            self.transport.writelines((b"%x\r\n" % len(body), body, b"\r\n"))

    def _write_head(self, message: Any) -> bool:
        """Write the head of an answer without a length; False if h11 is to write it, or to say what is wrong."""
        headers = [*self.default_headers, *message["headers"]]
        is_plain = message["status"] == 200 and not _FRAMING.intersection(name for name, _ in headers)
        lines = b"".join([b"%s: %s\r\n" % header for header in headers])
        has_one_line_each = lines.count(b"\n") == lines.count(b"\r") == len(headers)
        is_busy = self.response_started or self.disconnected or self.flow.write_paused
        if not (is_plain and has_one_line_each) or is_busy or self.scope["method"] == "HEAD":
            return False
        self.response_started, self.waiting_for_100_continue = True, False
        closing = [header for header in _CLOSE if header in self.scope["headers"]]
        # h11 keeps account of the connection, and writes the headers that it depends on.
        head = self.conn.send(h11.Response(status_code=200, headers=closing, reason=b"OK"))
        assert head is not None
        self.transport.write(b"%s%s\r\n" % (head[:-2], lines))
        return True

    def _is_chunked(self) -> bool:
        sends_body = self.response_started and not self.response_complete and self.scope["method"] != "HEAD"
        return sends_body and isinstance(self.conn._writer, ChunkedWriter)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's WebSocket, parsed a little in each turn of the event loop: one read may have thousands of messages.

    On a ping timeout the connection is aborted: the reader would never empty its buffer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unparsed = bytearray()
        self._parsed_at_once = FIRST_PARSED
        self._share = ParsingShare()
        self._is_scheduled = False  # the next turn of parsing
        self._unsent_pong = b""

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if self._is_scheduled:
            self.transport.pause_reading()  # a message that was handled meanwhile has resumed it
        else:
            self._parse_next()

    def handle_ping(self) -> None:
        """Answer, or if the client does not read its answers, only the last pings, when it reads again."""
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(pong)
        else:
            self._unsent_pong = pong

    def resume_writing(self) -> None:
        pong, self._unsent_pong = self._unsent_pong, b""
        super().resume_writing()
        if pong:
            self.transport.write(pong)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= MAX_FRAGMENTS:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            self.handle_parser_exception()
        else:
            super().handle_cont(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed.clear()
        super().connection_lost(exc)

    def _parse_next(self) -> None:
        part = bytes(self._unparsed[: self._parsed_at_once])
        self._is_scheduled = bool(part)
        if part:
            started_s = time.thread_time()
            super().data_received(part)
            del self._unparsed[: len(part)]
            ended_s = time.thread_time()
            self.loop.call_soon(self._rest, ended_s - started_s, ended_s)  # when the application has its messages
        elif not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _rest(self, parsing_s: float, parsed_s: float) -> None:
        """Go on with what has arrived, after a rest if it takes much of the time."""
        if self.transport.is_closing():
            return
        took_s = parsing_s + min(time.thread_time() - parsed_s, MAX_HANDLING * parsing_s)
        factor = 0.5 if took_s > LONG_TURN_S else 2.0
        self._parsed_at_once = min(max(int(factor * self._parsed_at_once), MIN_PARSED), PARSED_AT_ONCE)
        if rest_s := self._share.rest_s(took_s, self.loop.time()):
            self.transport.pause_reading()  # what has arrived comes first, or it would grow without limit
            self.loop.call_later(rest_s, self._parse_next)
        else:
            self._parse_next()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()


class _TooManyConnections(TuttiError):
    status, code = 503, "too_many_connections"


class _OtherVersion(TuttiError):
    status, code = 505, "http_version_not_supported"


def http_protocol(idle_s: float, service: Service) -> type[HttpProtocol]:
    """Return a protocol class with this time limit, which refuses streams that this service would refuse."""
    return type("HttpProtocol", (HttpProtocol,), {"idle_s": idle_s, "service": service})
