"""What real clients send beyond the usual: each gets its answer, and the connection goes on or ends as it should."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server
from tests.server.raw_http import RawAnswer, read_all, read_answers, request_bytes

pytestmark = [pytest.mark.server, pytest.mark.process]

LONG = TEXT * 4
BODY = json.dumps({"input": LONG, "response_format": "pcm"}).encode()
LAST = request_bytes("GET", "/healthz", Connection="close")


@pytest.fixture(scope="module", params=[0, 2])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    folder = tmp_path_factory.mktemp("clients")
    with limited_server(folder, "--http-processes", str(request.param), TONE_BUSY="1") as server:
        yield server
        assert not server.errors()


def exchange(server: LimitedServer, *parts: bytes) -> bytes:
    """Send each part in a segment of its own; return all that comes until the connection ends."""
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            sock.sendall(part)
        return read_all(sock)


def speech(**headers: str) -> bytes:
    return request_bytes("POST", "/v1/audio/speech", BODY, **headers)


def audio(server: LimitedServer) -> bytes:
    return server.speak(LONG).content


def first(server: LimitedServer, *parts: bytes) -> RawAnswer:
    answer, last = read_answers(exchange(server, *parts, LAST))
    assert last.status == 200
    return answer


def test_every_piece_of_a_request_may_come_alone(server: LimitedServer) -> None:
    whole = speech()
    assert first(server, *(whole[n : n + 1] for n in range(len(whole)))).body == audio(server)


def test_a_client_that_asks_first_is_told_to_go_on(server: LimitedServer) -> None:
    """As curl does with a large body."""
    head, _, body = speech(Expect="100-continue").partition(b"\r\n\r\n")
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body + LAST)
        assert read_answers(read_all(sock))[0].body == audio(server)


def test_a_client_that_offers_http_2_goes_on_with_http_1(server: LimitedServer) -> None:
    """As Java's does."""
    headers = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAABAAMAAABk"}
    assert first(server, speech(**headers)).body == audio(server)


@pytest.mark.parametrize("n_bytes", [1, 7, 1000])
def test_a_body_may_come_in_chunks(server: LimitedServer, n_bytes: int) -> None:
    head = request_bytes("POST", "/v1/audio/speech", Transfer_Encoding="chunked", Content_Type="application/json")
    parts = [BODY[at : at + n_bytes] for at in range(0, len(BODY), n_bytes)]
    chunks = b"".join(b"%x;name=value\r\n%s\r\n" % (len(part), part) for part in parts)
    assert first(server, head + chunks + b"0\r\nX-Trailer: x\r\n\r\n").body == audio(server)


def test_a_trailer_is_no_header(server: LimitedServer) -> None:
    head = request_bytes("POST", "/v1/audio/speech", Transfer_Encoding="chunked", Content_Type="application/json")
    chunks = b"%x\r\n%s\r\n0\r\nX-Request-Id: mine\r\nHost: elsewhere\r\n\r\n" % (len(BODY), BODY)
    assert first(server, head + chunks).headers["x-request-id"] != "mine"


@pytest.mark.parametrize("body", [{"stream": True}, {"stream": False}])
def test_an_answer_in_http_1_0_has_no_chunks_and_ends_with_its_connection(
    server: LimitedServer, body: dict[str, bool]
) -> None:
    """As some proxies ask."""
    content = json.dumps({"input": LONG, "response_format": "pcm", **body}).encode()
    lines = (
        f"POST /v1/audio/speech HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    head, _, answer = exchange(server, lines.encode() + content).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding" not in head.lower()
    assert answer == audio(server)


def test_the_answer_to_head_has_no_body(server: LimitedServer) -> None:
    answer = exchange(server, request_bytes("HEAD", "/healthz", Connection="close"))
    assert answer.startswith(b"HTTP/1.1 405")
    assert answer.endswith(b"\r\n\r\n")


def test_a_client_that_closes_gets_a_whole_answer_that_says_so(server: LimitedServer) -> None:
    found = exchange(server, speech(Connection="close"))
    (answer,) = read_answers(found)
    assert answer.body == audio(server)
    assert answer.headers["connection"] == "close"
    assert found.lower().count(b"transfer-encoding: chunked") == 1
    assert found.endswith(b"0\r\n\r\n")


def test_empty_lines_between_requests_are_skipped(server: LimitedServer) -> None:
    assert first(server, b"\r\n" + speech() + b"\r\n").body == audio(server)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000, 431),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 40_000 + b"\r\n", 431),
        (request_bytes("POST", "/tts", Transfer_Encoding="chunked") + b"1;" + b"a" * 500_000 + b"\r\n", 431),
        (request_bytes("POST", "/tts", Transfer_Encoding="chunked") + b"0\r\n" + b"a: b\r\n" * 40_000 + b"\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (request_bytes("POST", "/tts", Transfer_Encoding="gzip, chunked") + b"0\r\n\r\n", 400),
        (b"POST /tts HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"CONNECT example.org:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ],
)
def test_what_is_no_proper_request_is_refused_at_once(server: LimitedServer, sent: bytes, status: int) -> None:
    with socket.create_connection(server.host_port, timeout=60) as sock:
        sock.sendall(sent)
        head = sock.recv(1 << 16).partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 %d" % status)
    assert b"\r\nconnection: close" in head


def test_pages_on_other_hosts_can_read_a_refusal(tmp_path: Path) -> None:
    page = "https://page.example"
    with limited_server(tmp_path, "--cors-origins", page, TONE_FULL="1") as server:
        refused = server.client.post("/v1/audio/speech", json={"input": TEXT}, headers={"origin": page})
        assert refused.status_code == 429
        assert refused.headers["access-control-allow-origin"] == page
        assert refused.headers["retry-after"]
        assert refused.headers["x-request-id"]
