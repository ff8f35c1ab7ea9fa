"""The worker protocol, for a thread and for a process."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.worker.fakes import (
    TIMEOUT_S,
    Fault,
    FaultyModels,
    OverlappingWorker,
    both_stages,
    expected_samples,
    first_stage,
    row,
    second_stage,
    wait_until,
)
from tutti.errors import DeviceFull, InvalidInput, ModelFailed, TuttiError, WeightsCorrupt, WorkerLost
from tutti.model.protocol import Ran
from tutti.speech import Samples, Utterance, to_pcm
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

KINDS = (ThreadWorker, pytest.param(ProcessWorker, marks=pytest.mark.process))
SERVING = (*KINDS, pytest.param(OverlappingWorker, marks=pytest.mark.process))

Scenario = Callable[[Worker, Path], Coroutine[None, None, None]]
RunScenario = Callable[[Scenario], None]


async def speak(worker: Worker, rows: dict[int, Utterance], checkpoint: str = "tone") -> Sequence[Samples]:
    durations = (await worker.run(first_stage(list(rows.items()), checkpoint=checkpoint), TIMEOUT_S)).durations
    for n_frames, utterance in zip(durations, rows.values(), strict=True):
        assert len(n_frames) == len(utterance.tokens)
    return (await worker.run(second_stage(list(rows), checkpoint=checkpoint), TIMEOUT_S)).samples


async def assert_not_kept(worker: Worker, *ids: int) -> None:
    for id in ids:
        with pytest.raises(WorkerLost, match="does not hold row"):
            await worker.run(second_stage([id]), TIMEOUT_S)


@pytest.fixture(scope="module", params=SERVING, ids=lambda kind: kind.__name__)
def started_worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[asyncio.Runner, Worker, Path]]:
    """A started worker of each kind, with its event loop."""
    folder = tmp_path_factory.mktemp("faulty")
    with asyncio.Runner() as runner:
        worker: Worker = request.param(FaultyModels(folder))
        runner.run(worker.start())
        yield runner, worker, folder
        runner.run(worker.close())


@pytest.fixture
def run_scenario(started_worker: tuple[asyncio.Runner, Worker, Path]) -> RunScenario:
    """Runs a scenario with it, after which it must be ready for the next."""
    runner, worker, folder = started_worker
    for path in folder.iterdir():
        path.unlink()

    def run(scenario: Scenario) -> None:
        try:
            runner.run(scenario(worker, folder))
        finally:
            (folder / "continue").touch()
        assert worker.status.state == "ready"

    return run


def test_each_row_gets_its_own_samples_in_order(run_scenario: RunScenario) -> None:
    rows = {7: row(1, 2, 3), 3: row(9), 900: row(*range(1, 120), speed=2.0), 5: row(4, 4)}

    async def scenario(worker: Worker, _folder: Path) -> None:
        for checkpoint in ("tone", "other"):
            spoken = await speak(worker, rows, checkpoint)
            for samples, utterance in zip(spoken, rows.values(), strict=True):
                np.testing.assert_array_equal(samples, expected_samples(utterance))
                samples *= 0.5  # a caller may change what is its own
        first = (await worker.run(first_stage([(1, row(1)), (2, row(2, 2))]), TIMEOUT_S)).durations
        np.testing.assert_array_equal(
            (await worker.run(second_stage([2]), TIMEOUT_S)).samples[0], expected_samples(row(2, 2))
        )
        np.testing.assert_array_equal(
            (await worker.run(second_stage([1]), TIMEOUT_S)).samples[0], expected_samples(row(1))
        )
        assert [len(n_frames) for n_frames in first] == [3, 4]
        assert not await speak(worker, {})

    run_scenario(scenario)


def test_rows_with_a_volume_come_as_integers_beside_others(run_scenario: RunScenario) -> None:
    rows = {1: replace(row(1, 2, 3), pcm_volume=1.0), 2: row(9), 3: replace(row(4, 4), pcm_volume=2.5)}

    async def scenario(worker: Worker, _folder: Path) -> None:
        both = await worker.run(both_stages(list(rows.items())), TIMEOUT_S)
        for spoken in (await speak(worker, rows), both.samples):
            for samples, utterance in zip(spoken, rows.values(), strict=True):
                expected = expected_samples(replace(utterance, pcm_volume=None))
                volume = utterance.pcm_volume
                np.testing.assert_array_equal(samples, expected if volume is None else to_pcm(expected, volume))
                assert samples.dtype == (np.float32 if volume is None else np.int16)

    run_scenario(scenario)


def test_concurrent_callers_each_get_their_own_samples(run_scenario: RunScenario) -> None:
    async def scenario(worker: Worker, _folder: Path) -> None:
        rows = {i: row(*range(1, i + 2)) for i in range(24)}
        spoken = await asyncio.gather(*(speak(worker, {i: utterance}) for i, utterance in rows.items()))
        for (samples,), utterance in zip(spoken, rows.values(), strict=True):
            np.testing.assert_array_equal(samples, expected_samples(utterance))

    run_scenario(scenario)


def test_a_models_error_reaches_the_caller_unchanged_and_the_worker_goes_on(
    run_scenario: RunScenario,
) -> None:
    expected: dict[int, tuple[type[TuttiError], str]] = {
        Fault.FAILS: (ModelFailed, "failed on this row"),
        Fault.DEVICE_FULL: (DeviceFull, "send fewer"),
        Fault.NO_MEMORY: (DeviceFull, "memory"),
        Fault.UNEXPECTED: (ModelFailed, "unforeseen"),
        Fault.INVALID: (InvalidInput, "no such speed"),
        Fault.ROW_MISSING: (ModelFailed, "2 rows when 3"),
    }

    async def scenario(worker: Worker, _folder: Path) -> None:
        for fault, (kind, message) in expected.items():
            batch = {1: row(1, 2), 2: row(fault), 3: row(3)}
            with pytest.raises(kind, match=message) as raised:
                await speak(worker, batch)
            assert type(raised.value) is kind
            assert raised.value.param == ("speed" if fault == Fault.INVALID else None)
            del batch[2]
            for samples, utterance in zip(await speak(worker, batch), batch.values(), strict=True):
                np.testing.assert_array_equal(samples, expected_samples(utterance))

    run_scenario(scenario)


def test_rows_are_kept_after_a_failed_vocoder_call_and_forgotten_after_a_successful_one(
    run_scenario: RunScenario,
) -> None:
    async def scenario(worker: Worker, _folder: Path) -> None:
        await worker.run(first_stage([(1, row(5)), (2, row(Fault.VOCODER_FAILS))]), TIMEOUT_S)
        with pytest.raises(ModelFailed, match="not a voice"):
            await worker.run(second_stage([1, 2]), TIMEOUT_S)
        (samples,) = (await worker.run(second_stage([1]), TIMEOUT_S)).samples
        np.testing.assert_array_equal(samples, expected_samples(row(5)))
        with pytest.raises(WorkerLost):
            await worker.run(second_stage([1]), TIMEOUT_S)

    run_scenario(scenario)


def test_both_stages_in_one_call_equal_one_call_for_each_stage(run_scenario: RunScenario) -> None:
    rows = {7: row(1, 2, 3), 3: row(9), 900: row(*range(1, 120), speed=2.0)}

    async def scenario(worker: Worker, _folder: Path) -> None:
        durations = (await worker.run(first_stage(list(rows.items())), TIMEOUT_S)).durations
        samples = (await worker.run(second_stage(list(rows)), TIMEOUT_S)).samples
        for checkpoint in ("tone", "other"):
            result = await worker.run(both_stages(list(rows.items()), checkpoint=checkpoint), TIMEOUT_S)
            for expected, actual in zip([*durations, *samples], [*result.durations, *result.samples], strict=True):
                np.testing.assert_array_equal(actual, expected)
            assert min(result.acoustic_s, result.vocoder_s) > 0.0
            result.samples[0] *= 0.5  # a caller may change what is its own
            await assert_not_kept(worker, *rows)
        empty = await worker.run(both_stages([]), TIMEOUT_S)
        assert not empty.durations
        assert not empty.samples

    run_scenario(scenario)


def test_concurrent_calls_of_all_kinds_each_get_their_own_samples(run_scenario: RunScenario) -> None:
    async def scenario(worker: Worker, _folder: Path) -> None:
        async def both(id: int, utterance: Utterance) -> Sequence[Samples]:
            return (await worker.run(both_stages([(id, utterance)]), TIMEOUT_S)).samples

        rows = {i: row(*range(1, i + 2)) for i in range(24)}
        spoken = await asyncio.gather(
            *(both(i, utterance) if i % 2 else speak(worker, {i: utterance}) for i, utterance in rows.items())
        )
        for (samples,), utterance in zip(spoken, rows.values(), strict=True):
            np.testing.assert_array_equal(samples, expected_samples(utterance))

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("fault", "message"), [(Fault.FAILS, "failed on this row"), (Fault.VOCODER_FAILS, "not a voice")]
)
def test_an_error_of_either_stage_fails_the_whole_call_and_keeps_no_row(
    run_scenario: RunScenario, fault: Fault, message: str
) -> None:
    async def scenario(worker: Worker, _folder: Path) -> None:
        with pytest.raises(ModelFailed, match=message):
            await worker.run(both_stages([(1, row(5)), (2, row(fault))]), TIMEOUT_S)
        await assert_not_kept(worker, 1, 2)
        result = await worker.run(both_stages([(1, row(5))]), TIMEOUT_S)
        np.testing.assert_array_equal(result.samples[0], expected_samples(row(5)))

    run_scenario(scenario)


def test_a_cancelled_call_of_both_stages_leaves_no_row_behind(run_scenario: RunScenario) -> None:
    async def scenario(worker: Worker, folder: Path) -> None:
        leaving = worker.run(both_stages([(1, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((folder / "running").exists)
        never_run = worker.run(both_stages([(2, row(Fault.DIES))]), TIMEOUT_S)
        staying = worker.run(both_stages([(3, row(8))]), TIMEOUT_S)
        await asyncio.sleep(0)
        leaving.cancel()
        never_run.cancel()
        (folder / "continue").touch()
        np.testing.assert_array_equal((await staying).samples[0], expected_samples(row(8)))
        await assert_not_kept(worker, 1, 2, 3)

    run_scenario(scenario)


def test_a_vocoder_call_for_a_forgotten_or_unknown_row_raises_worker_lost(
    run_scenario: RunScenario,
) -> None:
    async def scenario(worker: Worker, _folder: Path) -> None:
        await worker.run(first_stage([(1, row(5)), (2, row(6))]), TIMEOUT_S)
        worker.forget([1, 77])
        worker.forget([])
        for ids in ([1], [99], [2, 99]):
            with pytest.raises(WorkerLost):
                await worker.run(second_stage(ids), TIMEOUT_S)
        assert len((await worker.run(second_stage([2]), TIMEOUT_S)).samples) == 1

    run_scenario(scenario)


def test_an_unknown_checkpoint_raises_invalid_input(run_scenario: RunScenario) -> None:
    async def scenario(worker: Worker, _folder: Path) -> None:
        with pytest.raises(InvalidInput, match="available: tone, other") as raised:
            await worker.run(first_stage([(1, row(5))], checkpoint="nobody"), TIMEOUT_S)
        assert raised.value.param == "model"

    run_scenario(scenario)


def test_the_rows_of_a_cancelled_call_are_forgotten_and_other_calls_go_on(
    run_scenario: RunScenario,
) -> None:
    async def scenario(worker: Worker, folder: Path) -> None:
        leaving = worker.run(first_stage([(1, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((folder / "running").exists)
        never_run = worker.run(first_stage([(2, row(Fault.DIES))]), TIMEOUT_S)
        staying = asyncio.create_task(speak(worker, {3: row(8)}))
        await asyncio.sleep(0)
        assert worker.status.state == "busy"
        leaving.cancel()
        never_run.cancel()
        await asyncio.wait([leaving, never_run])
        (folder / "continue").touch()
        np.testing.assert_array_equal((await staying)[0], expected_samples(row(8)))
        await assert_not_kept(worker, 1, 2)

    run_scenario(scenario)


def test_a_call_that_times_out_raises_worker_lost_and_the_next_one_is_served(
    run_scenario: RunScenario,
) -> None:
    async def scenario(worker: Worker, folder: Path) -> None:
        with pytest.raises(WorkerLost):
            await worker.run(first_stage([(1, row(Fault.HANGS))]), 0.1)
        (folder / "continue").touch()
        np.testing.assert_array_equal((await speak(worker, {2: row(8)}))[0], expected_samples(row(8)))
        with pytest.raises(WorkerLost):
            await worker.run(second_stage([1]), TIMEOUT_S)

    run_scenario(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_close_fails_waiting_calls_closes_the_models_and_keeps_samples_valid(
    kind: type[ThreadWorker] | type[ProcessWorker], tmp_path: Path
) -> None:
    async def scenario() -> Samples:
        worker = kind(FaultyModels(tmp_path))
        await worker.start()
        assert worker.status.memory.resident_bytes > 1_000_000
        (samples,) = await speak(worker, {1: row(8, 9)})
        running = worker.run(first_stage([(1, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((tmp_path / "running").exists)
        waiting = worker.run(first_stage([(2, row(4))]), TIMEOUT_S)
        closing = asyncio.create_task(worker.close())
        await asyncio.sleep(0)
        (tmp_path / "continue").touch()
        await closing
        await worker.close()
        running_result, waiting_result = await asyncio.gather(running, waiting, return_exceptions=True)
        assert isinstance(running_result, Ran | WorkerLost)
        assert isinstance(waiting_result, WorkerLost)
        assert (tmp_path / "closed").exists()
        assert worker.status.state == "closed"
        worker.forget([1])
        with pytest.raises(WorkerLost, match="closed"):
            await worker.run(first_stage([(1, row(8))]), TIMEOUT_S)
        return samples

    np.testing.assert_array_equal(asyncio.run(scenario()), expected_samples(row(8, 9)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_cannot_succeed_raises_the_models_own_error(
    kind: type[ThreadWorker] | type[ProcessWorker], tmp_path: Path
) -> None:
    async def start(worker: Worker, error: type[TuttiError], message: str) -> TuttiError:
        with pytest.raises(error, match=message) as raised:
            await worker.start()
        assert worker.status.state == "failed"
        assert message in worker.status.error
        with pytest.raises(WorkerLost, match="failed"):
            await worker.run(first_stage([(1, row(1))]), TIMEOUT_S)
        worker.forget([1])
        await worker.close()
        return raised.value

    (tmp_path / "corrupt").touch()
    error = asyncio.run(start(kind(FaultyModels(tmp_path)), WeightsCorrupt, "the bytes are wrong"))
    assert error.param == "model"
    (tmp_path / "corrupt").unlink()
    (tmp_path / "broken").touch()
    asyncio.run(start(kind(FaultyModels(tmp_path)), ModelFailed, "a bug"))
    assert FaultyModels(tmp_path).n_starts() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_reports_its_progress(kind: type[ThreadWorker] | type[ProcessWorker], tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []

    async def start() -> None:
        worker = kind(FaultyModels(tmp_path), progress=lambda what, done, n_steps: steps.append((what, done, n_steps)))
        assert worker.status.state == "starting"
        await worker.start()
        assert worker.status.state == "ready"
        await worker.close()

    asyncio.run(start())
    assert steps == [("loading", 0, 0), *(("warming up tone", done, 3) for done in (1, 2, 3))]
