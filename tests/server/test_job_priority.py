"""Jobs have a lower priority than live requests."""

import threading
import time
from pathlib import Path

import pytest

from tests.fakes import Gate, RecordingModel, silent_voices, tone_engine
from tests.server.harness import serving
from tests.server.test_jobs import create_job, wait_for_end
from tutti.model.tone import FRAMES_PER_TOKEN

pytestmark = [pytest.mark.server, pytest.mark.process]


def test_a_live_request_does_not_wait_behind_a_job(voice_folder: Path) -> None:
    """While a row of a job runs and others wait, the text of a live request is the next to run."""
    model = RecordingModel(gate=Gate(n_permits=0))
    engine = tone_engine(silent_voices(voice_folder), lambda: model, max_batch_size=1)
    with serving(engine) as server:
        id = create_job(server)["id"]
        assert model.gate.arrivals.acquire(timeout=60)
        answers: list[int] = []

        def request() -> None:
            response = server.client().post("/v1/audio/speech", json={"input": "lanterns", "response_format": "pcm"})
            answers.append(response.status_code)

        thread = threading.Thread(target=request)
        thread.start()
        while not engine.stats()["queue_status"]["by_class"]["first"]:
            time.sleep(0.01)
        assert engine.stats()["queue_status"]["by_class"]["bulk"]
        model.gate.open()
        thread.join(60)
        assert answers == [200]
        assert wait_for_end(server, id)["state"] == "done"
        (second,) = model.vocoder_calls[1]
        assert second.n_frames == FRAMES_PER_TOKEN * len("_lanterns_")
