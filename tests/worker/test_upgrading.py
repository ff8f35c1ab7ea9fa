"""A worker that changes to a faster one: no call fails, and rows stay with the worker that holds their frames."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from tests.fakes import Gate
from tests.worker.fakes import TIMEOUT_S, both_stages, expected_samples, first_stage, row, second_stage
from tutti.errors import ModelFailed
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.worker.base import Worker
from tutti.worker.thread import ThreadWorker
from tutti.worker.upgrading import UpgradingWorker


class SlowStart:
    """Makes a tone model once its gate is open; or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.gate = Gate(0)
        self.error = error
        self.was_called = self.is_made = False

    def __call__(self) -> dict[str, Model]:
        self.was_called = True
        self.gate.wait()
        if self.error:
            raise self.error
        self.is_made = True
        return {"tone": ToneModel()}


def run(
    scenario: Callable[[UpgradingWorker, SlowStart], Coroutine[Any, Any, None]],
    second: SlowStart | None = None,
    handover_s: float = 3600.0,
) -> None:
    async def whole() -> None:
        start = second or SlowStart()
        worker = UpgradingWorker(
            ThreadWorker(lambda: {"tone": ToneModel()}), ThreadWorker(start), handover_s=handover_s
        )
        await worker.start()
        try:
            await scenario(worker, start)
        finally:
            start.gate.open()
            await worker.close()

    asyncio.run(whole())


async def change(worker: UpgradingWorker, second: SlowStart) -> None:
    second.gate.open()
    while not worker.is_upgraded:
        await asyncio.sleep(0.001)


def test_it_serves_while_the_second_model_is_prepared_and_after_the_change() -> None:
    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        for changes in (False, True):
            if changes:
                await change(worker, second)
            assert worker.is_upgraded == changes
            both = await worker.run(both_stages([(1, row(5, 6))]), TIMEOUT_S)
            np.testing.assert_array_equal(both.samples[0], expected_samples(row(5, 6)))
            assert worker.status.state == "ready"

    run(scenario)


def test_the_second_model_is_not_loaded_before_the_first_is_ready() -> None:
    async def scenario() -> None:
        loaded: list[str] = []
        first = SlowStart()

        def make_second() -> dict[str, Model]:
            loaded.append("second" if first.is_made else "second too early")
            return {"tone": ToneModel()}

        worker = UpgradingWorker(ThreadWorker(first), ThreadWorker(make_second), handover_s=0.0)
        starting = asyncio.create_task(worker.start())
        for _ in range(10):
            await asyncio.sleep(0.001)
        first.gate.open()
        await starting
        while not loaded:
            await asyncio.sleep(0.001)
        await worker.close()
        assert loaded == ["second"]

    asyncio.run(scenario())


def test_if_the_first_model_fails_the_second_is_never_started() -> None:
    async def scenario() -> None:
        first, second = SlowStart(ModelFailed("no weights")), SlowStart()
        first.gate.open()
        worker = UpgradingWorker(ThreadWorker(first), ThreadWorker(second))
        with pytest.raises(ModelFailed):
            await worker.start()
        await worker.close()
        assert not second.was_called

    asyncio.run(scenario())


def test_rows_that_began_before_the_change_are_finished_beside_new_ones() -> None:
    rows = {1: row(1), 2: row(2, 2), 3: row(3, 3, 3), 4: row(4)}

    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        await worker.run(first_stage([(1, rows[1]), (2, rows[2])]), TIMEOUT_S)
        await change(worker, second)
        await worker.run(first_stage([(3, rows[3]), (4, rows[4])]), TIMEOUT_S)
        for ids in ([3, 1], [2], [4]):  # both workers, the first, the second
            spoken = (await worker.run(second_stage(ids), TIMEOUT_S)).samples
            for id, samples in zip(ids, spoken, strict=True):
                np.testing.assert_array_equal(samples, expected_samples(rows[id]))

    run(scenario)


def test_a_span_of_an_old_row_goes_to_the_worker_that_holds_it() -> None:
    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        (durations,) = (await worker.run(first_stage([(1, row(7, 8, 9))]), TIMEOUT_S)).durations
        await change(worker, second)
        await worker.run(first_stage([(2, row(4))]), TIMEOUT_S)
        whole = expected_samples(row(7, 8, 9))
        spans = {1: (0, int(durations.sum()) // 2)}
        first, other = (await worker.run(second_stage([1, 2], spans), TIMEOUT_S)).samples
        np.testing.assert_array_equal(first, whole[: len(first)])
        np.testing.assert_array_equal(other, expected_samples(row(4)))

    run(scenario)


def test_after_the_handover_the_first_worker_is_closed() -> None:
    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        first = worker._current
        await change(worker, second)
        while first.status.state != "closed":
            await asyncio.sleep(0.001)
        both = await worker.run(both_stages([(1, row(5))]), TIMEOUT_S)
        np.testing.assert_array_equal(both.samples[0], expected_samples(row(5)))

    run(scenario, handover_s=0.0)


def test_if_the_second_model_fails_the_first_one_stays() -> None:
    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        second.gate.open()
        assert worker._changing is not None
        await worker._changing
        assert not worker.is_upgraded
        both = await worker.run(both_stages([(1, row(5))]), TIMEOUT_S)
        np.testing.assert_array_equal(both.samples[0], expected_samples(row(5)))

    run(scenario, SlowStart(ModelFailed("no memory for two models")))


def test_whatever_keeps_the_second_worker_from_serving_the_first_one_stays_and_all_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    workers: list[Worker] = []

    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        async def before_change(other: Worker) -> None:
            workers.extend((worker._current, other))
            raise OSError("the folder of the costs is gone")

        worker.before_change = before_change
        second.gate.open()
        assert worker._changing is not None
        await worker._changing
        assert not worker.is_upgraded
        both = await worker.run(both_stages([(1, row(5))]), TIMEOUT_S)
        np.testing.assert_array_equal(both.samples[0], expected_samples(row(5)))

    run(scenario)
    assert [worker.status.state for worker in workers] == ["closed", "closed"]
    assert "the folder of the costs is gone" in caplog.text


def test_the_second_worker_is_measured_before_it_serves() -> None:
    measured = []

    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        async def before_change(other: object) -> None:
            assert not worker.is_upgraded
            measured.append(other)

        worker.before_change = before_change
        await change(worker, second)
        assert measured == [worker._current]

    run(scenario)


def test_an_error_of_either_worker_is_the_error_of_a_shared_batch() -> None:
    async def scenario(worker: UpgradingWorker, second: SlowStart) -> None:
        await worker.run(first_stage([(1, row(1))]), TIMEOUT_S)
        await change(worker, second)
        await worker.run(first_stage([(2, row(2))]), TIMEOUT_S)
        worker.forget([1])
        with pytest.raises(Exception, match="does not hold row 1"):
            await worker.run(second_stage([1, 2]), TIMEOUT_S)

    run(scenario)
