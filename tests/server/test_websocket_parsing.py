"""What one read brings over a WebSocket is parsed in pieces, by the budget of the event loop, and none is lost."""

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tutti.server.front.websocket import PARSED_AT_ONCE, WebSocketProtocol

SENT = bytes(range(256)) * 64


class Turns:
    """A protocol whose budget allows so many pieces in a turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n_pieces: int, *, has_messages: bool = False) -> None:
        self.parsed: list[bytes] = []
        self.is_paused = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._n_pieces, self._n_left = n_pieces, 0
        monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", lambda _, data: self.parsed.append(data))
        protocol = self.protocol = WebSocketProtocol.__new__(WebSocketProtocol)
        protocol._unparsed, protocol._is_scheduled, protocol.read_paused = bytearray(), False, False
        protocol._loop_budget = SimpleNamespace(parse=self._waiting.append, goes_on_parsing=self._goes_on)  # type: ignore[assignment]
        protocol.queue = SimpleNamespace(empty=lambda: not has_messages)
        protocol.transport = SimpleNamespace(
            pause_reading=lambda: self._pause(is_paused=True),
            resume_reading=lambda: self._pause(is_paused=False),
            is_closing=lambda: False,
        )

    def run(self) -> list[int]:
        """Let all turns come; return how many pieces were parsed in each."""
        n_pieces = []
        while self._waiting:
            self._n_left, before = self._n_pieces, len(self.parsed)
            self._waiting.popleft()()
            assert len(self._waiting) <= 1, "two turns at once"
            n_pieces.append(len(self.parsed) - before)
        return n_pieces

    def _goes_on(self) -> bool:
        self._n_left -= 1
        return self._n_left > 0

    def _pause(self, *, is_paused: bool) -> None:
        self.is_paused = is_paused


@pytest.mark.parametrize(("n_pieces", "has_messages"), [(1, False), (5, False), (5, True)])
def test_all_that_arrives_is_parsed_in_pieces_as_long_as_there_is_time_and_no_message(
    monkeypatch: pytest.MonkeyPatch, n_pieces: int, *, has_messages: bool
) -> None:
    turns = Turns(monkeypatch, n_pieces, has_messages=has_messages)
    turns.protocol.data_received(SENT)
    assert max(turns.run()) == (1 if has_messages else n_pieces)
    assert b"".join(turns.parsed) == SENT
    assert max(map(len, turns.parsed)) == PARSED_AT_ONCE
    assert not turns.is_paused


def test_what_arrives_while_bytes_wait_gets_no_turn_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, 5)
    for start in range(0, 2048, 64):
        turns.protocol.data_received(SENT[start : start + 64])
    assert turns.is_paused
    turns.run()
    assert b"".join(turns.parsed) == SENT[:2048]
    assert not turns.is_paused


def test_a_connection_that_closes_is_parsed_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, 1)
    turns.protocol.data_received(SENT)
    transport: Any = turns.protocol.transport
    transport.is_closing = lambda: True
    assert turns.run() == [1]
