"""Starting, serving, draining, stopping; and time limits for clients that do not send or read."""

import asyncio
import json
import socket
import threading
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.fakes import FakeEngine
from tests.server.harness import LONG, RunningServer, assert_error, serving
from tests.server.test_streaming import raw
from tutti.server.front.limits import READ_STALL_FACTOR

pytestmark = pytest.mark.server


def test_before_it_is_warm_the_server_answers_probes_and_refuses_work(fake_engine: FakeEngine) -> None:
    fake_engine.may_start.clear()
    with serving(fake_engine) as server:
        assert server.get("/healthz").status_code == 200
        assert server.get("/health").json()["ready"] is False
        response = server.get("/readyz")
        assert_error(response, 503, "not_ready")
        assert response.headers["retry-after"]
        for path in ("/v1/audio/speech", "/tts", "/tts/batch", "/tts/stream", "/dev/phonemize"):
            refused = server.post(path, {"input": "deep", "text": "deep"})
            assert_error(refused, 503, "not_ready")
            assert refused.headers["retry-after"]
        assert server.get("/v1/models").status_code == 200
        fake_engine.may_start.set()
        while server.get("/readyz").status_code == 503:
            pass
        assert server.speak().status_code == 200
        assert server.get("/health").json()["status"] == "healthy"


def stop(server: RunningServer) -> None:
    """Stop the server as SIGTERM does."""
    assert server.engine.loop is not None
    done = threading.Event()
    server.engine.loop.call_soon_threadsafe(lambda: (server.uvicorn.stop(), done.set()))
    assert done.wait(60)


def test_draining_refuses_new_work_and_finishes_active_streams(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, grace_s=60) as server:
        whole = server.speak(input=LONG, response_format="pcm").content
        fake_engine.hold_from = 1
        body = {"input": LONG, "response_format": "pcm"}
        with server.client().stream("POST", "/v1/audio/speech", json=body) as response:
            pieces = response.iter_raw()
            first = next(pieces)
            stop(server)
            while server.get("/readyz").status_code == 200:
                pass
            assert_error(server.get("/readyz"), 503, "draining")
            refused = server.speak()
            assert_error(refused, 503, "draining")
            assert refused.headers["retry-after"]
            assert server.get("/healthz").status_code == 200
            assert server.get("/health").json()["status"] == "draining"
            fake_engine.release()
            assert first + b"".join(pieces) == whole
        server.thread.join(60)
        assert not server.thread.is_alive()


def test_after_the_grace_time_streams_are_broken_off_visibly(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, grace_s=0.05) as server:
        fake_engine.hold_from = 1
        with server.client().stream("POST", "/tts/stream", json={"text": LONG}) as response:
            pieces = response.iter_raw()
            next(pieces)
            stop(server)
            with pytest.raises(httpx2.RemoteProtocolError):
                list(pieces)
        assert fake_engine.streams_cancelled.acquire(timeout=60)
        server.thread.join(60)
        assert not server.thread.is_alive()


def read_to_end(sock: socket.socket) -> bytes:
    """Return all bytes until the server closes or resets the connection."""
    data = b""
    with suppress(ConnectionResetError):
        while part := sock.recv(65536):
            data += part
    return data


def answer_to(server: RunningServer, request: bytes) -> bytes:
    """Return the answer to a request that arrives at once, so that even a short idle limit does not cut it."""
    with socket.socket() as sock:
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(request.replace(b"Host: x", b"Host: x\r\nConnection: close", 1))
        return read_to_end(sock)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/audio/speech HT",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nX-A: b\r\n",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n",
        b'POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"input"',
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_a_request_that_never_ends_is_disconnected(fake_engine: FakeEngine, sent: bytes) -> None:
    with serving(fake_engine, idle_s=0.05) as server:
        with socket.socket() as sock:
            with server.suspended():
                sock.connect(server.host_port)
                sock.sendall(sent)
            assert read_to_end(sock) == b""
        assert answer_to(server, raw("/tts", {"text": "deep"})).startswith(b"HTTP/1.1 200")


def test_a_second_request_that_never_ends_is_disconnected_too(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, idle_s=0.05) as server, socket.socket() as sock:
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        with sock.makefile("rb") as answer:
            while answer.readline().strip():
                pass
            answer.read(len(b'{"status":"ok"}'))
        sock.sendall(b"GET /heal")
        assert read_to_end(sock) == b""


def test_work_that_takes_longer_than_the_idle_limit_is_not_disconnected(fake_engine: FakeEngine) -> None:
    # Few bytes, so that the kernel buffers them all.
    body = {"text": LONG, "format": "mulaw"}
    with serving(fake_engine, idle_s=0.01) as server, socket.socket() as sock:
        fake_engine.hold_from = 1
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(raw("/tts/stream", body).replace(b"Host: x", b"Host: x\r\nConnection: close"))
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        asyncio.run_coroutine_threadsafe(asyncio.sleep(20 * READ_STALL_FACTOR * 0.01), server.loop).result(60)
        fake_engine.release()
        assert read_to_end(sock).endswith(b"0\r\n\r\n")


def test_a_client_that_stops_reading_is_disconnected_and_its_stream_closed(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, idle_s=0.02) as server, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(raw("/v1/audio/speech", {"input": LONG * 50, "response_format": "pcm"}))
        assert fake_engine.streams_cancelled.acquire(timeout=60)  # it never read a byte
        assert answer_to(server, raw("/tts", {"text": "deep"})).startswith(b"HTTP/1.1 200")


def test_connections_beyond_the_limit_get_503(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, max_connections=2) as server:
        assert server.get("/healthz").status_code == 200  # one is kept alive
        with socket.create_connection(server.host_port), socket.create_connection(server.host_port) as third:
            answer = read_to_end(third)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in head
        assert json.loads(body)["error"]["code"] == "too_many_connections"


def test_a_connection_is_kept_alive_and_reused(server: RunningServer) -> None:
    with socket.create_connection(server.host_port) as sock, sock.makefile("rb") as answer:
        for body in ({"text": "deep"}, {"text": ""}, {"text": LONG}, {}, {"text": "water"}):
            sock.sendall(raw("/tts", body))
            length = 0
            while line := answer.readline().strip():
                assert not line.lower().startswith(b"connection: close")
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            assert len(answer.read(length)) == length > 0


def test_two_hundred_slow_readers_do_not_block_others(fake_engine: FakeEngine) -> None:
    body: dict[str, Any] = {"input": LONG * 20, "response_format": "pcm"}
    with serving(fake_engine, idle_s=600) as server:
        slow = [socket.create_connection(server.host_port) for _ in range(200)]
        try:
            for sock in slow:  # one by one: so many at once could be refused on a slow machine
                sock.sendall(raw("/v1/audio/speech", body))
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
            assert server.speak().status_code == 200
        finally:
            for sock in slow:
                sock.close()
        for _ in slow:
            assert fake_engine.streams_cancelled.acquire(timeout=60)


def test_connections_have_tcp_nodelay(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        assert server.get("/healthz").status_code == 200
        (connection,) = server.uvicorn.server_state.connections
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
