"""The routes of the first requirements."""

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

from tests.server.harness import LONG, SHORT, House, Stage, serving, shaped, spoken


def test_tts_is_a_whole_wav_with_its_headers(house: House) -> None:
    response = house.post("/tts", {"text": SHORT, "voice": "am_adam", "language": "en-us", "speed": 1.0})
    said = spoken(house, SHORT)
    assert response.headers["content-type"] == "audio/wav"
    assert response.content[44:] == np.rint(said * 32767).astype("<i2").tobytes()
    assert int.from_bytes(response.content[40:44], "little") == 2 * len(said)
    assert response.headers["x-audio-duration"] == f"{len(said) / 24000:.3f}"
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
def test_bad_input_is_named_as_this_body_names_it(
    house: House, path: str, body: dict[str, Any], code: str, param: str
) -> None:
    shaped(house.post(path, body), 400, code, param)


def test_a_stream_is_one_well_formed_file_with_its_pauses(house: House) -> None:
    text = "deep. [pause:1.5s] water. " + LONG
    response = house.post("/tts/stream", {"text": text})
    assert response.content.count(b"RIFF") == 1
    assert response.content[44:] == np.rint(spoken(house, text) * 32767).astype("<i2").tobytes()
    assert b"\0" * 2 * 24_000 in response.content
    for name in ("x-stream-id", "x-streaming-mode", "x-bypass-chunks"):
        assert response.headers[name]


def unzipped(data: bytes) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return files, json.loads(files.pop("manifest.json"))


def test_a_batch_is_a_zip_with_a_file_or_an_error_for_each(house: House) -> None:
    items = [
        {"text": "deep"},
        {"text": "water", "voice": "am_adam", "format": "pcm"},
        {"text": "still", "voice": "nobody"},
        {"text": "", "format": "mp3"},
        {"text": "bridge", "voice": "af_bella(2)+af_sky", "format": "flac", "speed": 2},
    ]
    response = house.post("/tts/batch", {"requests": items})
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["x-total-requests"] == "5"
    files, manifest = unzipped(response.content)
    names = ["tts_001_af_heart.wav", "tts_002_am_adam.pcm", "error_003.txt", "error_004.txt"]
    assert list(files) == [*names, "tts_005_af_bella_2_+af_sky.flac"]
    assert [row["file"] for row in manifest] == list(files)
    assert [row["ok"] for row in manifest] == [True, True, False, False, True]
    assert manifest[2]["error"]["code"] == "voice_not_found"
    assert manifest[3]["error"]["param"] == "text"
    assert b"nobody" in files["error_003.txt"]
    assert files["tts_001_af_heart.wav"] == house.post("/tts", items[0]).content
    assert files["tts_002_am_adam.pcm"] == house.post("/tts", items[1]).content


def test_the_items_of_a_batch_are_bulk_and_run_at_once(stage: Stage) -> None:
    with serving(stage) as house:
        house.post("/tts/batch", {"requests": [{"text": "deep"}, {"text": "water"}]})
        assert [asked["delivery"] for asked in stage.asked] == ["bulk", "bulk"]


def test_a_bug_in_one_item_is_an_error_of_that_item(stage: Stage) -> None:
    with serving(stage) as house:
        stage.break_at, stage.error = 1, RuntimeError("secret of the house")
        files, manifest = unzipped(house.post("/tts/batch", {"requests": [{"text": "deep"}, {"text": LONG}]}).content)
        assert [row["ok"] for row in manifest] == [True, False]
        assert manifest[1]["error"]["code"] == "internal_error"
        assert b"secret" not in files["error_002.txt"]


def test_a_batch_over_the_limit_is_refused(stage: Stage) -> None:
    with serving(stage, max_request_items=2, max_text=20) as house:
        shaped(house.post("/tts/batch", {"requests": [{"text": "a"}] * 3}), 400, "invalid_input", "requests")
        shaped(house.post("/tts/batch", {"requests": []}), 400, "invalid_input", "requests")
        shaped(house.post("/tts/batch", {"requests": [{"text": "a" * 11}] * 2}), 413, "too_large", "requests")


def test_the_health_of_batching_streaming_and_workers(house: House) -> None:
    batching = house.get("/health/batching").json()
    assert batching["batching_enabled"] is True
    assert batching["status"] == "ready"
    assert set(batching["queue_status"]) >= {"current_size", "worker_running"}
    assert set(batching["performance"]) >= {"total_batches", "total_requests", "avg_batch_size"}
    assert isinstance(batching["config"], dict)
    streaming = house.get("/health/streaming").json()
    assert set(streaming) == {"status", "streaming_mode", "bypass_chunks", "batching_enabled", "queue_status"}
    workers = house.get("/health/workers").json()
    assert set(workers) == {"totalWorkers", "readyWorkers", "busyWorkers", "queueSize", "batchingEnabled"}


def test_the_trial_of_batching_compares_four_with_four(house: House) -> None:
    n_before = len(house.stage.asked)
    result = house.post("/test/batching").json()
    assert result["requests"] == 4
    assert len(house.stage.asked) - n_before == 8
    assert result["sequential_s"] > 0
    assert result["concurrent_s"] > 0


def test_one_trial_at_a_time(stage: Stage) -> None:
    import threading

    with serving(stage) as house:
        stage.hold_from = 0
        other = house.client()
        first = threading.Thread(target=lambda: other.post("/test/batching"))
        first.start()
        assert stage.opened.acquire(timeout=60)
        shaped(house.post("/test/batching"), 429, "rate_limited")
        stage.let_go()
        first.join()
