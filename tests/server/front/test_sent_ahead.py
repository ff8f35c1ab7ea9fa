"""Requests that are sent ahead of their answers get exactly these answers, in order, whichever process answers."""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server
from tests.server.raw_http import RawAnswer, read_all, read_answers, request_bytes

pytestmark = [pytest.mark.server, pytest.mark.process]


def speech(text: str, **body: object) -> bytes:
    content = json.dumps({"input": text, "response_format": "wav", **body}).encode()
    return request_bytes("POST", "/v1/audio/speech", content)


LARGE = speech(TEXT * 25, stream=False)  # more than the system buffers for a connection
SMALL = speech("deep", stream=False)
STREAM = speech(TEXT * 3, response_format="pcm")
VERSION = request_bytes("GET", "/version")
VOICES = request_bytes("GET", "/v1/audio/voices")
PHONEMES = request_bytes("POST", "/dev/phonemize", json.dumps({"text": TEXT}).encode())
WRONG = speech("deep", voice="nobody")
MISSING = request_bytes("GET", "/missing")
TRAINS = {
    "a large answer before another route": [LARGE, VERSION],
    "back and forth": [SMALL, VERSION, STREAM, PHONEMES, SMALL, MISSING],
    "large answers": [LARGE, SMALL, LARGE, VOICES, LARGE, PHONEMES],
    "errors": [WRONG, MISSING, WRONG, STREAM, VERSION],
    "one route": [SMALL] * 20,
}


@pytest.fixture(scope="module", params=[(0, False), (2, False), (2, True)], ids=["alone", "idle", "busy"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    """A server by itself, with processes that hand all on, and with processes that answer what is speech."""
    n_processes, is_busy = request.param
    env = {"TONE_BUSY": "1"} if is_busy else {}
    folder = tmp_path_factory.mktemp("ahead")
    with limited_server(folder, "--http-processes", str(n_processes), **env) as server:
        yield server
        assert not server.errors()


def answers(server: LimitedServer, requests: list[bytes]) -> list[RawAnswer]:
    """Send all requests at once over one connection, which is read slowly."""
    *first, last = requests
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(60)
        sock.connect(server.host_port)
        sock.sendall(b"".join([*first, last.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)]))
        return read_answers(read_all(sock))


@pytest.mark.parametrize("name", TRAINS)
def test_requests_sent_ahead_get_their_answers_in_order(server: LimitedServer, name: str) -> None:
    expected = [answers(server, [request])[0] for request in TRAINS[name]]
    for _ in range(2):
        found = answers(server, TRAINS[name])
        assert [answer.status for answer in found] == [answer.status for answer in expected]
        assert [answer.body == like.body for answer, like in zip(found, expected, strict=True)] == [True] * len(found)
