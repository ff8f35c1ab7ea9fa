"""Refused callers learn when to come back, each at another moment, and from which errors a balancer tries elsewhere."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tutti.server.audio_memory
import tutti.server.front.limits
import tutti.server.front.protocol
from tests.fakes import FakeEngine, make_fake_engine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.admission.loop_budget import LoopBudget
from tutti.client.errors import parse_error_response
from tutti.errors import Draining, QueueFull, ReplicaFull, TuttiError
from tutti.server.errors import NEVER_RETRY, OBEYED_S, RateLimited, error_headers, error_response, retry_headers
from tutti.server.service import Service
from tutti.settings import Settings

MODULES = (tutti.server.audio_memory, tutti.server.front.limits, tutti.server.front.protocol)  # that define errors


def kinds(kind: type[TuttiError] = TuttiError) -> Iterator[type[TuttiError]]:
    for below in kind.__subclasses__():
        yield below
        yield from kinds(below)


@given(st.floats(0.1, 1000), st.floats(0, 1), st.floats(0, 1))
def test_nobody_comes_back_early_or_together(after_s: float, one: float, other: float) -> None:
    first, second = retry_headers(after_s, one), retry_headers(after_s, other)
    for headers in (first, second):
        after_ms = int(headers["retry-after-ms"])
        assert after_ms >= 1000 * after_s
        assert after_ms <= 1000 * max(1.5 * after_s, after_s + 1) + 1
        assert int(headers["retry-after"]) * 1000 >= after_ms, "whole seconds are rounded up"
        assert int(headers["retry-after"]) >= 1
        if after_s <= OBEYED_S:
            assert int(headers["retry-after"]) <= OBEYED_S, "openai's libraries would ignore it"
    if one < other:
        assert int(first["retry-after-ms"]) <= int(second["retry-after-ms"])
    if after_s < OBEYED_S - 2 and abs(one - other) > 0.01:
        assert first["retry-after-ms"] != second["retry-after-ms"]


def test_callers_that_are_refused_together_are_spread() -> None:
    error = QueueFull("full", retry_after_s=4)
    times = {error_headers(error)["retry-after-ms"] for _ in range(200)}
    assert len(times) > 100
    assert {min(int(time) // 1000, 5) for time in times} == {4, 5}
    assert max(map(int, times)) <= 6001, "half as long again at most, rounded up"


@pytest.mark.parametrize(
    "kind", [kind for kind in kinds() if kind.status in (429, 503)], ids=lambda kind: kind.__name__
)
def test_every_429_and_503_says_when_to_come_back_unless_waiting_does_not_help(kind: type[TuttiError]) -> None:
    times = {"retry_after_s": 2.0} if issubclass(kind, QueueFull | RateLimited) else {}
    headers = error_response(kind("no", **times)).headers
    assert headers["x-error-code"] == kind.code
    if kind.code in NEVER_RETRY:
        assert headers["x-should-retry"] == "false"
        assert "retry-after" not in headers
    else:
        assert headers["x-should-retry"] == "true"
        assert int(headers["retry-after"]) >= 1


def test_the_client_waits_for_the_exact_time() -> None:
    response = error_response(ReplicaFull("full", retry_after_s=3.0))
    parsed = parse_error_response(503, dict(response.headers), bytes(response.body))
    assert isinstance(parsed.error, ReplicaFull)
    assert parsed.may_retry
    assert parsed.retry_after_s == int(response.headers["retry-after-ms"]) / 1000
    assert parse_error_response(503, {"retry-after": "7", "retry-after-ms": "soon"}, b"").retry_after_s == 7


@pytest.fixture(scope="module")
def replica(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder), replica=True, rate_requests=30, cache_mb=0) as running:
        yield running


@pytest.mark.server
@pytest.mark.parametrize("more", [{}, {"stream": False}, {"stream_format": "sse"}], ids=["raw", "whole", "sse"])
def test_a_full_replica_sends_callers_elsewhere(
    server: RunningServer, replica: RunningServer, more: dict[str, object]
) -> None:
    for running, status, code in ((server, 429, "queue_full"), (replica, 503, "replica_full")):
        running.engine.fail_at, running.engine.error = 0, QueueFull("late", retry_after_s=3)
        response = running.speak(**more)
        running.engine.fail_at = None
        assert_error(response, status, code)
        assert response.headers["x-error-code"] == code
        assert 3000 <= int(response.headers["retry-after-ms"]) <= 4500


@pytest.mark.server
def test_only_capacity_is_refused_for_a_replica_and_a_rate_for_all(replica: RunningServer) -> None:
    replica.engine.fail_at, replica.engine.error = 0, Draining("going")
    assert_error(replica.speak(), 503, "draining")
    replica.engine.fail_at = None
    while (refused := replica.speak()).status_code == 200:
        pass
    assert_error(refused, 429, "rate_limited")


@pytest.mark.parametrize(("is_replica", "status"), [(False, 429), (True, 503)])
def test_an_event_loop_that_cannot_keep_up_refuses_in_the_same_way(
    fake_engine: FakeEngine, is_replica: bool, status: int
) -> None:
    async def run() -> None:
        now = 0.0
        service, budget = Service.of(fake_engine, Settings(replica=is_replica)), LoopBudget(lambda: now)
        fake_engine.loop_budget, budget.rule.start_s = budget, 1.0
        waiting = [asyncio.create_task(budget.turn("start")) for _ in range(50)]
        await asyncio.sleep(0)
        now = 10.0
        with pytest.raises(QueueFull) as refused:
            service.check_start("", 0.5, is_patient=False)
        assert refused.value.status == status
        await asyncio.gather(*waiting)

    asyncio.run(run())
