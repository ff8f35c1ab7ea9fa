"""Whatever the five requirement documents let a user type works on a running server: variables, curl lines, bodies,
flags, and the routes and fields that their monitoring reads."""

import asyncio
import io
import json
import shlex
import shutil
import subprocess
import wave
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.fakes import tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, serving
from tutti.cli.main import app
from tutti.server import run
from tutti.settings import Settings, load, notes
from tutti.voices import Voices

pytestmark = pytest.mark.server

CURL_LINES = (
    """curl -X POST "http://localhost:8880/tts" \\
     -H "Content-Type: application/json" \\
     -d '{"text": "Hello world", "voice": "af_heart"}' \\
     --output test.wav""",
    """curl -X POST "http://localhost:8880/test/batching\"""",
    """curl "http://localhost:8880/health/batching\"""",
)
# Each block as it stands in a document, and what the server makes of it.
VARIABLES = {
    "dynamic batching": (
        """
# Dynamic Batching Configuration
ENABLE_KOKORO_BATCHING=true
KOKORO_MAX_BATCH_SIZE=4
KOKORO_MAX_WAIT_MS=50
KOKORO_MIN_WAIT_MS=10
MAX_QUEUE_SIZE=1000
""",
        {"batching": True, "max_batch_size": 4, "max_wait_ms": 50, "min_wait_ms": 10, "max_queue": 1000},
    ),
    "the service": (
        """
G2P_TIMEOUT=30
MAX_BATCH_SIZE=50
MAX_TOKENS_PER_CHUNK=400
MIN_TOKENS_PER_CHUNK=100
HOST=0.0.0.0
PORT=8880
""",
        {
            "g2p_timeout_s": 30, "max_request_items": 50, "max_batch_size": None,
            "max_chunk_tokens": 400, "min_chunk_tokens": 100, "host": "0.0.0.0", "port": 8880,
        },
    ),
    "streaming": (
        """
# Streaming Bypass Configuration
STREAMING_BYPASS_CHUNKS=2  # Number of chunks to process directly (bypass batching)
""",
        {"stream_bypass_chunks": 2},
    ),
    "high throughput": ("KOKORO_MAX_BATCH_SIZE=8\nKOKORO_MAX_WAIT_MS=100", {"max_batch_size": 8, "max_wait_ms": 100}),
    "low latency": ("KOKORO_MAX_BATCH_SIZE=2\nKOKORO_MAX_WAIT_MS=25", {"max_batch_size": 2, "max_wait_ms": 25}),
    "debugging": ("ENABLE_KOKORO_BATCHING=false", {"batching": False}),
    "audio batching": (
        "ENABLE_BATCHING=true\nMAX_BATCH_SIZE=4\nBATCH_TIMEOUT_MS=500\nMAX_BATCH_TEXT_LENGTH=2000",
        {"batching": True, "max_batch_size": 4, "max_wait_ms": 500, "max_batch_text": 2000, "max_request_items": 50},
    ),
    "high throughput setup": (
        "ENABLE_BATCHING=true\nMAX_BATCH_SIZE=6\nBATCH_TIMEOUT_MS=1000\nMAX_BATCH_TEXT_LENGTH=3000\n"
        "CONCURRENT_REQUESTS=4",
        {"max_batch_size": 6, "max_wait_ms": 1000, "max_batch_text": 3000, "workers": 4},
    ),
    "low latency setup": (
        "ENABLE_BATCHING=true\nMAX_BATCH_SIZE=2\nBATCH_TIMEOUT_MS=200\nMAX_BATCH_TEXT_LENGTH=1000\n"
        "CONCURRENT_REQUESTS=2",
        {"max_batch_size": 2, "max_wait_ms": 200, "max_batch_text": 1000, "workers": 2},
    ),
    "no batching": ("ENABLE_BATCHING=false", {"batching": False}),
}  # fmt: skip


@pytest.fixture(scope="module")
def tones(voices: Voices) -> Iterator[RunningServer]:
    with serving(tone_engine(voices)) as server:
        yield server


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("curl"), reason="no curl here")
@pytest.mark.parametrize("line", CURL_LINES)
def test_the_curl_lines(tones: RunningServer, line: str, tmp_path: Path) -> None:
    typed = line.replace("\\\n", " ").replace("http://localhost:8880", tones.url)
    words = shlex.split(typed)
    done = subprocess.run([*words, "--silent", "--show-error", "--fail"], cwd=tmp_path, capture_output=True, check=True)
    if "--output" in words:
        with wave.open(str(tmp_path / "test.wav")) as audio:
            assert audio.getnframes() > 0
    else:
        assert json.loads(done.stdout)["batching_enabled"] is True


