"""packaging/constraints.txt has the versions that these tests run with, and all installations of a release use it."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.constraints import FILE, constraints, installed

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMAGES = sorted((ROOT / "deploy").glob("Dockerfile*"))
MENDS = "rm .venv/.dev && make .venv/.dev; or, to move to newer versions, python -m scripts.constraints"
NAME = FILE.relative_to(ROOT).as_posix()


def test_what_is_installed_is_what_the_file_says() -> None:
    expected, here = constraints(), installed()
    wrong = {name: (expected.get(name), version) for name, version in here.items() if expected.get(name) != version}
    assert not wrong, MENDS
    assert not expected.keys() - here.keys()


def test_every_range_of_ours_admits_its_version() -> None:
    lines = [*PROJECT["dependencies"], *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)]
    versions = constraints()
    for need in map(Requirement, lines):
        version = versions.get(canonicalize_name(need.name))
        assert version is None or need.specifier.contains(version), need


def test_no_private_module_of_a_library_is_imported() -> None:
    sources = [path.read_text() for path in (ROOT / "tutti").rglob("*.py")]
    private = re.compile(r"^\s*(?:from|import) \w+(?:\.\w+)*\._\w+.*", re.MULTILINE)
    assert not [line for source in sources for line in private.findall(source)]


def test_a_version_is_exact_and_of_no_machine() -> None:
    for line in FILE.read_text().splitlines():
        assert re.fullmatch(r"#.*|[a-z0-9-]+==[0-9.]+(b[0-9]+)?", line)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_an_image_installs_these_versions_and_the_page_from_its_lock_file(path: Path) -> None:
    text = path.read_text()
    assert f"COPY {NAME} packaging/" in text
    for variable in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        assert f"{variable}=/src/{NAME}" in text
    assert re.findall(r"npm (\S+)", text) == ["ci", "run"]


def test_make_and_the_documents_install_these_versions() -> None:
    recipes = re.findall(r"^\t\.venv/bin/pip install .*", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(recipes) == 2
    assert all("--constraint $(CONSTRAINTS)" in recipe for recipe in recipes)
    for path in ("docs/deploy.md", "deploy/tutti.service"):
        (command,) = [line for line in (ROOT / path).read_text().splitlines() if "bin/pip install" in line]
        assert re.search(r"-c \S*constraints\.txt ", command)
