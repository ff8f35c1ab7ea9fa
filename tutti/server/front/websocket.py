"""WebSockets over uvicorn, whose messages are parsed a little in each turn of the event loop."""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from tutti.admission.loop_budget import LoopBudget

PARSED_AT_ONCE = 512  # bytes, which may be 85 messages; larger holds the loop for longer, smaller slows large messages
MAX_FRAGMENTS = 10_000  # of a message: empty ones cost memory and count for no limit on its size


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's protocol, made for clients that send without a pause and read nothing."""

    def __init__(self, loop_budget: LoopBudget, **options: Any) -> None:
        super().__init__(**options)
        self._loop_budget = loop_budget
        self._unparsed = bytearray()
        self._is_scheduled = False  # the next call of `_parse`
        self._unsent_pong = b""

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if self._is_scheduled:
            self.transport.pause_reading()  # a message that was handled meanwhile has resumed it
        else:
            self._parse_in_turn()

    def _parse_in_turn(self) -> None:
        self._is_scheduled = True
        self._loop_budget.parse(self._parse)

    def _parse(self) -> None:
        """Parse until the application has a message, or for a short time."""
        self._is_scheduled = False
        while self._unparsed:
            part = bytes(self._unparsed[:PARSED_AT_ONCE])
            del self._unparsed[:PARSED_AT_ONCE]
            super().data_received(part)
            if not self.queue.empty() or not self._loop_budget.goes_on_parsing():
                break
        if self.transport.is_closing():
            return
        if self._unparsed:
            self._parse_in_turn()
        elif not self.read_paused:
            self.transport.resume_reading()

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
