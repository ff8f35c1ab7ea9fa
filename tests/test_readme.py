"""What the README and the task pages show is true: every command and snippet of them runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audiobook.make_epub import epub, page
from tests.fakes import silent_voices, tone_engine
from tests.server.harness import RunningServer, serving

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TASKS = ("agent", "books", "gpu", "integrations/home-assistant", "integrations/open-webui")
PAGES = {"README": README, **{name: (ROOT / f"docs/{name}.md").read_text("utf-8") for name in TASKS}}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
BOOK = epub({"one.xhtml": page("<h1>Snow</h1><p>It began to fall.</p>")})
BLOCKS = [
    (name, *block) for name, text in PAGES.items() for block in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)
]
LINES = [line for _, kind, code in BLOCKS if kind == "sh" for line in code.replace("\\\n", " ").splitlines() if line]
COMMANDS = sorted({re.sub(r"\s+# .*", "", line) for line in LINES})
MENTIONED = sorted(set(re.findall(r"`(?:\.venv/bin/)?(tutti [a-z0-9-]+)", "".join(PAGES.values()))))
PYTHON = [code for _, kind, code in BLOCKS if kind == "python" and "wyoming" not in code]  # that: make test-clients
FOR_A_SERVER = [code for code in PYTHON if "open_engine" not in code]


def of(*words: str) -> list[str]:
    """The commands that begin with one of these words."""
    return [line for line in COMMANDS if line.startswith(words)]


MAKE, PIP, CURL = of("make "), of(".venv/bin/pip "), of("curl ")
UVX = "uvx tutti-tts"  # scripts.try_install runs it as it is
SERVE, KEYS = of(".venv/bin/tutti serve", f"{UVX} serve"), of("KEY=")
LOCAL = [line for line in of(".venv/bin/tutti ", "tutti ", f"{UVX} ") if line not in SERVE]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(tmp_path_factory.mktemp("tones")))) as running:
        yield running


def test_every_command_is_run_by_one_of_these_tests() -> None:
    assert set(COMMANDS) == {*MAKE, *PIP, *CURL, *SERVE, *KEYS, *LOCAL}


def test_the_readme_fits_one_screen_to_sound() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert "listen.mp4" in "\n".join(lines[:10])
    assert "make speak" in "\n".join(lines[:15])
    assert f"{UVX} speak" in "\n".join(lines[:25])
    assert README.count("| upstream |") == 1, "one table of numbers"


@pytest.mark.parametrize("name", TASKS)
def test_a_task_page_starts_with_the_command(name: str) -> None:
    start = PAGES[name].splitlines()[:8]
    assert "```sh" in start


@pytest.mark.process
@pytest.mark.parametrize("line", MAKE)
def test_its_make_targets_exist(line: str) -> None:
    run(["make", "-n", *shlex.split(line)[1:]], ROOT, dict(os.environ))


@pytest.mark.parametrize("line", PIP)
def test_its_extras_exist(line: str) -> None:
    (extras,) = re.findall(r"\[([a-z,]+)\]", line)
    assert set(extras.split(",")) <= set(EXTRAS)


@pytest.mark.server
@pytest.mark.process
@pytest.mark.parametrize("line", SERVE)
def test_its_servers_start(tmp_path: Path, line: str) -> None:
    """On the tone model, on free ports, and without a GPU."""
    line = line.replace("$KEY", "a-key").replace("--device cuda", "--device cpu").replace("-port 10200", "-port 0")
    line = line.replace(UVX, "tutti")
    command = [sys.executable, "-m", "tests.server.serve_tones", str(tmp_path), "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen([*command, *shlex.split(line)[2:]], cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            assert any("tutti is ready" in shown for shown in iter(server.stderr.readline, ""))
        finally:
            server.terminate()


@pytest.mark.process
@pytest.mark.parametrize("line", KEYS)
def test_its_keys_are_random(line: str) -> None:
    if not shutil.which("openssl"):
        pytest.skip("no openssl: apt-get install openssl")
    first, second = (run(["bash", "-c", line], ROOT, dict(os.environ)).strip() for _ in range(2))
    assert len(first) == len(second) == 32
    assert first != second


@pytest.mark.server
@pytest.mark.process
def test_its_curl_commands_work(server: RunningServer, tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("no curl: apt-get install curl")
    (tmp_path / "book.epub").write_bytes(BOOK)
    for line in sorted(CURL, key=lambda line: "$ID" in line):  # the jobs first, then what asks for one
        command = line.replace("localhost:8880", server.url.removeprefix("http://")).replace("curl ", "curl -sSf ", 1)
        jobs = server.get("/v1/jobs").json()["data"]
        environment = {**os.environ, "ID": jobs[-1]["id"] if jobs else ""}
        run(["bash", "-c", command], tmp_path, environment)
    assert (tmp_path / "hello.mp3").stat().st_size > 1000
    assert list(tmp_path.glob("The Third Winter.m4b"))


@pytest.mark.process
@pytest.mark.parametrize("line", LOCAL)
def test_its_local_commands_work(tmp_path: Path, line: str) -> None:
    """Run them on the tone model; what compares real models or reads a page of others is only asked for its options."""
    (tmp_path / "book.epub").write_bytes(BOOK)
    for name in ("note.txt", "notes.md"):
        (tmp_path / name).write_text("It began to fall.", "utf-8")
    _, *words = shlex.split(line.replace(UVX, "tutti"))
    command, environment = [sys.executable, "-m", "tutti"], {**os.environ, "PYTHONPATH": str(ROOT)}
    if words[0] == "verify" or any(word.startswith("https://") for word in words):
        printed = run([*command, words[0], "--help"], tmp_path, environment)
        assert all(flag in printed for flag in words if flag.startswith("--"))
        return
    if words[0] in ("speak", "read"):
        command = [sys.executable, "-m", "tests.cli.read_with_tones", str(tmp_path)]
    run([*command, *words], tmp_path, environment)
    if "-o" in words:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 500


@pytest.mark.process
@pytest.mark.parametrize("command", MENTIONED)
def test_a_command_that_is_mentioned_exists(command: str) -> None:
    run([sys.executable, "-m", *command.split(), "--help"], ROOT, dict(os.environ))


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


@pytest.mark.server
@pytest.mark.process
@pytest.mark.parametrize("number", range(len(FOR_A_SERVER)))
def test_its_python_for_a_server_runs(server: RunningServer, tmp_path: Path, number: int) -> None:
    code = FOR_A_SERVER[number]
    for address in ("http://localhost:8880", "http://127.0.0.1:8880"):
        code = code.replace(address, server.url)
    run([sys.executable, "-c", code], tmp_path, {**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.weights
def test_its_python_for_the_engine_runs(home: Path) -> None:
    (code,) = (code for code in PYTHON if code not in FOR_A_SERVER)
    assert "$5" in run([sys.executable, "-c", code], ROOT, {**os.environ, "TUTTI_HOME": str(home)})


@pytest.mark.process
@pytest.mark.slow
def test_its_python_passes_a_strict_type_check(tmp_path: Path) -> None:
    """As in a user's project, which has neither the settings nor the plugins of this one."""
    own = [code for name, kind, code in BLOCKS if (name, kind) == ("README", "python")]
    names = [f"mine{number}.py" for number in range(len(own))]
    for name, code in zip(names, own, strict=True):
        (tmp_path / name).write_text(code, "utf-8")
    only_them = ("--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache"))  # as for an installed package
    command = [sys.executable, "-m", "mypy", "--strict", *only_them, *names]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
