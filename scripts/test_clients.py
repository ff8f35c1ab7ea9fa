"""Runs the code of docs/integrations with the real clients, each in an environment of its own, against a real server.

    python -m scripts.test_clients [--url http://host:8880] [--only livekit] [--update]

Every page's own code is run: as it stands; with a long text, while the model is held back, where the client streams;
and with a name that does not exist. Exit code 1 where one fails. Without --url the server speaks tones.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from tests.third_party.packages import Unreachable, base_python, npm, pip, version
from tests.third_party.process import ROOT, tone_server

PAGES = ROOT / "docs" / "integrations"
HERE, WYOMING, BRIDGE = "http://localhost:8880", "10200", "10300"  # as the pages write them
TEXT = "All voices, one pass."
LONG = "The old bridge stands still under the water tonight and runs deep. " * 20
PATIENCE_S = 180
HEAD = ("client", "version", "checked", "result", "seconds")


@dataclass(frozen=True, slots=True)
class Client:
    """A page with code, and what that code needs."""

    page: str
    packages: tuple[str, ...]
    streams: bool = False
    whole: bool = True  # a text is sent as it is; else in pieces, whose pauses may differ
    wrong: tuple[str, str] | None = ("af_heart", "af_hart")  # a slip of the pen that must be heard of
    node: bool = False
    python: str | None = None  # a version, where only that will do
    bridge: bool = False  # a service of its own, started by the page's first code


@dataclass(frozen=True, slots=True)
class Target:
    """The server that is asked."""

    url: str
    pid: int | None = None  # of a server that can be held back
    wyoming_port: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    client: str
    version: str
    checked: str
    result: str
    seconds: float

    def cells(self) -> tuple[str, ...]:
        return self.client, self.version, self.checked, self.result, f"{self.seconds:.0f}"


class Missing(Exception):
    """Something that this machine does not have."""


CLIENTS = (
    Client("openai-python", ("openai>=3,<4",), streams=True),
    Client("livekit", ("livekit-plugins-openai>=1.8,<2",), streams=True),
    Client("pipecat", ("pipecat-ai[openai]>=1.14,<2",), streams=True, wrong=("kokoro", "kokoros")),
    Client("litellm", ("litellm>=1.100,<2",)),
    Client("openai-agents", ("openai-agents[voice]>=0.24,<1",), streams=True),
    Client("openai-node", ("openai@6",), streams=True, node=True),
    Client("openai-node", ("openai@7", "node@22"), streams=True, node=True),
    Client("vercel-ai-sdk", ("ai@6", "@ai-sdk/openai@3"), node=True),
    Client("vercel-ai-sdk", ("ai@7", "@ai-sdk/openai@4", "node@22"), node=True),
    Client("home-assistant", ("wyoming>=1.7.2,<2",), streams=True, whole=False, wrong=None),
    Client("wyoming-openai", ("wyoming-openai>=0.8,<1",), whole=False, wrong=None, python="3.12", bridge=True),
)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url", help="a server that runs already; else one with tones is started")
    options.add_argument("--wyoming-port", type=int, help="its port for Home Assistant")
    options.add_argument("--only", action="append", help="only this page; may be given again")
    options.add_argument("--update", action="store_true", help="write the table into docs/integrations/README.md")
    asked = options.parse_args()
    rows = []
    with _server(asked.url, asked.wyoming_port) as target:
        for client in CLIENTS:
            if not asked.only or client.page in asked.only:
                rows.append(tried(client, target))
                print(*rows[-1].cells(), sep=" | ", flush=True)
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in (HEAD, ("---",) * 5, *(row.cells() for row in rows)))
    print(f"\n{table}")
    if asked.update:
        readme = PAGES / "README.md"
        marked = re.compile(r"(<!-- table -->\n).*?(\n<!-- end -->)", re.DOTALL)
        readme.write_text(marked.sub(lambda match: match[1] + table + match[2], readme.read_text()))
    return int(any(row.result.startswith("FAILED") for row in rows))


@contextmanager
def _server(url: str | None, wyoming_port: int | None) -> Iterator[Target]:
    if url:
        yield Target(url.rstrip("/"), None, wyoming_port)
        return
    with tone_server("--wyoming-port", "0") as server:
        yield Target(server.url, server.pid, server.wyoming_port)


def tried(client: Client, target: Target) -> Row:
    """One client, from its packages to its last check."""
    checked: list[str] = []
    began = time.monotonic()
    found = "-"
    try:
        folder, run = _environment(client)
        found = version(folder, re.split(r"[<>=\[]|(?<!^)@", client.packages[0])[0])
        began = time.monotonic()
        with _bridge(client, target, run) as code:
            for check in (speaks, streams, tells_errors):
                if said := check(client, target, code, run):
                    checked.append(said)
        result = "ok"
    except (Missing, Unreachable) as reason:
        result = f"skipped: {reason}"
    except Exception as error:  # noqa: BLE001
        result = f"FAILED: {' '.join(str(error).split())[-300:]}"
    return Row(client.page, found, ", ".join(checked) or "-", result, time.monotonic() - began)


# -- the checks ----------------------------------------------------------------------------------------------------


def speaks(client: Client, target: Target, code: str, run: "Run") -> str:
    """The code as it stands on the page gives as many samples as the same wish sent by hand."""
    heard = _finish(run(code))
    _same(client, heard, target, TEXT, code)
    return "speaks"


def streams(client: Client, target: Target, code: str, run: "Run") -> str:
    """Sound arrives while the model is held back in the middle of the text."""
    if not client.streams or target.pid is None:
        return ""
    os.kill(target.pid, signal.SIGUSR2)
    try:
        going = run(code.replace(TEXT, LONG.strip()))
        assert going.process.stdout is not None
        while (line := going.process.stdout.readline()) and "first sound" not in line:
            pass
        early = bool(line)
    finally:
        os.kill(target.pid, signal.SIGUSR1)
    heard = _finish(going)
    if not early:
        raise AssertionError("nothing was heard before the end")
    _same(client, heard, target, LONG.strip(), code)
    return "streams"


def tells_errors(client: Client, target: Target, code: str, run: "Run") -> str:
    """A wrong name reaches the person who wrote it."""
    if client.wrong is None:
        return ""
    right, wrong = client.wrong
    going = run(code.replace(f'"{right}"', f'"{wrong}"').replace(f"/{right}", f"/{wrong}"))
    said, _ = going.process.communicate(timeout=PATIENCE_S)
    if "did you mean" not in said:
        raise AssertionError(f"no word of {wrong!r} in: {said[-300:]}")
    return "tells errors"


def _same(client: Client, heard: bytes, target: Target, text: str, code: str) -> None:
    voice = "alloy" if '"alloy"' in code else "af_heart"
    body = {"input": text, "voice": voice, "response_format": "pcm"}
    request = Request(f"{target.url}/v1/audio/speech", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as response:
        n_wanted = len(response.read()) // 2
    n_heard = (len(heard) - heard.index(b"data") - 8) // 2  # a streamed header does not know the length
    slack = 0.02 if client.whole else 0.25
    if not abs(n_heard - n_wanted) <= slack * n_wanted:
        raise AssertionError(f"{n_heard} samples came, {n_wanted} were made")


# -- environments --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Going:
    process: "subprocess.Popen[str]"
    folder: Path


Run = Callable[[str], Going]


def _environment(client: Client) -> tuple[Path, Run]:
    """The client's packages, and how to run a piece of code with them."""
    if client.node:
        if shutil.which("npm") is None:
            raise Missing("there is no npm here")
        folder = npm(*client.packages)
        own = folder / "node_modules" / ".bin" / "node"  # the newest versions want a newer one than most people have
        return folder, lambda code: _start([str(own) if own.exists() else "node"], code, folder / "page.mjs", {})
    python = base_python() if client.python is None else _python(client.python)
    folder = pip(*client.packages, python=python)
    return folder, lambda code: _start([python], code, None, {"PYTHONPATH": str(folder)})


