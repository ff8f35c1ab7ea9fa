"""What one read brings over a WebSocket is handled in turns: short ones, and rests after those that take long."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tutti.server.front import websocket
from tutti.server.front.websocket import PARSED_AT_ONCE, PARSING_S, WebSocketProtocol

SENT = bytes(range(256)) * 1024


class Turns:
    """A protocol whose messages take `byte_s` to be parsed for each byte, and `handling_s` by the application.

    Its clock moves with that, and with its rests.
    """

    def __init__(
        self, byte_s: float, monkeypatch: pytest.MonkeyPatch, handling_s: float = 0.0, *, has_messages: bool = False
    ) -> None:
        self.now = self.busy_s = 0.0
        self.parsed: list[bytes] = []
        self.is_paused = False
        self._handling_s = handling_s
        self._next: Callable[[], None] | None = None
        self.turns_s: list[float] = []

        def parse(_: Any, data: bytes) -> None:
            self.parsed.append(data)
            self._work(byte_s * len(data))

        monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", parse)
        monkeypatch.setattr(websocket, "time", SimpleNamespace(thread_time=lambda: self.busy_s))
        protocol = self.protocol = WebSocketProtocol.__new__(WebSocketProtocol)
        protocol._unparsed, protocol._is_scheduled, protocol.read_paused = bytearray(), False, False
        protocol.queue = SimpleNamespace(empty=lambda: not has_messages)
        protocol.loop = SimpleNamespace(call_soon=self._call_soon, call_later=self._call_later, time=lambda: self.now)
        protocol.transport = SimpleNamespace(
            pause_reading=lambda: self._pause(is_paused=True),
            resume_reading=lambda: self._pause(is_paused=False),
            is_closing=lambda: False,
        )

    def run(self) -> None:
        """Let all turns that are scheduled come."""
        while self._next is not None:
            call, self._next = self._next, None
            before_s = self.busy_s
            call()
            self.turns_s.append(self.busy_s - before_s)

    def _work(self, seconds: float) -> None:
        self.now += seconds
        self.busy_s += seconds

    def _call_soon(self, call: Callable[..., None], *args: float) -> None:
        self._call_later(0.0, lambda: (self._work(self._handling_s * len(self.parsed[-1])), call(*args))[1])

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        assert self._next is None, "two turns at once"
        self.now += delay_s
        self._next = call

    def _pause(self, *, is_paused: bool) -> None:
        self.is_paused = is_paused


@pytest.mark.parametrize("byte_s", [1e-8, 2e-6])
@pytest.mark.parametrize("has_messages", [False, True])
def test_all_that_arrives_is_parsed_in_short_turns(
    byte_s: float, monkeypatch: pytest.MonkeyPatch, *, has_messages: bool
) -> None:
    turns = Turns(byte_s, monkeypatch, has_messages=has_messages)
    turns.protocol.data_received(SENT)
    turns.run()
    assert b"".join(turns.parsed) == SENT
    assert not turns.is_paused
    longest_s = PARSED_AT_ONCE * byte_s + (0.0 if has_messages else PARSING_S)
    assert max(turns.turns_s) <= longest_s + 1e-9


@pytest.mark.parametrize("handling_s", [0.0, 4e-6])
def test_messages_that_take_long_leave_most_of_the_time_to_others(
    handling_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(2e-6, monkeypatch, handling_s)
    turns.protocol.data_received(SENT)
    turns.run()
    assert turns.busy_s < turns.now / 3


def test_the_work_of_others_is_not_taken_for_that_of_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(1e-8, monkeypatch, handling_s=1e-4)  # a busy server: each turn takes longer, whoever sends
    turns.protocol.data_received(SENT[:PARSED_AT_ONCE])
    turns.run()
    assert turns.now == turns.busy_s  # no rest


def test_what_arrives_in_small_pieces_gets_no_turns_beside_the_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(1e-4, monkeypatch)
    for start in range(0, 1024, 64):  # each read ends before the next turn comes
        turns.protocol.data_received(SENT[start : start + 64])
        turns.protocol.data_received(SENT[start : start + 64])
    assert len(turns.parsed) == 1
    turns.run()
    assert sum(map(len, turns.parsed)) == 2 * 1024
    assert not turns.is_paused
