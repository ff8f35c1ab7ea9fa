"""The client's own wheel works in an environment that has nothing else."""

import os
import re
import subprocess
import sys
import wave
import zipfile
from pathlib import Path

import pytest

from tests.third_party.packages import UNREACHABLE, base_python

pytestmark = [pytest.mark.process, pytest.mark.server, pytest.mark.network]

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "packaging/client"
OURS = {"tutti"}
THEIRS = {"anyio", "h11", "httpcore2", "httpx2", "idna", "truststore", "typing_extensions", "wsproto"}
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")


def run_command(*command: str, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=bare, timeout=300, check=False)
    if done.returncode and any(words in done.stderr for words in UNREACHABLE):
        pytest.skip("the package registry cannot be reached")
    assert done.returncode == code, done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", *QUIET, "--no-deps", "--no-build-isolation")
    run_command(*pip, "--wheel-dir", str(folder), str(PROJECT), folder=folder)
    (wheel,) = folder.glob("tutti_tts_client-*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with the client and its dependencies, nothing else."""
    home = tmp_path_factory.mktemp("python")
    run_command(base_python(), "-m", "venv", "--without-pip", str(home), folder=home)
    python = str(home / "bin/python")
    run_command(sys.executable, "-m", "pip", "--python", python, "install", *QUIET, str(wheel), folder=home)
    return python


def test_the_wheel_has_only_the_client_and_its_imports(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = {name for name in files.namelist() if ".dist-info/" not in name}
    parts = {name for name in names if not name.startswith("tutti/client/")}
    modules = {f"tutti/{name}" for name in ("__init__.py", "errors.py", "files.py", "percentile.py", "py.typed")}
    assert parts == {"kokoro_handler.py", *modules}
    assert {f"tutti/client/{path.name}" for path in (ROOT / "tutti/client").glob("*.py")} < names
    assert not any("__pycache__" in name for name in names)


def test_importing_it_needs_only_the_http_library(python: str, tmp_path: Path) -> None:
    code = "import sys; from tutti.client import *; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(run_command(python, "-W", "error", "-c", code, folder=tmp_path).stdout.split())
    unexpected = {name for name in loaded - set(sys.stdlib_module_names) if not name.startswith("_")}
    assert unexpected <= OURS | THEIRS


def test_the_code_of_the_readme_runs_with_it_alone(python: str, engine_url: str, tmp_path: Path) -> None:
    pages = [(ROOT / name).read_text("utf-8") for name in ("README.md", "packaging/client/README.md")]
    blocks = [code for page in pages for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]
    snippets = [code for code in blocks if "tutti.client" in code]
    assert len(snippets) == 2  # of the README, and of the wheel's own page
    for code in snippets:
        run_command(python, "-W", "error", "-c", code.replace("http://127.0.0.1:8880", engine_url), folder=tmp_path)
    with wave.open(str(tmp_path / "hello.wav")) as file:
        assert file.getnframes() > 12_000


def test_the_module_name_of_earlier_code_is_there(python: str, tmp_path: Path) -> None:
    code = "from kokoro_handler import OptimizedKokoroHandler as a; from tutti.client import *; print(a.__name__)"
    printed = run_command(python, "-W", "error", "-c", code, folder=tmp_path).stdout
    assert printed == "OptimizedKokoroHandler\n"


def test_live_text_needs_no_extra(python: str, engine_url: str, tmp_path: Path) -> None:
    code = f"""
from tutti.client import Client
with Client({engine_url!r}) as client, client.live() as live:
    live.say(["Deep ", "water."])
    print(sum(len(piece.audio) for piece in live))
"""
    assert int(run_command(python, "-c", code, folder=tmp_path).stdout) > 4800


def test_its_commands_name_the_missing_extra(python: str, tmp_path: Path) -> None:
    result = run_command(python, "-m", "tutti.client", "say", "hello", folder=tmp_path, code=3)
    assert re.search(r'pip install "tutti_tts_client-\S+\.whl\[cli\]"', result.stderr)


def test_its_commands_run_with_the_extra(engine_url: str, tmp_path: Path) -> None:
    say = (sys.executable, "-m", "tutti.client", "say", "hi", "--url", engine_url, "-o", "x.wav")
    result = run_command(*say, folder=tmp_path)
    assert "x.wav" in result.stderr
    result = run_command(*say, "-v", "af_hart", folder=tmp_path, code=2)
    assert "did you mean af_heart" in result.stderr
