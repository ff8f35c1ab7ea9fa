"""What arrives of a body over HTTP leaves most of the event loop to others, however long its parsing takes."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from tutti.server.middleware import http_protocol
from tutti.server.middleware.http_protocol import EVENTS_AT_ONCE, HttpProtocol
from tutti.server.middleware.parsing_share import FREE_S, REST, ParsingShare


class Upload:
    """A protocol that takes `read_s` to handle what one read brings; its clock moves with that, and with its rests."""

    def __init__(
        self, read_s: float, monkeypatch: pytest.MonkeyPatch, *, n_events: int = 1, ends: bool = False
    ) -> None:
        self.now = self.busy_s = 0.0
        self.is_paused = False
        self._next: tuple[float, Callable[[], None]] | None = None

        def handle_events(protocol: HttpProtocol) -> None:
            protocol.conn.n_left -= n_events  # type: ignore[attr-defined]
            self.now += read_s
            self.busy_s += read_s

        monkeypatch.setattr(H11Protocol, "handle_events", handle_events)
        monkeypatch.setattr(HttpProtocol, "_request_complete", lambda _: ends)
        monkeypatch.setattr(http_protocol, "time", SimpleNamespace(thread_time=lambda: self.busy_s))
        protocol = self.protocol = HttpProtocol.__new__(HttpProtocol)
        protocol._share, protocol._is_resting = ParsingShare(), False
        protocol.conn, protocol.flow = SimpleNamespace(n_left=0), SimpleNamespace(read_paused=False)  # type: ignore[assignment]
        protocol.loop = SimpleNamespace(call_later=self._call_later, time=lambda: self.now)  # type: ignore[assignment]
        protocol.transport = SimpleNamespace(  # type: ignore[assignment]
            pause_reading=lambda: self._pause(is_paused=True),
            resume_reading=lambda: self._pause(is_paused=False),
            is_closing=lambda: False,
            get_protocol=lambda: self.reader,
        )
        self.reader: object = protocol

    def read(self) -> None:
        """Let more be handled: what is left when a rest is over, or what arrives."""
        if self._next is None:
            self.protocol.handle_events()
            return
        (at_s, call), self._next = self._next, None
        self.now = max(self.now, at_s)
        call()

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        assert self._next is None, "two rests at once"
        self._next = self.now + delay_s, call

    def _pause(self, *, is_paused: bool) -> None:
        self.is_paused = is_paused


def test_a_body_that_takes_long_to_parse_leaves_most_of_the_time_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(0.005, monkeypatch)
    for _ in range(100):
        upload.read()
    assert REST * upload.busy_s <= upload.now + 2 * FREE_S + REST * 0.005


def test_a_body_that_is_read_soon_is_never_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(0.001, monkeypatch)
    for _ in range(100):
        upload.now += 0.004  # until more arrives
        upload.protocol.handle_events()
        assert not upload.is_paused


def test_a_request_that_is_complete_needs_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(0.1, monkeypatch, ends=True)
    upload.protocol.handle_events()
    assert not upload.is_paused


def test_many_events_of_one_read_come_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(0.0, monkeypatch, n_events=EVENTS_AT_ONCE)
    upload.protocol.handle_events()
    assert upload.is_paused


def test_a_connection_that_becomes_a_websocket_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(0.1, monkeypatch, n_events=EVENTS_AT_ONCE)
    upload.reader = object()  # reads the connection from now on
    upload.protocol.handle_events()
    assert not upload.is_paused


def test_a_websocket_that_begins_during_a_rest_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(0.1, monkeypatch)
    upload.protocol.handle_events()
    upload.reader, busy_s = object(), upload.busy_s
    upload.read()
    assert upload.busy_s == busy_s
