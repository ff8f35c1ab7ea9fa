"""What one read brings over a WebSocket is parsed in turns: shorter ones where they take long, and rests after them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tutti.server.middleware import http_protocol
from tutti.server.middleware.http_protocol import FIRST_PARSED, LONG_TURN_S, PARSED_AT_ONCE, WebSocketProtocol

SENT = bytes(range(256)) * 1024


class Turns:
    """A protocol whose parsing takes `byte_s` for each byte; its clock moves with that, and with its rests."""

    def __init__(self, byte_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.busy_s = 0.0
        self.parsed: list[bytes] = []
        self.rests_s: list[float] = []  # before each turn but the first
        self.is_paused = False
        self._next: Callable[[], None] | None = None

        def parse(_: Any, data: bytes) -> None:
            self.parsed.append(data)
            self.now += byte_s * len(data)
            self.busy_s += byte_s * len(data)

        monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", parse)
        monkeypatch.setattr(http_protocol, "time", SimpleNamespace(monotonic=lambda: self.now))
        protocol = self.protocol = WebSocketProtocol.__new__(WebSocketProtocol)
        protocol._unparsed, protocol._parsed_at_once, protocol._is_scheduled = bytearray(), FIRST_PARSED, False
        protocol.loop, protocol.read_paused = SimpleNamespace(call_later=self._call_later), False
        protocol.transport = SimpleNamespace(
            pause_reading=lambda: self._pause(is_paused=True),
            resume_reading=lambda: self._pause(is_paused=False),
            is_closing=lambda: False,
        )

    def run(self) -> None:
        """Let all turns that are scheduled come."""
        while self._next is not None:
            call, self._next = self._next, None
            call()

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        assert self._next is None, "two turns at once"
        self.rests_s.append(delay_s)
        self.now += delay_s
        self._next = call

    def _pause(self, *, is_paused: bool) -> None:
        self.is_paused = is_paused


@pytest.mark.parametrize(("byte_s", "is_long"), [(1e-8, False), (2e-6, True)])
def test_turns_get_shorter_until_they_are_short(byte_s: float, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(byte_s, monkeypatch)
    turns.protocol.data_received(SENT)
    turns.run()
    assert b"".join(turns.parsed) == SENT
    assert not turns.is_paused
    lengths = [len(part) for part in turns.parsed]
    assert max(lengths) * byte_s <= 2 * LONG_TURN_S
    assert (max(lengths) < PARSED_AT_ONCE) is is_long


def test_parsing_that_takes_long_leaves_most_of_the_time_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(2e-6, monkeypatch)
    turns.protocol.data_received(SENT)
    turns.run()
    assert turns.busy_s < turns.now / 2


def test_what_arrives_in_small_pieces_gets_no_turns_beside_the_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(1e-4, monkeypatch)
    for start in range(0, 1024, 64):  # each read ends before the next turn comes
        turns.protocol.data_received(SENT[start : start + 64])
        turns.protocol.data_received(SENT[start : start + 64])
    turns.run()
    assert len(turns.rests_s) >= len(turns.parsed) - 1
    assert sum(map(len, turns.parsed)) == 2 * 1024
    assert not turns.is_paused
