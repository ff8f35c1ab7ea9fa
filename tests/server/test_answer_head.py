"""The head of a streamed answer, which is written past h11: it is as h11 would have it."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import h11
import pytest

from tests.server.harness import LONG, RunningServer
from tests.server.test_streaming import raw
from tutti.server.middleware.http_protocol import StreamingCycle

Headers = list[tuple[bytes, bytes]]
REQUEST = [(b"host", b"here")]
CLOSE = (b"connection", b"close")


def cycle(headers: Headers, version: bytes = b"1.1", method: str = "POST") -> tuple[StreamingCycle, h11.Connection]:
    """An answer that may begin: its request has arrived."""
    conn = h11.Connection(h11.SERVER)
    length = [(b"content-length", b"0")] if method == "POST" else []
    lines = b"".join(b"%s: %s\r\n" % header for header in [*headers, *length])
    conn.receive_data(b"%s /x HTTP/%s\r\n%s\r\n" % (method.encode(), version, lines))
    while conn.next_event() not in (h11.NEED_DATA, h11.PAUSED) and conn.their_state is h11.SEND_BODY:
        pass
    own = StreamingCycle.__new__(StreamingCycle)
    own.conn, own.transport, own.flow = conn, Mock(), Mock(write_paused=False)
    own.scope = {"method": method, "headers": headers}
    own.default_headers = [(b"server", b"tutti")]
    own.disconnected = own.response_started = own.response_complete = own.waiting_for_100_continue = False
    own.keep_alive, own.access_log = True, False
    return own, conn


def written(own: StreamingCycle) -> bytes:
    return b"".join(call.args[0] for call in own.transport.write.call_args_list)


def start(headers: Sequence[tuple[bytes, bytes]] = (), status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": [*headers]}


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("closing", [[], [CLOSE]])
def test_it_says_what_h11_says_and_leaves_it_in_the_same_state(version: bytes, closing: Headers) -> None:
    headers = [(b"content-type", b"audio/pcm"), (b"x-voice-used", b"af_heart")]
    (own, conn), (_, other) = cycle(REQUEST + closing, version), cycle(REQUEST + closing, version)
    asyncio.run(own.send(start(headers)))
    expected = other.send(
        h11.Response(status_code=200, headers=[(b"server", b"tutti"), *headers, *closing], reason=b"OK")
    )
    assert expected is not None
    assert sorted(written(own).lower().split(b"\r\n")) == sorted(expected.lower().split(b"\r\n"))
    assert (conn.our_state, conn.their_state) == (other.our_state, other.their_state)
    assert own.response_started


@pytest.mark.parametrize("header", [(b"x-name", b"a\nb: c"), (b"x-name", b"a\r\nb: c"), (b"x-na\nme", b"a")])
def test_a_header_of_two_lines_is_refused(header: tuple[bytes, bytes]) -> None:
    own, _ = cycle(REQUEST)
    with pytest.raises(h11.LocalProtocolError):
        asyncio.run(own.send(start([header])))
    assert not written(own)


@pytest.mark.parametrize("length", [b"3", b"0"])
def test_an_answer_with_a_length_keeps_it(length: bytes) -> None:
    own, conn = cycle(REQUEST)
    asyncio.run(own.send(start([(b"content-length", length)])))
    assert b"content-length: " + length in written(own)
    assert b"transfer-encoding" not in written(own).lower()
    conn.send(h11.Data(data=b"a" * int(length)))
    conn.send(h11.EndOfMessage())


def test_the_answer_to_head_has_no_chunks() -> None:
    own, _ = cycle(REQUEST, method="HEAD")
    asyncio.run(own.send(start()))
    asyncio.run(own.send({"type": "http.response.body", "body": b"abc", "more_body": True}))
    assert b"abc" not in written(own)


@pytest.mark.server
def test_a_client_that_closes_gets_a_whole_answer_that_says_so(server: RunningServer) -> None:
    request = raw("/v1/audio/speech", {"input": LONG, "response_format": "pcm"})
    with socket.create_connection(server.host_port) as connection:
        connection.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    head_of_answer = answer.partition(b"\r\n\r\n")[0].lower()
    assert head_of_answer.startswith(b"http/1.1 200 ok\r\n")
    assert head_of_answer.count(b"connection: close") == head_of_answer.count(b"transfer-encoding: chunked") == 1
    assert answer.endswith(b"0\r\n\r\n")
