"""A path that no route is for is not found, also by a WebSocket."""

import json
import socket

import pytest

from tests.server.harness import RunningServer
from tests.server.raw_http import read_all, read_answers, request_bytes

pytestmark = pytest.mark.server

UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": f"{'A' * 22}==",
}


@pytest.mark.parametrize("path", ["/nothing", "/v1/audio/speech/stream/more", "/v1/audio/speech", "/healthz"])
@pytest.mark.parametrize("headers", [UPGRADE, {"Connection": "close"}], ids=["WebSocket", "HTTP"])
def test_an_unknown_path_is_404_and_says_so(server: RunningServer, path: str, headers: dict[str, str]) -> None:
    if headers is not UPGRADE and path in ("/v1/audio/speech", "/healthz"):
        return  # a route of HTTP
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(request_bytes("GET", path, **headers))
        (answer,) = read_answers(read_all(sock))
    assert answer.status == 404
    assert json.loads(answer.body)["error"]["code"] == "not_found"


def test_its_first_byte_is_measured(server: RunningServer) -> None:
    name = 'tutti_http_first_byte_seconds_sum{route="-"}'

    def measured_s() -> float:
        lines = server.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    before_s = measured_s()
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(request_bytes("GET", "/nothing", **UPGRADE))
        read_all(sock)
    assert measured_s() > before_s
