"""What one read brings over a WebSocket is parsed in turns that get shorter where they take long."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tutti.server.middleware import http_protocol
from tutti.server.middleware.http_protocol import LONG_TURN_S, PARSED_AT_ONCE, WebSocketProtocol


@pytest.mark.parametrize(("byte_s", "is_long"), [(1e-8, False), (2e-6, True)])
def test_turns_get_shorter_until_they_are_short(byte_s: float, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = 0.0, list[bytes]()

    def parse(_: Any, data: bytes) -> None:
        nonlocal now
        turns.append(data)
        now += byte_s * len(data)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", parse)
    monkeypatch.setattr(http_protocol, "time", SimpleNamespace(monotonic=lambda: now))

    async def run() -> None:
        protocol = WebSocketProtocol.__new__(WebSocketProtocol)
        protocol._unparsed, protocol._parsed_at_once = bytearray(), PARSED_AT_ONCE
        protocol.loop, protocol.read_paused = asyncio.get_running_loop(), False
        protocol.transport = SimpleNamespace(
            pause_reading=lambda: None, resume_reading=lambda: None, is_closing=lambda: False
        )
        protocol.data_received(sent)
        while protocol._unparsed:
            await asyncio.sleep(0)

    sent = bytes(range(256)) * 1024
    asyncio.run(run())
    assert b"".join(turns) == sent
    assert len(turns[0]) == PARSED_AT_ONCE
    longest_s = max(byte_s * len(turn) for turn in turns[4:])
    assert longest_s <= 2 * LONG_TURN_S
    assert (min(map(len, turns[4:-1])) < PARSED_AT_ONCE) is is_long
