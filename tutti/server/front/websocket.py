"""WebSockets over uvicorn, whose messages are parsed a little in each turn of the event loop."""

import time
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

PARSED_AT_ONCE = 512  # bytes, which may be 85 messages; larger holds the loop for longer, smaller slows large messages
PARSING_S = 0.001  # in one turn of the event loop
REST = 3.0  # times what a long turn took, for which others have the loop; larger slows those who send without a pause
MAX_HANDLING = 4.0  # times their parsing that the application takes for messages; more is the work of others
MAX_FRAGMENTS = 10_000  # of a message: empty ones cost memory and count for no limit on its size


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's protocol, made for clients that send without a pause and read nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unparsed = bytearray()
        self._is_scheduled = False  # the next turn of parsing
        self._unsent_pong = b""

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if self._is_scheduled:
            self.transport.pause_reading()  # a message that was handled meanwhile has resumed it
        else:
            self._parse()

    def _parse(self) -> None:
        """Parse until the application has a message, or for a short time."""
        started_s = now_s = time.thread_time()
        self._is_scheduled = bool(self._unparsed)
        while self._unparsed:
            part = bytes(self._unparsed[:PARSED_AT_ONCE])
            del self._unparsed[:PARSED_AT_ONCE]
            super().data_received(part)
            now_s = time.thread_time()
            if now_s > started_s + PARSING_S or not self.queue.empty():
                break
        if self._is_scheduled:
            self.loop.call_soon(self._rest, now_s - started_s, now_s)  # when the application has its messages
        elif not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _rest(self, parsing_s: float, parsed_s: float) -> None:
        """Go on, after a rest if that turn was long."""
        took_s = parsing_s + min(time.thread_time() - parsed_s, MAX_HANDLING * parsing_s)
        if self.transport.is_closing():
            return
        if took_s > PARSING_S:
            self.transport.pause_reading()
            self.loop.call_later(REST * took_s, self._parse)
        else:
            self._parse()

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

    def keepalive_timeout(self) -> None:
        """Abort: the reader would never empty its buffer."""
        super().keepalive_timeout()
        self.transport.abort()
