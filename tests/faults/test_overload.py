"""More requests than can be served, a clock that steps, and labels that a client could multiply."""

import json
import os
import re
import signal
import socket
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from select import select

import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server
from tests.faults.test_connections import read_all

pytestmark = [pytest.mark.process, pytest.mark.server]

LONG = TEXT * 12
MAX_QUEUE = 10


def test_more_requests_than_fit_are_served_or_refused_with_a_time_to_retry(tmp_path: Path) -> None:
    body = json.dumps({"input": TEXT, "response_format": "pcm"}).encode()
    head = "POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def n_waiting() -> int:
        return int(server.client.get("/health/workers").json()["queueSize"])

    with (
        limited_server(tmp_path, "--max-queue", str(MAX_QUEUE), "--cache-mb", "0", limit="-n 4096") as server,
        ExitStack() as stack,
    ):
        expected, memory = server.speak().content, server.memory()
        socks = [stack.enter_context(socket.create_connection(server.host_port, timeout=120)) for _ in range(150)]
        worker = server.wait_for_child("worker")
        os.kill(worker.pid, signal.SIGSTOP)  # nothing leaves the queue
        for sock in socks:
            sock.sendall(request)
        while len(select(socks, [], [], 0)[0]) < len(socks) - 3 * MAX_QUEUE:
            assert n_waiting() <= MAX_QUEUE
        with suppress(ProcessLookupError):  # replaced meanwhile, since it hung
            os.kill(worker.pid, signal.SIGCONT)
        statuses: Counter[str] = Counter()
        for sock in socks:
            head, _, answer = read_all(sock).partition(b"\r\n\r\n")
            status = head.split(b" ")[1].decode()
            statuses[status] += 1
            assert answer == expected if status == "200" else b"\r\nretry-after: " in head
        assert statuses.keys() == {"200", "429"}
        assert server.memory() < memory + 60e6
        assert server.speak().content == expected
        assert not server.errors()


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_stream_is_whole_when_the_clock_steps(tmp_path: Path, step_s: float) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    with limited_server(tmp_path, "--cache-mb", "0", TONE_CLOCK=str(clock)) as server:
        expected = server.speak(LONG).content
        job = server.client.post("/v1/jobs", json={"text": LONG, "format": "wav"}).json()
        body = {"input": LONG, "response_format": "pcm"}
        with server.client.stream("POST", "/v1/audio/speech", json=body) as response:
            pieces = response.iter_raw()
            first = next(pieces)
            (tmp_path / "stepped").write_text(str(step_s))
            (tmp_path / "stepped").replace(clock)  # the server reads it all the time, and never half of it
            assert server.client.get("/readyz").status_code == 200
            assert first + b"".join(pieces) == expected
        assert server.speak(LONG).content == expected
        while (state := server.client.get(f"/v1/jobs/{job['id']}").json()["state"]) in ("queued", "running"):
            pass
        assert state == "done"
        assert not server.errors()


def test_no_client_can_add_labels_to_the_metrics(server: LimitedServer) -> None:
    def send(n: int) -> None:
        client = server.client
        for body in ({"voice": f"af_sky({n})+af_bella"}, {"model": f"m{n}"}, {"voice": f"v{n}"}, {"language": f"l{n}"}):
            client.post("/v1/audio/speech", json={"input": f"deep {n}", "response_format": "pcm", **body})
        client.get(f"/nothing/{n}", headers={"authorization": f"Bearer sk-{n}"})
        client.get(f"/v1/jobs/{n}")
        client.request(f"METHOD{n}", f"/nothing/{n}")
        client.post(f"/v1/text-to-speech/voice{n}", json={"text": "deep"})

    def series() -> set[str]:
        lines = server.client.get("/metrics").text.splitlines()
        return {re.sub(r" \S+$", "", line) for line in lines if not line.startswith("#")}

    send(0)
    before = series()
    for n in range(1, 20):
        send(n)
    more = series() - before
    assert not [name for name in more if re.search(r"[a-zA-Z]\d+\"|sk-|nothing", name)]
    assert len(more) < 25  # a route or status that was not seen before, but nothing for each request
