"""The client's statistics are right for calls whose times are known."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.client.faults import FaultServer, refuse, respond
from tests.server.harness import LONG, SHORT, RunningServer
from tutti.client import Call, Client, prometheus_hook
from tutti.client.call_stats import MAX_CALLS, CallLog, Stopwatch, synthesis_s
from tutti.percentile import percentile

SECONDS = st.floats(0, 1000, allow_nan=False)


@given(st.lists(SECONDS, min_size=1, max_size=50), st.integers(0, 100))
def test_percentiles_are_those_of_numpy_by_nearest_rank(times: list[float], p: int) -> None:
    assert percentile(sorted(times), p) == np.percentile(times, p, method="inverted_cdf")


def test_a_stopwatch_adds_only_what_the_caller_waited() -> None:
    now = iter([10.0, 10.25, 99.0, 99.5])
    watch = Stopwatch("stream", lambda: next(now))
    watch.begin_attempt()
    watch.mark_first_byte("g2p;dur=20.0, queue;dur=500, acoustic;dur=30, vocoder;dur=50")
    started = watch.clock()
    watch.add_wait(watch.clock() - started)
    call = watch.call()
    assert (call.first_byte_s, call.buffer_s, call.total_s) == (0.25, 0.5, 0.75)
    assert call.synthesis_s == pytest.approx(0.1)
    assert call.network_s == pytest.approx(0.15)


def test_a_failed_attempt_counts_only_in_the_first_byte() -> None:
    now = iter([0.0, 1.0, 5.0])
    watch = Stopwatch("speak", lambda: next(now))
    watch.begin_attempt()
    watch.mark_first_byte("")
    watch.add_wait(3.0)
    watch.begin_attempt()
    watch.mark_first_byte("")
    assert (watch.call().first_byte_s, watch.call().total_s, watch.call().attempts) == (5.0, 5.0, 2)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", None), ("cache", None), ("a;dur=1.5", 0.0015), ('a;desc="x";dur=2, b;dur=3', 0.005), ("a;dur=x", None)],
)
def test_server_timing_is_parsed(header: str, seconds: float | None) -> None:
    assert synthesis_s(header) == (None if seconds is None else pytest.approx(seconds))


def test_stats_of_known_calls() -> None:
    calls = CallLog()
    for n in range(1, 101):
        calls.add(Call("speak", first_byte_s=n / 100, buffer_s=1.0, attempts=1, new_connections=int(n == 1)))
    calls.add(Call("speak", attempts=3, error="unreachable", new_connections=3))
    calls.add(Call("speak", cached=True))
    stats = calls.stats()
    assert (stats.count, stats.errors, stats.cached, stats.retries, stats.connections) == (102, 1, 1, 2, 4)
    assert stats.reuse_rate == 99 / 103
    first = stats.first_byte_s
    assert (first.min, first.max, first.count) == (0.01, 1.0, 100)
    assert (first.avg, first.p50, first.p95, first.p99) == pytest.approx((0.505, 0.50, 0.95, 0.99))
    assert stats.total_s.avg == pytest.approx(1.505)
    assert stats.synthesis_s.count == 0
    assert stats.buffer_s.count == 100  # cache hits are not measured
    calls.reset()
    assert calls.stats().count == 0
    assert calls.stats().total_s.count == 0


def test_the_call_log_is_bounded() -> None:
    calls = CallLog()
    for n in range(MAX_CALLS + 10):
        calls.add(Call("speak", first_byte_s=float(n), attempts=1))
    assert calls.stats().count == MAX_CALLS + 10
    assert calls.stats().first_byte_s.min == 10


@pytest.mark.server
def test_times_come_from_the_given_clock(server: RunningServer) -> None:
    def ticking() -> Iterator[float]:
        yield from (float(n) for n in range(1000))

    ticks = ticking()
    with Client(server.url, clock=lambda: next(ticks), prewarm=False, memory_cache_bytes=0) as client:
        call = client.speak(SHORT).call
    assert call is not None
    assert call.first_byte_s == 1  # two readings of the clock
    assert call.total_s == call.first_byte_s + call.buffer_s
    assert call.synthesis_s is not None


@pytest.mark.server
def test_the_call_of_a_stream_counts_its_bytes(server: RunningServer, client: Client) -> None:
    with client.stream(LONG) as stream:
        n_bytes = sum(len(piece.audio) for piece in stream)
        assert stream.call.n_bytes == n_bytes
    assert client.stats().first_byte_s.count == 1


@pytest.mark.server
def test_prometheus_counts_every_call(faults: FaultServer) -> None:
    registry = CollectorRegistry()
    faults.script = [respond(b"12"), refuse(400, "voice_not_found")]
    with Client(faults.url, on_call=prometheus_hook(registry), prewarm=False) as client:
        client.speak("a", format="pcm")
        client.speak("a", format="pcm")
        client.speak_many(["b"])
    counts = {
        outcome: registry.get_sample_value("tutti_client_calls_total", {"kind": "speak", "outcome": outcome})
        for outcome in ("ok", "cached", "voice_not_found")
    }
    assert counts == {"ok": 1, "cached": 1, "voice_not_found": 1}
    assert registry.get_sample_value("tutti_client_connections_total") == 1
    assert registry.get_sample_value("tutti_client_first_byte_seconds_count", {"kind": "speak"}) == 1
