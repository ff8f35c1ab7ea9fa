"""What a balancer or a scaler asks one engine: how long a new request would wait, and how busy the devices are."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batching.fakes import first_job, new_scheduler
from tests.fakes import HEART, GatedModel, tone_engine
from tutti.admission.ticket import DELIVERIES, Delivery, Ticket
from tutti.engine import batcher
from tutti.engine.device import BusyShare
from tutti.engine.engine import Engine
from tutti.engine.playback import chunk_pace
from tutti.engine.request import StreamRequest
from tutti.text.chunk import ChunkPace
from tutti.voices import Voices

TEXT = "The old bridge stands still under the water tonight."


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def waits(engine: Engine) -> dict[Delivery, float]:
    return {delivery: engine.predicted_wait_s(delivery) for delivery in DELIVERIES}


async def queue(engine: Engine, delivery: Delivery, n: int) -> list[asyncio.Task[None]]:
    """Send so many requests, and return when all of them wait or run."""

    async def speak() -> None:
        async for _ in engine.stream(StreamRequest(TEXT, HEART, Ticket(delivery=delivery))):
            pass

    def n_jobs() -> int:
        return sum(len(batcher._rows) for batcher in engine.batchers)

    n_before = n_jobs()
    tasks = [asyncio.create_task(speak()) for _ in range(n)]
    await until(lambda: n_jobs() >= n_before + n)
    return tasks


def test_a_wait_counts_what_goes_before_and_nothing_else(voices: Voices) -> None:
    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model, capped=True) as engine:
            with model.gate.closed():
                running = await queue(engine, "bulk", 1)
                await until(lambda: model.gate.n_arrived == 1)
                # The predicted time of the running batch passes; what a stream loses beside the device is forgotten.
                await until(lambda: engine.predicted_wait_s("live") < 0.02)
                bulk = await queue(engine, "bulk", 8)
                behind_bulk = waits(engine)
                assert behind_bulk["live"] < 0.1 * behind_bulk["bulk"], "bulk never delays a stream"
                assert behind_bulk["whole"] < 0.1 * behind_bulk["bulk"]
                whole = await queue(engine, "whole", 3)
                behind_whole = waits(engine)
                assert behind_whole["live"] < 0.1 * behind_whole["whole"], "a whole answer is due later than a stream"
                assert behind_whole["bulk"] > behind_bulk["bulk"]
                live = await queue(engine, "live", 2)
                behind_all = waits(engine)
                assert all(behind_all[name] > behind_whole[name] for name in DELIVERIES)
                assert behind_all["live"] < behind_all["whole"] < behind_all["bulk"]
            await asyncio.gather(*running, *bulk, *whole, *live)
            await until(lambda: max(waits(engine).values()) < 0.02)

    asyncio.run(run())


@pytest.mark.parametrize(("due_s", "starts_late"), [(100.0, False), (0.2, True)])
def test_a_stream_that_would_start_late_waits_for_all_that_was_accepted(due_s: float, starts_late: bool) -> None:
    scheduler = new_scheduler(max_start_s=60.0)
    for _ in range(20):
        scheduler.add(first_job(scheduler, 0.5, due_s), 0.0)
    wait_s = scheduler.predicted_wait_s("kokoro", "first", 0.1, 0.0)
    assert wait_s == pytest.approx(1.3 * scheduler.backlog_s(0.0) if starts_late else 0.0)
    assert scheduler.predicted_wait_s("kokoro", "first", 1000.0, 0.0) == pytest.approx(1.3 * scheduler.backlog_s(0.0))


def test_the_least_loaded_worker_tells_the_wait(voices: Voices) -> None:
    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model, n_workers=2) as engine:
            with model.gate.closed():
                tasks = [task for _ in range(7) for task in await queue(engine, "bulk", 1)]
                waits_s = sorted(batcher.predicted_wait_s("kokoro", "bulk", 60.0) for batcher in engine.batchers)
                assert waits_s[0] < 0.9 * waits_s[1]
                assert engine.predicted_wait_s("bulk") == pytest.approx(waits_s[0], abs=0.01)
            await asyncio.gather(*tasks)

    asyncio.run(run())


def test_streams_that_arrive_together_are_shared_between_the_workers(voices: Voices) -> None:
    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model, n_workers=2) as engine:
            with model.gate.closed():
                tasks = await queue(engine, "whole", 8)
                assert [len(each._rows) for each in engine.batchers] == [4, 4]
                left = asyncio.create_task(anext(engine.stream(StreamRequest(TEXT, HEART))))
                await asyncio.sleep(0)
                left.cancel()
                await asyncio.gather(left, return_exceptions=True)
            await asyncio.gather(*tasks)
            assert [each.start_delay.n_starting for each in engine.batchers] == [0, 0]

    asyncio.run(run())


def test_streams_that_arrive_together_know_who_is_before_them(voices: Voices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chooses its first chunk before the ones before it have queued theirs."""
    n_before: list[int] = []

    def recorded(*args: Any, **options: Any) -> ChunkPace:
        n_before.append(args[5])
        return chunk_pace(*args, **options)

    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model) as engine:
            with model.gate.closed():
                tasks = await queue(engine, "live", 4)
                tasks += await queue(engine, "live", 1)
            await asyncio.gather(*tasks)

    monkeypatch.setattr(batcher, "chunk_pace", recorded)
    asyncio.run(run())
    assert n_before == [0, 1, 2, 3, 0]


