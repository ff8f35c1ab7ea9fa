"""Servers for the client's tests: a fake engine, the tone model, and one that fails as scripted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.faults import FaultServer, fault_server
from tests.fakes import make_fake_engine, silent_voices, tone_engine
from tests.server.harness import RunningServer, serving
from tutti.client import Client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(make_fake_engine(tmp_path_factory.mktemp("voices"))) as running:
        yield running


@pytest.fixture
def faults() -> Iterator[FaultServer]:
    with fault_server() as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    """A client without cache and warm-up, so that every call is one request."""
    with Client(server.url, memory_cache_bytes=0, prewarm=False, health_timeout_s=60) as client:
        yield client


@pytest.fixture(autouse=True)
def no_user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on the tone model behind the real engine and batcher."""
    with serving(tone_engine(silent_voices(tmp_path_factory.mktemp("tones")))) as running:
        yield running.url
