"""`make dist`: wheel and sdist contain the page, and the wheel serves from an environment that has nothing else."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.third_party.packages import UNREACHABLE, base_python

pytestmark = [pytest.mark.process, pytest.mark.server, pytest.mark.network]

ROOT = Path(__file__).parents[2]
SOURCES = ("tutti", "kokoro_handler.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "NOTICE")
PAGE = "<!doctype html><title>tutti</title>"


def run_command(*command: str, folder: Path) -> str:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=bare, timeout=500, check=False)
    if done.returncode and any(words in done.stderr for words in UNREACHABLE):
        pytest.skip("the package registry cannot be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distributions of a copy of the sources, built as `make dist` does; the page is as `make page` leaves it."""
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "page"))
        else:
            shutil.copy(ROOT / name, source / name)
    page = source / "tutti/server/page"
    built = ROOT / "tutti/server/page"
    if (built / "index.html").exists():
        shutil.copytree(built, page)
    else:
        page.mkdir()
        (page / "index.html").write_text(PAGE)
    (source / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    (recipe,) = re.findall(r"^dist:.*\n\t.*(-m build.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    run_command(sys.executable, *recipe.split(), folder=source)
    return source / "dist"


@pytest.fixture(scope="module")
def python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the wheel and its dependencies, nothing else."""
    home = tmp_path_factory.mktemp("python")
    (wheel,) = dist.glob("*.whl")
    run_command(base_python(), "-m", "venv", "--without-pip", str(home), folder=home)
    python = home / "bin/python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check")
    run_command(*pip, str(wheel), folder=home)
    return python


def test_wheel_and_sdist_contain_the_page_and_nothing_private(dist: Path) -> None:
    (wheel,) = dist.glob("tutti_tts-*.whl")
    (sdist,) = dist.glob("tutti_tts-*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    page = {str(path.relative_to(dist.parent)) for path in (dist.parent / "tutti/server/page").rglob("*.*")}
    assert "tutti/server/page/index.html" in page
    assert page <= in_wheel
    assert page <= in_sdist
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "tutti").rglob("*.py")}
    assert modules | {"kokoro_handler.py"} <= in_wheel & in_sdist
    others = ("tests", "web", "docs", "benchmarks", "training", "packaging", "tutti_ray")
    assert not any(name.startswith(others) for name in in_wheel | in_sdist)


@pytest.fixture(scope="module")
def server(python: Path, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`tutti serve` of the bare environment, with the real model."""
    folder = tmp_path_factory.mktemp("data")
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TUTTI"))}
    command = [python.parent / "tutti", "serve", "--port", "0", "--offline", "--home", home, "--data", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=bare) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            yield next(match[1] for line in lines if (match := re.search(r"tutti is ready: (http://\S+)", line)))
        finally:
            process.kill()


@pytest.mark.weights
def test_the_wheel_serves_speech_and_the_page(server: str) -> None:
    body = {"input": "All voices, one pass.", "response_format": "pcm"}
    speech = httpx2.post(f"{server}/v1/audio/speech", json=body, timeout=120)
    assert speech.status_code == 200
    assert len(speech.content) > 24_000
    page = httpx2.get(server, headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "<title>" in page.text


@pytest.mark.parametrize("command", ["tutti", "tutti-tts"])
def test_the_command_has_its_short_name_and_that_of_the_package(python: Path, tmp_path: Path, command: str) -> None:
    """`uvx NAME` and `pipx run NAME` start the command that is named as the package."""
    assert run_command(str(python.parent / command), "--version", folder=tmp_path).startswith("tutti ")


def test_a_missing_extra_is_named_with_a_command_for_this_installation(python: Path, tmp_path: Path) -> None:
    code = "from tutti.text.g2p import chinese; print(chinese._missing().message)"
    printed = run_command(str(python), "-c", code, folder=tmp_path)
    assert re.search(r'pip install "tutti_tts-\S+\.whl\[zh\]" in the folder of that file', printed)
