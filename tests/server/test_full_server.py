"""A server that refuses streams says so at once, and goes on with everything else."""

import socket
import time

import pytest

from tests.fakes import FakeEngine
from tests.server.harness import SHORT, assert_error, serving
from tests.server.test_streaming import raw
from tutti.admission.refusals import Asking, Refusals
from tutti.errors import QueueFull
from tutti.server.middleware.ingress import stream_route


def test_a_request_for_a_file_is_told_from_a_stream_by_its_bytes() -> None:
    assert stream_route("/v1/audio/speech", b'{"input": "x"}') == "/v1/audio/speech"
    assert stream_route("/v1/audio/speech", rb'{"input": "\"stream\": false"}') == "/v1/audio/speech"
    for path in ("/tts/stream", "/tts/bytes", "/tts/sse", "/v1/speak", "/v2/speak", "/v1/text-to-dialogue/stream"):
        assert stream_route(path, b"{}") == path
    timed = "/v1/text-to-speech/{voice_id}/stream/with-timestamps"
    assert stream_route(timed.format(voice_id="af_sky"), b"{}") == timed
    assert stream_route("/v1/text-to-speech/af_sky/stream", b"{}") == "/v1/text-to-speech/{voice_id}/stream"
    assert stream_route("/v1/audio/speech", b'{"input": "x", "stream" : false}') is None
    assert stream_route("/tts", b"{}") is None


@pytest.mark.server
@pytest.mark.parametrize(("is_replica", "status", "code"), [(False, 429, "queue_full"), (True, 503, "replica_full")])
def test_a_full_server_refuses_streams_and_keeps_their_connections(
    fake_engine: FakeEngine, is_replica: bool, status: int, code: str
) -> None:
    with serving(fake_engine, replica=is_replica) as server:
        fake_engine.refusals.keep(
            QueueFull("full", retry_after_s=3), Asking("kokoro", None), now=time.monotonic() + 3600
        )
        client = server.client()
        rejected = fake_engine.monitor.batch_stats.metrics.rejected.labels("first")
        for n_refused in (1, 2):
            refused = client.post("/v1/audio/speech", json={"input": SHORT})
            assert_error(refused, status, code)
            assert 3000 <= int(refused.headers["retry-after-ms"]) <= 4500
            assert refused.headers["x-request-id"]
            assert rejected._value.get() == n_refused
        assert not fake_engine.requests
        # What waits longer by design, and everything that is not a stream, takes the usual way.
        for headers in ({"x-stainless-lang": "python"}, {"x-request-timeout": "30"}):
            assert server.client().post("/v1/audio/speech", json={"input": SHORT}, headers=headers).status_code == 200
        assert client.post("/v1/audio/speech", json={"input": SHORT, "stream": False}).status_code == 200
        assert client.get("/readyz").status_code == 200
        with socket.create_connection(server.host_port) as sock:
            request = raw("/v1/audio/speech", {"input": SHORT})
            sock.sendall(request)
            answer = b""
            while not answer.endswith(b"}"):
                answer += sock.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 %d" % status)
            sock.sendall(request[:-5])
            assert client.get("/readyz").status_code == 200
            with socket.create_connection(server.host_port, timeout=60) as endless:  # not kept until its head ends
                endless.sendall(request.partition(b"\r\n\r\n")[0] + b"\r\nx: " + b"a" * 200_000)
                assert endless.recv(100).startswith(b"HTTP/1.1 431")
            fake_engine.refusals = Refusals()  # there is room again before the end of the request arrives
            sock.sendall(request[-5:])
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
