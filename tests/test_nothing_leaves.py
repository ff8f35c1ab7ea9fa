"""Nothing leaves the machine: commands leave no file of a library behind, look up no name and call no other host."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import httpx2
import psutil
import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
READY = re.compile(r"tutti is ready: (http://\S+)")
TEXT = "The old bridge stands still under the water tonight."
CALLS = "execve,connect,sendto,sendmsg,sendmmsg"
ADDRESS = re.compile(r'sa_family=AF_INET6?, sin6?_port=htons\((\d+)\).*?"([0-9a-f.:]+)"')
DNS = 53
COMMANDS = {
    "serve": ("tutti", "serve", "--port", "0"),
    "serve-tones": ("benchmarks.tone_server", "serve", "--port", "0"),
    "speak": ("tutti", "speak", TEXT, "-o", "speak.mp3"),
    "bulk": ("tutti", "bulk", "texts.jsonl", "bulk"),
    "verify": ("tutti", "verify", "--sentences", "1", "-o", "verify.md"),  # too few for its limits, enough to run
}


@dataclass(frozen=True)
class Traces:
    """The folders that commands had for their home, and the system calls that they made."""

    folder: Path
    strace: str | None

    def home(self, name: str) -> Path:
        return self.folder / name / "home"

    def calls(self, name: str) -> str:
        return (self.folder / name / "calls").read_text(errors="replace")

    def start(self, name: str, tutti_home: Path) -> "subprocess.Popen[str]":
        work = self.folder / name / "work"
        for folder in (work, self.home(name) / "tmp"):
            folder.mkdir(parents=True)
        (work / "texts.jsonl").write_text(f'{{"id": "one", "text": "{TEXT}"}}\n')
        traced = [self.strace, "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(work.parent / "calls")]
        command = [*(traced if self.strace else ()), sys.executable, "-m", *COMMANDS[name]]
        environment = {**bare_environment(self.home(name)), "TUTTI_HOME": str(tutti_home)}
        return subprocess.Popen(command, cwd=work, env=environment, stderr=subprocess.PIPE, text=True)


def bare_environment(home: Path) -> dict[str, str]:
    """Nothing that turns anything off, and every folder that a library may choose below `home`."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home), "TMPDIR": str(home / "tmp")}


def files_of_others(home: Path) -> list[Path]:
    paths = [path.relative_to(home) for path in home.rglob("*") if path.is_file()]
    return [path for path in paths if "tutti" not in path.parts]


def find_strace() -> str | None:
    """The program, if this machine has it and lets it trace."""
    path = shutil.which("strace")
    works = path and not subprocess.run([path, "-qq", "-e", "trace=none", "true"], check=False).returncode
    return path if works else None


@contextmanager
def serving(server: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield the address once the server is ready; read its log to the end, so that it never waits for us."""
    assert server.stderr is not None
    with server:
        log = []
        for line in server.stderr:
            log.append(line)
            if found := READY.search(line):
                break
        else:
            pytest.fail("".join(log))
        try:
            yield found[1]
        finally:
            traced = psutil.Process(server.pid).children()  # strace hands no signal on
            (traced[0] if f"trace={CALLS}" in server.args else psutil.Process(server.pid)).terminate()
            server.communicate(timeout=120)


@pytest.fixture(scope="module")
def traces(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """Each command once: two servers that speak, and stay while the other commands run."""
    traces = Traces(tmp_path_factory.mktemp("traces"), find_strace())
    with serving(traces.start("serve", home)) as real, serving(traces.start("serve-tones", home)) as tones:
        for url in (real, tones):
            assert httpx2.post(f"{url}/v1/audio/speech", json={"input": TEXT}, timeout=120).status_code == 200
            for path in ("/", "/docs", "/openapi.json", "/metrics", "/v1/models"):
                assert httpx2.get(url + path, headers={"accept": "text/html"}, timeout=120).status_code == 200
        for name in ("speak", "bulk", "verify"):
            with traces.start(name, home) as process:
                errors = process.communicate(timeout=300)[1]
            assert (traces.folder / name / "work" / COMMANDS[name][-1]).exists(), errors
    return traces


@pytest.mark.weights
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_leaves_no_file_of_a_library_behind(name: str, traces: Traces) -> None:
    assert not files_of_others(traces.home(name))


@pytest.mark.weights
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_looks_up_no_name_and_calls_no_other_host(name: str, traces: Traces) -> None:
    if not traces.strace:
        pytest.skip("strace is not installed, or may not trace here: which hosts are called was not looked at")
    calls = traces.calls(name)
    assert "execve(" in calls
    called = {(address, int(port)) for port, address in ADDRESS.findall(calls)}
    assert not {(address, port) for address, port in called if port == DNS or not ip_address(address).is_loopback}


@pytest.mark.parametrize("module", ["tutti.model.onnx.session", "benchmarks.speed", "tests.conftest"])
def test_what_imports_the_runtime_turns_its_reports_off_before(module: str, tmp_path: Path) -> None:
    code = f"import sys, {module}, onnxruntime"
    subprocess.run([sys.executable, "-c", code], env=bare_environment(tmp_path), check=True)
    assert not files_of_others(tmp_path)


def test_a_runtime_that_was_imported_before_tutti_is_told(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("def disable_telemetry_events(): print('told')")
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-c", "import onnxruntime, tutti"]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "told\n"
