"""Where the model lets stages overlap, acoustic calls run beside the others, and neither harms the other."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worker.fakes import (
    TIMEOUT_S,
    Fault,
    FaultyModels,
    OverlappingWorker,
    expected_samples,
    first_stage,
    row,
    second_stage,
    wait_until,
)
from tutti.errors import ModelFailed, RowsLost, WorkerLost
from tutti.model.protocol import Ran
from tutti.worker.base import PendingCall
from tutti.worker.calls_in_flight import MAX_IN_FLIGHT, CallsInFlight
from tutti.worker.messages import Forget, Run
from tutti.worker.process import ProcessWorker

Scenario = Callable[[ProcessWorker], Awaitable[None]]


def run_scenario(scenario: Scenario, folder: Path) -> None:
    async def run() -> None:
        worker = OverlappingWorker(FaultyModels(folder), backoff_s=lambda _: 0.0)
        await worker.start()
        assert worker.status.stages_overlap
        try:
            await scenario(worker)
        finally:
            (folder / "continue").touch()
            await worker.close()

    asyncio.run(run())


async def hang(worker: ProcessWorker, folder: Path, timeout_s: float = TIMEOUT_S) -> asyncio.Future[Ran]:
    """A call of the vocoder that runs and does not end, of row 1."""
    await worker.run(first_stage([(1, row(Fault.VOCODER_HANGS))]), TIMEOUT_S)
    call = worker.run(second_stage([1]), timeout_s)
    await wait_until((folder / "running").exists)
    (folder / "running").unlink()
    return call


@pytest.mark.process
def test_each_stage_answers_while_the_other_runs(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        vocoder = await hang(worker, tmp_path)
        await worker.run(first_stage([(2, row(5)), (3, row(6))]), TIMEOUT_S)
        with pytest.raises(ModelFailed, match="failed on this row"):
            await worker.run(first_stage([(4, row(Fault.FAILS))]), TIMEOUT_S)
        assert not vocoder.done()
        (tmp_path / "continue").touch()
        np.testing.assert_array_equal((await vocoder).samples[0], expected_samples(row(Fault.VOCODER_HANGS)))
        (tmp_path / "continue").unlink()

        acoustic = worker.run(first_stage([(5, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((tmp_path / "running").exists)
        for id, token in ((2, 5), (3, 6)):
            (samples,) = (await worker.run(second_stage([id]), TIMEOUT_S)).samples
            np.testing.assert_array_equal(samples, expected_samples(row(token)))
        assert not acoustic.done()
        assert worker.status.state == "busy"
        (tmp_path / "continue").touch()
        await acoustic

    run_scenario(scenario, tmp_path)


@pytest.mark.process
def test_a_death_loses_the_running_call_of_each_stage_and_no_other(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        vocoder = await hang(worker, tmp_path)
        acoustic = worker.run(first_stage([(2, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((tmp_path / "running").exists)
        waiting = worker.run(first_stage([(3, row(6))]), TIMEOUT_S)
        no_frames = worker.run(second_stage([1]), TIMEOUT_S)
        await asyncio.sleep(0.05)
        assert worker.pid
        os.kill(worker.pid, signal.SIGKILL)
        for lost in (vocoder, acoustic):
            with pytest.raises(WorkerLost, match="SIGKILL"):
                await lost
        await waiting
        np.testing.assert_array_equal(
            (await worker.run(second_stage([3]), TIMEOUT_S)).samples[0], expected_samples(row(6))
        )
        with pytest.raises(RowsLost):
            await no_frames
        assert worker.status.restarts == 1
        assert worker.status.stages_overlap

    run_scenario(scenario, tmp_path)


@pytest.mark.process
def test_a_stage_that_hangs_is_found_although_the_other_answers(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        pid = worker.pid
        vocoder = await hang(worker, tmp_path, timeout_s=0.2)
        while not vocoder.done():
            try:
                await worker.run(first_stage([(2, row(5))]), TIMEOUT_S)
            except WorkerLost:  # it ran when the process was killed
                break
        with pytest.raises(WorkerLost, match="hangs"):
            await vocoder
        await worker.run(first_stage([(3, row(6))]), TIMEOUT_S)
        np.testing.assert_array_equal(
            (await worker.run(second_stage([3]), TIMEOUT_S)).samples[0], expected_samples(row(6))
        )
        assert worker.pid != pid

    run_scenario(scenario, tmp_path)


@pytest.mark.process
def test_a_row_is_forgotten_after_all_calls_before_and_leaves_no_frames(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        vocoder = await hang(worker, tmp_path)
        await worker.run(first_stage([(2, row(5)), (3, row(6))]), TIMEOUT_S)
        needs_it = worker.run(second_stage([2, 3]), TIMEOUT_S)
        running = worker.run(first_stage([(4, row(Fault.HANGS)), (5, row(7))]), TIMEOUT_S)
        await wait_until((tmp_path / "running").exists)
        worker.forget([2, 4])  # one that a call still needs, and one that is being made
        (tmp_path / "continue").touch()
        await asyncio.gather(vocoder, running)
        for samples, token in zip((await needs_it).samples, (5, 6), strict=True):
            np.testing.assert_array_equal(samples, expected_samples(row(token)))
        for id in (2, 3, 4):
            with pytest.raises(WorkerLost, match="does not hold row"):
                await worker.run(second_stage([id]), TIMEOUT_S)

        for name in ("continue", "running"):
            (tmp_path / name).unlink()
        running = worker.run(first_stage([(6, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((tmp_path / "running").exists)
        worker.forget([6])
        assert (await worker.run(second_stage([5]), TIMEOUT_S)).samples  # by now its thread has seen that
        (tmp_path / "continue").touch()
        await running
        await worker.run(first_stage([(7, row(7))]), TIMEOUT_S)
        with pytest.raises(WorkerLost, match="does not hold row"):
            await worker.run(second_stage([6]), TIMEOUT_S)

    run_scenario(scenario, tmp_path)


ACOUSTIC, VOCODER = Run("tone", "acoustic", ()), Run("tone", "vocoder", ())


@given(
    overlaps=st.booleans(),
    steps=st.lists(st.tuples(st.booleans(), st.floats(0.1, 9.0), st.booleans()), max_size=40),
)
def test_the_first_call_of_each_lane_runs_and_has_its_own_time(
    overlaps: bool, steps: list[tuple[bool, float, bool]]
) -> None:
    calls, queues, numbers = CallsInFlight(overlaps), {False: [], True: []}, {}  # type: ignore[var-annotated]
    now = 0.0
    for is_acoustic, timeout_s, adds in steps:
        now += 1.0
        queue = queues[is_acoustic and overlaps]
        call = PendingCall(ACOUSTIC if is_acoustic else VOCODER, timeout_s, None)  # type: ignore[arg-type]
        assert calls.may_send(Forget(()))
        assert calls.may_send(call) == (len(queue) < MAX_IN_FLIGHT)
        if adds and calls.may_send(call):
            numbers[call] = calls.add(call, now)
            queue.append([call, now])
        elif queue:
            with pytest.raises(WorkerLost):
                calls.pop(-1, now)
            assert calls.pop(numbers[queue[0][0]], now) is queue[0][0]
            del queue[0]
            if queue:
                queue[0][1] = now
        running = [queue[0] for queue in queues.values() if queue]
        assert calls.running() == [call for call, _ in running]
        assert calls.deadline_s == min((began_s + call.timeout_s for call, began_s in running), default=None)
        waiting = [call for queue in queues.values() for call, _ in queue[1:]]
        assert calls.waiting() == sorted(waiting, key=numbers.__getitem__)
        assert len(calls) == len(running) + len(waiting)
    assert len(set(numbers.values())) == len(numbers)
