"""What a stream loses outside the device, and what admission makes of it."""

from contextlib import ExitStack

import pytest

from tests.batching.fakes import new_job, new_scheduler
from tutti.admission.loop_budget import TURNS, LoopBudget
from tutti.admission.start_delay import StartDelay
from tutti.errors import QueueFull


@pytest.mark.parametrize("n_texts", [20, 100])
def test_a_new_stream_waits_for_all_texts_before_it(n_texts: int) -> None:
    now = 0.0
    delay = StartDelay(LoopBudget(), lambda: now)
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
    delay = StartDelay(LoopBudget(), lambda: now)
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
    delay = StartDelay(LoopBudget(), lambda: now)
    with delay.reading():
        now += 5.0
        assert delay.seconds == 0.0


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
    budget, now = LoopBudget(), 0.0
    delay = StartDelay(budget, lambda: now)
    budget.record_delay(0.08)
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(delay.reading())
        now = 0.7
        assert delay.seconds >= 0.7 + delay.after_reading_s
        assert 0.0 < delay.after_reading_s == pytest.approx(TURNS * 0.08 / 8)
