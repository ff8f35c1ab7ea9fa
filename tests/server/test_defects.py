"""A bug in the batcher: every client is told at once, by an answer or by a stream that visibly breaks off."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.fakes import Gate, GatedModel, tone_engine
from tests.server.harness import assert_error, serving, wait_until
from tutti.engine.row import Row
from tutti.voices import Voices

TEXT = "The old bridge stands still under the water tonight and runs deep. " * 12
N_WHOLE, N_STREAMS = 3, 4


@pytest.mark.server
def test_after_a_bug_whole_answers_are_errors_and_streams_break_off(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, breaks, started = Gate(), threading.Event(), threading.Semaphore(0)
    vocoder_job = Row.vocoder_job

    def broken(*args: Any) -> Any:
        if breaks.is_set():
            breaks.clear()
            raise ZeroDivisionError("a bug")
        return vocoder_job(*args)

    def stream(client: httpx2.Client) -> bytes:
        with client.stream("POST", "/v1/audio/speech", json={"input": TEXT, "response_format": "pcm"}) as response:
            assert response.status_code == 200
            pieces = response.iter_raw()
            data = next(pieces)
            started.release()
            return data + b"".join(pieces)

    def whole(client: httpx2.Client, n: int) -> httpx2.Response:
        text = TEXT[n:]  # equal ones would share one computation
        return client.post("/v1/audio/speech", json={"input": text, "response_format": "wav", "stream": False})

    monkeypatch.setattr(Row, "vocoder_job", broken)
    engine = tone_engine(voices, lambda: GatedModel("vocoder", gate=gate))
    with serving(engine) as server, ThreadPoolExecutor(N_WHOLE + N_STREAMS) as clients:
        gate.close()
        answers = [clients.submit(whole, server.client(), n) for n in range(N_WHOLE)]
        streams = [clients.submit(stream, server.client()) for _ in range(N_STREAMS)]
        wait_until(lambda: engine.n_streams == N_WHOLE + N_STREAMS)
        for _ in streams:  # let calls pass one by one until each of them has its first audio
            while not started.acquire(timeout=0.02):
                gate.permit()
        assert not any(each.done() for each in (*answers, *streams))
        breaks.set()
        gate.open()
        for answer in answers:
            assert_error(answer.result(60), 500, "model_failed")
        for each in streams:
            with pytest.raises(httpx2.RemoteProtocolError):
                each.result(60)
        assert not breaks.is_set()
        assert server.speak(input=TEXT, response_format="pcm").status_code == 200
