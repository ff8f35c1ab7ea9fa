"""A full server's refusals are answers like any other: pages can read them, and each is counted and in the log."""

import json
import re
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.faults.limited_server import LimitedServer, limited_server, stop
from tests.server.harness import assert_error
from tests.server.raw_http import read_all, read_answers, request_bytes

pytestmark = [pytest.mark.server, pytest.mark.process]

PAGE = "https://page.example"
ROUTES = ("/v1/audio/speech", "/tts/stream", "/v1/text-to-speech/{voice_id}/stream")
SUMMED = re.compile(r"requests=(\d+) method=POST route=(\S+) status=429")
READ = re.compile(r"request id=.* method=POST route=(\S+) status=429 ")


@pytest.fixture(params=[0, 2])
def full_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LimitedServer]:
    flags = ("--http-processes", str(request.param), "--cors-origins", PAGE)
    with limited_server(tmp_path, *flags, TONE_FULL="1") as server:
        yield server
        assert not server.errors()


def ask(server: LimitedServer, number: int) -> list[str]:
    """Ask for some streams over one connection, now and then as a page or with a timeout; return what was refused."""
    refused = []
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        for n in range(number, number + 15):
            route = ROUTES[n % len(ROUTES)]
            path = route.format(voice_id="af_heart")
            headers = [{}, {"origin": PAGE}, {"x-request-timeout": "0.1"}, {}][n % 4]
            answer = client.post(path, json={"input": "deep", "text": "deep"}, headers=headers)
            assert_error(answer, 429, "queue_full")
            assert answer.headers["retry-after"]
            assert answer.headers.get("access-control-allow-origin") == headers.get("origin")
            refused.append(route)
    return refused


def test_every_refusal_can_be_read_by_pages_and_is_counted_and_in_the_log(full_server: LimitedServer) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = [route for routes in threads.map(lambda n: ask(full_server, n), range(12)) for route in routes]
    seen = Counter(answers)
    counted = {
        route: full_server.metric("tutti_http_answers_total", method="POST", route=route, status="429")
        for route in ROUTES
    }
    assert counted == seen
    assert full_server.metric("tutti_http_answers_total", status="429") == len(answers)
    assert stop(full_server) == 0
    logged: Counter[str] = Counter()
    for line in full_server.log:
        if match := SUMMED.search(line):
            logged[match[2]] += int(match[1])
        elif match := READ.search(line):
            logged[match[1]] += 1
    assert logged == seen


def test_what_is_no_http_is_counted_too(full_server: LimitedServer) -> None:
    before = full_server.metric("tutti_http_answers_total", status="400")
    with socket.create_connection(full_server.host_port, timeout=60) as sock:
        sock.sendall(b"nothing\r\n\r\n")
        assert [answer.status for answer in read_answers(read_all(sock))] == [400]
    assert full_server.metric("tutti_http_answers_total", status="400") == before + 1


def test_no_second_answer_is_written_when_a_body_turns_out_to_be_invalid(full_server: LimitedServer) -> None:
    with socket.create_connection(full_server.host_port, timeout=60) as sock:
        sock.sendall(request_bytes("GET", "/version", Transfer_Encoding="chunked") + b"1\r\na\r\n")
        received = sock.recv(1 << 16)
        sock.sendall(b"no length\r\n")
        (answer,) = read_answers(received + read_all(sock))
        assert json.loads(answer.body)["version"]
