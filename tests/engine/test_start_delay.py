"""What a stream loses outside the device, and what admission makes of it."""

import asyncio
import time
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batching.fakes import new_job, new_scheduler
from tutti.engine.start_delay import INTERVAL_S, TURNS, StartDelay
from tutti.errors import QueueFull


@given(st.lists(st.floats(0.0, 2.0), min_size=1))
def test_a_stall_is_seen_at_once_counts_once_and_is_forgotten(delays: list[float]) -> None:
    delay = StartDelay()
    for delay_s in delays:
        before_s = delay.seconds
        delay.record_loop(delay_s)
        assert delay.seconds >= 0.99 * delay_s or delay_s < 0.01
        assert delay.seconds <= before_s + delay_s + 1e-9
    for _ in range(300):
        delay.record_loop(0.0)
    assert delay.seconds == pytest.approx(0.0, abs=1e-6)


def test_a_loop_that_is_always_late_delays_every_turn_of_a_stream() -> None:
    delay = StartDelay()
    for _ in range(100):
        delay.record_loop(0.05)
    assert delay.seconds == pytest.approx(TURNS * 0.05, rel=0.01)


@pytest.mark.parametrize("n_texts", [20, 100])
def test_a_new_stream_waits_for_all_texts_before_it(n_texts: int) -> None:
    now = 0.0
    delay = StartDelay(lambda: now)
    with ExitStack() as stack:
        for _ in range(n_texts):
            stack.enter_context(delay.reading())
        for _ in range(300):  # answers; each stream asks for its next chunk at once
            with delay.reading():
                now += 0.01
        assert delay.seconds == pytest.approx(n_texts * 0.01, rel=0.05)
        now += 60.0
        assert delay.seconds >= 60.0, "the front end hangs"
    assert delay.seconds == 0.0


def test_chunks_that_were_made_together_are_one_answer() -> None:
    now = 0.0
    delay = StartDelay(lambda: now)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(delay.reading())
        for _ in range(300):
            with delay.reading():
                now += 0.01
            for _ in range(3):
                with delay.reading():
                    pass
        assert delay.seconds == pytest.approx(0.2, rel=0.05)


def test_one_slow_text_delays_nobody_else() -> None:
    now = 0.0
    delay = StartDelay(lambda: now)
    with delay.reading():
        now += 5.0
        assert delay.seconds == 0.0


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
    job = new_job(100, 0.2, "first")
    scheduler.admit(job, 0.0, delay_s=0.5)
    assert job.starts_late
    with pytest.raises(QueueFull):
        scheduler.admit(new_job(100, 0.2, "first"), 0.0, delay_s=3.0)
    assert scheduler.predicted_wait_s("kokoro", "first", 0.2, 0.0, delay_s=3.0) >= 3.0


def test_what_a_stream_loses_beside_the_device_costs_others_nothing() -> None:
    scheduler = new_scheduler(max_start_s=2.0)
    while scheduler.backlog_s(0.0) < 0.6:
        scheduler.add(new_job(100, 1.6), 0.0)
    job = new_job(100, 1.5, "first")
    scheduler.admit(job, 0.0, delay_s=0.6)
    assert not job.starts_late


def test_a_stream_whose_text_was_read_does_not_wait_for_the_texts_of_others() -> None:
    delay, now = StartDelay(clock=lambda: now), 0.0
    delay.record_loop(0.08)
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(delay.reading())
        now = 0.7
        assert delay.seconds >= 0.7 + delay.after_reading_s
        assert 0.0 < delay.after_reading_s == pytest.approx(TURNS * 0.08 / 8)
