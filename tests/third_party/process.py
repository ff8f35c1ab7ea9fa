"""A real server in its own process, on free ports, with the tone model."""

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
READY = re.compile(r"tutti is ready: (http://\S+)")
WYOMING = re.compile(r"wyoming listens on tcp://\S+:(\d+)")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    url: str
    pid: int
    wyoming_port: int | None
    process: "subprocess.Popen[str]"


@contextmanager
def tone_server(*flags: str) -> Iterator[ServerProcess]:
    """Run `tutti serve` with these flags, without weights."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.third_party.tone_server", folder, "--port", "0", *flags]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
            try:
                yield _wait_until_ready(process)
            finally:
                process.kill()


def _wait_until_ready(process: "subprocess.Popen[str]") -> ServerProcess:
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if ready := READY.search(line):
            break
    else:
        raise RuntimeError("the server did not start:\n" + "".join(lines))
    # Keep reading its log, or it would block when the pipe is full.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    port = WYOMING.search("".join(lines))
    return ServerProcess(ready[1], process.pid, int(port[1]) if port else None, process)
