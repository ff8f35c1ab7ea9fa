"""The routes and headers about batching, over the real engine with the tone model: what they say is what happens."""

import io
import json
import os
import re
import signal
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.fakes import FailingModel, Gate, RecordingModel, tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, serving, wait_until
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.speech import Frames
from tutti.voices import Voices
from tutti.worker.process import ProcessWorker

pytestmark = pytest.mark.server

SETTINGS: dict[str, Any] = {"max_batch_size": 5, "max_wait_ms": 40.0, "min_wait_ms": 4.0, "stream_bypass_chunks": 3}
STREAM_HEADERS = ("x-stream-id", "x-streaming-mode", "x-bypass-chunks")


@contextmanager
def tone_server(
    voices: Voices, model: Callable[[], Model], *, worker: Any = None, **chosen: Any
) -> Iterator[RunningServer]:
    """A server over an engine with the same settings."""
    options = {"worker": worker} if worker else {}
    with serving(tone_engine(voices, model, **options, **chosen), cache_mb=0, **chosen) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> RecordingModel:
    return RecordingModel("acoustic", gate=Gate())


@pytest.fixture(scope="module")
def tones(voices: Voices, model: RecordingModel) -> Iterator[RunningServer]:
    with tone_server(voices, lambda: model, **SETTINGS) as server:
        yield server


def post_many(server: RunningServer, threads: ThreadPoolExecutor, *requests: Any) -> list[Future[httpx2.Response]]:
    """Send (path, body, headers) at the same time."""
    return [threads.submit(server.post, path, body, headers=headers) for path, body, headers in requests]


@contextmanager
def held(server: RunningServer, model: RecordingModel, threads: ThreadPoolExecutor) -> Iterator[None]:
    """The model is busy with one row until the gate is opened: all that is sent waits in the queue."""
    n_before = model.gate.n_arrived
    with model.gate.closed():
        running = threads.submit(server.post, "/tts", {"text": "tonight"})
        wait_until(lambda: model.gate.n_arrived > n_before)
        yield
    assert running.result().status_code == 200


def wait_for_jobs(server: RunningServer, n_waiting: int) -> None:
    wait_until(lambda: server.get("/health/workers").json()["queueSize"] == n_waiting)


def test_the_health_of_batching_has_queue_performance_and_configuration(tones: RunningServer) -> None:
    before = tones.get("/health/batching").json()["performance"]
    for _ in range(3):
        tones.post("/tts", {"text": SHORT})
    health = tones.get("/health/batching").json()
    assert (health["batching_enabled"], health["status"], health["state"]) == (True, "healthy", "ready")
    assert health["queue_status"]["current_size"] == 0
    assert health["queue_status"]["worker_running"] is True
    assert health["performance"]["total_batches"] == before["total_batches"] + 3
    assert health["performance"]["total_requests"] == before["total_requests"] + 3
    assert health["performance"]["avg_batch_size"] >= 1
    config = {name: health["config"][name] for name in ("max_batch_size", "max_wait_ms", "min_wait_ms")}
    assert config == {name: SETTINGS[name] for name in config}


def test_the_size_of_the_queue_is_that_of_the_waiting_rows(tones: RunningServer, model: RecordingModel) -> None:
    with ThreadPoolExecutor(4) as threads, held(tones, model, threads):
        answers = post_many(tones, threads, *[("/tts", {"text": word}, {}) for word in ("deep", "water", "still")])
        wait_for_jobs(tones, 3)
        assert tones.get("/health/batching").json()["queue_status"]["current_size"] == 3
        assert tones.get("/health/streaming").json()["batch_queue_stats"]["current_queue_size"] == 3
        model.gate.open()
        assert [answer.result().status_code for answer in answers] == [200] * 3


