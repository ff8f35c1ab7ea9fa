"""/tts, /tts/stream, /tts/batch and the health routes."""

import io
import json
import threading
import zipfile
from typing import Any

import numpy as np
import pytest

from tests.fakes import FakeEngine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, expected_samples, serving

pytestmark = pytest.mark.server


def test_tts_is_a_whole_wav_with_its_headers(server: RunningServer) -> None:
    response = server.post("/tts", {"text": SHORT, "voice": "am_adam", "language": "en-us", "speed": 1.0})
    samples = expected_samples(server, SHORT)
    assert response.headers["content-type"] == "audio/wav"
    assert response.content[44:] == np.rint(samples * 32767).astype("<i2").tobytes()
    assert int.from_bytes(response.content[40:44], "little") == 2 * len(samples)
    assert response.headers["x-audio-duration"] == f"{len(samples) / 24000:.3f}"
    assert response.headers["x-voice-used"] == "am_adam"
    assert response.headers["x-batching-enabled"] == "true"


@pytest.mark.parametrize("path", ["/tts", "/tts/stream"])
@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"text": ""}, "nothing_to_speak", "text"),
        ({}, "invalid_input", "text"),
        ({"text": SHORT, "format": "doc"}, "unknown_format", "format"),
        ({"text": SHORT, "voice": "nobody"}, "voice_not_found", "voice"),
        ({"text": SHORT, "speed": 99}, "invalid_input", "speed"),
    ],
)
def test_an_invalid_field_is_named_as_in_this_body(
    server: RunningServer, path: str, body: dict[str, Any], code: str, param: str
) -> None:
    assert_error(server.post(path, body), 400, code, param)


def test_a_stream_is_one_well_formed_file_with_its_pauses(server: RunningServer) -> None:
    text = "deep. [pause:1.5s] water. " + LONG
    response = server.post("/tts/stream", {"text": text})
    assert response.content.count(b"RIFF") == 1
    assert response.content[44:] == np.rint(expected_samples(server, text) * 32767).astype("<i2").tobytes()
    assert b"\0" * 2 * 24_000 in response.content


def unzip(data: bytes) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return files, json.loads(files.pop("manifest.json"))


def test_a_batch_is_a_zip_with_a_file_or_an_error_for_each(server: RunningServer) -> None:
    items = [
        {"text": "deep"},
        {"text": "water", "voice": "am_adam", "format": "pcm"},
        {"text": "still", "voice": "nobody"},
        {"text": "", "format": "mp3"},
        {"text": "bridge", "voice": "af_bella(2)+af_sky", "format": "flac", "speed": 2},
    ]
    response = server.post("/tts/batch", {"requests": items})
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["x-total-requests"] == "5"
    files, manifest = unzip(response.content)
    names = ["tts_001_af_heart.wav", "tts_002_am_adam.pcm", "error_003.txt", "error_004.txt"]
    assert list(files) == [*names, "tts_005_af_bella_2_+af_sky.flac"]
    assert [row["file"] for row in manifest] == list(files)
    assert [row["ok"] for row in manifest] == [True, True, False, False, True]
    assert manifest[2]["error"]["code"] == "voice_not_found"
    assert manifest[3]["error"]["param"] == "text"
    assert b"nobody" in files["error_003.txt"]
    assert files["tts_001_af_heart.wav"] == server.post("/tts", items[0]).content
    assert files["tts_002_am_adam.pcm"] == server.post("/tts", items[1]).content


def test_the_items_of_a_batch_are_bulk_and_run_at_once(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        server.post("/tts/batch", {"requests": [{"text": "deep"}, {"text": "water"}]})
        assert [request["delivery"] for request in fake_engine.requests] == ["bulk", "bulk"]


def test_a_bug_in_one_item_is_an_error_of_that_item(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.fail_at, fake_engine.error = 1, RuntimeError("secret of the server")
        files, manifest = unzip(server.post("/tts/batch", {"requests": [{"text": "deep"}, {"text": LONG}]}).content)
        assert [row["ok"] for row in manifest] == [True, False]
        assert manifest[1]["error"]["code"] == "internal_error"
        assert b"secret" not in files["error_002.txt"]


def test_a_batch_over_the_limit_is_refused(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, max_request_items=2, max_text=20) as server:
        assert_error(server.post("/tts/batch", {"requests": [{"text": "a"}] * 3}), 400, "invalid_input", "requests")
        assert_error(server.post("/tts/batch", {"requests": []}), 400, "invalid_input", "requests")
        assert_error(server.post("/tts/batch", {"requests": [{"text": "a" * 11}] * 2}), 413, "too_large", "requests")


def test_the_state_of_the_workers_has_the_documented_names(server: RunningServer) -> None:
    workers = server.get("/health/workers").json()
    counts = {"totalWorkers", "readyWorkers", "busyWorkers", "asleepWorkers"}
    assert set(workers) == {*counts, "queueSize", "batchingEnabled"}


def test_only_one_batching_test_runs_at_a_time(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.hold_from = 0
        other = server.client()
        first = threading.Thread(target=lambda: other.post("/test/batching"))
        first.start()
        assert fake_engine.streams_opened.acquire(timeout=60)
        assert_error(server.post("/test/batching"), 429, "rate_limited")
        fake_engine.release()
        first.join()
