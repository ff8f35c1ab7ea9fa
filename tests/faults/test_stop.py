"""A server that is told to stop ends soon, whatever its processes do, and a closed terminal stops it gently."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server
from tests.server.harness import wait_until

pytestmark = [pytest.mark.process, pytest.mark.server]

GRACE_S, MORE_S = 1.0, 2.0
FLAGS = ("--http-processes", "2", "--grace-s", str(GRACE_S))
BODY = {"input": TEXT * 12, "response_format": "pcm"}


@contextmanager
def suspended(server: LimitedServer, name: str) -> Iterator[psutil.Process]:
    child = server.wait_for_child(name)
    child.suspend()
    yield child


def has_said(server: LimitedServer, *words: str) -> bool:
    """Whether a line of its log has one of these words; also if it has ended."""
    return server.process.poll() is not None or any(word in line for line in server.log for word in words)


def end_s(server: LimitedServer) -> float:
    """Stop it, and return how long that takes."""
    begun_s = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    return time.monotonic() - begun_s


@pytest.fixture(scope="module")
def usual_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long an idle server takes to end on this machine now."""
    with limited_server(tmp_path_factory.mktemp("usual"), *FLAGS) as server:
        return end_s(server)


@pytest.mark.parametrize("name", ["worker", "g2p", "http"])
@pytest.mark.parametrize("is_speaking", [False, True], ids=["idle", "speaking"])
def test_a_hung_process_does_not_keep_the_server_from_ending(
    tmp_path: Path, usual_s: float, name: str, is_speaking: bool
) -> None:
    with limited_server(tmp_path, *FLAGS, TONE_PACED="1") as server:
        if not is_speaking:
            with suspended(server, name):
                took_s = end_s(server)
        else:
            with server.client.stream("POST", "/v1/audio/speech", json=BODY) as answer:
                next(answer.iter_raw())
                with suspended(server, name):
                    took_s = end_s(server)
        assert server.process.returncode == 0
        assert took_s < GRACE_S + MORE_S + usual_s
        assert not server.errors()


def test_a_second_signal_ends_a_server_that_waits_for_a_hung_process(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "2", "--grace-s", "60") as server, suspended(server, "http"):
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: has_said(server, "draining"))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 1


def test_a_second_signal_is_handled_until_the_end(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "2", "--grace-s", "0") as server, suspended(server, "http"):
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: has_said(server, "drained", "cancelled"))
        time.sleep(0.4)  # its own connections have ended, the hung process has not
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) in (0, 1)  # 0 if it had ended


def test_a_terminal_that_closes_lets_streams_end(tmp_path: Path) -> None:
    """The system sends SIGHUP to all processes, and the shell sends it once more."""
    with limited_server(tmp_path, "--http-processes", "1", "--grace-s", "60", TONE_PACED="1", TONE_BUSY="1") as server:
        whole = server.client.post("/v1/audio/speech", json=BODY).content
        with server.client.stream("POST", "/v1/audio/speech", json=BODY) as answer:
            pieces = answer.iter_raw()
            first = next(pieces)
            for child in psutil.Process(server.process.pid).children():
                if child.name().startswith("tutti-"):
                    child.send_signal(signal.SIGHUP)
            for _ in range(2):
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: has_said(server, "draining"))
            assert first + b"".join(pieces) == whole
        assert server.process.wait(60) == 0
        assert not server.errors()


def test_with_nohup_a_closed_terminal_changes_nothing(tmp_path: Path) -> None:
    with limited_server(tmp_path, limit='-n 1024 && trap "" HUP') as server:
        os.kill(server.process.pid, signal.SIGHUP)
        for _ in range(3):
            assert httpx2.get(f"{server.url}/readyz", timeout=60).status_code == 200
        assert server.process.poll() is None
