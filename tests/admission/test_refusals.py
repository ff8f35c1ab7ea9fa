"""What was refused a moment ago is refused again without being judged, in all processes of a server."""

import multiprocessing
from multiprocessing.connection import Connection

import pytest

from tests.batching.fakes import new_job
from tutti.admission.refusals import PLACES, REFUSAL_S, Asking, Refusals
from tutti.batching.cost import CostModel
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.errors import QueueFull
from tutti.plan.simulation import Padded

FULL = QueueFull("the audio could not be ready in time; try again later", retry_after_s=2.5)


def scheduler_with(refusals: Refusals) -> Scheduler:
    cost = CostModel(Padded(), (0.01, 0.0, 2e-5, 0.0))
    return Scheduler(Limits(max_start_s=0.0), lambda key: cost, Deadline(0.08), refusals)


def test_a_refusal_is_known_for_a_moment_as_it_was() -> None:
    refusals = Refusals()
    assert refusals.known(Asking("kokoro", "a"), 0.0) is None
    refusals.keep(FULL, Asking("kokoro", None), 0.0)
    known = refusals.known(Asking("kokoro", "a"), 0.99 * REFUSAL_S)
    assert known is not None
    assert vars(known) == vars(FULL)
    assert refusals.known(Asking("kokoro", "a"), REFUSAL_S) is None


def test_a_refusal_of_one_caller_or_model_is_not_said_to_others() -> None:
    refusals = Refusals()
    refusals.keep(FULL, Asking("kokoro", "a"), 0.0)
    refusals.keep(FULL, Asking("kokoro-int8", None), 0.0)
    callers = [f"{n}" for n in range(4 * PLACES)]
    assert not any(refusals.known(Asking("kokoro", caller), 0.0) for caller in (*callers, ""))
    assert refusals.known(Asking("kokoro", "a"), 0.0)
    assert all(refusals.known(Asking("kokoro-int8", caller), 0.0) for caller in callers)


def test_callers_at_the_same_place_take_it_from_each_other() -> None:
    refusals = Refusals()
    for n in range(4 * PLACES):
        refusals.keep(FULL, Asking("kokoro", f"{n}"), 0.0)
    n_known = sum(refusals.known(Asking("kokoro", f"{n}"), 0.0) is not None for n in range(4 * PLACES))
    assert PLACES / 2 < n_known <= PLACES


def test_a_long_message_is_cut() -> None:
    refusals = Refusals()
    refusals.keep(QueueFull("x" * 1000, retry_after_s=1), Asking("kokoro", None), 0.0)
    known = refusals.known(Asking("kokoro", "a"), 0.0)
    assert known is not None
    assert known.message.strip("x") == ""


def ask(refusals: Refusals, end: Connection) -> None:
    """Answer with what is known, for each time that is sent."""
    while (now := end.recv()) is not None:
        end.send(refusals.known(Asking("kokoro", "a"), now))


@pytest.mark.process
def test_another_process_sees_each_refusal_at_once() -> None:
    refusals, context = Refusals(), multiprocessing.get_context("spawn")
    refusals.share()
    here, there = context.Pipe()
    child = context.Process(target=ask, args=(refusals, there))
    child.start()
    for now in (0.0, 1.0):
        here.send(now)
        assert here.recv() is None
        refusals.keep(FULL, Asking("kokoro", None), now)
        here.send(now)
        assert vars(here.recv()) == vars(FULL)
    here.send(None)
    child.join()


def test_what_is_said_to_a_caller_that_fills_the_device_is_not_said_to_others() -> None:
    refusals, now = Refusals(), 100.0
    scheduler = scheduler_with(refusals)
    for _ in range(60):
        job = new_job(100, now + 0.3, caller="busy")
        scheduler.streams.opened(job.stream, "busy")
        scheduler.add(job, now)
    with pytest.raises(QueueFull):
        scheduler.check_wait(Asking("kokoro", "busy"), 0.2, now)
    assert refusals.known(Asking("kokoro", "busy"), now)
    assert refusals.known(Asking("kokoro", "new"), now) is None
    scheduler.check_wait(Asking("kokoro", "new"), 0.2, now)


def test_what_would_be_said_to_any_caller_is_said_to_all_by_all_workers() -> None:
    refusals = Refusals()
    with pytest.raises(QueueFull) as refused:
        scheduler_with(refusals).check_wait(Asking("kokoro", "a"), 0.2, 0.0, delay_s=3.0)
    with pytest.raises(QueueFull) as again:
        scheduler_with(refusals).check_wait(Asking("kokoro", "b"), 0.2, REFUSAL_S / 2)
    assert vars(again.value) == vars(refused.value)
    scheduler_with(refusals).check_wait(Asking("kokoro", "b", 5.0), 0.2, REFUSAL_S / 2)  # it says how long it waits
    scheduler_with(refusals).check_wait(Asking("kokoro", "b"), 0.2, 2 * REFUSAL_S)
