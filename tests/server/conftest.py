"""The server and the fake engine that most tests use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import FakeEngine, make_fake_engine
from tests.server.harness import RunningServer, serving


@pytest.fixture(scope="session")
def voice_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture
def fake_engine(voice_folder: Path) -> FakeEngine:
    return make_fake_engine(voice_folder)


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder)) as running:
        yield running
