"""What one client can do with its connections keeps no other request waiting, and fills no memory."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from benchmarks.hostile import CONTINUED, LIVE, PING, TEXT_FRAME, frame, frames, raw, raw_events, request, wyoming_event
from tests.faults.limited_server import LimitedServer
from tests.faults.test_hostile_requests import MAX_HELD_MS

pytestmark = [pytest.mark.process, pytest.mark.server]

CHUNKS = b"1\r\na\r\n" * 60_000
PIECE = wyoming_event("synthesize-chunk", {"text": "a"})
MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(raw(request("Transfer-Encoding: chunked\r\n", CHUNKS + b"0\r\n\r\n")), id="chunks of one byte"),
        pytest.param(raw(request("a: b\r\n" * 40_000)), id="headers"),
        pytest.param(
            raw(request("Content-Length: 2\r\n", b"{}") + request("a: b\r\n" * 30_000)), id="headers of the next"
        ),
        pytest.param(raw(request("Transfer-Encoding: chunked\r\n", b"0\r\n" + b"a: b\r\n" * 40_000)), id="trailers"),
        pytest.param(frames(LIVE, frame(PING) * 100_000), id="pings"),
        pytest.param(raw_events(b'{"type": "ping"}\n' * 20_000), id="Wyoming's pings"),
        pytest.param(raw_events(b'{"type": "describe"}\n' * 1000), id="Wyoming's descriptions"),
        pytest.param(raw_events(PIECE * 20_000), id="pieces of no text"),
    ],
)
def test_many_small_things_in_one_write_do_not_hold_the_event_loop(
    server: LimitedServer, send: Callable[[LimitedServer], str]
) -> None:
    assert server.loop is not None
    server.loop.reset()
    send(server)
    server.wait_until_ready()
    server.wait_until_ready()
    assert server.loop.held_ms < MAX_HELD_MS


def test_a_body_in_chunks_of_one_byte_is_read(server: LimitedServer) -> None:
    body = b'{"input": "deep", "model": "nobody", "x": "' + b"a" * 20_000 + b'"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    whole = raw(request("Transfer-Encoding: chunked\r\n", chunks + b"0\r\n\r\n"))
    assert whole(server) == "404"
    two = request("Transfer-Encoding: chunked\r\n", chunks + b"0\r\n\r\n") + request("", path="/healthz", method="GET")
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(two)
        answers = b""
        while answers.count(b"HTTP/1.1 ") < 2:
            answers += sock.recv(65_536)
    assert b"HTTP/1.1 200" in answers  # what follows the last chunk is another request


@contextmanager
def websocket(server: LimitedServer) -> Iterator[socket.socket]:
    with socket.create_connection(server.host_port, timeout=60) as sock:
        head = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        sock.sendall(request(head + f"Sec-WebSocket-Key: {'A' * 22}==\r\n", path=LIVE, method="GET"))
        assert sock.recv(4096).startswith(b"HTTP/1.1 101")
        yield sock


def test_pings_whose_answers_are_not_read_fill_no_memory(server: LimitedServer) -> None:
    before = server.memory()
    with websocket(server) as sock:
        for n in range(30):
            sock.sendall(frame(PING, b"%03d" % n + b"x" * 122) * (MEGABYTE // 131))
        sock.sendall(frame(PING, b"the last one"))
        server.wait_until_ready()
        assert server.memory() < before + 15 * MEGABYTE
        answers = b""
        while b"the last one" not in answers:
            answers = answers[-100:] + sock.recv(65_536)


def test_a_message_of_empty_fragments_is_cut(server: LimitedServer) -> None:
    with websocket(server) as sock:
        with suppress(ConnectionError):
            sock.sendall(frame(TEXT_FRAME, b"{", final=False) + frame(CONTINUED, final=False) * 50_000)
        answer = b""
        with suppress(ConnectionError):
            while part := sock.recv(65_536):
                answer += part
    assert struct.pack(">H", 1009) in answer
    assert not server.errors()
