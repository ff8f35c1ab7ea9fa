"""The load generator: stalls of a player, closed and open loop, numbers in the terminal and in JSON."""

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.faults import FaultServer, refuse, stream
from tests.client.one_at_a_time_server import one_at_a_time
from tests.server.harness import RunningServer
from tutti.cli import main as cli
from tutti.client import bench as load
from tutti.client.bench import RequestResult

SECONDS = st.floats(0.001, 10)


def test_a_player_stalls_when_audio_is_late() -> None:
    assert load.playback_stalls([(1.0, 0.5), (1.4, 0.5), (1.9, 1.0)]) == (0, 0.0)
    stalls, stalled_s = load.playback_stalls([(1.0, 0.5), (1.75, 0.5), (3.0, 1.0)])
    assert (stalls, stalled_s) == (2, pytest.approx(0.25 + 0.75))
    assert load.playback_stalls([]) == (0, 0.0)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=20))
def test_playback_lasts_as_long_as_audio_and_stalls(steps: list[tuple[float, float]]) -> None:
    now, arrivals = 0.0, []
    for gap_s, audio_s in steps:
        now += gap_s
        arrivals.append((now, audio_s))
    _, stalled_s = load.playback_stalls(arrivals)
    ends = arrivals[0][0] + sum(audio_s for _, audio_s in arrivals) + stalled_s
    assert ends >= arrivals[-1][0] + arrivals[-1][1] - 1e-6


@given(st.lists(SECONDS, min_size=1, max_size=60), st.integers(1, 20))
def test_a_histogram_counts_every_value_once(times: list[float], n: int) -> None:
    bins = load.histogram(sorted(times), n)
    assert sum(count for _, _, count in bins) == len(times)
    assert bins[0][0] == min(times)


def test_a_closed_loop_never_exceeds_its_concurrency() -> None:
    running, most, texts = 0, 0, []

    async def speak(text: str, due: float) -> RequestResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        texts.append(text)
        await asyncio.sleep(0)
        running -= 1
        return RequestResult(0.1, 0.2, 1.0)

    results = asyncio.run(load.closed_loop(speak, ("a", "b", "c"), 10, 3, lambda: 0.0))
    assert (len(results), most) == (10, 3)
    assert texts.count("a") == 4


def test_an_open_loop_does_not_wait_for_responses() -> None:
    gate = asyncio.Event()
    started = 0

    async def speak(text: str, due: float) -> RequestResult:
        nonlocal started
        started += 1
        if started == 20:
            gate.set()  # the first is answered only when the last has arrived
        await gate.wait()
        return RequestResult(0.1, 0.2, 1.0)

    now = iter(range(10_000))  # a clock so fast that every request is late
    results = asyncio.run(load.open_loop(speak, ("a",), 20, 5.0, lambda: float(next(now))))
    assert len(results) == 20


def test_errors_are_counted_by_code_and_excluded_from_the_times() -> None:
    results = [
        RequestResult(0.1, 0.5, 2.0),
        RequestResult(0.3, 0.5, 2.0, 1, 0.25),
        RequestResult(error="queue_full", is_refused=True, waits=2),
        RequestResult(error="model_failed"),
    ]
    result = load.summarise_load(results, 2.0)
    assert (result.requests, result.errors, result.requests_per_s) == (4, {"model_failed": 1}, 1.0)
    assert (result.refusals, result.waits) == ({"queue_full": 1}, 2)
    assert (result.first_s.avg, result.audio_per_s) == (pytest.approx(0.2), 2.0)
    assert (result.listeners_stalled, result.stalled_s) == (1, 0.25)


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tutti", *arguments])
        with pytest.raises(SystemExit) as done:
            cli.main()
        out, err = capsys.readouterr()
        return done.value.code if isinstance(done.value.code, int) else 0, out, err

    return run


@pytest.mark.server
@pytest.mark.parametrize("flags", [("-c", "3"), ("--rate", "200")])
def test_bench_measures_a_server(
    run: Callable[..., tuple[int, str, str]], server: RunningServer, flags: tuple[str, ...]
) -> None:
    code, out, _ = run("bench", server.url, "-n", "12", *flags, "--json", "x.json")
    report = json.loads(Path("x.json").read_text())
    assert code == 0
    assert (report["requests"], report["errors"], report["first_s"]["count"]) == (12, {}, 12)
    assert "first audio" in out
    assert "█" in out


HISTOGRAM = re.compile(r"^ *[\d.]+ ms (█*) (\d+)$", re.MULTILINE)


