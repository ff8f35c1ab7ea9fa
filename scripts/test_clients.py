"""Run the code of docs/integrations with the real clients, each in its own environment, against a real server.

    python -m scripts.test_clients [--url http://host:8880] [--only livekit] [--update] [--livekit-agents REPOSITORY]

The code of every page is run unchanged; with a long text while the model is held, if the client streams; and with a
name that does not exist. The exit code is 1 if a check fails. Without --url a server with the tone model is started.
"""

import argparse
import asyncio
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
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

from tests.recogniser_helper import recognise, word_error_rate
from tests.third_party.packages import Unreachable, base_python, npm, pip, version
from tests.third_party.process import ROOT, tone_server
from tests.wires import own_speech

PAGES = ROOT / "docs" / "integrations"
SERVER_URL, WYOMING_PORT, BRIDGE_PORT = "http://localhost:8880", "10200", "10300"  # as the pages write them
TEXT = "All voices, one pass."
LONG = "The old bridge stands still under the water tonight and runs deep. " * 20
TIMEOUT_S = 180
PROGRAM_S = 600
MOST_WORDS_WRONG = 0.2
PROGRAM_FILES = ROOT / "tests" / "third_party" / "programs"
COLUMNS = ("client", "version", "checked", "result", "seconds")


@dataclass(frozen=True, slots=True)
class Client:
    """A page with code, and what that code needs."""

    page: str
    packages: tuple[str, ...]
    streams: bool = False
    one_request: bool = True  # a text is one request; else pieces, whose pauses may differ
    typo: tuple[str, str] | None = ("af_heart", "af_hart")  # right and wrong name: the error must be shown
    node: bool = False
    python: str | None = None  # a version, if the client needs it
    bridge: bool = False  # a separate service, started by the first code of the page


@dataclass(frozen=True, slots=True)
class Target:
    """The server to test against."""

    url: str
    pid: int | None = None  # of a server that can be held
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


class NotInstalled(Exception):
    """This machine lacks something that the client needs."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of tests/third_party/programs, which prints `ok` or `failed` and a name for each of its checks."""

    file: str
    packages: tuple[str, ...]
    is_of_livekit: bool = False  # it runs the tests of their repository

    @property
    def name(self) -> str:
        return self.file.partition(".")[0].replace("_", "-")

    @property
    def is_node(self) -> bool:
        return self.file.endswith(".mjs")


CLIENTS = (
    Client("openai-python", ("openai>=3,<4",), streams=True),
    Client("elevenlabs", ("elevenlabs>=2.50,<3",), streams=True),
    Client("livekit", ("livekit-plugins-cartesia>=1.8,<2",), streams=True, one_request=False, typo=None),
    Client("pipecat", ("pipecat-ai[cartesia]>=1.14,<2",), streams=True, one_request=False),
    Client("litellm", ("litellm>=1.100,<2",)),
    Client("openai-agents", ("openai-agents[voice]>=0.24,<1",), streams=True),
    Client("openai-node", ("openai@6",), streams=True, node=True),
    Client("openai-node", ("openai@7", "node@22"), streams=True, node=True),
    Client("vercel-ai-sdk", ("ai@6", "@ai-sdk/openai@3"), node=True),
    Client("vercel-ai-sdk", ("ai@7", "@ai-sdk/openai@4", "node@22"), node=True),
    Client("home-assistant", ("wyoming>=1.7.2,<2",), streams=True, one_request=False, typo=None),
    Client("wyoming-openai", ("wyoming-openai>=0.8,<1",), one_request=False, typo=None, python="3.12", bridge=True),
)


