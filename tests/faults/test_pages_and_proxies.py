"""Pages of other sites and forged headers: nobody acts in a user's name on the user's own server."""

import socket
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.faults.limited_server import LimitedServer, limited_server

pytestmark = [pytest.mark.process, pytest.mark.server]

EVIL = {"origin": "http://evil.example"}


def code(response: httpx2.Response) -> str:
    return str(response.json()["error"]["code"])


def test_a_page_of_another_site_changes_nothing(server: LimitedServer) -> None:
    client, form = server.client, {"text": (None, "deep water")}
    n_jobs = len(client.get("/v1/jobs").json()["data"])
    for origin in (EVIL, {"origin": "null"}, {"origin": f"http://localhost.evil.example:{server.host_port[1]}"}):
        for path in ("/v1/jobs", "/test/batching", "/v1/stats/trial", "/tts", "/v1/audio/speech", "/v1/jobs/x/cancel"):
            refused = client.post(path, files=form, headers=origin)
            assert (refused.status_code, code(refused)) == (403, "origin_not_allowed")
        assert client.delete("/v1/jobs/x", headers=origin).status_code == 403
    assert len(client.get("/v1/jobs").json()["data"]) == n_jobs
    own = {"origin": server.url}
    assert client.post("/tts", json={"text": "deep"}, headers=own).status_code == 200


@pytest.mark.parametrize("path", ["/v1/audio/speech/stream", "/v1/realtime"])
@pytest.mark.parametrize(
    "headers",
    [EVIL, {"host": "evil.example:8880"}, {"host": "evil.example:8880", "origin": "http://evil.example:8880"}],
    ids=["origin", "host", "both"],
)
def test_a_page_of_another_site_opens_no_websocket(server: LimitedServer, path: str, headers: dict[str, str]) -> None:
    url = f"ws://{headers.get('host', '{}:{}'.format(*server.host_port))}{path}"
    with (
        socket.create_connection(server.host_port) as sock,
        pytest.raises(InvalidStatus) as refused,
        connect(url, sock=sock, origin=headers.get("origin"), proxy=None),  # type: ignore[arg-type]
    ):
        pass
    assert refused.value.response.status_code == 403


def test_a_name_that_was_made_to_point_here_reads_nothing(server: LimitedServer) -> None:
    for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/stats"), ("POST", "/tts"), ("GET", "/")):
        for host in ("evil.example", "evil.example:8880", "127.0.0.1.evil.example", "localhost.evil.example."):
            refused = server.client.request(method, path, headers={"host": host})
            assert (refused.status_code, code(refused)) == (403, "host_not_allowed")
    for host in (
        "localhost",
        "127.0.0.1:8880",
        "[::1]:1",
        "tutti",
        "host.docker.internal:8880",
        "nas.lan",
        "pi.local:80",
        "192.168.1.5",
    ):
        assert server.client.get("/v1/jobs", headers={"host": host}).status_code == 200


def test_configured_names_origins_and_proxies_are_accepted_and_forged_addresses_are_not(tmp_path: Path) -> None:
    flags = ("--allowed-hosts", "tts.example", "--trusted-proxies", "10.0.0.0/8", "--rate-requests", "4")
    with limited_server(tmp_path, *flags) as server:
        assert server.client.get("/healthz", headers={"host": "tts.example:443"}).status_code == 200
        assert server.client.get("/healthz", headers={"host": "evil.example"}).status_code == 403
        page = {"host": "tts.example", "origin": "https://tts.example"}
        assert server.client.post("/v1/audio/voices/combine", json="af_sky", headers=page).status_code == 200
        answers = [
            server.client.post("/v1/audio/voices/combine", json="af_sky", headers={"x-forwarded-for": f"9.9.9.{n}"})
            for n in range(9)
        ]
        assert [answer.status_code for answer in answers].count(429) == 6  # all count for one caller
        assert not any("9.9.9." in line for line in server.log)