def _start(interpreter: list[str], code: str, file: Path | None, env: dict[str, str]) -> Going:
    """Begins to run the code in an empty folder. Node looks for packages beside the file, so that may lie elsewhere."""
    cwd = Path(tempfile.mkdtemp(prefix="tutti-client-"))
    file = file or cwd / "page.py"
    file.write_text(code)
    process = subprocess.Popen(
        [*interpreter, str(file)],
        cwd=cwd,
        env={**os.environ, **env},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return Going(process, cwd)


def _finish(going: Going) -> bytes:
    """What it wrote into speech.wav."""
    try:
        said, _ = going.process.communicate(timeout=PATIENCE_S)
        if going.process.returncode:
            raise AssertionError(f"exit code {going.process.returncode}: {said[-600:]}")
        return (going.folder / "speech.wav").read_bytes()
    finally:
        going.process.kill()
        shutil.rmtree(going.folder, ignore_errors=True)


@contextmanager
def _bridge(client: Client, target: Target, run: Run) -> Iterator[str]:
    """The page's code with the addresses of this trial; around it the service that it talks to, if it brings one."""
    page = (PAGES / f"{client.page}.md").read_text()
    (code,) = re.findall(r"```(?:python|js)\n(.*?)```", page, re.DOTALL)
    code = code.replace(HERE, target.url)
    if WYOMING in code:
        if target.wyoming_port is None:
            raise Missing("the server has no port for Home Assistant")
        code = code.replace(WYOMING, str(target.wyoming_port))
    if not client.bridge:
        yield code
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (command,) = re.findall(r"```sh\npython -m (.*?)\n```", page)
    words = command.replace(HERE, target.url).replace(BRIDGE, port).split()
    going = run(f"import runpy, sys\nsys.argv = {words!r}\nrunpy.run_module({words[0]!r}, run_name='__main__')\n")
    try:
        _wait_for(int(port), going)
        yield code.replace(BRIDGE, port)
    finally:
        going.process.kill()
        going.process.communicate()
        shutil.rmtree(going.folder, ignore_errors=True)


def _wait_for(port: int, going: Going) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and going.process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    going.process.kill()
    raise AssertionError(f"it did not start: {going.process.communicate()[0][-300:]}")


def _python(wanted: str) -> str:
    """An interpreter of this version, wherever one lies."""
    places = sorted(Path.home().glob(f".pyenv/versions/{wanted}.*/bin/python"))
    found = shutil.which(f"python{wanted}") or (str(places[-1]) if places else None)
    if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        found = str(places[-1]) if places else None
    if found is None and shutil.which("uv"):
        asked = subprocess.run(["uv", "python", "find", wanted], capture_output=True, text=True, check=False)
        found = asked.stdout.strip() or None
    if found is None:
        raise Missing(f"there is no Python {wanted} here")
    return found


if __name__ == "__main__":
    sys.exit(main())
