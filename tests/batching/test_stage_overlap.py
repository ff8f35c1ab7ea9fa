"""Decisions where stages overlap: each has its own batches, and an acoustic one ends when the vocoder becomes free."""

from math import inf

import pytest

from tests.batching.fakes import CAP_S, new_job, new_scheduler
from tutti.batching.job import Job, Key
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import BESIDE, SENTENCE, Scheduler

ACOUSTIC, VOCODER = Key("kokoro", "acoustic"), Key("kokoro", "vocoder")
COST = (0.01, 0.001, 0.0, 0.0)  # a pass takes 10 ms, a row adds 1 ms


def scheduler(max_rows: int = 8) -> Scheduler:
    return new_scheduler(Deadline(CAP_S, can_prefetch=True), cost=COST, max_rows=max_rows)


def add(scheduler: Scheduler, n: int, key: Key, deadline_s: float = 1e6) -> list[Job]:
    jobs = [new_job(SENTENCE[key.stage], deadline_s, key=key) for _ in range(n)]
    for job in jobs:
        job.later_s = 0.001 if key is ACOUSTIC else 0.0
        scheduler.add(job, 0.0)
    return jobs


def test_each_stage_has_its_own_batches_and_its_own_time() -> None:
    device = scheduler()
    texts, sounds = add(device, 3, ACOUSTIC, deadline_s=1.0), add(device, 5, VOCODER)
    vocoder = device.next_batch(0.0, stage="vocoder")
    acoustic = device.next_batch(0.0, stage="acoustic")
    assert vocoder is not None
    assert acoustic is not None
    assert (vocoder.jobs, acoustic.jobs) == (tuple(sounds), tuple(texts))
    assert device.free_at(0.0, "vocoder") == pytest.approx(0.015)
    assert device.free_at(0.0, "acoustic") == pytest.approx(0.013)
    assert device.free_at(0.0) == pytest.approx(0.015)
    device.ended(vocoder)
    assert device.free_at(0.0) == pytest.approx(0.013)


def test_an_acoustic_batch_starts_so_that_it_ends_when_the_vocoder_is_free() -> None:
    device = scheduler()
    add(device, 8, VOCODER)
    assert device.start_beside_s("acoustic", 0.0) == inf
    assert device.next_batch(0.0, stage="vocoder") is not None
    add(device, 1, ACOUSTIC)
    one = device.start_beside_s("acoustic", 0.0)
    assert one == pytest.approx(0.018 - BESIDE * 0.011)
    add(device, 3, ACOUSTIC)
    assert device.start_beside_s("acoustic", 0.0) == pytest.approx(one - BESIDE * 0.003)
    add(device, 4, ACOUSTIC)
    assert device.start_beside_s("acoustic", 0.0) == 0.0, "a full batch has nothing to wait for"


def test_a_vocoder_batch_starts_beside_an_acoustic_one_at_once() -> None:
    device = scheduler()
    add(device, 8, ACOUSTIC)
    assert device.next_batch(0.0, stage="acoustic") is not None
    assert device.start_beside_s("vocoder", 0.0) == inf
    add(device, 1, VOCODER)
    assert device.start_beside_s("vocoder", 0.002) == 0.002


@pytest.mark.parametrize(("n_texts", "waits"), [(2, True), (8, False)])
def test_the_next_vocoder_batch_waits_for_more_urgent_rows_that_come_in_time(n_texts: int, waits: bool) -> None:
    """The acoustic batch ends before the vocoder is free, or after."""
    device = scheduler()
    add(device, 5, VOCODER)
    assert device.next_batch(0.0, stage="vocoder") is not None
    add(device, n_texts, ACOUSTIC, deadline_s=1.0)
    acoustic = device.next_batch(0.0, stage="acoustic")
    assert acoustic is not None
    add(device, 8, VOCODER)
    batch = device.next_batch(0.01, prefetch=True, stage="vocoder")
    assert (batch is None) == waits
    if waits:
        device.ended(acoustic)
        assert device.next_batch(0.01, prefetch=True, stage="vocoder") is not None


@pytest.mark.parametrize(
    ("n_sounds", "n_texts", "at_s", "is_sent"),
    [
        (8, 0, 0.001, True),  # full
        (1, 0, 0.001, False),  # an acoustic batch of 11 ms may come and end before the vocoder, after 15 ms
        (1, 0, 0.005, True),  # not any more
        (1, 8, 0.005, True),  # one runs, but ends later
        (1, 2, 0.005, False),  # one runs, and ends before
        (8, 2, 0.005, True),  # it is less urgent than the rows that wait, which fill a batch
    ],
)
def test_the_next_vocoder_batch_is_sent_ahead_if_it_is_full_or_no_row_can_come_in_time(
    n_sounds: int, n_texts: int, at_s: float, is_sent: bool
) -> None:
    device = scheduler()
    add(device, 5, VOCODER)
    assert device.next_batch(0.0, stage="vocoder") is not None
    assert device.predict(ACOUSTIC, SENTENCE["acoustic"]) == pytest.approx(0.011)
    add(device, n_texts, ACOUSTIC)
    device.next_batch(0.0, stage="acoustic")
    add(device, n_sounds, VOCODER, deadline_s=1.0)
    batch = device.next_batch(at_s, prefetch=True, stage="vocoder")
    assert (batch is not None) == is_sent


def test_jobs_need_less_of_a_device_that_runs_two_batches_at_once_but_take_as_long() -> None:
    """Charged is the share of the device; learned is what batches really take."""
    alone, shared = scheduler(), scheduler()
    for device, share in ((alone, 1.0), (shared, 0.5)):
        for _ in range(300):
            add(device, 8, VOCODER)
            batch = device.next_batch(0.0)
            assert batch is not None
            device.finished(batch, 0.018, 0.0, share)
        add(device, 8, VOCODER)
    assert shared.predict(VOCODER, 174) == pytest.approx(alone.predict(VOCODER, 174))
    assert shared.backlog_s(0.0) == pytest.approx(alone.backlog_s(0.0) / 2, rel=0.02)
