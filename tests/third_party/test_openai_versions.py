"""Two major versions of OpenAI's Python library against a server process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.third_party.packages import Unreachable, base_python, pip
from tests.third_party.process import tone_server

pytestmark = [pytest.mark.process, pytest.mark.server, pytest.mark.network]

SCRIPT = Path(__file__).with_name("openai_checks.py")
CHECKS = re.search(r"^CHECKS = \((.*?)^\)", SCRIPT.read_text(), re.MULTILINE | re.DOTALL)
assert CHECKS


def interpreter(major: str) -> tuple[str, dict[str, str]]:
    """Return a Python and its environment with this version of openai; one environment can hold only one."""
    if major == "2":
        return sys.executable, dict(os.environ)
    try:
        folder = pip(f"openai>={major},<{int(major) + 1}")
    except Unreachable as missing:
        pytest.skip(f"openai {major} cannot be installed: {missing}")
    return base_python(), {**os.environ, "PYTHONPATH": str(folder)}


@pytest.fixture(scope="module", params=["2", "3"])
def failures(request: pytest.FixtureRequest) -> dict[str, str]:
    """Run all checks at once per version, since the import is slow; return the traceback of each, or nothing."""
    python, env = interpreter(request.param)
    with tone_server("--api-keys", "first,eager2,eager3", "--rate-characters", "60000") as server:
        command = [python, str(SCRIPT), server.url, str(server.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=300)
    results = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert results["version"].startswith(f"{request.param}.")
    return results


@pytest.mark.parametrize("check", re.findall(r"\w+", CHECKS[1]))
def test_the_check_passes(failures: dict[str, str], check: str) -> None:
    assert not failures[check], failures[check].encode().decode("unicode_escape")
