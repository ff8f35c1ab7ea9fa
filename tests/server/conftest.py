"""The server and the fake engine that most tests use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.harness import FakeEngine, RunningServer, make_fake_engine, serving


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
