"""A server in a process of its own, under limits of the system, and what it uses of them."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tests.faults.loop_watch import LoopWatch

ROOT = Path(__file__).parents[2]
READY = re.compile(r"tutti is ready: (http://\S+)")
WYOMING = re.compile(r"wyoming listens on tcp://\S+:(\d+)")
LINES_OF_ERROR = 30  # of the log that are shown with an error
TEXT = "The old bridge stands still under the water tonight and runs deep. "


@dataclass
class LimitedServer:
    """A running server; `log` are its lines so far."""

    process: "subprocess.Popen[str]"
    log: list[str] = field(default_factory=list)
    url: str = ""
    wyoming_port: int = 0
    opens: Path | None = None  # lists every file that the server process opened
    loop: LoopWatch | None = None  # how long its event loop was held
    client: httpx2.Client = field(init=False)

    @property
    def host_port(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    def speak(self, text: str = TEXT, **body: Any) -> httpx2.Response:
        return self.client.post("/v1/audio/speech", json={"input": text, "response_format": "pcm", **body})

    def child(self, name: str) -> psutil.Process | None:
        """The process of this name, if it runs."""
        return child_of(psutil.Process(self.process.pid), name)

    def wait_for_child(self, name: str, other_than: int = 0) -> psutil.Process:
        while (child := self.child(name)) is None or child.pid == other_than:
            time.sleep(0.01)
        return child

    def wait_until_ready(self) -> None:
        while self.client.get("/readyz").status_code != 200:
            time.sleep(0.01)

    def memory(self) -> int:
        """Bytes of the server process, without its children."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def n_threads(self) -> int:
        return psutil.Process(self.process.pid).num_threads()

    def n_files(self) -> int:
        return psutil.Process(self.process.pid).num_fds()

    def cpu_s(self) -> float:
        """Seconds of computing of the server process."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all label values that are not given."""
        total = 0.0
        for line in self.client.get("/metrics").text.splitlines():
            if line.startswith((f"{name}{{", f"{name} ")) and all(f'{k}="{v}"' in line for k, v in labels.items()):
                total += float(line.rpartition(" ")[2])
        return total

    def errors(self) -> list[str]:
        """The lines of the log that tell of an exception, each with those after it."""
        return [
            "".join(self.log[at : at + LINES_OF_ERROR])
            for at, line in enumerate(self.log)
            if "Traceback" in line or "failed id=" in line
        ]


def child_of(server: psutil.Process, name: str) -> psutil.Process | None:
    """The worker, g2p or book process of a server, if it runs."""
    with suppress(psutil.NoSuchProcess):
        for child in server.children():
            if child.name() == f"tutti-{name}" and child.status() != psutil.STATUS_ZOMBIE:
                return child
    return None


@contextmanager
def limited_server(folder: Path, *flags: str, limit: str = "-n 1024", **env: str) -> Iterator[LimitedServer]:
    """Run a server under `ulimit` options: -n files, -v memory in kB, -f the size of files in blocks."""
    voices = folder / "voices"
    voices.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.faults.serve_faults", str(voices), "--port", "0"]
    command += ["--data", str(folder / "data"), *flags]
    command = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *command]
    environment = {**os.environ, **env}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        server = LimitedServer(
            process,
            opens=Path(env["TONE_OPENS"]) if "TONE_OPENS" in env else None,
            loop=LoopWatch(Path(env["TONE_LOOP"])) if "TONE_LOOP" in env else None,
        )
        ready = threading.Event()
        reading = threading.Thread(target=_read_log, args=(server, ready), daemon=True)
        reading.start()
        try:
            assert ready.wait(120)
            assert server.url, "".join(server.log[-20:])
            with httpx2.Client(base_url=server.url, timeout=120) as client:
                server.client = client
                yield server
        finally:
            process.kill()
            process.wait()
            reading.join(10)


def _read_log(server: LimitedServer, ready: threading.Event) -> None:
    assert server.process.stderr is not None
    for line in server.process.stderr:
        server.log.append(line)
        if match := WYOMING.search(line):
            server.wyoming_port = int(match[1])
        if match := READY.search(line):
            server.url = match[1]
            ready.set()
    ready.set()


def stop(server: LimitedServer, number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal and return the exit code."""
    server.process.send_signal(number)
    return server.process.wait(60)
