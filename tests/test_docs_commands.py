"""Commands and snippets of docs/ and CONTRIBUTING: run on the tone model, or at least checked against the code.

The README and the task pages are run by test_readme.py, docs/integrations by `make test-clients`, docs/client.md by
tests/client/test_examples.py. CONTRIBUTING says what is only checked.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import RunningServer, serving
from tests.test_readme import TASKS
from tutti.settings import Settings

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"architecture", "page", *TASKS}  # facts, maps; and the pages of test_readme.py
PAGES = {
    path.stem: path.read_text("utf-8")
    for path in (ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
    if path.stem not in ELSEWHERE
}
BLOCKS = [
    (name, *found) for name, text in PAGES.items() for found in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)
]
SHELL = [code for _, kind, code in BLOCKS if kind in ("", "sh", "bash")]
LINES = [line for code in SHELL for line in code.replace("\\\n", " ").splitlines() if re.match(r"[\w./]", line)]
COMMANDS = sorted({re.sub(r"\s+# .*", "", line).strip() for line in LINES})
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Programs that this machine may not have or a test must not call; tests/test_deploy.py checks the files they read.
NOT_RUN = ("docker", "install", "systemctl", "journalctl", "python3")
OF_CLUSTERS = "scale"  # a page with programs of Ray and of balancers; what it shows of tutti is checked


def of(pattern: str) -> list[str]:
    return [line for line in COMMANDS if re.match(pattern, line)]


CURL, SPEAK, MAKE = of("curl "), of(r"(\.venv/bin/)?tutti (speak|read) "), of("make ")
PIP, MODULES, PYTEST = of(r"(\S+/)?pip install"), of("python -m "), of(r"(\.venv/bin/)?pytest ")
TUTTI = [line for line in of(r"(([A-Z_]+=\S+ )*)(\.venv/bin/)?tutti ") if line not in SPEAK]
SETTINGS = of(r"TUTTI_\w+=\S*$")
OTHERS = [line for line in COMMANDS if line.split()[0] in NOT_RUN or line.startswith("engine batching=")]  # a log line


def run(command: list[str], folder: Path, codes: tuple[int, ...] = (0,)) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=120, check=False
    )
    assert done.returncode in codes, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(tmp_path_factory.mktemp("tones")))) as running:
        yield running


def test_every_command_is_in_one_of_these_tests() -> None:
    known = {*CURL, *SPEAK, *MAKE, *PIP, *MODULES, *PYTEST, *TUTTI, *SETTINGS, *OTHERS}
    unknown = set(COMMANDS) - known
    assert {line for line in unknown if line not in PAGES.get(OF_CLUSTERS, "").replace("\\\n", " ")} == set()


def test_what_is_only_checked_is_listed_for_contributors() -> None:
    listed = " ".join(PAGES["CONTRIBUTING"].split())
    for words in (
        "`make -n`",
        "`pip`",
        "`docker`",
        "`install`",
        "`systemctl`",
        "`journalctl`",
        "benchmarks",
        "training",
    ):
        assert words in listed[listed.index("**Snippets.**") :]


@pytest.mark.server
@pytest.mark.process
@pytest.mark.parametrize("line", CURL)
def test_curl_works(server: RunningServer, tmp_path: Path, line: str) -> None:
    if not shutil.which("curl"):
        pytest.skip("no curl: apt-get install curl")
    endless = "/v1/stats/" in line
    command = line.replace("localhost:8880", server.url.removeprefix("http://")).replace('"mine"', '"kokoro"')
    command = command.replace("curl ", f"curl -sSf {'--max-time 1 ' * endless}", 1).partition(" | aplay")[0]
    printed = run(["bash", "-c", f"{command} | head -c 4000"], tmp_path, (0, 28))
    files = re.findall(r"-o (\S+)", line)
    assert all((tmp_path / name).stat().st_size > 500 for name in files)
    assert files or printed


@pytest.mark.process
@pytest.mark.parametrize("line", SPEAK)
def test_speech_without_a_server_works(tmp_path: Path, line: str) -> None:
    (tmp_path / "book.txt").write_text("It began to fall.", "utf-8")
    _, *words = shlex.split(line)
    run([sys.executable, "-m", "tests.cli.read_with_tones", str(tmp_path), *words], tmp_path)
    assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 500


@pytest.mark.server
@pytest.mark.process
@pytest.mark.parametrize("line", TUTTI)
def test_other_commands_and_their_flags_exist(server: RunningServer, tmp_path: Path, line: str) -> None:
    words = shlex.split(line)
    at = next(n for n, word in enumerate(words) if word.endswith("tutti")) + 1
    if words[at] == "top":  # the only one that needs nothing but a server
        assert "tutti top" in run([sys.executable, "-m", "tutti", "top", server.url, "--once"], tmp_path)
    names = [word for word in words[at:] if re.fullmatch("[a-z][a-z0-9-]+", word)]
    flags = {word.partition("=")[0] for word in words[at:] if word.startswith("--")}
    for n in range(min(2, len(names)), 0, -1):  # `tutti cluster serve` and `tutti bulk texts`
        command = [sys.executable, "-m", "tutti", *names[:n], "--help"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 0:
            break
    assert done.returncode == 0, line
    assert [flag for flag in flags if flag not in done.stdout] == []


@pytest.mark.process
@pytest.mark.parametrize("line", MAKE)
def test_make_targets_exist(line: str) -> None:
    run(["make", "-n", *shlex.split(line)[1:]], ROOT)


@pytest.mark.parametrize("line", PIP)
def test_extras_exist(line: str) -> None:
    for extras in re.findall(r"\[([a-z0-9,]+)\]", line):
        own = tomllib.loads((ROOT / "packaging/client/pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(extras.split(",")) <= set(own if "packaging/client" in line else EXTRAS)


@pytest.mark.parametrize("line", MODULES)
def test_modules_and_their_flags_exist(line: str) -> None:
    _, _, name, *words = shlex.split(line)
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text("utf-8")
    assert [word for word in words if word.startswith("--") and word not in source] == []


@pytest.mark.parametrize("line", PYTEST)
def test_test_files_exist(line: str) -> None:
    for word in shlex.split(line)[1:]:
        assert not word.startswith("tests") or (ROOT / word).exists()


@pytest.mark.parametrize("line", SETTINGS)
def test_settings_exist(line: str) -> None:
    assert line.partition("=")[0].removeprefix("TUTTI_").lower() in Settings.model_fields


LIVE = [code for name, kind, code in BLOCKS if (name, kind) == ("live", "python")]


@pytest.mark.server
@pytest.mark.process
@pytest.mark.parametrize("number", range(len(LIVE)))
def test_the_python_for_live_text_runs(server: RunningServer, tmp_path: Path, number: int) -> None:
    address = server.url.removeprefix("http://")
    code = LIVE[number].replace("localhost:8880", address)
    if "asyncio.run" not in code:
        code += "\n\nimport asyncio\n\nasyncio.run(main())\nprint('done')\n"
    else:
        code += "\nassert len(audio) > 24_000\nprint('done')\n"
    assert "done" in run([sys.executable, "-c", code], tmp_path)


@pytest.mark.browser
def test_the_javascript_for_live_text_plays(server: RunningServer) -> None:
    """Run it in a page of the server, and wait until sound was scheduled."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = shutil.which("chromium") or pytest.skip("no Chromium: apt-get install chromium")
    (code,) = (code for name, kind, code in BLOCKS if (name, kind) == ("live", "js"))
    code = code.replace("localhost:8880", server.url.removeprefix("http://"))
    flags = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page()
        page.goto(f"{server.url}/healthz")
        page.evaluate(f"() => {{ {code}; window.heard_s = () => at - context.currentTime }}")
        page.wait_for_function("window.heard_s() > 0.3", timeout=60_000)
        browser.close()