def test_the_busy_ratio_is_the_mean_over_the_workers(voices: Voices) -> None:
    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model, n_workers=2) as engine:
            await asyncio.sleep(0)
            assert engine.busy_ratio() == 0.0
            with model.gate.closed():
                held = await queue(engine, "live", 1)
                await until(lambda: engine.busy_ratio() > 0.05)
                ratios = sorted(batcher.busy_ratio for batcher in engine.batchers)
                assert ratios[0] == 0.0, "one worker has nothing to do"
                assert engine.busy_ratio() == pytest.approx(ratios[1] / 2, rel=0.1)
                assert engine.busy_ratio() <= 0.5
            await asyncio.gather(*held)
            highest = engine.busy_ratio()
            await until(lambda: engine.busy_ratio() < 0.9 * highest)

    asyncio.run(run())


def test_the_gauges_say_what_the_engine_says(voices: Voices) -> None:
    def gauge(engine: Engine, name: str, kind: str = "") -> float:
        value = engine.batch_stats.metrics.registry.get_sample_value(name, {"class": kind} if kind else {})
        assert value is not None, name
        return value

    def said_by(engine: Engine) -> dict[tuple[str, ...], float]:
        waits = {("tutti_predicted_wait_seconds", each): engine.predicted_wait_s(each) for each in DELIVERIES}
        return waits | {
            ("tutti_busy_ratio",): engine.busy_ratio(),
            ("tutti_backlog_seconds",): engine.monitor.backlog_s(),
        }

    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model, n_workers=2) as engine:
            with model.gate.closed():
                tasks = [task for _ in range(12) for task in await queue(engine, "bulk", 1)]
                await until(lambda: model.gate.n_arrived == 2)
                before = said_by(engine)
                engine.monitor.refresh_gauges()
                for name, values in zip(
                    before, zip(before.values(), said_by(engine).values(), strict=True), strict=True
                ):
                    # Both change with the time that passes in between.
                    assert min(values) - 1e-6 <= gauge(engine, *name) <= max(values) + 1e-6, name
                assert gauge(engine, "tutti_busy_ratio") != 0.0
                assert gauge(engine, "tutti_queue_jobs", "bulk") == 10, "of both workers together"
            await asyncio.gather(*tasks)

    asyncio.run(run())


@given(st.lists(st.tuples(st.floats(0.001, 20), st.booleans()), min_size=1, max_size=30), st.floats(0.001, 20))
def test_a_busy_share_lies_between_never_and_always(changes: list[tuple[float, bool]], last_s: float) -> None:
    share, now = BusyShare(10.0, 100.0), 100.0
    states = {False}
    for after_s, busy in changes:
        now += after_s
        share.set(now, busy=busy)
        states.add(busy)
    ratio = share.ratio(now + last_s)
    assert 0.0 <= ratio <= 1.0
    if states == {False}:
        assert ratio == 0.0
    assert share.ratio(now + last_s) == pytest.approx(ratio), "asking changes nothing"
    if changes[-1][1]:
        assert share.ratio(now + last_s + 1.0) >= ratio, "what runs now counts"
        assert share.ratio(now + 1000.0) == pytest.approx(1.0)
    else:
        assert share.ratio(now + 1000.0) == pytest.approx(0.0, abs=1e-6)


@given(st.floats(0.05, 0.95))
def test_a_busy_share_is_the_share_of_time(part: float) -> None:
    share, now = BusyShare(10.0, 0.0), 0.0
    for _ in range(2000):
        share.set(now, busy=True)
        share.set(now + 0.01 * part, busy=False)
        now += 0.01
    assert share.ratio(now) == pytest.approx(part, abs=0.01)
