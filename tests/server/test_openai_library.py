"""OpenAI's Python library against a running server."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest

from tests.fakes import FakeEngine, Gate, GatedModel, tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, expected_samples, serving, wait_until
from tutti.errors import ModelFailed, QueueFull
from tutti.voices import Voices

pytestmark = [pytest.mark.server, pytest.mark.process]  # the library asks `uname` for the processor


@pytest.fixture(scope="module")
def library(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="anything", max_retries=0) as client:
        yield client


def pcm(server: RunningServer, text: str) -> bytes:
    return np.rint(expected_samples(server, text) * 32767).astype("<i2").tobytes()


def test_the_library_gets_whole_and_streamed_speech_as_bytes_and_as_a_file(
    library: openai.OpenAI, server: RunningServer, tmp_path: Path
) -> None:
    whole = library.audio.speech.create(model="tts-1", voice="alloy", input=LONG, response_format="pcm")
    assert whole.content == pcm(server, LONG)
    request = library.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts", voice="nova", input=LONG, response_format="pcm", speed=1.0, instructions="calmly"
    )
    with request as response:
        assert b"".join(response.iter_bytes()) == pcm(server, LONG)
    request = library.audio.speech.with_streaming_response.create(model="kokoro", voice="af_heart", input=SHORT)
    with request as response:
        response.stream_to_file(tmp_path / "speech.mp3")
    assert (tmp_path / "speech.mp3").stat().st_size > 500


def test_the_library_reads_events(library: openai.OpenAI, server: RunningServer) -> None:
    request = library.audio.speech.with_streaming_response.create(
        model="kokoro", voice="coral", input=LONG, response_format="pcm", stream_format="sse"
    )
    with request as response:
        kinds = [json.loads(line[6:])["type"] for line in response.iter_lines() if line.startswith("data: ")]
    assert set(kinds[:-1]) == {"speech.audio.delta"}
    assert kinds[-1] == "speech.audio.done"


def test_the_library_lists_models(library: openai.OpenAI) -> None:
    assert [model.id for model in library.models.list()] == [
        "kokoro",
        "tts-1",
        "tts-1-hd",
        "gpt-4o-mini-tts",
        "kokoro-int8",
    ]
    assert library.models.retrieve("tts-1").id == "tts-1"
    with pytest.raises(openai.NotFoundError) as caught:
        library.models.retrieve("whisper-1")
    assert caught.value.code == "model_not_found"


def test_the_library_reads_errors(library: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="did you mean af_heart") as caught:
        library.audio.speech.create(model="kokoro", voice="af_hart", input=SHORT)
    assert (caught.value.code, caught.value.param, caught.value.type) == (
        "voice_not_found",
        "voice",
        "invalid_request_error",
    )


def test_a_wrong_key_is_an_authentication_error(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, api_keys="right") as server:
        for key, right in (("right", True), ("wrong", False)):
            with openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0) as client:
                if right:
                    assert client.audio.speech.create(model="kokoro", voice="alloy", input=SHORT).content
                else:
                    with pytest.raises(openai.AuthenticationError):
                        client.audio.speech.create(model="kokoro", voice="alloy", input=SHORT)


def test_the_library_retries_a_full_queue_but_not_a_failed_text(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="x") as client:
        client.max_retries = 1
        fake_engine.fail_at = 0
        for error, raised, n_tries in (
            (QueueFull("full", retry_after_s=0.1), openai.RateLimitError, 2),
            (ModelFailed("row broke"), openai.InternalServerError, 1),
        ):
            fake_engine.error = error
            n_before = len(fake_engine.requests)
            with pytest.raises(raised):
                client.audio.speech.create(model="kokoro", voice="alloy", input=SHORT)
            assert len(fake_engine.requests) - n_before == n_tries


def test_on_a_slow_device_nobody_with_the_defaults_of_the_library_is_refused(voices: Voices) -> None:
    gate, statuses, n = Gate(), Counter[int](), 8
    engine = tone_engine(voices, lambda: GatedModel("acoustic", gate=gate), capped=True)

    def count(response: httpx.Response) -> None:
        statuses[response.status_code] += 1

    def speak(server: RunningServer) -> bytes:
        http_client = openai.DefaultHttpxClient(event_hooks={"response": [count]})
        options = {"base_url": f"{server.url}/v1", "api_key": "any", "http_client": http_client}
        with openai.OpenAI(**options, max_retries=0) as client:  # type: ignore[arg-type]
            return client.audio.speech.create(
                model="kokoro", voice="alloy", input=2 * LONG, response_format="pcm"
            ).read()

    with serving(engine, cache_mb=0) as server, ThreadPoolExecutor(n) as threads:
        with gate.closed():
            waiting = [threads.submit(speak, server) for _ in range(n)]
            wait_until(lambda: server.get("/health/workers").json()["queueSize"] > 2 * n or bool(statuses))
            assert not statuses
            assert_error(server.speak(), 429, "queue_full")  # this client does not say that it waits for so long
        assert len({answer.result() for answer in waiting}) == 1
    assert statuses == {200: n}
