"""One server for the tests that need no special one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.harness import House, Stage, make_stage, serving


@pytest.fixture(scope="session")
def voice_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture
def stage(voice_folder: Path) -> Stage:
    return make_stage(voice_folder)


@pytest.fixture(scope="module")
def house(voice_folder: Path) -> Iterator[House]:
    with serving(make_stage(voice_folder)) as running:
        yield running
