"""The policy may change at any time: no job is lost, doubled, starved or given the samples of another."""

import asyncio
from collections.abc import Sequence
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.batching.test_scheduler_laws import CAP_S, Laws
from tests.examples import examples
from tests.fakes import silent_voices, tone_engine
from tutti.batching.job import Job, Key
from tutti.batching.layout import Layout, Regrouped, SideBySide
from tutti.batching.policies import Bypass, Deadline, Fifo, Window
from tutti.engine.engine import Engine
from tutti.engine.stats import PolicyChanged
from tutti.errors import InvalidInput
from tutti.model.buckets import PLANS
from tutti.plan.simulation import Padded
from tutti.speech import SpeechParams

NEVER_S = 1e6
POLICIES = (Deadline(CAP_S), Fifo(), Window(max_wait_s=0.05, early_rows=5), Bypass(max_wait_s=0.05, early_rows=5))
WORDS = ("deep", "water", "runs", "still", "under", "the", "old", "bridge", "tonight", "and", "stands")
TEXTS = [" ".join(WORDS[i % 7 : i % 7 + 4]) + ". " + WORDS[i % 11] * (1 + i % 3) + "." for i in range(24)]


class ChangingPolicy(Laws):
    """The laws of the scheduler, with the policy changing in between."""

    policy, eager = Deadline(CAP_S), True

    @rule(policy=st.sampled_from(POLICIES))
    def change_policy(self, policy: Deadline | Fifo | Window | Bypass) -> None:
        self.policy = policy  # type: ignore[misc]
        self.eager = not isinstance(policy, Window)  # type: ignore[misc]
        self.scheduler.use(policy, self.now)


@pytest.mark.parametrize("layout", [Padded(), SideBySide(4)], ids=["padded", "side by side"])
def test_the_laws_hold_whatever_the_policy_becomes(layout: Padded | SideBySide) -> None:
    run_state_machine_as_test(
        type("LawsOfChange", (ChangingPolicy,), {"layout": layout}),
        settings=settings(max_examples=examples(40), stateful_step_count=50, deadline=None),
    )


def test_under_load_every_request_gets_its_own_samples_once(tmp_path: Path) -> None:
    async def alone(engine: Engine) -> list[np.ndarray]:
        return [(await engine.speak(text, SpeechParams("af_heart"))).samples for text in TEXTS]

    async def with_changes(engine: Engine) -> list[np.ndarray]:
        speaking = asyncio.gather(*(engine.speak(text, SpeechParams("af_heart")) for text in TEXTS))
        for policy in cycle(engine.monitor.policies):
            if speaking.done():
                break
            engine.monitor.use(policy)
            await asyncio.sleep(0.001)  # let some batches go by
        return [speech.samples for speech in await speaking]

    async def run() -> tuple[list[np.ndarray], list[np.ndarray], Engine]:
        voices = silent_voices(tmp_path)
        async with tone_engine(voices) as engine:
            expected = await alone(engine)
        async with tone_engine(voices, max_wait_ms=5) as engine:
            return expected, await with_changes(engine), engine

    expected, got, engine = asyncio.run(run())
    for text, own, samples in zip(TEXTS, expected, got, strict=True):
        assert np.array_equal(own, samples), text
    changes = [event for event in engine.batch_stats.events.since(0) if isinstance(event, PolicyChanged)]
    assert changes
    assert all(one.policy == then.before for one, then in pairwise(changes))
    outcomes = engine.stats()["performance"]["outcomes"]
    assert outcomes.keys() <= {"spoken", "underrun"}, "no row was lost or ran again"


def test_jobs_that_wait_for_a_window_run_at_once_when_the_window_is_gone(tmp_path: Path) -> None:
    """A timer of the old policy does not delay them."""

    async def run() -> None:
        async with tone_engine(silent_voices(tmp_path)) as engine:
            engine.batchers[0].use(Window(max_wait_s=NEVER_S, min_wait_s=NEVER_S))
            speaking = asyncio.create_task(engine.speak("deep water", SpeechParams("af_heart")))
            while not sum(engine.batchers[0].scheduler.waiting().values()):
                await asyncio.sleep(0)
            for _ in range(100):  # until the loop has looked, and sleeps again
                await asyncio.sleep(0)
            engine.monitor.use("deadline")
            await asyncio.wait_for(speaking, 60)

    asyncio.run(run())


def test_an_unknown_policy_changes_nothing_and_is_named(tmp_path: Path) -> None:
    engine = tone_engine(silent_voices(tmp_path))
    with pytest.raises(InvalidInput, match="available: deadline, fifo, window, bypass") as error:
        engine.monitor.use("magic")
    assert error.value.param == "policy"
    assert engine.monitor.policy == "deadline"


def test_queues_count_each_priority_and_list_the_oldest_first(tmp_path: Path) -> None:
    engine = tone_engine(silent_voices(tmp_path))
    scheduler = engine.batchers[0].scheduler
    for n in range(60):
        priority = ("first", "next", "bulk")[n % 3]
        key = Key("kokoro", "vocoder" if n >= 50 else "acoustic")
        scheduler.add(Job(key, n, priority, 10, 1e9, caller=f"caller {n % 2}", arrived_s=float(n)), float(n))  # type: ignore[arg-type]
    queues = engine.monitor.queues()
    assert [sum(queues[stage].n_by_priority.values()) for stage in ("acoustic", "vocoder")] == [50, 10]
    assert [job.stream for job in queues["acoustic"].oldest] == list(range(40))
    assert [job.stream for job in queues["vocoder"].oldest] == list(range(50, 60))
    assert engine.monitor.has_other_callers("caller 0")
    batch = scheduler.next_batch(60.0)
    assert batch is not None
    while scheduler.queues and (waiting := [job for queue in scheduler.queues for job in queue]):
        for job in waiting:
            scheduler.cancel(job)
    assert engine.monitor.has_other_callers("nobody"), "a running job counts as well"
    scheduler.finished(batch, 0.1, 61.0)
    assert not engine.monitor.has_other_callers("nobody")


@pytest.mark.parametrize(
    "layout",
    [
        Padded(lambda n: -(-n // 32) * 32),
        SideBySide(2),
        Regrouped(lambda sizes: PLANS["full"].frames.group(sizes, 120_000)),
        Regrouped(lambda sizes: PLANS["cpu"].tokens.group(sizes, 500)),
    ],
    ids=["padded", "side by side", "regrouped", "regrouped small"],
)
@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=20))
def test_every_row_fits_in_its_length_and_all_lengths_in_the_pass(layout: Layout, sizes: Sequence[int]) -> None:
    lengths = layout.padded_lengths(sizes)
    assert len(lengths) == len(sizes)
    assert all(length >= size for size, length in zip(sizes, lengths, strict=True))
    assert sum(lengths) <= layout.padded_size(sizes)
