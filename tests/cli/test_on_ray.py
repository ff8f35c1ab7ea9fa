"""Ray is in a package of its own: the commands work with it, and say what to install without it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tutti import __version__

ROOT = Path(__file__).parents[2]
WITHOUT = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "tutti_ray":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
sys.argv[0] = "tutti"
from tutti.cli.main import main
main()
"""


def tutti(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`tutti` where the package is missing."""
    command = (sys.executable, "-c", WITHOUT, *arguments)
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, check=False)


@pytest.mark.process
@pytest.mark.parametrize("line", ["cluster", "cluster serve --replicas 2", "cluster env"])
def test_the_cluster_says_what_to_install(line: str, tmp_path: Path) -> None:
    done = tutti(*line.split(), folder=tmp_path)
    assert done.returncode != 0
    assert "pip install tutti-ray" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_the_help_lists_the_cluster_all_the_same(tmp_path: Path) -> None:
    printed = tutti("--help", folder=tmp_path).stdout
    assert "cluster" in printed
    assert "tutti-ray" in printed


@pytest.mark.process
def test_bulk_says_what_to_install_before_it_loads_a_model(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "a"}\n')
    done = tutti("bulk", "texts.jsonl", "out", "--ray", "local", folder=tmp_path)
    assert done.returncode != 0
    assert "tutti bulk --ray needs" in done.stderr
    assert "pip install tutti-ray" in done.stderr


def test_the_package_needs_the_server_of_its_own_version() -> None:
    project = tomllib.loads((ROOT / "packaging/ray/pyproject.toml").read_text())
    assert f"tutti-tts=={__version__}" in project["project"]["dependencies"]
    assert project["tool"]["hatch"]["version"]["path"] == "../../tutti/__init__.py"
