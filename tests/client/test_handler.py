"""Code written to the documented `OptimizedKokoroHandler` runs as it is, and gets what the document promises."""

import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kokoro_handler import OptimizedKokoroHandler, PerformanceMetrics
from tests.client.faults import FaultServer, refuse, respond, stream
from tests.server.harness import LONG, SHORT, RunningServer
from tutti.client import Audio, Call, SynthesisResult, Unreachable
from tutti.errors import TuttiError, UnknownVoice

ROOT = Path(__file__).parents[2]
SPEECH = "/v1/audio/speech"

# The document's examples, joined to one program; only the address is replaced.
EXAMPLES = """
from kokoro_handler import OptimizedKokoroHandler

# Initialize with optimizations
handler = OptimizedKokoroHandler(
    api_url="http://localhost:5000",
    voice="af_heart",
    max_workers=4,
    connection_pool_size=10,
    chunk_size=512,
    pre_warm_models=True
)

# Synthesize with latency optimization
result = handler.synthesize_sync(
    "Hello world",
    optimize_for_latency=True
)

def on_audio_ready(result):
    print(f"Audio ready in {result['latency']:.3f}s")

handler.on_audio_ready = on_audio_ready
handler.synthesize_async("Async text", optimize_for_latency=True)

texts = ["Text 1", "Text 2", "Text 3", "Text 4"]
results = handler.synthesize_batch(texts, optimize_for_latency=True)

# Get current performance stats
stats = handler.get_performance_stats()
print(f"Average latency: {stats['avg_first_byte_latency']*1000:.1f}ms")

# Reset stats
handler.reset_performance_stats()

OptimizedKokoroHandler(
    api_url="http://localhost:5000",      # Kokoro server URL
    voice="af_heart",                     # Default voice
    max_workers=4,                        # Thread pool size
    connection_pool_size=10,              # HTTP connection pool
    chunk_size=512,                       # Streaming chunk size
    pre_warm_models=True                  # Enable model pre-warming
)

handler.synthesize_sync(
    text="Input text",
    voice="af_heart",                     # Voice selection
    use_gpu=True,                         # GPU acceleration
    use_streaming=None,                   # Auto-determine streaming
    optimize_for_latency=True             # Enable latency optimizations
)
"""
CHECKS = """
assert all(one[:3] == b"ID3" or one[0] == 0xFF for one in (result, *results)), "no MP3"
assert handler.get_performance_stats()["total_requests"] >= 1
"""


@pytest.mark.process
@pytest.mark.server
def test_every_example_of_the_document_runs_as_it_is(engine_url: str, tmp_path: Path) -> None:
    """The program ends without waiting for its callback, which comes all the same."""
    code = (EXAMPLES + CHECKS).replace("http://localhost:5000", engine_url)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^Audio ready in \d+\.\d{3}s$", done.stdout, re.MULTILINE)
    assert re.search(r"^Average latency: \d+\.\dms$", done.stdout, re.MULTILINE)


def a_result() -> SynthesisResult:
    call = Call("speak", 4, 0.25, 0.5, 0.125, timestamp=1e9)
    return SynthesisResult.of(Audio(b"\x01\x02\x03\x04", "mp3", 24_000, 1.5, (), call))


def test_a_result_is_bytes_and_offers_its_details_by_name() -> None:
    result = a_result()
    assert result == b"\x01\x02\x03\x04"
    assert (result[0], result[1:3], len(result)) == (1, b"\x02\x03", 4)
    assert dict(result) == {
        "audio": b"\x01\x02\x03\x04",
        "latency": 0.75,
        "format": "mp3",
        "duration": 1.5,
        "cached": False,
        "first_byte_latency": 0.25,
        "total_latency": 0.75,
        "synthesis_time": 0.125,
        "network_time": 0.125,
        "buffer_time": 0.5,
        "timestamp": 1e9,
    }
    assert result.metrics == PerformanceMetrics(0.25, 0.75, 0.125, 0.125, 0.5, 1e9)
    assert ("latency" in result, "colour" in result, 3 in result, b"\x02" in result) == (True, False, True, True)
    assert (result.get("latency"), result.get("colour", "none")) == (0.75, "none")
    with pytest.raises(KeyError, match="colour"):
        result["colour"]