SERVICES = ("elevenlabs", "cartesia", "deepgram")
LIVEKIT = tuple(f"livekit-plugins-{name}>=1.8,<2" for name in (*SERVICES, "azure"))
LIVEKIT_AGENTS = "https://github.com/livekit/agents"
TEST_PACKAGES = ("jiwer>=4,<5", "pytest>=8,<10", "pytest-asyncio>=1,<2", "python-dotenv", "requests", "tiktoken")
PROGRAMS = (
    Program("livekit_services.py", LIVEKIT),
    Program("livekit_tests.py", (*LIVEKIT, *TEST_PACKAGES), is_of_livekit=True),
    Program("pipecat_services.py", ("pipecat-ai[cartesia,deepgram,elevenlabs]>=1.14,<2",)),
    Program("sdk_python.py", ("elevenlabs>=2.50,<3", "cartesia>=4.2,<5", "deepgram-sdk>=7.16,<8")),
    Program("sdk_node.mjs", ("@elevenlabs/elevenlabs-js@2", "@cartesia/cartesia-js@4", "@deepgram/sdk@5", "ws@8")),
)
# Each becomes one phrase in every agent framework.
SENTENCES = (
    "The old bridge stands still under the water tonight. ",
    "It runs deep below the quiet harbour town. ",
    "Nobody knows how long the rain will last. ",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="use a running server; default: start one with the tone model")
    parser.add_argument("--wyoming-port", type=int, help="its Wyoming port")
    parser.add_argument("--livekit-agents", default=LIVEKIT_AGENTS, help="where git gets LiveKit's own tests")
    parser.add_argument("--only", action="append", help="only this page; may be repeated")
    parser.add_argument("--update", action="store_true", help="write the table into docs/integrations/README.md")
    arguments = parser.parse_args()
    rows = []
    with _server(arguments.url, arguments.wyoming_port) as target:
        for client in CLIENTS:
            if not arguments.only or client.page in arguments.only:
                rows.append(check_client(client, target))
                print(*rows[-1].cells(), sep=" | ", flush=True)
        for program in PROGRAMS:
            if not arguments.only or program.name in arguments.only:
                rows.append(check_program(program, target, arguments.livekit_agents))
                print(*rows[-1].cells(), sep=" | ", flush=True)
    lines = (COLUMNS, ("---",) * 5, *(row.cells() for row in rows))
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    print(f"\n{table}")
    if arguments.update:
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


def check_client(client: Client, target: Target) -> Row:
    """Install a client and run all its checks."""
    checked: list[str] = []
    started = time.monotonic()
    installed = "-"
    try:
        folder, run = _environment(client)
        installed = version(folder, re.split(r"[<>=\[]|(?<!^)@", client.packages[0])[0])
        started = time.monotonic()
        with _page_code(client, target, run) as code:
            for check in (check_speaks, check_streams, check_errors):
                if passed := check(client, target, code, run):
                    checked.append(passed)
        result = "ok"
    except (NotInstalled, Unreachable) as reason:
        result = f"skipped: {reason}"
    except Exception as error:  # noqa: BLE001
        result = f"FAILED: {' '.join(str(error).split())[-300:]}"
    return Row(client.page, installed, ", ".join(checked) or "-", result, time.monotonic() - started)


def check_program(program: Program, target: Target, livekit_agents: str) -> Row:
    """Run a program with its packages; it checks the services of other companies against our own socket."""
    started, checked, installed = time.monotonic(), list[str](), "-"
    try:
        if program.is_node and shutil.which("npm") is None:
            raise NotInstalled("npm is not installed")
        folder = npm(*program.packages) if program.is_node else pip(*program.packages)
        installed = version(folder, re.split(r"[<>=\[]|(?<!^)@", program.packages[0])[0])
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            done, misheard = run_program(program, folder, target, livekit_agents, Path(scratch))
        lines = [line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line]
        checked = [name for result, name in lines if result == "ok"]
        failed = [name for result, name in lines if result == "failed"] + misheard
        if failed or not checked or done.returncode:
            raise AssertionError("; ".join(failed) or done.stderr[-300:])
        result = "ok"
    except (NotInstalled, Unreachable) as reason:
        result = f"skipped: {reason}"
    except Exception as error:  # noqa: BLE001
        result = f"FAILED: {' '.join(str(error).split())[-300:]}"
    return Row(program.name, installed, ", ".join(checked) or "-", result, time.monotonic() - started)


