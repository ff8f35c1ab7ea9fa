"""What one read brings over a WebSocket is handled in turns: short ones, and rests after those that take long."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tutti.server.middleware import http_protocol
from tutti.server.middleware.http_protocol import FIRST_PARSED, LONG_TURN_S, PARSED_AT_ONCE, WebSocketProtocol
from tutti.server.middleware.parsing_share import FREE_S, REST, ParsingShare

SENT = bytes(range(256)) * 1024


class Turns:
    """A protocol whose messages take `byte_s` to be parsed for each byte, and `handling_s` by the application.

    Its clock moves with that, and with its rests.
    """

    def __init__(self, byte_s: float, monkeypatch: pytest.MonkeyPatch, handling_s: float = 0.0) -> None:
        self.now = self.busy_s = 0.0
        self.parsed: list[bytes] = []
        self.is_paused = False
        self._handling_s = handling_s
        self._next: Callable[[], None] | None = None

        def parse(_: Any, data: bytes) -> None:
            self.parsed.append(data)
            self._work(byte_s * len(data))

        monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", parse)
        monkeypatch.setattr(http_protocol, "time", SimpleNamespace(thread_time=lambda: self.busy_s))
        protocol = self.protocol = WebSocketProtocol.__new__(WebSocketProtocol)
        protocol._unparsed, protocol._parsed_at_once, protocol._is_scheduled = bytearray(), FIRST_PARSED, False
        protocol._share, protocol.read_paused = ParsingShare(), False
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
            call()

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
    turns.protocol.data_received(SENT[:FIRST_PARSED])
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


@given(st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, 0.1)), max_size=50))
def test_a_connection_gets_its_share_of_the_time_and_no_more(messages: list[tuple[float, float]]) -> None:
    """Each message takes a while, and the next comes some time after the rest."""
    share, now, taken_s = ParsingShare(), 0.0, 0.0
    for took_s, pause_s in messages:
        now += took_s
        taken_s += took_s
        rest_s = share.rest_s(took_s, now)
        now += rest_s + pause_s
        assert REST * taken_s <= now + FREE_S + 1e-9
        assert rest_s <= REST * taken_s + 1e-9
    assert share.rest_s(0.0, now + FREE_S + REST * taken_s) == 0.0  # all is made good in the end
