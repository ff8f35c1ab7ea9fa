"""Bad connections: every byte arrives or the break is seen and counted, and nobody else notices."""

import json
import socket
import struct
import threading
import time
from contextlib import ExitStack, suppress

import httpx2
import pytest

from tests.faults.fault_proxy import BadConnection, fault_proxy
from tests.faults.limited_server import TEXT, LimitedServer

pytestmark = [pytest.mark.process, pytest.mark.server]

LONG = TEXT * 30


def request(path: str, body: bytes, *, length: int | None = None, kind: str = "application/json") -> bytes:
    n_bytes = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {n_bytes}\r\n\r\n"
    return head.encode() + body


def speech(text: str = TEXT, **body: object) -> bytes:
    return request("/v1/audio/speech", json.dumps({"input": text, "response_format": "pcm", **body}).encode())


def read_all(sock: socket.socket) -> bytes:
    data = b""
    with suppress(ConnectionResetError):
        while part := sock.recv(65_536):
            data += part
    return data


@pytest.mark.parametrize(
    "bad", [BadConnection(max_piece=700), BadConnection(latency_s=0.02)], ids=["pieces", "latency"]
)
def test_every_byte_arrives_over_a_slow_connection(server: LimitedServer, bad: BadConnection) -> None:
    expected = server.speak(LONG).content
    with fault_proxy(server.host_port, bad) as (host, port):
        url, body = f"http://{host}:{port}/v1/audio/speech", {"input": LONG, "response_format": "pcm"}
        with httpx2.Client(timeout=60) as client:
            assert client.post(url, json=body, headers={"connection": "close"}).content == expected


def test_resets_are_counted_as_left_and_cause_no_exception(server: LimitedServer) -> None:
    left = server.metric("tutti_http_answers_total", outcome="left")
    for reset_after in (0, 300, 20_000):
        bad = BadConnection(reset_after=reset_after)
        with fault_proxy(server.host_port, bad) as address, socket.create_connection(address, timeout=60) as sock:
            sock.sendall(speech(LONG * 3))
            assert not read_all(sock).endswith(b"\r\n0\r\n\r\n")
    while server.metric("tutti_http_answers_total", outcome="left") < left + 3:
        time.sleep(0.01)
    assert not server.errors()


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/jobs"])
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"], ids=["json", "form"])
def test_leaving_in_the_middle_of_an_upload_is_counted_as_left(server: LimitedServer, path: str, kind: str) -> None:
    left = server.metric("tutti_http_answers_total", outcome="left", status="499")
    failed = server.metric("tutti_http_answers_total", outcome="failed")
    with socket.create_connection(server.host_port) as sock:
        part = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\ndeep'
        sock.sendall(request(path, part, length=5000, kind=kind))
    while server.metric("tutti_http_answers_total", outcome="left", status="499") == left:
        time.sleep(0.01)
    assert server.metric("tutti_http_answers_total", outcome="failed") == failed
    assert not server.errors()


def test_a_client_that_closes_its_sending_side_is_taken_as_gone(server: LimitedServer) -> None:
    """The end of a request and the end of a client look the same: work for nobody would be the price of waiting."""
    left = server.metric("tutti_http_answers_total", outcome="left")
    bad = BadConnection(half_close=True)
    with fault_proxy(server.host_port, bad) as address, socket.create_connection(address, timeout=60) as sock:
        sock.sendall(speech(LONG * 3, stream=False))
        assert read_all(sock) == b""
    while server.metric("tutti_http_answers_total", outcome="left") == left:
        time.sleep(0.01)


def test_unfinished_requests_are_cut_and_others_are_served(server: LimitedServer) -> None:
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection(server.host_port, timeout=60)) for _ in range(300)]
        for n, sock in enumerate(socks):
            sock.sendall(speech()[: 1 + n % 120])
        assert server.speak().status_code == 200
        assert all(read_all(sock) == b"" for sock in socks)  # all are cut: this ends


def test_readers_that_are_too_slow_are_cut(server: LimitedServer) -> None:
    """Who reads nothing of a stream, or 10 kB/s of a whole answer; the limit of this server is 6 seconds."""

    def n_ended() -> float:
        """Cut for the pace, or disconnected because nothing at all was read for a while."""
        return sum(server.metric("tutti_http_answers_total", outcome=outcome) for outcome in ("cut", "left"))

    before = n_ended()
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(4)]
        for n, sock in enumerate(socks):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(server.host_port)
            sock.sendall(speech(f"[pause:60s] deep {n}", stream=n < 2))
            sock.settimeout(0.01)
        while n_ended() < before + len(socks):
            for sock in socks[2:]:
                with suppress(TimeoutError, ConnectionResetError):
                    sock.recv(2000)
            time.sleep(0.2)
    while server.metric("tutti_audio_held_bytes") > 4.1e6:  # the cache
        time.sleep(0.01)


def test_half_sent_wyoming_events_are_cut(server: LimitedServer) -> None:
    pytest.importorskip("wyoming")
    head = json.dumps({"type": "synthesize", "data_length": 4_000_000}).encode() + b"\n"
    with ExitStack() as stack:
        for sent in (head + b"x" * 100_000, head[:20], head):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", server.wyoming_port), timeout=60))
            sock.sendall(sent)
            assert read_all(sock) == b""
        idle = stack.enter_context(socket.create_connection(("127.0.0.1", server.wyoming_port), timeout=60))
        time.sleep(1.5)  # longer than the limit for an event that has begun
        idle.sendall(b'{"type": "describe"}\n')
        assert b"kokoro" in idle.recv(65_536).lower() or idle.recv(65_536)


def test_invalid_utf8_in_a_websocket_is_no_traceback(server: LimitedServer) -> None:
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(
            b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert sock.recv(65_536).startswith(b"HTTP/1.1 101")
        sock.sendall(b"\x81\x82\0\0\0\0\xff\xfe")
        assert struct.pack(">H", 1007) in read_all(sock)
    assert not server.errors()


def test_many_left_streams_leave_no_files_threads_or_memory_behind(server: LimitedServer) -> None:
    def leave(n: int) -> None:
        for _ in range(n):
            with socket.create_connection(server.host_port) as sock:
                sock.sendall(speech(LONG))
                sock.recv(100)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def leave_at_once(n: int) -> None:
        threads = [threading.Thread(target=leave, args=(n,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    leave_at_once(10)
    n_files, n_threads, memory = server.n_files(), server.n_threads(), server.memory()
    leave_at_once(60)
    while server.metric("tutti_http_requests") > 1:
        time.sleep(0.01)
    assert server.n_files() < n_files + 60
    assert server.n_threads() <= n_threads
    assert server.memory() < memory + 40e6
    assert server.client.get("/health/workers").json()["queueSize"] == 0
