"""A server's life: not ready until warm, busy, draining, gone; and clients that do not keep their side."""

import asyncio
import json
import socket
import threading
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.server.harness import LONG, House, Stage, serving, shaped
from tests.server.test_streaming import raw
from tutti.server.middleware.http_protocol import STALLED


def test_it_answers_probes_before_it_is_warm_and_takes_no_work(stage: Stage) -> None:
    stage.may_start.clear()
    with serving(stage) as house:
        assert house.get("/healthz").status_code == 200
        assert house.get("/health").json()["ready"] is False
        response = house.get("/readyz")
        shaped(response, 503, "not_ready")
        assert response.headers["retry-after"]
        for path in ("/v1/audio/speech", "/tts", "/tts/batch", "/tts/stream", "/dev/phonemize"):
            refused = house.post(path, {"input": "deep", "text": "deep"})
            shaped(refused, 503, "not_ready")
            assert refused.headers["retry-after"]
        assert house.get("/v1/models").status_code == 200
        stage.may_start.set()
        while house.get("/readyz").status_code == 503:
            pass
        assert house.speak().status_code == 200
        assert house.get("/health").json()["status"] == "healthy"


def stop(house: House) -> None:
    """SIGTERM, as the server gets it."""
    assert house.stage.loop is not None
    done = threading.Event()
    house.stage.loop.call_soon_threadsafe(lambda: (house.server.stop(), done.set()))
    assert done.wait(60)


def test_draining_refuses_new_work_and_finishes_what_was_begun(stage: Stage) -> None:
    with serving(stage, grace_s=60) as house:
        whole = house.speak(input=LONG, response_format="pcm").content
        stage.hold_from = 1
        body = {"input": LONG, "response_format": "pcm"}
        with house.client().stream("POST", "/v1/audio/speech", json=body) as response:
            pieces = response.iter_raw()
            got = next(pieces)
            stop(house)
            while house.get("/readyz").status_code == 200:
                pass
            shaped(house.get("/readyz"), 503, "draining")
            refused = house.speak()
            shaped(refused, 503, "draining")
            assert refused.headers["retry-after"]
            assert house.get("/healthz").status_code == 200
            assert house.get("/health").json()["status"] == "draining"
            stage.let_go()
            assert got + b"".join(pieces) == whole
        house.thread.join(60)
        assert not house.thread.is_alive()


def test_after_the_grace_time_streams_are_cut_and_seen_to_be(stage: Stage) -> None:
    with serving(stage, grace_s=0.05) as house:
        stage.hold_from = 1
        with house.client().stream("POST", "/tts/stream", json={"text": LONG}) as response:
            pieces = response.iter_raw()
            next(pieces)
            stop(house)
            with pytest.raises(httpx2.RemoteProtocolError):
                list(pieces)
        assert stage.closed.acquire(timeout=60)
        house.thread.join(60)
        assert not house.thread.is_alive()


def until_cut(sock: socket.socket) -> bytes:
    """What comes before the other side closes, in whichever way."""
    got = b""
    with suppress(ConnectionResetError):
        while part := sock.recv(65536):
            got += part
    return got


def answered(house: House, request: bytes) -> bytes:
    """All that comes back for a request that is there at once: a server without patience has no reason to cut it."""
    with socket.socket() as sock:
        with house.asleep():
            sock.connect(house.host_port)
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
def test_a_request_that_never_ends_is_cut(stage: Stage, sent: bytes) -> None:
    with serving(stage, idle_s=0.05) as house:
        with socket.socket() as sock:
            with house.asleep():
                sock.connect(house.host_port)
                sock.sendall(sent)
            assert until_cut(sock) == b""
        assert answered(house, raw("/tts", {"text": "deep"})).startswith(b"HTTP/1.1 200")


def test_a_second_request_that_never_ends_is_cut_too(stage: Stage) -> None:
    with serving(stage, idle_s=0.05) as house, socket.socket() as sock:
        with house.asleep():
            sock.connect(house.host_port)
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        with sock.makefile("rb") as answer:
            while answer.readline().strip():
                pass
            answer.read(len(b'{"status":"ok"}'))
        sock.sendall(b"GET /heal")
        assert until_cut(sock) == b""


def test_work_that_takes_longer_than_patience_is_not_cut(stage: Stage) -> None:
    # Few bytes: the kernel takes them all, however slow the reader is.
    body = {"text": LONG, "format": "mulaw"}
    with serving(stage, idle_s=0.01) as house, socket.socket() as sock:
        stage.hold_from = 1
        with house.asleep():
            sock.connect(house.host_port)
            sock.sendall(raw("/tts/stream", body).replace(b"Host: x", b"Host: x\r\nConnection: close"))
        got = sock.recv(65536)
        assert got.startswith(b"HTTP/1.1 200")
        asyncio.run_coroutine_threadsafe(asyncio.sleep(20 * STALLED * 0.01), house.loop).result(60)
        stage.let_go()
        assert until_cut(sock).endswith(b"0\r\n\r\n")


def test_a_reader_that_stops_reading_is_cut_and_its_stream_closed(stage: Stage) -> None:
    with serving(stage, idle_s=0.02) as house, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with house.asleep():
            sock.connect(house.host_port)
            sock.sendall(raw("/v1/audio/speech", {"input": LONG * 50, "response_format": "pcm"}))
        assert stage.closed.acquire(timeout=60)  # it never read a byte
        assert answered(house, raw("/tts", {"text": "deep"})).startswith(b"HTTP/1.1 200")


def test_connections_beyond_the_limit_are_told_so(stage: Stage) -> None:
    with serving(stage, max_connections=2) as house:
        assert house.get("/healthz").status_code == 200  # one is kept alive
        with socket.create_connection(house.host_port), socket.create_connection(house.host_port) as third:
            answer = until_cut(third)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in head
        assert json.loads(body)["error"]["code"] == "too_many_connections"


def test_a_connection_is_kept_and_used_again(house: House) -> None:
    with socket.create_connection(house.host_port) as sock, sock.makefile("rb") as answer:
        for body in ({"text": "deep"}, {"text": ""}, {"text": LONG}, {}, {"text": "water"}):
            sock.sendall(raw("/tts", body))
            length = 0
            while line := answer.readline().strip():
                assert not line.lower().startswith(b"connection: close")
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            assert len(answer.read(length)) == length > 0


def test_two_hundred_slow_readers_hold_up_nobody(stage: Stage) -> None:
    body: dict[str, Any] = {"input": LONG * 20, "response_format": "pcm"}
    with serving(stage, idle_s=600) as house:
        slow = [socket.create_connection(house.host_port) for _ in range(200)]
        try:
            for sock in slow:
                sock.sendall(raw("/v1/audio/speech", body))
            for sock in slow:
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
            assert house.speak().status_code == 200
        finally:
            for sock in slow:
                sock.close()
        for _ in slow:
            assert stage.closed.acquire(timeout=60)


def test_no_answer_waits_for_an_acknowledgement(stage: Stage) -> None:
    with serving(stage) as house:
        assert house.get("/healthz").status_code == 200
        (connection,) = house.server.server_state.connections
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
