"""deploy/haproxy and deploy/nginx before two real servers: one dies or drains under load, and nobody notices."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from tests.fakes import make_fake_engine
from tests.server.harness import assert_error, serving
from tutti.errors import QueueFull

pytestmark = [pytest.mark.server, pytest.mark.process]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
HOSTS = ("192.0.2.11", "192.0.2.12")  # of the servers in the configurations
SHORT = {"input": "deep water", "response_format": "pcm"}
LONG = {"input": "The old bridge stands still under the water tonight. " * 12, "response_format": "pcm"}
needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="no haproxy here: apt-get install haproxy")
needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx here: apt-get install nginx-light")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def haproxy_config(ports: Sequence[tuple[int, int]], front: int, state: int) -> str:
    """deploy/haproxy with other addresses: port and agent-check port of both servers, of the frontend, of its state."""
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    text = text.replace("bind 127.0.0.1:8880", f"bind 127.0.0.1:{front}")
    text = text.replace("bind 127.0.0.1:8404", f"bind 127.0.0.1:{state}")
    speech, others = text.split("\nbackend jobs")
    for host, (port, agent_port) in zip(HOSTS, ports, strict=True):
        speech = speech.replace(f"{host}:8880", f"127.0.0.1:{port} agent-port {agent_port}")
        others = others.replace(f"{host}:8880", f"127.0.0.1:{port}")
    return f"{speech}\nbackend jobs{others}"


def nginx_config(ports: Sequence[int], front: int, folder: Path) -> str:
    """deploy/nginx with other addresses, in a whole configuration."""
    text = (DEPLOY / "nginx/tutti.conf").read_text().replace("listen 127.0.0.1:8880", f"listen 127.0.0.1:{front}")
    for host, port in zip(HOSTS, ports, strict=True):
        text = text.replace(f"{host}:8880", f"127.0.0.1:{port}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder};" for kind in kinds)
    return f"pid {folder}/pid; events {{}} http {{ access_log off; {folders} {text} }}"


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


@dataclass
class Replica:
    """`tutti serve` on the tone model; from the third chunk on it waits for `release`."""

    folder: Path
    port: int = field(default_factory=free_port)
    agent_port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        if self.process is not None:  # it may still run if a test before failed
            self.process.kill()
            self.process.wait()
        flags = {"--port": self.port, "--agent-check-port": self.agent_port, "--cache-mb": 0, "--data": self.folder}
        log = self.folder / "log"
        with log.open("w") as errors:
            command = [sys.executable, "-m", "tests.server.serve_tones", str(self.folder.parent / "voices")]
            command += [str(part) for flag in flags.items() for part in flag]
            self.process = subprocess.Popen([*command, "--replica"], stderr=errors, cwd=ROOT)

    def wait_ready(self) -> None:
        assert self.process is not None
        log = self.folder / "log"
        while "tutti is ready" not in log.read_text():
            assert self.process.poll() is None, log.read_text()[:1000]
            time.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def release(self) -> None:
        self.send(signal.SIGUSR1)

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(60)


@dataclass
class Load:
    """Callers that send one short request after the other, and keep when each began and what it got."""

    url: str
    answers: list[tuple[float, int | str]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, n_callers: int = 4) -> Iterator[None]:
        threads = [threading.Thread(target=self._call) for _ in range(n_callers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def wait_for(self, n_more: int) -> None:
        n_answers = len(self.answers) + n_more
        while len(self.answers) < n_answers:
            time.sleep(0.01)

    def _call(self) -> None:
        with httpx2.Client(base_url=self.url, timeout=30) as client:
            while not self._stop.is_set():
                began_s = time.monotonic()
                try:
                    answer: int | str = client.post("/v1/audio/speech", json=SHORT).status_code
                except httpx2.TransportError as error:
                    answer = repr(error)
                self.answers.append((began_s, answer))


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Replica]]:
    folder = tmp_path_factory.mktemp("replicas")
    pair = [Replica(folder / name) for name in ("one", "two")]
    for path in (folder / "voices", *(replica.folder for replica in pair)):
        path.mkdir()
    try:
        for replica in pair:
            replica.start()
        for replica in pair:
            replica.wait_ready()
        yield pair
    finally:
        for replica in pair:
            if replica.process is not None:
                replica.process.kill()
                replica.process.wait()


@contextmanager
def balancer(command: list[str], url: str) -> Iterator[httpx2.Client]:
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command))
        stack.callback(process.terminate)
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=30))
        while True:
            assert process.poll() is None
            with suppress(httpx2.TransportError):
                if client.get("/readyz").status_code == 200:
                    break
            time.sleep(0.02)
        yield client


@dataclass
class HAProxy:
    client: httpx2.Client
    state: httpx2.Client

    def wait_for(self, name: str, *words: str) -> None:
        """Wait until the server of this name has one of these states."""
        while True:
            lines = [line.split(",") for line in self.state.get("/;csv").text.splitlines()]
            status = next(line[17] for line in lines if line[:2] == ["tutti", name])
            if status.startswith(words):
                return
            time.sleep(0.02)


@contextmanager
def haproxy_before(ports: list[tuple[int, int]], folder: Path) -> Iterator[HAProxy]:
    """HAProxy with the configuration of deploy/, but for the addresses: port and agent-check port of two servers."""
    front, state = free_port(), free_port()
    path = folder / "haproxy.cfg"
    path.write_text(haproxy_config(ports, front, state))
    subprocess.run(["haproxy", "-c", "-q", "-f", path], check=True)
    url = f"http://127.0.0.1:{front}"
    with (
        balancer(["haproxy", "-db", "-q", "-f", str(path)], url) as client,
        httpx2.Client(base_url=f"http://127.0.0.1:{state}", timeout=30) as page,
    ):
        running = HAProxy(client, page)
        for name in ("one", "two"):
            running.wait_for(name, "UP")
        yield running


@pytest.fixture(scope="module")
def haproxy(replicas: list[Replica], tmp_path_factory: pytest.TempPathFactory) -> Iterator[HAProxy]:
    ports = [(replica.port, replica.agent_port) for replica in replicas]
    with haproxy_before(ports, tmp_path_factory.mktemp("haproxy")) as running:
        yield running


@needs_haproxy
def test_a_server_that_drains_ends_its_streams_and_nobody_else_notices(
    replicas: list[Replica], haproxy: HAProxy
) -> None:
    one, two = replicas
    audio: list[bytes | str] = []
    begun = threading.Semaphore(0)

    def stream() -> None:
        try:
            url = f"{haproxy.client.base_url}/v1/audio/speech"
            with httpx2.stream("POST", url, json=LONG, timeout=60) as response:
                pieces = response.iter_bytes()
                first = next(pieces)
                begun.release()
                audio.append(first + b"".join(pieces))
        except httpx2.TransportError as error:
            audio.append(repr(error))

    threads = [threading.Thread(target=stream) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=60)  # the next one goes to the other server, which has fewer
    two.release()
    one.send(signal.SIGTERM)
    while httpx2.get(f"http://127.0.0.1:{one.port}/readyz").status_code == 200:  # until it has the signal
        time.sleep(0.005)
    answers = [haproxy.client.post("/v1/audio/speech", json=SHORT).status_code for _ in range(20)]
    assert answers == [200] * 20, "refused with 503 draining by one, spoken by two"
    haproxy.wait_for("one", "DRAIN", "DOWN")
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(0.1)  # type: ignore[union-attr]
    one.release()
    for thread in threads:
        thread.join(60)
    assert one.wait() == 0
    whole = httpx2.post(f"http://127.0.0.1:{two.port}/v1/audio/speech", json=LONG, timeout=60).content
    assert audio == [whole, whole]


@needs_haproxy
def test_a_server_that_is_killed_costs_nobody_a_new_request(replicas: list[Replica], haproxy: HAProxy) -> None:
    one, two = replicas
    one.start()
    one.wait_ready()
    for replica in replicas:
        replica.release()
    haproxy.wait_for("one", "UP")
    load = Load(str(haproxy.client.base_url))
    with load.running():
        load.wait_for(40)
        killed_s = time.monotonic()
        two.send(signal.SIGKILL)
        load.wait_for(80)
        haproxy.wait_for("two", "DOWN")
        load.wait_for(40)
    after = [answer for began_s, answer in load.answers if began_s > killed_s]
    assert len(after) >= 100
    assert set(after) == {200}
    failed = [answer for _, answer in load.answers if answer != 200]
    assert len(failed) <= 4, "only a request whose answer had begun may fail"


@needs_haproxy
def test_a_full_server_is_passed_over_and_all_full_is_429(tmp_path: Path) -> None:
    engines = [make_fake_engine(make_folder(tmp_path / name)) for name in ("one", "two")]
    with (
        serving(engines[0], replica=True, cache_mb=0) as one,
        serving(engines[1], replica=True, cache_mb=0) as two,
        haproxy_before([(server.host_port[1], free_port()) for server in (one, two)], tmp_path) as haproxy,
    ):
        for engine in engines:
            engine.error = QueueFull("late", retry_after_s=2)
        engines[0].fail_at = 0
        answers = [haproxy.client.post("/v1/audio/speech", json=SHORT) for _ in range(6)]
        assert [answer.status_code for answer in answers] == [200] * 6
        engines[1].fail_at = 0
        refused = haproxy.client.post("/v1/audio/speech", json=SHORT)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "replica_full")
        assert int(refused.headers["retry-after"]) >= 2
        engines[0].fail_at = engines[1].fail_at = None
        stored = {**SHORT, "return_download_link": True}
        link = haproxy.client.post("/v1/audio/speech", json=stored).headers["x-download-path"]
        assert [haproxy.client.get(link).status_code for _ in range(4)] == [200] * 4, "whichever server has it"
        for server in (one, two):
            server.loop.call_soon_threadsafe(server.uvicorn.stop)
        haproxy.wait_for("one", "DOWN")
        haproxy.wait_for("two", "DOWN")
        gone = haproxy.client.post("/v1/audio/speech", json=SHORT)
        assert_error(gone, 503, "not_ready")
        assert gone.headers["retry-after"] == "5"


@needs_nginx
def test_nginx_streams_and_passes_over_a_full_or_dead_server(tmp_path: Path) -> None:
    engines = [make_fake_engine(make_folder(tmp_path / name)) for name in ("one", "two")]
    with serving(engines[0], replica=True, cache_mb=0) as one, serving(engines[1], replica=True, cache_mb=0) as two:
        front, path = free_port(), tmp_path / "nginx.conf"
        path.write_text(nginx_config([server.host_port[1] for server in (one, two)], front, tmp_path))
        command = ["nginx", "-e", f"{tmp_path}/errors", "-c", str(path)]
        subprocess.run([*command, "-t", "-q"], check=True)
        with balancer([*command, "-g", "daemon off; master_process off;"], f"http://127.0.0.1:{front}") as client:
            engines[0].hold_from = engines[1].hold_from = 1
            with client.stream("POST", "/v1/audio/speech", json=LONG) as response:
                pieces = response.iter_bytes()
                audio = next(pieces)  # while the rest is held
                for engine in engines:
                    engine.release()
                audio += b"".join(pieces)
            for engine in engines:
                engine.hold_from = None
            assert audio == one.post("/v1/audio/speech", LONG).content
            engines[0].fail_at, engines[0].error = 0, QueueFull("late", retry_after_s=2)
            answers = [client.post("/v1/audio/speech", json=SHORT).status_code for _ in range(6)]
            engines[0].fail_at = None
            one.loop.call_soon_threadsafe(one.uvicorn.stop)
            one.thread.join(60)
            answers += [client.post("/v1/audio/speech", json=SHORT).status_code for _ in range(6)]
            assert answers == [200] * 12
