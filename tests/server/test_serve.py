"""`tutti serve`: prints its URL when it is warm, drains on SIGTERM, exits immediately on the second."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import numpy as np
import pytest

from tests.fakes import FakeEngine, Spelling, silent_voices, tone_engine
from tests.server.harness import LONG, RunningServer, expected_samples, serving
from tutti.errors import InvalidInput, WeightsCorrupt
from tutti.model.protocol import Model
from tutti.server import run
from tutti.settings import Settings

pytestmark = [pytest.mark.process, pytest.mark.server]

ROOT = Path(__file__).parents[2]
SPEEDS = (0.75, 1.0, 1.25)  # of the model itself: above them audio is stretched


@contextmanager
def process(folder: Path, *flags: str, limit: str = "-n 1024") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server in its own process; yield it with its URL."""
    command = [sys.executable, "-m", "tests.server.serve_tones", str(folder), "--port", "0", *flags]
    command = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *command]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stderr is not None
        try:
            lines = iter(server.stderr.readline, "")
            ready = next(match for line in lines if (match := re.search(r"tutti is ready: (http://\S+)", line)))
            yield server, ready[1]
        finally:
            server.kill()


def test_sigterm_finishes_active_streams_and_exits_with_0(tmp_path: Path) -> None:
    with process(tmp_path) as (server, url), httpx2.Client(base_url=url, timeout=60) as client:
        assert client.get("/readyz").status_code == 200
        body = {"input": LONG * 2, "response_format": "pcm"}
        with client.stream("POST", "/v1/audio/speech", json=body) as response:
            pieces = response.iter_raw()
            next(pieces)
            server.send_signal(signal.SIGTERM)
            with httpx2.Client(base_url=url, timeout=60) as other:
                while other.get("/readyz").status_code == 200:
                    pass
                assert other.post("/v1/audio/speech", json=body).json()["error"]["code"] == "draining"
            server.send_signal(signal.SIGUSR1)
            for _ in pieces:  # to its last chunk, or this raises
                pass
        assert server.wait(60) == 0


def test_a_second_signal_exits_immediately(tmp_path: Path) -> None:
    with (
        process(tmp_path) as (server, url),
        httpx2.Client(base_url=url, timeout=60) as client,
        client.stream("POST", "/tts/stream", json={"text": LONG * 2}) as response,
    ):
        pieces = response.iter_raw()
        next(pieces)
        server.send_signal(signal.SIGTERM)
        with httpx2.Client(base_url=url, timeout=60) as other:
            while other.get("/readyz").status_code == 200:
                pass
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_exits_with_0_on_the_first_signal(tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path) as (server, _):
        server.send_signal(number)
        assert server.wait(60) == 0


def test_a_port_in_use_is_one_line_before_anything_is_loaded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "tutti", "serve", "--port", port, "--home", str(tmp_path), "--offline"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_engine_that_fails_to_start_ends_the_server_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Model:
        raise WeightsCorrupt("the bytes are not the official ones")

    monkeypatch.setattr(run, "open_engine", lambda *_, **__: tone_engine(silent_voices(tmp_path), fail))
    with pytest.raises(WeightsCorrupt):
        run.serve(Settings(port=0))


def test_a_low_limit_on_open_files_limits_the_connections(tmp_path: Path) -> None:
    with process(tmp_path, limit="-n 150") as (_, url), ExitStack() as stack:
        host, port = url.removeprefix("http://").split(":")
        connections = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(200)]
        connections[-1].settimeout(60)
        assert connections[-1].recv(100).startswith(b"HTTP/1.1 503")
        stack.close()
        with httpx2.Client(base_url=url, timeout=60) as client:
            while not is_served(client):
                pass
            assert client.post("/tts", json={"text": "deep"}).status_code == 200


def is_served(client: httpx2.Client) -> bool:
    """Whether a connection is accepted again; a refused one may get an answer or a reset."""
    try:
        return client.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False


def start_lines(folder: Path, *flags: str) -> list[str]:
    """What a server prints until it is ready."""
    command = [sys.executable, "-m", "tests.server.serve_tones", str(folder), "--port", "0", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stderr is not None
        lines = []
        for line in server.stderr:
            lines.append(line)
            if "tutti is ready" in line:
                break
        if "0.0.0.0" in flags:
            url = lines[-1].split()[3]
            assert httpx2.get(f"{url}/healthz").status_code == 200
        server.kill()
    return lines


@pytest.mark.parametrize(
    ("flags", "is_open"),
    [((), False), (("--host", "0.0.0.0"), True), (("--host", "0.0.0.0", "--api-keys", "a-long-key"), False)],
)
def test_a_server_that_is_open_to_all_warns_and_prints_an_address_to_open(
    tmp_path: Path, flags: tuple[str, ...], is_open: bool
) -> None:
    lines = start_lines(tmp_path, *flags)
    assert any("there are no API keys" in line for line in lines) == is_open
    assert "http://127.0.0.1:" in lines[-1]
    assert "0.0.0.0" not in lines[-1]


def test_every_setting_has_its_flag() -> None:
    env = {**os.environ, "COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"}
    help_text = subprocess.run(
        [sys.executable, "-m", "tutti", "serve", "--help"], capture_output=True, text=True, check=True, env=env
    ).stdout
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')} " in help_text


@pytest.mark.parametrize(
    "wrong", [{"api_keys": "sha256:x"}, {"voice_names": "x"}, {"voice_names": "x=nobody"}, {"voice": "nobody"}]
)
def test_a_wrong_setting_fails_before_the_load(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]) -> None:
    monkeypatch.setattr(run, "open_engine", None)
    with pytest.raises(InvalidInput) as caught:
        run.serve(Settings(port=0, **wrong))  # type: ignore[arg-type]
    assert caught.value.param in wrong


def test_64_concurrent_requests_through_the_batcher_get_their_own_audio(
    tmp_path: Path, fake_engine: FakeEngine
) -> None:
    words = ["deep", "water", "runs", "still", "under", "old", "stone", "bridge"]
    texts = [". ".join(words[(i + j * (1 + i % 7)) % 8] for j in range(3 + i % 11)) for i in range(64)]
    engine = tone_engine(silent_voices(tmp_path), pronounce=Spelling().pronounce, first_audio_ms=60_000)
    with serving(engine) as server:

        async def send_all() -> list[bytes]:
            async with httpx2.AsyncClient(base_url=server.url, timeout=120) as client:

                async def send(i: int) -> bytes:
                    path, name = [("/v1/audio/speech", "input"), ("/tts/stream", "text"), ("/tts", "text")][i % 3]
                    body = {name: texts[i], "response_format": "pcm", "format": "pcm", "speed": SPEEDS[i % 3]}
                    response = await client.post(path, json=body)
                    assert response.status_code == 200, response.text
                    return response.content

                return await asyncio.gather(*(send(i) for i in range(64)))

        answers = asyncio.run(send_all())
    server = RunningServer(server.url, fake_engine, server.app, server.uvicorn, server.thread, server.loop)
    for i, answer in enumerate(answers):
        samples = expected_samples(server, texts[i], speed=SPEEDS[i % 3], delivery="whole" if i % 3 == 2 else "live")
        assert answer == np.rint(samples * 32767).astype("<i2").tobytes()