@pytest.mark.parametrize("block", VARIABLES)
def test_the_variables(voices: Voices, block: str, tmp_path: Path) -> None:
    text, expected = VARIABLES[block]
    dotenv = tmp_path / ".env"
    dotenv.write_text(text)
    chosen, sources = load({}, {}, dotenv)
    assert {name: getattr(chosen, name) for name in expected} == expected
    if expected.get("max_wait_ms"):
        assert any("has no effect" in note for note in notes(chosen, sources))
    given = {name: getattr(chosen, name) for name, source in sources.items() if source != "default"}
    n_workers = given.pop("workers", None) or 1
    engine = tone_engine(voices, n_workers=n_workers, **given)
    with serving(engine, **{**given, "host": "127.0.0.1", "port": 0}) as server:
        assert server.post("/tts", {"text": SHORT, "voice": "af_heart"}).status_code == 200
        assert server.post("/tts/stream", {"text": LONG}).status_code == 200
        health = server.get("/health/batching").json()
        assert health["batching_enabled"] is chosen.batching
        for name in {"max_batch_size", "max_wait_ms", "min_wait_ms"} & given.keys():
            assert health["config"][name] == given[name]
        assert server.get("/health/workers").json()["totalWorkers"] == n_workers


def test_the_bodies(tones: RunningServer) -> None:
    one = {"text": "Hello world", "voice": "af_heart", "speed": 1.0, "language": "en-us", "format": "wav"}
    whole, stream = tones.post("/tts", one), tones.post("/tts/stream", {**one, "format": "pcm"})
    for response, media_type in ((whole, "audio/wav"), (stream, "audio/pcm")):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(media_type)
    assert float(whole.headers["x-audio-duration"]) > 0
    assert tones.post("/tts", {**one, "format": "doc"}).status_code == 400
    batch = tones.post("/tts/batch", {"requests": [one, {**one, "voice": "am_adam", "format": "pcm"}]})
    with zipfile.ZipFile(io.BytesIO(batch.content)) as archive:
        assert {"tts_001_af_heart.wav", "tts_002_am_adam.pcm"} <= set(archive.namelist())
    assert (batch.headers["x-total-requests"], batch.headers["x-batching-enabled"]) == ("2", "true")
    warm_up = {
        "input": "Hello world", "voice": "af_heart", "response_format": "mp3", "use_gpu": True, "speed": 1.0,
        "optimize_for_latency": True,
    }  # fmt: skip
    assert tones.post("/v1/audio/speech", warm_up).headers["content-type"] == "audio/mpeg"
    settings = {"text": "Hello", "speed": 1.0, "pitch": 1, "emotion": "happy", "style": "am_puck", "model": "kokoro"}
    assert tones.post("/tts", settings).status_code == 200


def test_the_fields_that_monitoring_reads(tones: RunningServer) -> None:
    def nested(value: Any) -> Any:
        return {name: nested(inner) for name, inner in value.items()} if isinstance(value, dict) else None

    expected: dict[str, Any] = {
        "/health/batching": {
            "batching_enabled": None,
            "status": None,
            "queue_status": {"current_size": None, "worker_running": None},
            "performance": {"total_batches": None, "total_requests": None, "avg_batch_size": None},
            "config": {"max_batch_size": None, "max_wait_ms": None, "min_wait_ms": None},
        },
        "/health/streaming": {
            "bypass_chunks_config": None,
            "batching_enabled": None,
            "batch_queue_stats": {
                "total_batches": None, "total_requests": None, "avg_batch_size": None,
                "current_queue_size": None, "worker_running": None,
            },
            "streaming_mode": None,
        },
        "/health/workers": {
            "totalWorkers": None, "readyWorkers": None, "busyWorkers": None, "queueSize": None, "batchingEnabled": None,
        },
    }  # fmt: skip

    def assert_within(names: Any, answer: Any) -> None:
        for name, inner in (names or {}).items():
            assert name in answer
            assert_within(inner, answer[name])

    for path, names in expected.items():
        assert_within(names, nested(tones.get(path).json()))
    test = tones.post("/test/batching").json()
    assert {"test_requests", "successful", "total_time_ms", "avg_time_per_request_ms", "batching_efficiency"} <= set(
        test
    )


def test_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Settings] = []
    monkeypatch.setattr(run, "serve", lambda settings, notes: served.append(settings))
    flags = "serve --policy window --max-batch-size 32 --max-wait-ms 20 --min-wait-ms 2 --early-fire 0.8 --no-batching"
    result = CliRunner().invoke(app, flags.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (chosen,) = served
    assert (chosen.policy, chosen.max_batch_size, chosen.max_wait_ms, chosen.min_wait_ms, chosen.early_fire) == (
        "window", 32, 20, 2, 0.8,
    )  # fmt: skip
    assert chosen.batching is False


def test_values_without_effect_are_named_at_the_start_and_by_config(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "open_engine", lambda *_, **__: None)
    monkeypatch.setattr(run, "_serve", lambda *_: asyncio.sleep(0))
    chosen, sources = load({}, {"KOKORO_MAX_WAIT_MS": "100", "TUTTI_PORT": "0"}, Path("/nonexistent/.env"))
    run.serve(chosen, notes(chosen, sources))
    assert "tutti.server settings: KOKORO_MAX_WAIT_MS has no effect" in capsys.readouterr().err
    result = CliRunner().invoke(app, ["config"], env={"KOKORO_MAX_WAIT_MS": "100"}, catch_exceptions=False)
    assert "KOKORO_MAX_WAIT_MS has no effect" in result.output