def test_a_result_survives_pickling_and_saving(tmp_path: Path) -> None:
    result = a_result()
    twin = pickle.loads(pickle.dumps(result))
    assert (twin, dict(twin)) == (result, dict(result))
    assert result.save(tmp_path / "x.mp3").read_bytes() == result


def test_a_misspelled_attribute_is_an_error() -> None:
    with OptimizedKokoroHandler("http://127.0.0.1:9", pre_warm_models=False) as handler:
        with pytest.raises(AttributeError):
            handler.on_audio_redy = print  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            handler.chunk_size = 256  # type: ignore[attr-defined]  # an argument of the constructor


@pytest.mark.server
def test_the_arguments_reach_the_client(faults: FaultServer) -> None:
    """Pool size and chunk size by what the server and the caller see of them."""
    both = threading.Barrier(2, timeout=60)
    faults.script = [lambda sock: both.wait() >= 0 and respond(b"ID3x")(sock)] * 2 + [respond(b"ID3x")] * 6
    with OptimizedKokoroHandler(
        faults.url, "am_adam", max_workers=8, connection_pool_size=2, chunk_size=256, pre_warm_models=False
    ) as handler:
        assert all(handler.synthesize_batch([f"text {n}" for n in range(8)]))
        assert {request.connection for request in faults.requests} == {1, 2}
        assert [request.line.split()[1] for request in faults.requests] == [SPEECH] * 8  # no warm-up
        faults.script = [stream(bytes(1024))]
        pieces = [piece.audio for piece in handler.client.stream("chunks", words=False) if piece.audio]
        assert max(map(len, pieces)) == 256
    sent = faults.requests[0].body
    assert sent["voice"] == "am_adam"
    assert (sent["use_gpu"], sent["optimize_for_latency"], sent["response_format"]) == (True, True, "mp3")


@pytest.mark.server
@pytest.mark.parametrize(
    ("text", "use_streaming", "streams"),
    [("x" * 50, None, False), ("x" * 51, None, True), (SHORT, True, True), (LONG, False, False)],
)
def test_use_streaming_decides_and_its_default_is_the_length(
    faults: FaultServer, text: str, use_streaming: bool | None, streams: bool
) -> None:
    faults.script = [respond(b"ID3x")] * 3
    with OptimizedKokoroHandler(faults.url, pre_warm_models=False, memory_cache_bytes=0) as handler:
        handler.synthesize_sync(text, use_streaming=use_streaming)
        handler.synthesize_async(text, use_streaming=use_streaming).result(60)
        handler.synthesize_batch([text], use_streaming=use_streaming)
    assert [request.body.get("stream", True) for request in faults.requests] == [streams] * 3
    assert not any("use_streaming" in request.body for request in faults.requests)


@pytest.mark.server
def test_options_of_a_call_are_sent(faults: FaultServer) -> None:
    faults.script = [respond(b"RIFF")] * 2
    with OptimizedKokoroHandler(faults.url, voice="af_heart", pre_warm_models=False) as handler:
        handler.voice = "bf_emma"
        handler.synthesize_sync(SHORT, use_gpu=False, optimize_for_latency=False, format="wav", speed=1.5)
        handler.synthesize_sync("more", "am_adam")
    first, second = (request.body for request in faults.requests)
    assert first["response_format"] == "wav"
    assert (first["voice"], first["use_gpu"], first["optimize_for_latency"], first["speed"]) == (
        *("bf_emma", False, False, 1.5),
    )
    assert second["voice"] == "am_adam"


@pytest.mark.server
def test_callbacks_receive_the_result_and_that_of_a_call_comes_first(server: RunningServer) -> None:
    of_the_handler: list[SynthesisResult] = []
    of_the_call: list[SynthesisResult] = []
    with OptimizedKokoroHandler(server.url, pre_warm_models=False, memory_cache_bytes=0) as handler:
        whole = handler.synthesize_sync(SHORT)
        handler.on_audio_ready = of_the_handler.append
        result = handler.synthesize_async(SHORT).result(60)
        handler.synthesize_async(LONG, of_the_call.append).result(60)
        assert [whole, result] == [result, of_the_handler[0]]
        assert (len(of_the_handler), len(of_the_call)) == (1, 1)
        assert result.data == whole


