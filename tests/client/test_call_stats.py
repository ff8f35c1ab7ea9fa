"""Numbers are right for calls whose times are known."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.client.faults import FaultServer, refuse, say
from tests.server.harness import LONG, SHORT, RunningServer
from tutti.client import Call, Client, OptimizedKokoroHandler, prometheus_hook
from tutti.client.call_stats import KEPT, Ledger, Watch, percentile, synthesis_s

SECONDS = st.floats(0, 1000, allow_nan=False)


@given(st.lists(SECONDS, min_size=1, max_size=50), st.floats(0, 1))
def test_percentiles_are_those_of_everyone(times: list[float], share: float) -> None:
    assert percentile(sorted(times), share) == pytest.approx(np.percentile(times, 100 * share))


def test_a_watch_adds_what_the_caller_waited_and_nothing_else() -> None:
    now = iter([10.0, 10.25, 99.0, 99.5])
    watch = Watch("stream", lambda: next(now))
    watch.begin_attempt()
    watch.answered("g2p;dur=20.0, queue;dur=500, acoustic;dur=30, vocoder;dur=50")
    asked = watch.clock()
    watch.waited(watch.clock() - asked)
    call = watch.call()
    assert (call.first_byte_s, call.buffer_s, call.total_s) == (0.25, 0.5, 0.75)
    assert call.synthesis_s == pytest.approx(0.1)
    assert call.network_s == pytest.approx(0.15)


def test_an_attempt_that_failed_counts_in_the_first_byte_only() -> None:
    now = iter([0.0, 1.0, 5.0])
    watch = Watch("speak", lambda: next(now))
    watch.begin_attempt()
    watch.answered("")
    watch.waited(3.0)
    watch.begin_attempt()
    watch.answered("")
    assert (watch.call().first_byte_s, watch.call().total_s, watch.call().attempts) == (5.0, 5.0, 2)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", None), ("cache", None), ("a;dur=1.5", 0.0015), ('a;desc="x";dur=2, b;dur=3', 0.005), ("a;dur=x", None)],
)
def test_server_timing_is_read(header: str, seconds: float | None) -> None:
    assert synthesis_s(header) == (None if seconds is None else pytest.approx(seconds))


def test_stats_of_known_calls() -> None:
    ledger = Ledger()
    for n in range(1, 101):
        ledger.add(Call("speak", first_byte_s=n / 100, buffer_s=1.0, attempts=1, new_connections=int(n == 1)))
    ledger.add(Call("speak", attempts=3, error="unreachable", new_connections=3))
    ledger.add(Call("speak", cached=True))
    stats = ledger.stats()
    assert (stats.count, stats.errors, stats.cached, stats.retries, stats.connections) == (102, 1, 1, 2, 4)
    assert stats.reuse_rate == 99 / 103
    first = stats.first_byte_s
    assert (first.min, first.max, first.count) == (0.01, 1.0, 100)
    assert (first.avg, first.p50, first.p95, first.p99) == pytest.approx((0.505, 0.505, 0.9505, 0.9901))
    assert stats.total_s.avg == pytest.approx(1.505)
    assert stats.synthesis_s.count == 0
    assert stats.buffer_s.count == 100  # what came from the cache took no time, and is no measurement
    ledger.reset()
    assert ledger.stats().count == 0
    assert ledger.stats().total_s.count == 0


def test_the_ledger_does_not_grow_for_ever() -> None:
    ledger = Ledger()
    for n in range(KEPT + 10):
        ledger.add(Call("speak", first_byte_s=float(n), attempts=1))
    assert ledger.stats().count == KEPT + 10
    assert ledger.stats().first_byte_s.min == 10


def test_times_are_those_of_the_clock_that_was_given(server: RunningServer) -> None:
    def ticking() -> Iterator[float]:
        yield from (float(n) for n in range(1000))

    ticks = ticking()
    with Client(server.url, clock=lambda: next(ticks), prewarm=False, memory_cache_bytes=0) as client:
        call = client.speak(SHORT).call
    assert call is not None
    assert call.first_byte_s == 1  # two looks at the clock
    assert call.total_s == call.first_byte_s + call.buffer_s
    assert call.synthesis_s is not None


def test_a_stream_s_call_tells_what_came(server: RunningServer, client: Client) -> None:
    with client.stream(LONG) as stream:
        n_bytes = sum(len(piece.audio) for piece in stream)
        assert stream.call.n_bytes == n_bytes
    assert client.stats().first_byte_s.count == 1


def test_prometheus_sees_every_call(faults: FaultServer) -> None:
    registry = CollectorRegistry()
    faults.script = [say(b"12"), refuse(400, "voice_not_found")]
    with Client(faults.url, on_call=prometheus_hook(registry), prewarm=False) as client:
        client.speak("a", format="pcm")
        client.speak("a", format="pcm")
        client.speak_many(["b"])
    seen = {
        outcome: registry.get_sample_value("tutti_client_calls_total", {"kind": "speak", "outcome": outcome})
        for outcome in ("ok", "cached", "voice_not_found")
    }
    assert seen == {"ok": 1, "cached": 1, "voice_not_found": 1}
    assert registry.get_sample_value("tutti_client_connections_total") == 1
    assert registry.get_sample_value("tutti_client_first_byte_seconds_count", {"kind": "speak"}) == 1


def test_the_handler_of_the_requirement_has_its_methods(server: RunningServer) -> None:
    got: list[bytes] = []
    with OptimizedKokoroHandler(server.url, prewarm=False, memory_cache_bytes=0) as handler:
        whole = handler.synthesize_sync(SHORT, use_gpu=True, optimize_for_latency=True)
        assert handler.synthesize_async(SHORT, on_audio_ready=got.append).result(60).data == whole == got[0]
        assert handler.synthesize_batch([SHORT, " "])[0] == whole
        stats = handler.get_performance_stats()
        assert (stats["count"], stats["errors"]) == (3, 0)
        assert stats["first_byte_ms_p95"] >= stats["first_byte_ms_min"]
        handler.reset_performance_stats()
        assert handler.get_performance_stats()["count"] == 0
