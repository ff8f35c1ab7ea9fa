"""A server's life: not ready until warm, busy, draining, gone; and clients that do not keep their side."""

import asyncio
import json
import socket
import threading
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.server.harness import LONG, FakeEngine, RunningServer, assert_error, serving
from tests.server.test_streaming import raw
from tutti.server.middleware.http_protocol import READ_STALL_FACTOR


def test_it_answers_probes_before_it_is_warm_and_takes_no_work(fake_engine: FakeEngine) -> None:
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
    """SIGTERM, as the server gets it."""
    assert server.engine.loop is not None
    done = threading.Event()
    server.engine.loop.call_soon_threadsafe(lambda: (server.uvicorn.stop(), done.set()))
    assert done.wait(60)


def test_draining_refuses_new_work_and_finishes_what_was_begun(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, grace_s=60) as server:
        whole = server.speak(input=LONG, response_format="pcm").content
        fake_engine.hold_from = 1
        body = {"input": LONG, "response_format": "pcm"}
        with server.client().stream("POST", "/v1/audio/speech", json=body) as response:
            pieces = response.iter_raw()
            got = next(pieces)
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
            assert got + b"".join(pieces) == whole
        server.thread.join(60)
        assert not server.thread.is_alive()


def test_after_the_grace_time_streams_are_cut_and_seen_to_be(fake_engine: FakeEngine) -> None:
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


def until_cut(sock: socket.socket) -> bytes:
    """What comes before the other side closes, in whichever way."""
    got = b""
    with suppress(ConnectionResetError):
        while part := sock.recv(65536):
            got += part
    return got


def answered(server: RunningServer, request: bytes) -> bytes:
    """All that comes back for a request that is there at once: a server without patience has no reason to cut it."""
    with socket.socket() as sock:
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(request.replace(b"Host: x", b"Host: x\r\nConnection: close", 1))
        return until_cut(sock)


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
def test_a_request_that_never_ends_is_cut(fake_engine: FakeEngine, sent: bytes) -> None:
    with serving(fake_engine, idle_s=0.05) as server:
        with socket.socket() as sock:
            with server.suspended():
                sock.connect(server.host_port)
                sock.sendall(sent)
            assert until_cut(sock) == b""
        assert answered(server, raw("/tts", {"text": "deep"})).startswith(b"HTTP/1.1 200")


def test_a_second_request_that_never_ends_is_cut_too(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, idle_s=0.05) as server, socket.socket() as sock:
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        with sock.makefile("rb") as answer:
            while answer.readline().strip():
                pass
            answer.read(len(b'{"status":"ok"}'))
        sock.sendall(b"GET /heal")
        assert until_cut(sock) == b""


def test_work_that_takes_longer_than_patience_is_not_cut(fake_engine: FakeEngine) -> None:
    # Few bytes: the kernel takes them all, however slow the reader is.
    body = {"text": LONG, "format": "mulaw"}
    with serving(fake_engine, idle_s=0.01) as server, socket.socket() as sock:
        fake_engine.hold_from = 1
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(raw("/tts/stream", body).replace(b"Host: x", b"Host: x\r\nConnection: close"))
        got = sock.recv(65536)
        assert got.startswith(b"HTTP/1.1 200")
        asyncio.run_coroutine_threadsafe(asyncio.sleep(20 * READ_STALL_FACTOR * 0.01), server.loop).result(60)
        fake_engine.release()
        assert until_cut(sock).endswith(b"0\r\n\r\n")


def test_a_reader_that_stops_reading_is_cut_and_its_stream_closed(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, idle_s=0.02) as server, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with server.suspended():
            sock.connect(server.host_port)
            sock.sendall(raw("/v1/audio/speech", {"input": LONG * 50, "response_format": "pcm"}))
        assert fake_engine.streams_cancelled.acquire(timeout=60)  # it never read a byte
        assert answered(server, raw("/tts", {"text": "deep"})).startswith(b"HTTP/1.1 200")


def test_connections_beyond_the_limit_are_told_so(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, max_connections=2) as server:
        assert server.get("/healthz").status_code == 200  # one is kept alive
        with socket.create_connection(server.host_port), socket.create_connection(server.host_port) as third:
            answer = until_cut(third)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in head
        assert json.loads(body)["error"]["code"] == "too_many_connections"


def test_a_connection_is_kept_and_used_again(server: RunningServer) -> None:
    with socket.create_connection(server.host_port) as sock, sock.makefile("rb") as answer:
        for body in ({"text": "deep"}, {"text": ""}, {"text": LONG}, {}, {"text": "water"}):
            sock.sendall(raw("/tts", body))
            length = 0
            while line := answer.readline().strip():
                assert not line.lower().startswith(b"connection: close")
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            assert len(answer.read(length)) == length > 0


def test_two_hundred_slow_readers_hold_up_nobody(fake_engine: FakeEngine) -> None:
    body: dict[str, Any] = {"input": LONG * 20, "response_format": "pcm"}
    with serving(fake_engine, idle_s=600) as server:
        slow = [socket.create_connection(server.host_port) for _ in range(200)]
        try:
            for sock in slow:
                sock.sendall(raw("/v1/audio/speech", body))
            for sock in slow:
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
            assert server.speak().status_code == 200
        finally:
            for sock in slow:
                sock.close()
        for _ in slow:
            assert fake_engine.streams_cancelled.acquire(timeout=60)


def test_no_answer_waits_for_an_acknowledgement(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        assert server.get("/healthz").status_code == 200
        (connection,) = server.uvicorn.server_state.connections
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