@pytest.mark.server
def test_a_failure_in_the_background_is_logged_and_in_the_future(
    faults: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    faults.script = [refuse(400, "voice_not_found"), respond(b"ID3x")]
    with (
        caplog.at_level(logging.WARNING, "tutti.client"),
        OptimizedKokoroHandler(faults.url, pre_warm_models=False, max_workers=1) as handler,
    ):
        assert isinstance(handler.synthesize_async(SHORT).exception(60), UnknownVoice)
        assert "no: voice_not_found" in caplog.text

        def fail(result: SynthesisResult) -> None:
            raise RuntimeError("the callback failed")

        assert isinstance(handler.synthesize_async(SHORT, fail).exception(60), RuntimeError)
        assert "the callback failed" in caplog.text


@pytest.mark.server
def test_a_batch_returns_results_and_errors_in_order(server: RunningServer) -> None:
    with OptimizedKokoroHandler(server.url, pre_warm_models=False) as handler:
        first, empty, last = handler.synthesize_batch([SHORT, " ", LONG])
    assert isinstance(first, SynthesisResult)
    assert isinstance(empty, TuttiError)
    assert isinstance(last, SynthesisResult)
    assert len(last) > len(first)


@pytest.mark.server
def test_latency_and_statistics_are_in_seconds_of_the_clock(faults: FaultServer) -> None:
    """A clock that advances by a second at each reading makes the times of a call known."""
    ticks = iter(range(10_000))
    faults.script = [respond(b"ID3x", server_timing="acoustic;dur=250"), stream(b"ID3x", b"more"), respond(b"ID3x")]
    before = time.time()
    with OptimizedKokoroHandler(faults.url, pre_warm_models=False, clock=lambda: float(next(ticks))) as handler:
        result = handler.synthesize_sync(SHORT)
        assert result["first_byte_latency"] == 1
        assert result["latency"] == result["total_latency"] == 1 + result["buffer_time"]
        assert (result["synthesis_time"], result["network_time"]) == (0.25, 0.75)
        assert before <= result["timestamp"] <= time.time()
        cached = handler.synthesize_sync(SHORT)
        assert (cached["cached"], cached["latency"]) == (True, 1)
        stats = handler.get_performance_stats()
        for kind in ("avg", "min", "max", "p95", "p99"):
            assert stats[f"{kind}_first_byte_latency"] == 1
            assert stats[f"{kind}_total_latency"] == result["latency"]
            assert stats[f"{kind}_synthesis_time"] == 0.25
            assert stats[f"first_byte_ms_{kind}"] == 1000
        assert (stats["total_requests"], stats["count"], stats["cache_hits"]) == (2, 2, 1)
        handler.reset_performance_stats()
        assert handler.get_performance_stats()["total_requests"] == 0


@pytest.mark.server
def test_closing_ends_what_runs_in_the_background(faults: FaultServer) -> None:
    arrived, leave = threading.Event(), threading.Event()
    faults.script = [lambda sock: not arrived.set() and leave.wait(60) and False]
    handler = OptimizedKokoroHandler(faults.url, pre_warm_models=False, max_workers=1)
    running, waiting = handler.synthesize_async(SHORT), handler.synthesize_async(LONG)
    assert arrived.wait(60)
    handler.close()
    leave.set()
    assert isinstance(running.exception(60), TuttiError)
    assert waiting.cancelled() or isinstance(waiting.exception(60), TuttiError)


def test_earlier_names_of_the_arguments_still_work() -> None:
    with OptimizedKokoroHandler(base_url="http://127.0.0.1:9", prewarm=False, retries=0) as handler:
        assert handler.client.url == "http://127.0.0.1:9"
        with pytest.raises(Unreachable):
            handler.synthesize_sync(SHORT, stream=False)
