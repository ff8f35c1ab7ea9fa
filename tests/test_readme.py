"""What the README shows is true: its Python runs, its commands and files exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"(?:bin/|`)tutti ([a-z0-9-]+)", README)))
TARGETS = sorted(set(re.findall(r"make ([a-z]+)", README)))


@pytest.mark.weights
def test_its_python_runs(home: Path) -> None:
    *_, code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)  # those of the client run in tests/client
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "TUTTI_HOME": str(home)},
        check=True,
    )
    assert "$5" in done.stdout


@pytest.mark.process
@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_exist(command: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tutti", command, "--help"], capture_output=True, check=False)
    assert done.returncode == 0


def test_its_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert {"speak", "test"} <= set(TARGETS)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in TARGETS)


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#/][^)#]*)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links)
