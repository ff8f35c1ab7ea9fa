"""While few streams run, the server's process answers requests for speech itself; a client notices only the speed."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server
from tests.server.harness import wait_until
from tutti.server.front.placement import BUSY_S, MAX_DIRECT, EngineLoad

BODY = json.dumps({"input": TEXT, "response_format": "pcm"}).encode()
LONG = json.dumps({"input": TEXT * 60, "response_format": "pcm"}).encode()


def test_more_streams_than_a_few_end_direct_answers_for_a_while() -> None:
    now = 100.0
    load = EngineLoad(lambda: now)
    assert not load.is_busy
    load.count(MAX_DIRECT)
    assert not load.is_busy
    load.count(MAX_DIRECT + 1)
    assert load.is_busy
    load.count(0)  # it is not enough that they have ended
    now += 0.9 * BUSY_S
    assert load.is_busy
    load.count(MAX_DIRECT + 1)
    now += 0.9 * BUSY_S
    assert load.is_busy
    now += 0.2 * BUSY_S
    assert not load.is_busy


@contextmanager
def connected(server: LimitedServer) -> Iterator[socket.socket]:
    with socket.create_connection(server.host_port) as sock:
        sock.settimeout(60)
        yield sock


def send(sock: socket.socket, body: bytes) -> None:
    head = f"POST /v1/audio/speech HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    sock.sendall(head.encode() + b"content-type: application/json\r\n\r\n" + body)


def head_of(sock: socket.socket) -> str:
    received = b""
    while b"\r\n\r\n" not in received:
        part = sock.recv(1 << 16)
        assert part, received
        received += part
    return received.partition(b"\r\n\r\n")[0].decode().lower()


def read_answer(sock: socket.socket) -> str:
    """Read one answer to its end; return its head."""
    received = b""
    while not _is_whole(received):
        part = sock.recv(1 << 16)
        assert part, received[:500]
        received += part
    return received.partition(b"\r\n\r\n")[0].decode().lower()


def _is_whole(received: bytes) -> bool:
    head, found, body = received.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return bool(found) and (len(body) == int(length) if length else body.endswith(b"\r\n0\r\n\r\n"))


def owner(server: LimitedServer, sock: socket.socket) -> str:
    """The name of the process that holds the other end of a connection."""
    mine = sock.getsockname()[1]
    parent = psutil.Process(server.process.pid)
    for process in (parent, *parent.children()):
        for connection in process.net_connections("tcp"):
            if connection.raddr and connection.raddr.port == mine and connection.status == "ESTABLISHED":
                return "server" if process.pid == parent.pid else process.name()
    return "nobody"


@pytest.mark.server
@pytest.mark.process
def test_a_lone_client_is_answered_by_the_server_and_sent_away_when_many_streams_run(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "2", TONE_PACED="1") as server, connected(server) as lone:
        wait_until(lambda: server.client.get("/readyz").status_code == 200)
        for _ in range(2):
            send(lone, BODY)
            assert "200 ok" in read_answer(lone)
            assert owner(server, lone) == "server"
        with ExitStack() as stack:
            for _ in range(MAX_DIRECT + 2):
                sock = stack.enter_context(connected(server))
                send(sock, LONG)
                assert "200 ok" in head_of(sock)  # it has begun before the next one is sent
            send(lone, BODY)
            assert "connection: close" in read_answer(lone)
        assert lone.recv(1) == b""  # so it connects again, to an HTTP process
