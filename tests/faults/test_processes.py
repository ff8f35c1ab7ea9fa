"""Processes that die or hang, and a server that is told to stop: no request is lost, and the probes tell the truth."""

import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server, stop
from tests.faults.test_connections import speech

pytestmark = [pytest.mark.process, pytest.mark.server]

LONG = TEXT * 12


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
@pytest.mark.parametrize("name", ["worker", "g2p"])
def test_streams_are_whole_and_right_after_a_process_dies_or_hangs(
    server: LimitedServer, name: str, number: signal.Signals
) -> None:
    body = {"input": LONG, "response_format": "pcm"}
    expected = server.speak(LONG).content
    child = server.wait_for_child(name)
    with server.client.stream("POST", "/v1/audio/speech", json=body) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        os.kill(child.pid, number)
        with httpx2.Client(base_url=server.url, timeout=120) as other:
            answer = other.post("/v1/audio/speech", json=body)
        assert first + b"".join(pieces) == expected
    assert answer.status_code == 200
    assert answer.content == expected
    assert server.wait_for_child(name).pid != child.pid


@pytest.mark.parametrize("name", ["worker", "g2p"])
def test_readiness_tells_that_a_process_is_gone(server: LimitedServer, name: str) -> None:
    child = server.wait_for_child(name)
    os.kill(child.pid, signal.SIGSTOP if name == "g2p" else signal.SIGKILL)
    sending = threading.Thread(target=lambda: httpx2.post(f"{server.url}/tts/stream", json={"text": TEXT}, timeout=120))
    sending.start()
    while server.client.get("/readyz").status_code == 200:
        pass
    assert server.client.get("/healthz").status_code == 200
    sending.join(120)
    server.wait_until_ready()


def test_a_request_that_is_left_while_it_waits_costs_no_pass(server: LimitedServer) -> None:
    """One row is at the worker, which stands still; the others wait, and their clients leave."""

    def n_rows() -> float:
        return server.metric("tutti_batch_rows_sum", stage="acoustic")

    worker, before, left = (
        server.wait_for_child("worker"),
        n_rows(),
        server.metric("tutti_rows_total", outcome="cancelled"),
    )
    body = {"input": TEXT, "response_format": "pcm", "stream": False}
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        with httpx2.Client(base_url=server.url, timeout=120) as client, ThreadPoolExecutor(1) as thread:
            running = thread.submit(client.post, "/v1/audio/speech", json={**body, "input": "deep water"})
            while server.client.get("/health/workers").json()["busyWorkers"] == 0:
                pass
            for n in range(3):
                with socket.create_connection(server.host_port) as sock:
                    sock.sendall(speech(f"{TEXT} {n}"))
                    while server.client.get("/health/workers").json()["queueSize"] == 0:
                        pass
                while server.client.get("/health/workers").json()["queueSize"]:
                    pass
            os.kill(worker.pid, signal.SIGCONT)
            assert running.result().status_code == 200
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    assert server.speak("deep water runs").status_code == 200  # behind all that waited
    assert server.metric("tutti_rows_total", outcome="cancelled") >= left + 3
    assert n_rows() == before + 2


def test_sigterm_ends_a_server_with_work_of_every_kind(tmp_path: Path) -> None:
    """A stream, an idle socket, a running job and a dead G2P process do not keep it from ending with 0."""
    with limited_server(tmp_path, "--grace-s", "20") as server:
        job = server.client.post("/v1/jobs", json={"text": LONG * 20, "format": "wav"}).json()
        assert job["state"] in ("queued", "running")
        with server.client.stream(
            "POST", "/v1/audio/speech", json={"input": LONG, "response_format": "pcm"}
        ) as response:
            pieces = response.iter_raw()
            next(pieces)
            os.kill(server.wait_for_child("g2p").pid, signal.SIGKILL)
            server.process.send_signal(signal.SIGTERM)
            with httpx2.Client(base_url=server.url, timeout=60) as other:
                while other.get("/readyz").json()["error"]["code"] != "draining":
                    pass
                assert other.post("/tts", json={"text": "deep"}).json()["error"]["code"] == "draining"
            for _ in pieces:  # to its last chunk, or this raises
                pass
        assert server.process.wait(60) == 0
        assert not server.errors()
    with limited_server(tmp_path) as server:  # and the job goes on
        assert server.client.get(f"/v1/jobs/{job['id']}").json()["state"] in ("running", "done")
        assert stop(server) == 0
