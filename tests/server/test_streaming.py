"""Audio is sent as it is made; a disconnect cancels the work; errors are visible to the client."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.fakes import FakeEngine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, serving, wait_until
from tutti.audio import FORMATS
from tutti.errors import (
    DeadlineExceeded,
    DeviceFull,
    Draining,
    G2PUnavailable,
    MissingExtra,
    ModelFailed,
    NotReady,
    QueueFull,
    TuttiError,
    WorkerLost,
)

pytestmark = pytest.mark.server

STREAMS: list[tuple[str, dict[str, Any]]] = [
    *(("/v1/audio/speech", {"input": LONG, "response_format": name}) for name in FORMATS),
    ("/v1/audio/speech", {"input": LONG, "stream_format": "sse", "response_format": "pcm"}),
    ("/dev/captioned_speech", {"input": LONG, "response_format": "pcm"}),
    ("/dev/dialogue", {"turns": [{"voice": "af_heart", "text": LONG}], "response_format": "pcm"}),
    ("/tts/stream", {"text": LONG, "format": "pcm"}),
]
RAW = [("/v1/audio/speech", {"input": LONG, "response_format": "pcm"}), ("/tts/stream", {"text": LONG})]


@pytest.fixture
def held_server(server: RunningServer) -> Iterator[RunningServer]:
    """A server whose engine speaks one chunk and then waits for `release`."""
    server.engine.reset()
    server.engine.hold_from = 1
    yield server
    server.engine.release()
    while server.app.state.service.lifecycle.n_active:
        assert server.get("/healthz").status_code == 200
    server.engine.reset()


@pytest.mark.parametrize(("path", "body"), STREAMS, ids=lambda value: str(value)[-40:])
def test_the_first_audio_is_sent_while_more_is_made(
    held_server: RunningServer, path: str, body: dict[str, Any]
) -> None:
    with held_server.client().stream("POST", path, json=body) as response:
        assert response.status_code == 200
        pieces = response.iter_raw()
        n_early = len(next(pieces))
        assert n_early > 100  # it has arrived, and the engine still waits
        held_server.engine.release()
        n_late = sum(len(piece) for piece in pieces)
    assert n_late > n_early


def test_what_was_sent_is_not_counted_while_more_is_made(held_server: RunningServer) -> None:
    memory = held_server.app.state.service.memory
    path, body = RAW[0]
    with held_server.client().stream("POST", path, json=body) as response:
        pieces = response.iter_raw()
        assert next(pieces)
        wait_until(lambda: memory.n_bytes == 0)
        assert held_server.app.state.service.lifecycle.n_active  # it goes on
        held_server.engine.release()


def test_pcm_is_sent_in_whole_samples(server: RunningServer) -> None:
    with socket.create_connection(server.host_port) as sock, sock.makefile("rb") as answer:
        sock.sendall(raw("/v1/audio/speech", STREAMS[5][1]))
        while answer.readline().strip():
            pass
        sizes = []
        while size := int(answer.readline(), 16):
            sizes.append(size)
            assert len(answer.read(size + 2)) == size + 2
    assert len(sizes) > 3
    assert all(size % 2 == 0 and size <= 1 << 16 for size in sizes)


def raw(path: str, body: dict[str, Any]) -> bytes:
    """Return the bytes of a request."""
    payload = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    return head.encode() + payload


@pytest.mark.parametrize(("path", "body"), STREAMS[4:], ids=lambda value: str(value)[-40:])
def test_a_disconnect_in_mid_stream_cancels_it(held_server: RunningServer, path: str, body: dict[str, Any]) -> None:
    with held_server.client().stream("POST", path, json=body) as response:
        next(response.iter_raw())
    assert held_server.engine.streams_cancelled.acquire(timeout=60)


@pytest.mark.parametrize(
    ("path", "body"),
    [*RAW, ("/tts", {"text": SHORT}), ("/tts/batch", {"requests": [{"text": SHORT}]})],
    ids=lambda value: str(value)[-40:],
)
def test_a_disconnect_before_the_first_audio_cancels_it(
    held_server: RunningServer, path: str, body: dict[str, Any]
) -> None:
    held_server.engine.hold_from = 0
    with socket.create_connection(held_server.host_port) as sock:
        sock.sendall(raw(path, body))
        assert held_server.engine.streams_opened.acquire(timeout=60)
    assert held_server.engine.streams_cancelled.acquire(timeout=60)
    assert held_server.get("/healthz").status_code == 200


@pytest.mark.parametrize(("path", "body"), RAW, ids=lambda value: str(value)[-40:])
@pytest.mark.parametrize("error", [RuntimeError("a bug"), ModelFailed("row broke"), WorkerLost("gone")])
def test_an_error_in_a_raw_stream_is_a_broken_transfer(
    server: RunningServer, path: str, body: dict[str, Any], error: Exception
) -> None:
    server.engine.fail_at, server.engine.error = 1, error
    received = b""
    with server.client().stream("POST", path, json=body) as response:
        assert response.status_code == 200
        pieces = response.iter_raw()
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete"):  # noqa: PT012 - the whole stream is it
            for piece in pieces:
                received += piece
    server.engine.fail_at = None
    whole = server.post(path, body).content
    assert 0 < len(received) < len(whole)
    assert received == whole[: len(received)]  # the good part, and nothing else
    assert server.get("/healthz").status_code == 200


def test_an_error_in_events_and_captions_is_the_last_item(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.fail_at, fake_engine.error = 1, ModelFailed("row broke")
        last = server.speak(input=LONG, stream_format="sse").text.strip().split("\n\n")[-1]
        event = json.loads(last.removeprefix("data: "))
        assert event["type"] == "speech.audio.error"
        assert event["error"]["code"] == "model_failed"
        *lines, end = server.post("/dev/captioned_speech", {"input": LONG}).text.strip().split("\n")
        assert all(json.loads(line)["audio"] for line in lines)
        assert json.loads(end)["error"]["code"] == "model_failed"


@pytest.mark.parametrize(
    ("error", "status", "retry_after", "should_retry"),
    [
        (QueueFull("full", retry_after_s=7.2), 429, "8", "true"),
        (DeadlineExceeded("late"), 504, None, None),
        (MissingExtra("no voice of yours"), 501, None, "false"),
        (NotReady("cold"), 503, "2", "true"),
        (Draining("going"), 503, "5", "true"),
        (WorkerLost("gone"), 503, "1", "true"),
        (DeviceFull("full"), 503, "1", "true"),
        (G2PUnavailable("gone"), 502, "2", "true"),
        (ModelFailed("row broke"), 500, None, "false"),
        (RuntimeError("secret of the server"), 500, None, "false"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("more", [{}, {"stream": False}, {"stream_format": "sse"}], ids=["raw", "whole", "sse"])
def test_an_error_before_the_first_audio_sets_the_status(
    monkeypatch: pytest.MonkeyPatch,
    failing: Callable[[Exception], RunningServer],
    error: Exception,
    status: int,
    retry_after: str | None,
    should_retry: str | None,
    more: dict[str, Any],
) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    server = failing(error)
    response = server.speak(**more)
    code = error.code if isinstance(error, TuttiError) else "internal_error"
    assert_error(response, status, code)
    assert response.headers.get("retry-after") == retry_after
    assert response.headers.get("x-should-retry") == should_retry
    assert "secret" not in response.text
    assert response.headers["x-request-id"]


@pytest.fixture
def failing(server: RunningServer) -> Iterator[Callable[[Exception], RunningServer]]:
    def fail_with(error: Exception) -> RunningServer:
        server.engine.fail_at, server.engine.error = 0, error
        return server

    yield fail_with
    server.engine.fail_at = None


def test_samples_that_are_nan_are_never_sent(fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(fake_engine) as server:
        monkeypatch.setattr("tutti.server.request.scale_volume", lambda samples, factor: np.full_like(samples, np.nan))
        assert_error(server.speak(volume_multiplier=2), 500, "model_failed")
        assert_error(server.speak(input=LONG, volume_multiplier=2), 500, "model_failed")


def test_a_request_without_audio_in_time_gets_504(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, timeout_s=0.01) as server:
        fake_engine.hold_from = 0
        assert_error(server.speak(), 504, "deadline_exceeded")
        assert fake_engine.streams_cancelled.acquire(timeout=60)


def test_a_caller_can_set_a_shorter_timeout(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.hold_from = 0
        body = {"input": SHORT}
        assert_error(
            server.post("/v1/audio/speech", body, headers={"x-request-timeout": "0.01"}), 504, "deadline_exceeded"
        )
        assert fake_engine.streams_cancelled.acquire(timeout=60)
        for no_number in ("soon", "nan", "-1", "-inf"):
            headers = {"x-request-timeout": no_number}
            assert_error(server.post("/v1/audio/speech", body, headers=headers), 400, "invalid_input")


def test_a_slow_reader_has_a_bounded_buffer_and_does_not_block_others(fake_engine: FakeEngine) -> None:
    n_made = 0
    has_computed = threading.Event()
    text = LONG * 200  # about an hour of PCM, 160 MB

    def count_samples(samples: np.ndarray, factor: float) -> np.ndarray:
        nonlocal n_made
        n_made += len(samples)
        has_computed.set()
        return samples

    with serving(fake_engine) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tutti.server.request.scale_volume", count_samples)
        body = {"input": text, "response_format": "pcm", "volume_multiplier": 2}
        with server.client().stream("POST", "/v1/audio/speech", json=body) as response:
            next(response.iter_raw())
            assert has_computed.wait(60)
            for _ in range(20):  # others are served while this one does not read
                assert server.speak().status_code == 200
            n_before = n_made
            for _ in range(20):
                assert server.speak().status_code == 200
            assert n_made - n_before <= 40 * 24_000 * 30 // 4
        assert fake_engine.streams_cancelled.acquire(timeout=60)
    assert 2 * n_made < 40e6


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_request_may_come_in_pieces_and_the_next_right_behind_it(server: RunningServer, size: int) -> None:
    request = raw("/v1/audio/speech", {"input": SHORT, "response_format": "pcm"})
    head = request.index(b"\r\n\r\n") + 4
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(request[: head + 3])
        for at in range(head + 3, len(request) - 1, size):
            sock.sendall(request[at : min(at + size, len(request) - 1)])
        assert server.get("/healthz").status_code == 200
        sock.sendall(request[-1:] + request)
        answer = b""
        while answer.count(b"HTTP/1.1 200") < 2:
            answer += sock.recv(1 << 16)


def test_a_request_that_is_left_half_sent_is_counted_and_never_begins(server: RunningServer) -> None:
    def n_left() -> float:
        lines = [line for line in server.get("/metrics").text.splitlines() if "http_answers_total" in line]
        return sum(float(line.split()[-1]) for line in lines if 'status="499"' in line)

    before, n_requests = n_left(), len(server.engine.requests)
    for _ in range(20):
        with socket.create_connection(server.host_port) as sock:
            sock.sendall(raw("/v1/audio/speech", {"input": SHORT})[:-1])
    wait_until(lambda: n_left() == before + 20)
    assert len(server.engine.requests) == n_requests
    assert server.app.state.service.lifecycle.n_active == 0