@pytest.mark.server
def test_bench_compares_any_two_servers_in_a_small_terminal(
    run: Callable[..., tuple[int, str, str]], server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with one_at_a_time() as other:
        for url in (server.url, other):
            code, out, _ = run("bench", url, "-n", "9", "-c", "3", "--json", "x.json")
            report = json.loads(Path("x.json").read_text())
            assert (code, report["errors"], report["first_s"]["count"]) == (0, {}, 9)
            assert report["audio_per_s"] * report["took_s"] > 9
            assert max(map(len, out.splitlines())) <= 80
            bars = [(len(bar), int(n)) for bar, n in HISTOGRAM.findall(out)]
            assert sum(n for _, n in bars) == 9
            assert all(length == round(40 * n / max(n for _, n in bars)) for length, n in bars)


@pytest.mark.server
@pytest.mark.parametrize("format", ["wav", "mp3"])
def test_bench_requests_the_given_format(
    run: Callable[..., tuple[int, str, str]], server: RunningServer, format: str
) -> None:
    code, out, _ = run("bench", server.url, "-n", "4", "--format", format, "--json", "x.json")
    report = json.loads(Path("x.json").read_text())
    assert (code, report["errors"], report["first_s"]["count"]) == (0, {}, 4)
    assert ("heard a gap" in out) == (report["audio_per_s"] > 0) == (format == "wav")


@pytest.mark.server
def test_bench_waits_as_a_client_does_and_counts_refusals_apart_from_failures(
    run: Callable[..., tuple[int, str, str]], faults: FaultServer
) -> None:
    audio, full = stream(bytes(4800)), refuse(429, "queue_full", retry_after_ms="0")
    script = {
        "the warm-up": [audio],
        "refused, and served when it comes again": [full, full, audio],
        "refused to the end": [full] * 3,
        "failed": [refuse(400, "voice_not_found")],
        "served": [audio],
    }
    faults.script = [answer for answers in script.values() for answer in answers]
    code, out, _ = run("bench", faults.url, "-n", "4", "-c", "1", "--json", "x.json")
    report = json.loads(Path("x.json").read_text())
    assert (code, len(faults.requests)) == (0, 9)
    assert (report["refusals"], report["errors"]) == ({"queue_full": 1}, {"voice_not_found": 1})
    assert (report["waits"], report["first_s"]["count"]) == (4, 2)
    assert "1 of 4 requests was refused" in out
    assert "1 of 4 requests failed" in out
    assert "1 × queue_full: no: queue_full" in out
    assert "1 × voice_not_found: no: voice_not_found" in out
    assert "the times are those of the other 2" in out
    assert "1 listener at a time" in out


@pytest.mark.server
def test_bench_says_how_many_listeners_the_device_serves(
    run: Callable[..., tuple[int, str, str]], faults: FaultServer
) -> None:
    faults.script = [stream(bytes(480_000))] * 4  # ten seconds each
    code, out, _ = run("bench", faults.url, "-n", "3", "-c", "1", "--json", "x.json")
    served = int(json.loads(Path("x.json").read_text())["audio_per_s"])
    assert code == 0
    assert f"enough for {served} listeners at a time who play what they hear" in " ".join(out.split())


@pytest.mark.server
def test_bench_fails_without_a_table_if_every_request_failed(
    run: Callable[..., tuple[int, str, str]], faults: FaultServer
) -> None:
    faults.script = [refuse(429, "queue_full", retry_after_ms="0")] * 12  # a busy server may refuse the warm-up, too
    code, out, _ = run("bench", faults.url, "-n", "3", "-c", "1")
    assert (code, "first audio" in out) == (1, False)
    assert "3 of 3 requests were refused" in out


@pytest.mark.server
def test_bench_fails_at_once_where_no_speech_server_is(
    run: Callable[..., tuple[int, str, str]], faults: FaultServer
) -> None:
    code, out, err = run("bench", "http://127.0.0.1:9", "-n", "3")
    assert (code, out) == (3, "")
    assert err.startswith("tutti: http://127.0.0.1:9 did not answer")
    faults.script = [refuse(503, "not_ready", retry_after_ms="0")] * 3
    code, out, err = run("bench", faults.url, "-n", "3")
    assert (code != 0, out, err) == (True, "", "tutti: no: not_ready\n")
    assert len(faults.requests) == 3


@pytest.mark.server
def test_bench_needs_only_the_openai_route(run: Callable[..., tuple[int, str, str]], faults: FaultServer) -> None:
    faults.script = [stream(bytes(4800), content_type="application/octet-stream")] * 4
    assert run("bench", faults.url + "/v1", "-n", "3", "-c", "1", "--model", "tts-1", "-v", "nova")[0] == 0
    assert {request.line for request in faults.requests} == {"POST /v1/audio/speech HTTP/1.1"}
    expected = {"model": "tts-1", "voice": "nova", "input": load.TEXTS[0], "response_format": "pcm"}
    assert faults.requests[0].body == expected
