"""warm(): the first call finds an open connection and a loaded model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.faults import FaultServer, respond
from tests.fakes import silent_voices, tone_engine
from tests.server.harness import RunningServer, serving, wait_until
from tutti.client import Client
from tutti.worker.process import ProcessWorker

pytestmark = pytest.mark.server


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[RunningServer]:
    """A server whose model was unloaded."""
    with serving(tone_engine(silent_voices(tmp_path), worker=ProcessWorker)) as server:
        assert server.post("/dev/unload", {}).json() == {"status": "unloaded", "workers": 1}
        yield server


@pytest.mark.process
@pytest.mark.parametrize("by", ["warm", "the start"])
def test_a_server_whose_model_was_unloaded_loads_it(sleeping: RunningServer, by: str) -> None:
    with Client(sleeping.url, prewarm=by == "the start", health_timeout_s=60) as client:
        if by == "warm":
            assert client.health()["asleepWorkers"] == 1
            assert client.warm()
            assert client.health()["asleepWorkers"] == 0
        wait_until(lambda: client.health()["asleepWorkers"] == 0)
        assert client.stats().count == 0  # it is no call


def test_a_server_that_is_awake_gets_no_text(faults: FaultServer) -> None:
    """Nor does one that says nothing of its workers, as another speech server."""
    for body in (b'{"asleepWorkers": 0}', b"{}"):
        faults.script.append(respond(body, content_type="application/json"))
        with Client(faults.url, prewarm=False, health_timeout_s=60) as client:
            assert client.warm()
    assert [request.line.split()[1] for request in faults.requests] == ["/health", "/health"]


def test_a_model_that_does_not_load_is_not_warm(faults: FaultServer) -> None:
    faults.script = [respond(b'{"asleepWorkers": 1}', content_type="application/json")]  # then it refuses with 400
    with Client(faults.url, prewarm=False, health_timeout_s=60) as client:
        assert client.warm() is False
    assert [request.line.split()[1] for request in faults.requests] == ["/health", "/v1/audio/speech"]