def run_program(
    program: Program, packages: Path, target: Target, livekit_agents: str, scratch: Path
) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    """Return what it printed, and what a recogniser misheard if the server has a voice."""
    file, interpreter = PROGRAM_FILES / program.file, base_python()
    if program.is_node:  # it looks for packages beside the file
        file, interpreter = Path(shutil.copy(file, packages)), "node"
    (heard := scratch / "heard").mkdir()
    tests = [str(livekit_tests(livekit_agents, scratch / "agents"))] if program.is_of_livekit else []
    env = {"OWN": json.dumps(own_speech_of(target.url)), "TONE_PID": str(target.pid or 0), "HEARD": str(heard)}
    done = subprocess.run(
        [interpreter, str(file), target.url, *tests],
        env={**os.environ, **env, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    return done, misheard_texts(heard) if target.pid is None else []


def livekit_tests(repository: str, folder: Path) -> Path:
    """Return the tests of LiveKit's repository; they are in none of its packages."""
    git = ["git", "clone", "--quiet", "--depth", "1", "--filter=blob:none", "--no-checkout", repository, str(folder)]
    for command in (git, ["git", "-C", str(folder), "checkout", "--quiet", "HEAD", "--", "tests"]):
        if shutil.which("git") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            raise NotInstalled(f"git cannot clone {repository}")
    return folder / "tests"


def misheard_texts(folder: Path) -> list[str]:
    """Let a recogniser hear what a server with a voice said; LiveKit's limit for wrong words."""
    misheard = []
    for audio in sorted(folder.glob("*.wav")):
        text = audio.with_suffix(".txt").read_text()
        heard = recognise(*read_wave(audio))
        if (rate := word_error_rate(text, heard)) > MOST_WORDS_WRONG:
            misheard.append(f"{rate:.0%} of words wrong: {heard}")
    return misheard


def read_wave(path: Path) -> tuple[NDArray[np.float32], int]:
    with wave.open(str(path)) as audio:
        samples = np.frombuffer(audio.readframes(audio.getnframes()), np.int16)
        return samples.astype(np.float32) / 32_768, audio.getframerate()


def own_speech_of(url: str) -> dict[str, object]:
    """Return text, words and length of the sentences over our own socket, each flushed."""
    audio, words = asyncio.run(own_speech(url.replace("http", "ws", 1), SENTENCES))
    text = "".join(SENTENCES).strip()
    return {"text": text, "sentences": SENTENCES, "seconds": len(audio) / 48_000, "words": words}


# -- the checks ----------------------------------------------------------------------------------------------------


def check_speaks(client: Client, target: Target, code: str, run: "Run") -> str:
    """The unchanged code yields as many samples as the same request sent directly."""
    audio = _finish(run(code))
    _compare_length(client, audio, target, TEXT, code)
    return "speaks"


def check_streams(client: Client, target: Target, code: str, run: "Run") -> str:
    """Audio arrives while the model is held in the middle of the text."""
    if not client.streams or target.pid is None:
        return ""
    os.kill(target.pid, signal.SIGUSR2)
    try:
        running = run(code.replace(TEXT, LONG.strip()))
        assert running.process.stdout is not None
        while (line := running.process.stdout.readline()) and "first sound" not in line:
            pass
        early = bool(line)
    finally:
        os.kill(target.pid, signal.SIGUSR1)
    audio = _finish(running)
    if not early:
        raise AssertionError("no audio arrived before the end")
    _compare_length(client, audio, target, LONG.strip(), code)
    return "streams"


def check_errors(client: Client, target: Target, code: str, run: "Run") -> str:
    """The error for a wrong name is shown."""
    if client.typo is None:
        return ""
    right, typo = client.typo
    running = run(code.replace(f'"{right}"', f'"{typo}"').replace(f"/{right}", f"/{typo}"))
    output, _ = running.process.communicate(timeout=TIMEOUT_S)
    if "did you mean" not in output:
        raise AssertionError(f"no error for {typo!r} in: {output[-300:]}")
    return "tells errors"


def _compare_length(client: Client, audio: bytes, target: Target, text: str, code: str) -> None:
    voice = "alloy" if '"alloy"' in code else "af_heart"
    body = {"input": text, "voice": voice, "response_format": "pcm"}
    request = Request(f"{target.url}/v1/audio/speech", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as response:
        n_expected = len(response.read()) // 2
    n_received = (len(audio) - audio.index(b"data") - 8) // 2  # a streamed header does not know the length
    slack = 0.02 if client.one_request else 0.25
    if not abs(n_received - n_expected) <= slack * n_expected:
        raise AssertionError(f"{n_received} samples received, {n_expected} expected")


# -- environments --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunningCode:
    process: "subprocess.Popen[str]"
    folder: Path


Run = Callable[[str], RunningCode]


def _environment(client: Client) -> tuple[Path, Run]:
    """Install the client's packages and return a function that runs code with them."""
    if client.node:
        if shutil.which("npm") is None:
            raise NotInstalled("npm is not installed")
        folder = npm(*client.packages)
        local_node = folder / "node_modules" / ".bin" / "node"  # for packages that need a newer Node.js than installed
        node = str(local_node) if local_node.exists() else "node"
        return folder, lambda code: _start([node], code, folder / "page.mjs", {})
    python = base_python() if client.python is None else _python(client.python)
    folder = pip(*client.packages, python=python)
    return folder, lambda code: _start([python], code, None, {"PYTHONPATH": str(folder)})


def _start(interpreter: list[str], code: str, file: Path | None, env: dict[str, str]) -> RunningCode:
    """Start the code in an empty folder. Node searches packages beside the file, which may lie elsewhere."""
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
    return RunningCode(process, cwd)


def _finish(running: RunningCode) -> bytes:
    """Wait for the end and return the content of speech.wav."""
    try:
        output, _ = running.process.communicate(timeout=TIMEOUT_S)
        if running.process.returncode:
            raise AssertionError(f"exit code {running.process.returncode}: {output[-600:]}")
        return (running.folder / "speech.wav").read_bytes()
    finally:
        running.process.kill()
        shutil.rmtree(running.folder, ignore_errors=True)


@contextmanager
def _page_code(client: Client, target: Target, run: Run) -> Iterator[str]:
    """Yield the page's code with the addresses of this run; start its bridge service if it has one."""
    page = (PAGES / f"{client.page}.md").read_text()
    (code,) = re.findall(r"```(?:python|js)\n(.*?)```", page, re.DOTALL)
    for scheme in ("http", "ws"):
        code = code.replace(SERVER_URL.replace("http", scheme), target.url.replace("http", scheme))
    if WYOMING_PORT in code:
        if target.wyoming_port is None:
            raise NotInstalled("the server has no Wyoming port")
        code = code.replace(WYOMING_PORT, str(target.wyoming_port))
    if not client.bridge:
        yield code
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (command,) = re.findall(r"```sh\npython -m (.*?)\n```", page, re.DOTALL)
    words = command.replace("\\\n", " ").replace(SERVER_URL, target.url).replace(BRIDGE_PORT, port).split()
    running = run(f"import runpy, sys\nsys.argv = {words!r}\nrunpy.run_module({words[0]!r}, run_name='__main__')\n")
    try:
        _wait_for(int(port), running)
        yield code.replace(BRIDGE_PORT, port)
    finally:
        running.process.kill()
        running.process.communicate()
        shutil.rmtree(running.folder, ignore_errors=True)


def _wait_for(port: int, running: RunningCode) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running.process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    running.process.kill()
    raise AssertionError(f"the bridge did not start: {running.process.communicate()[0][-300:]}")


def _python(version_prefix: str) -> str:
    """Find an interpreter of this version."""
    candidates = sorted(Path.home().glob(f".pyenv/versions/{version_prefix}.*/bin/python"))
    installed = shutil.which(f"python{version_prefix}") or (str(candidates[-1]) if candidates else None)
    if installed is None or subprocess.run([installed, "--version"], capture_output=True, check=False).returncode:
        installed = str(candidates[-1]) if candidates else None
    if installed is None and shutil.which("uv"):
        uv = subprocess.run(["uv", "python", "find", version_prefix], capture_output=True, text=True, check=False)
        installed = uv.stdout.strip() or None
    if installed is None:
        raise NotInstalled(f"Python {version_prefix} is not installed")
    return installed


if __name__ == "__main__":
    sys.exit(main())
