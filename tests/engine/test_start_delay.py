"""What a stream loses outside the device, and what admission makes of it."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batching.fakes import new_job, new_scheduler
from tutti.engine.start_delay import INTERVAL_S, StartDelay
from tutti.errors import QueueFull


@given(st.lists(st.floats(0.0, 2.0), min_size=1))
def test_a_stall_is_seen_at_once_and_forgotten_later(delays: list[float]) -> None:
    delay = StartDelay()
    for delay_s in delays:
        delay.record_loop(delay_s)
        assert delay.seconds >= delay_s or delay_s < 0.01
    for _ in range(100):
        delay.record_loop(0.0)
    assert delay.seconds == pytest.approx(0.0, abs=1e-6)


def test_slow_texts_count_until_they_are_past() -> None:
    delay = StartDelay()
    delay.record_text(1.5)
    delay.record_text(0.1)
    assert delay.seconds == 1.5
    for _ in range(100):
        delay.record_loop(0.0)
    assert delay.seconds == pytest.approx(0.0, abs=1e-6)


def test_it_measures_a_blocked_loop() -> None:
    async def scenario() -> float:
        delay = StartDelay()
        delay.start()
        await asyncio.sleep(0)
        time.sleep(3 * INTERVAL_S)
        while not delay.seconds:
            await asyncio.sleep(0)
        delay.stop()
        return delay.seconds

    assert asyncio.run(scenario()) > INTERVAL_S


def test_a_busy_event_loop_makes_streams_late() -> None:
    scheduler = new_scheduler(max_start_s=2.0)
    scheduler.start_delay_s = 0.5
    job = new_job(100, 0.2, "first")
    scheduler.admit(job, 0.0)
    assert job.starts_late
    scheduler.start_delay_s = 3.0
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(100, 0.2, "first"), 0.0)
    assert scheduler.predicted_wait_s("kokoro", "first", 0.2, 0.0) >= 3.0
