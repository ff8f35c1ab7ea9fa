"""Several checkpoints on one server: listed, picked by `model`, and never in one batch."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fakes import Gate, RecordingModel, tone_engine
from tests.server.harness import RunningServer, assert_error, serving, wait_until
from tutti.speech import Frames, Samples
from tutti.voices import Voices

pytestmark = pytest.mark.server

GATE = Gate()
WORDS = ("deep", "water", "still", "bridge", "under", "stands", "tonight", "runs")


class QuietModel(RecordingModel):
    """The tones at half their volume: heard apart from those of the other checkpoint."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return [(samples / 2).astype(samples.dtype) for samples in super().vocoder(rows)]


LOUD, QUIET = RecordingModel("acoustic", gate=GATE), QuietModel("acoustic", gate=GATE)


@pytest.fixture(scope="module")
def two_models(voices: Voices) -> Iterator[RunningServer]:
    engine = tone_engine(voices, lambda: LOUD, others={"mine": lambda: QUIET}, max_batch_size=8)
    with serving(engine, cache_mb=0) as server:
        yield server


def spoken(server: RunningServer, path: str, word: str, model: str | None) -> Samples:
    field, format = ("input", "response_format") if path.startswith("/v1") else ("text", "format")
    response = server.post(path, {field: word, format: "pcm", "model": model})
    assert response.status_code == 200, response.text
    return np.frombuffer(response.content, "<i2").astype(np.float32)


def test_checkpoints_are_listed_under_their_names(two_models: RunningServer) -> None:
    names = [model["id"] for model in two_models.get("/v1/models").json()["data"]]
    assert names == ["kokoro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "mine"]
    assert two_models.get("/v1/models/mine").json()["id"] == "mine"
    assert two_models.get("/v1/audio/models").json()["models"][-1] == {"id": "mine", "name": "mine"}


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/tts", "/tts/stream"])
def test_the_model_of_a_request_picks_the_checkpoint(two_models: RunningServer, path: str) -> None:
    loud, quiet = (spoken(two_models, path, "deep water", model) for model in ("kokoro", "mine"))
    assert np.array_equal(spoken(two_models, path, "deep water", None), loud)
    assert np.array_equal(spoken(two_models, path, "deep water", "tts-1"), loud)
    assert np.abs(loud - 2 * quiet).max() <= 1
    assert_error(two_models.post(path, {"text": "a", "input": "a", "model": "no"}), 404, "model_not_found", "model")


def test_items_of_one_batch_request_may_name_different_models(two_models: RunningServer) -> None:
    items = [{"text": "deep", "model": "kokoro"}, {"text": "deep", "model": "mine"}]
    assert two_models.post("/tts/batch", {"requests": items}).status_code == 200


def test_requests_for_different_models_that_wait_together_share_no_batch(two_models: RunningServer) -> None:
    n_before = GATE.n_arrived
    asked = [(word, name) for word in WORDS for name in ("kokoro", "mine")]
    with ThreadPoolExecutor(len(asked) + 1) as threads, GATE.closed():
        running = threads.submit(spoken, two_models, "/tts", "nobody", "mine")
        wait_until(lambda: GATE.n_arrived > n_before)  # the others wait behind it
        for model in (LOUD, QUIET):
            model.acoustic_calls.clear()
        answers = [threads.submit(spoken, two_models, "/tts", *one) for one in asked]
        wait_until(lambda: two_models.get("/health/workers").json()["queueSize"] == len(asked))
        GATE.open()
        audio = {one: answer.result() for one, answer in zip(asked, answers, strict=True)}
        running.result()
    for word in WORDS:
        assert np.abs(audio[word, "kokoro"] - 2 * audio[word, "mine"]).max() <= 1
    for model, n_others in ((LOUD, 0), (QUIET, 1)):
        assert sum(map(len, model.acoustic_calls)) == len(WORDS) + n_others
        assert max(map(len, model.acoustic_calls)) > 1  # rows of one checkpoint do share