@pytest.mark.process
def test_with_every_worker_dead_it_is_unhealthy(voices: Voices) -> None:
    never = partial(ProcessWorker, backoff_s=lambda failures: 3600.0)
    with tone_server(voices, ToneModel, worker=never) as server:
        assert server.get("/health/batching").json()["status"] == "healthy"
        os.kill(server.engine.batchers[0].worker.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        wait_until(lambda: server.get("/health/batching").json()["status"] != "healthy")
        health = server.get("/health/batching").json()
        assert health["status"] == "unhealthy"
        assert health["queue_status"]["worker_running"] is False
        assert server.get("/health/streaming").json()["batch_queue_stats"]["worker_running"] is False
        overall = server.get("/health").json()
        assert (overall["status"], overall["ready"], overall["readyWorkers"]) == ("unhealthy", False, 0)
        assert_error(server.get("/readyz"), 503, "not_ready")


def test_the_health_of_streaming_has_the_documented_names_beside_ours(tones: RunningServer) -> None:
    health = tones.get("/health/streaming").json()
    assert (health["bypass_chunks_config"], health["bypass_chunks"]) == (3, 0)  # the policy is deadline
    assert health["streaming_mode"] == "batched"
    assert health["chunks"] == tones.get("/health/batching").json()["performance"]["chunks_by_mode"]
    assert health["batching_enabled"] is True
    batching = tones.get("/health/batching").json()
    stats = health["batch_queue_stats"]
    assert {name: stats[name] for name in batching["performance"]} == batching["performance"]
    assert (stats["current_queue_size"], stats["worker_running"]) == (0, True)
    queue, other = health["queue_status"], batching["queue_status"]
    assert queue == {**other, "expected_wait_s": queue["expected_wait_s"]}  # which changes from moment to moment


def test_the_batching_test_counts_and_times_four_texts(tones: RunningServer, model: RecordingModel) -> None:
    n_before = sum(model.batch_sizes)
    result = tones.post("/test/batching").json()
    assert sum(model.batch_sizes) - n_before == 8  # four in sequence, four at once
    assert (result["test_requests"], result["successful"], result["errors"]) == (4, 4, [])
    assert result["total_time_ms"] > 0
    assert result["avg_time_per_request_ms"] == pytest.approx(result["total_time_ms"] / 4, abs=0.01)
    assert result["total_time_ms"] == pytest.approx(1000 * result["concurrent_s"], abs=0.1)
    assert result["batching_efficiency"] == "good" or result["speedup"] < 1
    assert result["batching_enabled"] is True


def test_four_requests_at_once_take_fewer_passes_than_four_in_sequence(
    tones: RunningServer, model: RecordingModel
) -> None:
    requests = [("/tts", {"text": word}, {}) for word in ("deep", "water", "still", "bridge")]
    with ThreadPoolExecutor(5) as threads, held(tones, model, threads):
        n_before = len(model.acoustic_calls)
        answers = post_many(tones, threads, *requests)
        wait_for_jobs(tones, 4)
        model.gate.open()
        assert [answer.result().status_code for answer in answers] == [200] * 4
    assert [len(rows) for rows in model.acoustic_calls[n_before:]] == [1, 4]  # the one that ran, then all four


def test_texts_that_fail_do_not_fail_the_batching_test(voices: Voices) -> None:
    with tone_server(voices, lambda: FailingModel(lambda rows: True)) as server:
        result = server.post("/test/batching").json()
    assert (result["test_requests"], result["successful"], result["errors"]) == (4, 0, ["model_failed"])
    assert result["batching_efficiency"] == "needs_tuning"


@pytest.mark.parametrize("text", [SHORT, LONG], ids=["one chunk", "several"])
def test_every_streamed_answer_has_the_three_stream_headers(tones: RunningServer, text: str) -> None:
    for path, body in (("/tts/stream", {"text": text}), ("/v1/audio/speech", {"input": text})):
        headers = tones.post(path, body, headers={"x-request-id": "stream-17"}).headers
        assert [headers[name] for name in STREAM_HEADERS] == ["stream-17", "batched", "0"]
        assert headers["x-batching-enabled"] == "true"


@pytest.mark.parametrize(("path", "name"), [("/tts", "tts_output"), ("/tts/stream", "tts_stream")])
def test_the_audio_has_a_file_name_with_its_format(tones: RunningServer, path: str, name: str) -> None:
    for text in (SHORT, LONG):
        for format in ("wav", "pcm", "mp3"):
            headers = tones.post(path, {"text": text, "format": format}).headers
            assert headers["content-disposition"] == f"attachment; filename={name}.{format}"
    assert tones.post(path, {"text": SHORT}).headers["content-disposition"].endswith(".wav")


def test_a_batch_request_says_whether_batching_is_on(tones: RunningServer) -> None:
    headers = tones.post("/tts/batch", {"requests": [{"text": SHORT}]}).headers
    assert headers["x-batching-enabled"] == "true"
    assert headers["content-disposition"] == "attachment; filename=tts_batch.zip"


@pytest.mark.parametrize(
    ("path", "body"), [("/tts", {"text": SHORT}), ("/v1/audio/speech", {"input": SHORT, "stream": False})]
)
def test_a_caller_can_limit_the_time_of_a_whole_answer(
    tones: RunningServer, model: RecordingModel, path: str, body: dict[str, Any]
) -> None:
    with ThreadPoolExecutor(3) as threads, held(tones, model, threads):
        patient, hasty = post_many(tones, threads, (path, body, {}), (path, body, {"x-request-timeout": "0.05"}))
        error = assert_error(hasty.result(), 504, "deadline_exceeded")
        assert "X-Request-Timeout" in error["message"]
        assert_error(tones.post(path, body, headers={"x-request-timeout": "soon"}), 400, "invalid_input")
        model.gate.open()
        assert patient.result().status_code == 200  # the same text, asked for without a limit


def test_the_limit_of_a_batch_request_spares_the_items_that_are_done(voices: Voices) -> None:
    gate = Gate()

    def is_long(rows: Sequence[Frames]) -> bool:
        return any(row.n_frames > 60 for row in rows)

    def slow() -> RecordingModel:
        return RecordingModel("vocoder", gate=gate, gated=is_long)

    items = [{"text": "deep"}, {"text": "the old bridge stands still under the water"}]
    with tone_server(voices, slow, max_batch_size=1) as server, gate.closed():
        response = server.post("/tts/batch", {"requests": items}, headers={"x-request-timeout": "1"})
        gate.open()
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert [row["ok"] for row in manifest] == [True, False]
    assert manifest[1]["error"]["code"] == "deadline_exceeded"


def test_a_whole_answer_optimised_for_latency_goes_before_those_that_are_not(voices: Voices) -> None:
    model = RecordingModel("acoustic", gate=Gate())
    words = ("deep", "water", "under")
    with tone_server(voices, lambda: model, max_batch_size=1) as server:
        lengths = {}
        for word in (*words, "stands"):
            server.post("/tts", {"text": word})
            lengths[word] = len(model.acoustic_calls[-1][0].tokens)
        model.acoustic_calls.clear()
        with ThreadPoolExecutor(5) as threads, held(server, model, threads):
            waiting = post_many(server, threads, *[("/tts", {"text": word}, {}) for word in words])
            wait_for_jobs(server, 3)
            body = {"input": "stands", "stream": False, "optimize_for_latency": True, "response_format": "wav"}
            waiting += post_many(server, threads, ("/v1/audio/speech", body, {}))
            wait_for_jobs(server, 4)
            model.gate.open()
            assert [answer.result().status_code for answer in waiting] == [200] * 4
    order = [len(rows[0].tokens) for rows in model.acoustic_calls]
    assert order[1] == lengths["stands"]  # the first one ran already when it came


def test_an_option_without_effect_is_named(tones: RunningServer) -> None:
    body = {"input": SHORT, "use_gpu": True, "optimize_for_latency": True}
    assert tones.post("/v1/audio/speech", body).headers["x-ignored"] == "use_gpu"


def test_without_batching_the_samples_are_the_same_and_everything_says_so(voices: Voices) -> None:
    texts = (SHORT, LONG, "the water runs", "still and deep")
    audio: dict[bool, list[bytes]] = {}
    sizes: dict[bool, list[int]] = {}
    for batching in (True, False):
        model = RecordingModel("acoustic", gate=Gate())
        chosen: dict[str, Any] = {"batching": batching, "max_batch_size": 8}
        with tone_server(voices, lambda model=model: model, **chosen) as server, ThreadPoolExecutor(5) as threads:
            with held(server, model, threads):
                answers = post_many(server, threads, *[("/tts", {"text": text, "format": "pcm"}, {}) for text in texts])
                wait_until(lambda: server.get("/health/workers").json()["queueSize"] >= len(texts))
                model.gate.open()
                audio[batching] = [answer.result().content for answer in answers]
            sizes[batching] = model.batch_sizes
            stream = server.post("/tts/stream", {"text": SHORT}).headers
            whole = server.post("/tts/batch", {"requests": [{"text": SHORT}]}).headers
            expected = {True: ("true", "batched", "healthy"), False: ("false", "direct", "disabled")}
            flag, mode, status = expected[batching]
            assert (stream["x-batching-enabled"], whole["x-batching-enabled"]) == (flag, flag)
            assert stream["x-streaming-mode"] == mode
            health = server.get("/health/batching").json()
            assert (health["status"], health["batching_enabled"]) == (status, batching)
            streaming = server.get("/health/streaming").json()
            assert streaming["streaming_mode"] == mode
            assert {kind for kind, n in streaming["chunks"].items() if n} == {mode}
            assert (streaming["batch_queue_stats"] is not None) is batching
            assert server.get("/health/workers").json()["batchingEnabled"] is batching
    assert audio[True] == audio[False]
    assert all(audio[True])
    assert max(sizes[True]) > 1
    assert set(sizes[False]) == {1}


@pytest.mark.parametrize(
    ("policy", "n_chunks", "n_bypass"),
    [("deadline", 2, 0), ("fifo", 2, 0), ("window", 2, 0), ("bypass", 0, 0), ("bypass", 2, 2), ("bypass", 1, 1)],
)
def test_the_mode_is_what_happens_to_the_first_chunks_under_each_policy(
    voices: Voices, caplog: pytest.LogCaptureFixture, policy: str, n_chunks: int, n_bypass: int
) -> None:
    chosen = {"policy": policy, "stream_bypass_chunks": n_chunks, "max_wait_ms": 1.0, "min_wait_ms": 0.0}
    with tone_server(voices, ToneModel, **chosen) as server, caplog.at_level("INFO", "tutti"):
        headers = server.post("/tts/stream", {"text": LONG}).headers
        health = server.get("/health/streaming").json()
    assert headers["x-streaming-mode"] == (f"bypass-first-{n_bypass}-chunks" if n_bypass else "batched")
    assert health["streaming_mode"] == ("bypass-first-chunks" if n_bypass else "batched")
    assert (headers["x-bypass-chunks"], health["bypass_chunks"]) == (str(n_bypass), n_bypass)
    assert health["bypass_chunks_config"] == n_chunks
    modes = re.findall(r"chunk spoken .* mode=(\w+)", caplog.text)
    assert modes[:n_bypass] == ["bypassed"] * n_bypass
    assert set(modes[n_bypass:]) == {"batched"}
    assert health["chunks"] == {"bypassed": n_bypass, "batched": len(modes) - n_bypass, "direct": 0}


@pytest.mark.parametrize(("batching", "later_mode"), [(True, "batched"), (False, "direct")])
def test_the_log_has_each_chunk_under_the_id_of_its_stream(
    voices: Voices, caplog: pytest.LogCaptureFixture, batching: bool, later_mode: str
) -> None:
    with tone_server(voices, ToneModel, batching=batching) as server, caplog.at_level("INFO", "tutti"):
        response = server.post("/tts/stream", {"text": LONG})
    name = re.escape(response.headers["x-stream-id"])
    lines = re.findall(
        rf"chunk spoken id={name} stream=\d+ chunk=(\d+) class=(\w+) mode=(\w+) .*took=[\d.]+ms", caplog.text
    )
    assert [number for number, _, _ in lines] == [str(n) for n in range(len(lines))]
    assert [kind for _, kind, _ in lines] == ["first", "first"] + ["next"] * (len(lines) - 2)
    assert len(lines) > 2
    assert {mode for _, kind, mode in lines if kind == "next"} == {later_mode}
    assert {mode for _, _, mode in lines} <= {"bypassed", "batched"} if batching else {"direct"}
