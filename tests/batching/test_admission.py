"""Whose needs count at the door, and whose can be set aside for somebody who sits in silence."""

from itertools import count
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.batching.admission import AdmissionControl
from tutti.batching.job import Job, Key, Priority
from tutti.errors import QueueFull

NOW = 100.0
streams = count(1)


def job(due_s: float, *, stream: int | None = None, kind: Priority = "next", then_s: float = 0.0) -> Job:
    return Job(Key("kokoro", "vocoder"), stream or next(streams), kind, 100, due_s, then_s)


def with_needs(*needs: tuple[Job, float]) -> AdmissionControl:
    door = AdmissionControl(max_waiting=100)
    for one, seconds in needs:
        door.came(one, seconds, 0.0, owes_s=0.0)
    return door


def lets_in(door: AdmissionControl, due_s: float, owes_s: float) -> bool:
    try:
        door.admit("first", 0.01, due_s, due_s, owes_s, NOW, NOW, waiting=1, bulk=0, stream=None)
    except QueueFull:
        return False
    return True


def test_the_device_is_not_spared_where_somebody_else_would_become_late() -> None:
    tight = with_needs((job(NOW + 1.0), 0.5))
    assert tight.spares(0.2, stream=-1, now=NOW)
    assert not tight.spares(0.6, stream=-1, now=NOW)


def test_who_waits_behind_somebody_else_counts_with_all_before() -> None:
    door = with_needs(*[(job(NOW + 2.0 + 0.01 * n), 0.15) for n in range(10)])
    assert door.spares(0.1, stream=-1, now=NOW)
    assert not door.spares(0.6, stream=-1, now=NOW)


def test_a_silent_stream_is_not_held_up_by_its_own_next_chunks() -> None:
    door = with_needs((job(NOW + 0.1, stream=7), 0.5), (job(NOW + 5.0), 0.5))
    assert door.spares(0.6, stream=7, now=NOW)
    assert not door.spares(0.6, stream=8, now=NOW)


@given(st.lists(st.tuples(st.floats(1e-3, 1.0), st.floats(1e-3, 30.0)), max_size=200))
def test_where_nobody_waits_the_door_is_open_however_badly_batches_went(batches: list[tuple[float, float]]) -> None:
    """Else nothing would run any more, and nothing better would be learned."""
    door = with_needs()
    for needed_s, took_s in batches:
        door.took(needed_s, took_s)
    assert lets_in(door, NOW + 0.02, 0.0)


def test_nobody_waits_for_those_who_are_late_already() -> None:
    late = with_needs(*[(job(NOW - 1.0), 0.5) for _ in range(10)], (job(NOW + 1.0), 0.1))
    assert late.spares(0.5, stream=-1, now=NOW)


def test_somebody_who_is_late_anyway_does_not_shut_the_door() -> None:
    # Its caller owes so much that it stands behind the newcomer, who owes a little as well.
    for due_s, open_ in ((NOW - 0.1, True), (NOW + 0.1, False)):
        door = AdmissionControl(max_waiting=100)
        door.came(job(due_s), 0.5, 0.0, owes_s=5.0)
        assert lets_in(door, NOW + 2.0, owes_s=1.0) is open_


@given(st.lists(st.tuples(st.floats(0.0, 5.0) | st.just(inf), st.floats(0.001, 0.5), st.floats(0.0, 0.5)), max_size=20))
def test_what_is_needed_is_the_sum_of_what_is_still_to_come(jobs: list[tuple[float, float, float]]) -> None:
    door = AdmissionControl(max_waiting=100)
    there = [(job(NOW + due_s, then_s=then_s), need_s, then_s) for due_s, need_s, then_s in jobs]
    for one, need_s, then_s in there:
        door.came(one, need_s, then_s, owes_s=0.0)
    assert door.needed_s == pytest.approx(sum(need_s + then_s for _, need_s, then_s in there))
    for one, _, _ in there:
        door.runs(one)
    assert door.needed_s == pytest.approx(sum(then_s for *_, then_s in there))
    for one, _, _ in there:
        door.left(one)
    assert door.needed_s == pytest.approx(0.0)
