"""The server starts only with versions of uvicorn and its parsers that the tests run with."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tutti.errors import InvalidInput
from tutti.server import uvicorn_setup
from tutti.server.uvicorn_setup import TESTED_VERSIONS, check_versions

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", TESTED_VERSIONS)
def test_installations_allow_only_these_versions(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (needed,) = [need for line in project["dependencies"] if (need := Requirement(line)).name == name]
    major, minor = map(int, TESTED_VERSIONS[name].split("."))
    assert version(name) in needed.specifier
    assert f"{major}.{minor}.99" in needed.specifier
    assert f"{major}.{minor + 1}.0" not in needed.specifier
    assert f"{major}.{minor - 1}.99" not in needed.specifier


@pytest.mark.parametrize("found", ["0.53.9", "0.55.0", "1.54.0", "0.5.4"])
def test_with_another_version_the_server_does_not_start(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_versions()
    monkeypatch.setattr(uvicorn_setup, "version", lambda _: found)
    with pytest.raises(InvalidInput, match=r"pip install 'uvicorn==0\.54\.\*'"):
        check_versions()
