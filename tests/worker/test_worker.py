"""What every worker promises, whether it is a thread or a process."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.worker.troubled_model import Trouble, Troubled, row
from tutti.errors import DeviceFull, InvalidInput, ModelFailed, TuttiError, WeightsCorrupt, WorkerLost
from tutti.model.tone import ToneModel
from tutti.speech import Samples, Utterance
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

PATIENCE_S = 60.0
KINDS = (ThreadWorker, ProcessWorker)

Scene = Callable[[Worker, Path], Coroutine[None, None, None]]


async def speak(worker: Worker, rows: dict[int, Utterance], checkpoint: str = "tone") -> list[Samples]:
    durations = await worker.acoustic(checkpoint, list(rows.items()), PATIENCE_S)
    for n, asked in zip(durations, rows.values(), strict=True):
        assert len(n) == len(asked.tokens)
    return await worker.vocoder(checkpoint, list(rows), PATIENCE_S)


def alone(asked: Utterance) -> Samples:
    model = ToneModel()
    return model.vocoder(model.acoustic([asked]))[0]


async def assert_not_kept(worker: Worker, *ids: int) -> None:
    for id in ids:
        with pytest.raises(WorkerLost, match="is not here"):
            await worker.vocoder("tone", [id], PATIENCE_S)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[asyncio.Runner, Worker, Path]]:
    """A worker of each kind, with the event loop that it belongs to."""
    folder = tmp_path_factory.mktemp("troubled")
    with asyncio.Runner() as runner:
        worker: Worker = request.param(Troubled(folder))
        runner.run(worker.start())
        yield runner, worker, folder
        runner.run(worker.close())


@pytest.fixture
def play(stage: tuple[asyncio.Runner, Worker, Path]) -> Callable[[Scene], None]:
    """Plays a scene with it, after which it must be ready for the next."""
    runner, worker, folder = stage
    for path in folder.iterdir():
        path.unlink()

    def played(scene: Scene) -> None:
        try:
            runner.run(scene(worker, folder))
        finally:
            (folder / "go on").touch()
        assert worker.status.state == "ready"

    return played


def test_each_row_gets_its_own_samples_in_order(play: Callable[[Scene], None]) -> None:
    rows = {7: row(1, 2, 3), 3: row(9), 900: row(*range(1, 120), speed=2.0), 5: row(4, 4)}

    async def scene(worker: Worker, _folder: Path) -> None:
        for checkpoint in ("tone", "other"):
            spoken = await speak(worker, rows, checkpoint)
            for samples, asked in zip(spoken, rows.values(), strict=True):
                np.testing.assert_array_equal(samples, alone(asked))
                samples *= 0.5  # a caller may change what is its own
        first = await worker.acoustic("tone", [(1, row(1)), (2, row(2, 2))], PATIENCE_S)
        np.testing.assert_array_equal((await worker.vocoder("tone", [2], PATIENCE_S))[0], alone(row(2, 2)))
        np.testing.assert_array_equal((await worker.vocoder("tone", [1], PATIENCE_S))[0], alone(row(1)))
        assert [len(n) for n in first] == [3, 4]
        assert await speak(worker, {}) == []

    play(scene)


def test_many_callers_at_once_each_get_their_own(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        texts = {i: row(*range(1, i + 2)) for i in range(24)}
        spoken = await asyncio.gather(*(speak(worker, {i: asked}) for i, asked in texts.items()))
        for (samples,), asked in zip(spoken, texts.values(), strict=True):
            np.testing.assert_array_equal(samples, alone(asked))

    play(scene)


def test_a_models_error_reaches_the_caller_as_it_is_and_the_worker_lives_on(play: Callable[[Scene], None]) -> None:
    expected: dict[int, tuple[type[TuttiError], str]] = {
        Trouble.POISON: (ModelFailed, "this row broke the network"),
        Trouble.FULL: (DeviceFull, "send fewer"),
        Trouble.NO_MEMORY: (DeviceFull, "memory"),
        Trouble.ODD: (ModelFailed, "nobody thought of this"),
        Trouble.WRONG: (InvalidInput, "no such speed"),
        Trouble.SHORT: (ModelFailed, "2 rows when 3"),
    }

    async def scene(worker: Worker, _folder: Path) -> None:
        for trouble, (kind, words) in expected.items():
            batch = {1: row(1, 2), 2: row(trouble), 3: row(3)}
            with pytest.raises(kind, match=words) as raised:
                await speak(worker, batch)
            assert type(raised.value) is kind
            assert raised.value.param == ("speed" if trouble == Trouble.WRONG else None)
            del batch[2]
            for samples, asked in zip(await speak(worker, batch), batch.values(), strict=True):
                np.testing.assert_array_equal(samples, alone(asked))

    play(scene)


def test_after_a_failed_vocoder_the_rows_are_still_there_and_after_a_good_one_not(
    play: Callable[[Scene], None],
) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        await worker.acoustic("tone", [(1, row(5)), (2, row(Trouble.SPEAKS_ILL))], PATIENCE_S)
        with pytest.raises(ModelFailed, match="not a voice"):
            await worker.vocoder("tone", [1, 2], PATIENCE_S)
        (samples,) = await worker.vocoder("tone", [1], PATIENCE_S)
        np.testing.assert_array_equal(samples, alone(row(5)))
        with pytest.raises(WorkerLost):
            await worker.vocoder("tone", [1], PATIENCE_S)

    play(scene)


def test_sound_that_is_begun_unasked_is_the_sound_that_is_asked_for(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        rows = {1: row(5), 2: row(6), 3: row(7)}
        await worker.acoustic("tone", list(rows.items()), PATIENCE_S, on=True)
        sounds = await worker.vocoder("tone", [1, 2, 3], PATIENCE_S)
        for samples, asked in zip(sounds, rows.values(), strict=True):
            np.testing.assert_array_equal(samples, alone(asked))
        # Others may be asked for after all, in another order, in part, or never.
        await worker.acoustic("tone", list(rows.items()), PATIENCE_S, on=True)
        worker.forget([1])
        (third, second) = await worker.vocoder("tone", [3, 2], PATIENCE_S)
        np.testing.assert_array_equal(third, alone(rows[3]))
        np.testing.assert_array_equal(second, alone(rows[2]))
        with pytest.raises(WorkerLost):
            await worker.vocoder("tone", [1], PATIENCE_S)

    play(scene)


def test_what_goes_wrong_unasked_is_told_to_who_asks(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        await worker.acoustic("tone", [(1, row(5)), (2, row(Trouble.SPEAKS_ILL))], PATIENCE_S, on=True)
        with pytest.raises(ModelFailed, match="not a voice"):
            await worker.vocoder("tone", [1, 2], PATIENCE_S)
        (samples,) = await worker.vocoder("tone", [1], PATIENCE_S)
        np.testing.assert_array_equal(samples, alone(row(5)))

    play(scene)


def test_both_stages_in_one_call_equal_one_call_for_each_stage(play: Callable[[Scene], None]) -> None:
    rows = {7: row(1, 2, 3), 3: row(9), 900: row(*range(1, 120), speed=2.0)}

    async def scene(worker: Worker, _folder: Path) -> None:
        durations = await worker.acoustic("tone", list(rows.items()), PATIENCE_S)
        samples = await worker.vocoder("tone", list(rows), PATIENCE_S)
        for checkpoint in ("tone", "other"):
            result = await worker.both(checkpoint, list(rows.items()), PATIENCE_S)
            for expected, actual in zip(durations + samples, result.durations + result.samples, strict=True):
                np.testing.assert_array_equal(actual, expected)
            assert min(result.acoustic_s, result.vocoder_s) > 0.0
            result.samples[0] *= 0.5  # a caller may change what is its own
            await assert_not_kept(worker, *rows)
        empty = await worker.both("tone", [], PATIENCE_S)
        assert (empty.durations, empty.samples) == ([], [])

    play(scene)


def test_many_calls_of_all_kinds_are_answered_each_with_its_own(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        async def both(id: int, utterance: Utterance) -> list[Samples]:
            return (await worker.both("tone", [(id, utterance)], PATIENCE_S)).samples

        texts = {i: row(*range(1, i + 2)) for i in range(24)}
        spoken = await asyncio.gather(
            *(both(i, asked) if i % 2 else speak(worker, {i: asked}) for i, asked in texts.items())
        )
        for (samples,), asked in zip(spoken, texts.values(), strict=True):
            np.testing.assert_array_equal(samples, alone(asked))

    play(scene)


@pytest.mark.parametrize(
    ("trouble", "message"), [(Trouble.POISON, "broke the network"), (Trouble.SPEAKS_ILL, "not a voice")]
)
def test_an_error_of_either_stage_fails_the_whole_call_and_keeps_no_row(
    play: Callable[[Scene], None], trouble: Trouble, message: str
) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        with pytest.raises(ModelFailed, match=message):
            await worker.both("tone", [(1, row(5)), (2, row(trouble))], PATIENCE_S)
        await assert_not_kept(worker, 1, 2)
        result = await worker.both("tone", [(1, row(5))], PATIENCE_S)
        np.testing.assert_array_equal(result.samples[0], alone(row(5)))

    play(scene)


def test_a_caller_that_leaves_a_call_of_both_stages_leaves_no_row_behind(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, folder: Path) -> None:
        leaving = worker.both("tone", [(1, row(Trouble.HANGS))], PATIENCE_S)
        await until((folder / "running").exists)
        never_run = worker.both("tone", [(2, row(Trouble.DIES))], PATIENCE_S)
        staying = worker.both("tone", [(3, row(8))], PATIENCE_S)
        await asyncio.sleep(0)
        leaving.cancel()
        never_run.cancel()
        (folder / "go on").touch()
        np.testing.assert_array_equal((await staying).samples[0], alone(row(8)))
        await assert_not_kept(worker, 1, 2, 3)

    play(scene)


def test_a_row_that_is_forgotten_or_was_never_there_is_lost(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        await worker.acoustic("tone", [(1, row(5)), (2, row(6))], PATIENCE_S)
        worker.forget([1, 77])
        worker.forget([])
        for lost in ([1], [99], [2, 99]):
            with pytest.raises(WorkerLost):
                await worker.vocoder("tone", lost, PATIENCE_S)
        assert len(await worker.vocoder("tone", [2], PATIENCE_S)) == 1

    play(scene)


def test_an_unknown_checkpoint_is_the_callers_mistake(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, _folder: Path) -> None:
        with pytest.raises(InvalidInput, match="there is tone, other") as raised:
            await worker.acoustic("nobody", [(1, row(5))], PATIENCE_S)
        assert raised.value.param == "model"

    play(scene)


def test_a_caller_who_leaves_takes_his_rows_along_and_wedges_nothing(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, folder: Path) -> None:
        leaving = worker.acoustic("tone", [(1, row(Trouble.HANGS))], PATIENCE_S)
        await until((folder / "running").exists)
        never_run = worker.acoustic("tone", [(2, row(Trouble.DIES))], PATIENCE_S)
        staying = asyncio.create_task(speak(worker, {3: row(8)}))
        await asyncio.sleep(0)
        assert worker.status.state == "busy"
        leaving.cancel()
        never_run.cancel()
        await asyncio.wait([leaving, never_run])
        (folder / "go on").touch()
        np.testing.assert_array_equal((await staying)[0], alone(row(8)))
        for gone in (1, 2):
            with pytest.raises(WorkerLost):
                await worker.vocoder("tone", [gone], PATIENCE_S)

    play(scene)


def test_a_call_that_takes_too_long_is_lost_and_the_next_one_is_served(play: Callable[[Scene], None]) -> None:
    async def scene(worker: Worker, folder: Path) -> None:
        with pytest.raises(WorkerLost):
            await worker.acoustic("tone", [(1, row(Trouble.HANGS))], 0.1)
        (folder / "go on").touch()
        np.testing.assert_array_equal((await speak(worker, {2: row(8)}))[0], alone(row(8)))
        with pytest.raises(WorkerLost):
            await worker.vocoder("tone", [1], PATIENCE_S)

    play(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_ends_every_wait_puts_the_models_away_and_leaves_samples_whole(
    kind: type[ThreadWorker] | type[ProcessWorker], tmp_path: Path
) -> None:
    async def scene() -> Samples:
        worker = kind(Troubled(tmp_path))
        await worker.start()
        assert worker.memory.resident_bytes > 1_000_000
        (kept,) = await speak(worker, {1: row(8, 9)})
        running = worker.acoustic("tone", [(1, row(Trouble.HANGS))], PATIENCE_S)
        await until((tmp_path / "running").exists)
        waiting = worker.acoustic("tone", [(2, row(4))], PATIENCE_S)
        closing = asyncio.create_task(worker.close())
        await asyncio.sleep(0)
        (tmp_path / "go on").touch()
        await closing
        await worker.close()
        ran, waited = await asyncio.gather(running, waiting, return_exceptions=True)
        assert isinstance(ran, list | WorkerLost)
        assert isinstance(waited, WorkerLost)
        assert (tmp_path / "closed").exists()
        assert worker.status.state == "closed"
        worker.forget([1])
        with pytest.raises(WorkerLost, match="closed"):
            await worker.acoustic("tone", [(1, row(8))], PATIENCE_S)
        return kept

    np.testing.assert_array_equal(asyncio.run(scene()), alone(row(8, 9)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_cannot_work_raises_the_models_own_error(
    kind: type[ThreadWorker] | type[ProcessWorker], tmp_path: Path
) -> None:
    async def start(worker: Worker, error: type[TuttiError], words: str) -> TuttiError:
        with pytest.raises(error, match=words) as raised:
            await worker.start()
        assert worker.status.state == "failed"
        assert words in worker.status.error
        with pytest.raises(WorkerLost, match="failed"):
            await worker.acoustic("tone", [(1, row(1))], PATIENCE_S)
        worker.forget([1])
        await worker.close()
        return raised.value

    (tmp_path / "corrupt").touch()
    error = asyncio.run(start(kind(Troubled(tmp_path)), WeightsCorrupt, "the bytes are wrong"))
    assert error.param == "model"
    (tmp_path / "corrupt").unlink()
    (tmp_path / "broken").touch()
    asyncio.run(start(kind(Troubled(tmp_path)), ModelFailed, "a bug"))
    assert Troubled(tmp_path).n_starts() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_tells_how_far_it_is(kind: type[ThreadWorker] | type[ProcessWorker], tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []

    async def start() -> None:
        worker = kind(Troubled(tmp_path), progress=lambda what, done, all_: steps.append((what, done, all_)))
        assert worker.status.state == "starting"
        await worker.start()
        assert worker.status.state == "ready"
        await worker.close()

    asyncio.run(start())
    assert steps == [("loading", 0, 0), *(("warming up tone", done, 3) for done in (1, 2, 3))]


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.005)
