"""A request whose end is not certain: it is refused and its connection ends, or it is exactly one request.

Otherwise a proxy in front, which may see its end elsewhere, would pass on a request that nobody has checked.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from select import select

import pytest

from tests.faults.limited_server import LimitedServer, limited_server
from tests.server.raw_http import RawAnswer, read_all, read_answers, request_bytes

pytestmark = [pytest.mark.server, pytest.mark.process]

BODY = json.dumps({"input": "deep", "response_format": "pcm"}).encode()
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
REST = SMUGGLED  # after the body: part of it for one reader, and a request for another
LONGER = len(BODY + REST)
LENGTH = f"Content-Length: {len(BODY)}"
QUIET_S = 0.2  # without an answer, after which the next part is sent
N_FRESH = 40  # connections that reach both of two processes, but for once in 2^39
LAST = request_bytes("GET", "/version", Connection="close")

# The lines of a head between its Host and its end, and what follows it.
UNCERTAIN = {
    "two lengths": (f"{LENGTH}\r\nContent-Length: {LONGER}", BODY + REST),
    "two lengths, the longer first": (f"Content-Length: {LONGER}\r\n{LENGTH}", BODY + REST),
    "two lengths in a line": (f"Content-Length: {len(BODY)}, {LONGER}", BODY + REST),
    "a signed length before the true one": (f"Content-Length: +1\r\n{LENGTH}", BODY),
    "a signed length": (f"Content-Length: +{len(BODY)}", BODY),
    "a negative length": ("Content-Length: -1", BODY),
    "a hexadecimal length": (f"Content-Length: 0x{len(BODY):x}", BODY),
    "a length with a space": (f"Content-Length: {len(BODY)} {LONGER}", BODY + REST),
    "a length with an underscore": ("Content-Length: 1_0", BODY),
    "an empty length": ("Content-Length:", BODY),
    "a length in other digits": ("Content-Length: ٤٢", BODY),
    "a space before the colon": (f"Content-Length : {len(BODY)}", BODY),
    "a length of another, and chunks": (f"Transfer-Encoding: chunked\r\n{LENGTH}", b"0\r\n\r\n" + REST),
    "chunks, and a length": ("Content-Length: 4\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + REST),
    "chunks behind a bare CR": (f"X: y\rTransfer-Encoding: chunked\r\n{LENGTH}", BODY),
    "a bare CR in a name": (f"X\ry: z\r\n{LENGTH}", BODY),
    "a NUL in a value": (f"X: y\0z\r\n{LENGTH}", BODY),
    "an empty name": (f": x\r\n{LENGTH}", BODY),
    "a name with a space": (f"X y: z\r\n{LENGTH}", BODY),
    "a name with a bracket": (f"X(y): z\r\n{LENGTH}", BODY),
    "a line without a colon": (f"nothing\r\n{LENGTH}", BODY),
    "two hosts": (f"Host: elsewhere\r\n{LENGTH}", BODY),
    "an unknown coding": (f"Transfer-Encoding: xchunked\r\n{LENGTH}", BODY),
    "two codings": ("Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
    "a signed chunk": ("Transfer-Encoding: chunked", b"+5\r\nabcde\r\n0\r\n\r\n"),
    "a hexadecimal chunk": ("Transfer-Encoding: chunked", b"0x5\r\nabcde\r\n0\r\n\r\n"),
}
UNCERTAIN_LINES = {
    "no version": b"POST /v1/audio/speech\r\n",
    "HTTP/2 by a preface": b"PRI * HTTP/2.0\r\n",
    "HTTP/2": b"POST /v1/audio/speech HTTP/2.0\r\n",
    "HTTP/3.7": b"GET / HTTP/3.7\r\n",
    "HTTP/0.9": b"GET / HTTP/0.9\r\n",
    "no path": b"POST  HTTP/1.1\r\n",
    "a path with a space": b"POST /v1/audio/speech x HTTP/1.1\r\n",
    "a NUL in the path": b"POST /v1/audio/speech\0 HTTP/1.1\r\n",
}
# Unusual, but HTTP/1.1 by most readings.
ODD = {
    "lines folded": (f"X: y\r\n z\r\n{LENGTH}", BODY),
    "line feeds alone": (f"X: y\n{LENGTH}", BODY),
    "a length with zeros": (f"Content-Length: 00{len(BODY)}", BODY),
    "tabs around the length": (f"Content-Length:\t{len(BODY)}\t", BODY),
    "bytes beyond ASCII": (f"X: é\r\n{LENGTH}", BODY),
    "chunks": ("Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
    "chunks with an extension": ("Transfer-Encoding: chunked", b"%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
    "it may go on": (f"Connection: keep-alive\r\n{LENGTH}", BODY),
    "nothing unusual": (LENGTH, BODY),
}


@pytest.fixture(
    scope="module",
    params=[(is_full, n_processes) for is_full in (False, True) for n_processes in (0, 2)],
    ids=lambda param: f"{'full' if param[0] else 'idle'}-{param[1]}",
)
def front(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    """A server that accepts all streams or none, whose HTTP is spoken by itself or by two processes."""
    is_full, n_processes = request.param
    env = {"TONE_FULL": "1"} if is_full else {}
    folder = tmp_path_factory.mktemp("front")
    with limited_server(folder, "--http-processes", str(n_processes), "--idle-s", "2", **env) as server:
        plain = request_bytes("POST", "/v1/audio/speech", BODY, Connection="close")
        for _ in range(N_FRESH):  # so that each process knows that the server is full
            assert answers(server, plain)[0].status == (429 if is_full else 200)
        yield server
        assert not server.errors()


def answers(server: LimitedServer, *parts: bytes) -> list[RawAnswer]:
    """Send bytes, each part when something has come back or nothing comes; return what arrives until the end."""
    received = b""
    with socket.create_connection(server.host_port, timeout=60) as sock:
        with suppress(ConnectionError):
            for n, part in enumerate(parts):
                if n and select([sock], [], [], QUIET_S)[0]:
                    received += sock.recv(1 << 16)
                sock.sendall(part)
        return read_answers(received + read_all(sock))


def head(lines: str) -> bytes:
    text = f"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{lines}\r\n\r\n"
    return text.encode()


def assert_refused(found: list[RawAnswer]) -> None:
    assert [400 <= answer.status < 600 for answer in found] == [True], found
    assert found[0].headers["connection"] == "close"
    assert json.loads(found[0].body)["error"]["code"] != "not_found"


@pytest.mark.parametrize("name", UNCERTAIN)
def test_a_request_whose_end_is_uncertain_is_refused_and_its_connection_ends(front: LimitedServer, name: str) -> None:
    lines, rest = UNCERTAIN[name]
    first, last = head(lines) + rest.removesuffix(REST), LAST
    if rest.endswith(REST):
        last = REST + LAST
    assert_refused(answers(front, first, last))
    assert_refused(answers(front, first + last))


@pytest.mark.parametrize("name", UNCERTAIN_LINES)
def test_a_first_line_that_is_not_http_1_is_refused_and_its_connection_ends(front: LimitedServer, name: str) -> None:
    found = answers(front, UNCERTAIN_LINES[name] + b"Host: localhost\r\n\r\n" + LAST)
    assert_refused(found)
    assert (found[0].status == 505) == name.startswith("HTTP/")


def test_an_address_that_cannot_be_read_is_refused_on_a_kept_connection_too(front: LimitedServer) -> None:
    first = request_bytes("GET", "/version")
    found = answers(
        front, first, b"POST http://a:b/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde" + LAST
    )
    assert [answer.status for answer in found] == [200, 400]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_request_is_one_or_is_refused(front: LimitedServer, name: str) -> None:
    lines, rest = ODD[name]
    found = answers(front, head(lines) + rest, LAST)
    if len(found) == 1 and found[0].status != 429:
        assert_refused(found)
    else:
        assert [answer.status in (200, 429) for answer in found] == [True] * len(found)
        assert len(found) == 2 or found[0].headers["connection"] == "close"
