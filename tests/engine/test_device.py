"""Batches that run at the same time share the device: what they are charged adds up to the time that passed."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.stepped import RunnerWorker
from tutti.batching.job import STAGES, Batch, Key, StageName
from tutti.batching.scheduler import PREFETCH_AT
from tutti.engine.device import BatchCall, Device
from tutti.errors import WorkerLost
from tutti.plan.simulation import Padded


def new_call(stage: StageName, result: "asyncio.Future[object] | None" = None, predicted_s: float = 1.0) -> BatchCall:
    return BatchCall(Batch(Key("kokoro", stage), (), "free", predicted_s, Padded(), stage), result)  # type: ignore[arg-type]


def new_device() -> Device:
    return Device(RunnerWorker(), lambda: None, 0.0)


@given(st.lists(st.tuples(st.sampled_from(STAGES), st.floats(0.0, 5.0)), max_size=40))
def test_the_shares_of_all_batches_are_the_time_in_which_one_ran(steps: list[tuple[StageName, float]]) -> None:
    device, now, busy_s, shares_s = new_device(), 100.0, 0.0, 0.0
    for stage, seconds in [*steps, ("acoustic", 1.0), ("vocoder", 1.0)]:
        if stage in device.running:
            batch = device.running[stage]
            share_s = device.end(batch, now)
            took_s = now - batch.started_s
            assert took_s / 2 - 1e-9 <= share_s <= took_s + 1e-9
            shares_s += share_s
        else:
            device.begin(new_call(stage), now)
        now += seconds
        busy_s += seconds if device.running else 0.0
    shares_s += sum(device.end(batch, now) for batch in list(device.running.values()))
    assert shares_s == pytest.approx(busy_s)


def test_when_one_stage_ends_the_next_batch_of_the_other_may_be_formed_again() -> None:
    device, vocoder, acoustic = new_device(), new_call("vocoder", predicted_s=2.0), new_call("acoustic")
    device.begin(vocoder, 10.0)
    device.begin(acoustic, 10.0)
    vocoder.prefetch_s = float("inf")  # tried in vain
    device.end(acoustic, 11.5)
    assert vocoder.prefetch_s == 10.0 + PREFETCH_AT * 2.0


def test_a_good_result_is_applied_before_a_loss() -> None:
    """The worker died after it: its rows must not be taken for lost ones."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        device, lost, good = new_device(), loop.create_future(), loop.create_future()
        device.begin(new_call("vocoder", lost), 1.0)
        device.begin(new_call("acoustic", good), 2.0)
        assert device.ended() == []
        lost.set_exception(WorkerLost("it died"))
        good.set_result([])
        assert [batch.stage for batch in device.ended()] == ["acoustic", "vocoder"]
        lost.exception()

    asyncio.run(run())
