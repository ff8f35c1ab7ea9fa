"""A worker's process that holds too much memory is replaced between batches, and nothing is lost by that."""

import asyncio
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import HEART, running, silent_voices, tone_engine
from tests.worker.fakes import (
    TIMEOUT_S,
    Fault,
    FaultyModel,
    FaultyModels,
    expected_samples,
    first_stage,
    row,
    second_stage,
)
from tests.worker.test_process import run_scenario, speak
from tutti.engine import build
from tutti.engine.batcher import MAX_LOST
from tutti.errors import RowsLost
from tutti.model.protocol import Model, Ran
from tutti.settings import Settings
from tutti.worker.messages import Run
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

pytestmark = pytest.mark.process

LIMIT = 300_000_000


def test_it_is_replaced_after_a_batch_that_ended_rows_and_no_call_fails(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        first = worker.pid
        await worker.run(first_stage([(1, row(5)), (2, row(Fault.GROWS))]), TIMEOUT_S)
        assert worker.status.restarts == 0  # rows wait for their second stage
        assert np.array_equal(*(await worker.run(second_stage([1]), TIMEOUT_S)).samples, expected_samples(row(5)))
        with pytest.raises(RowsLost):
            await worker.run(second_stage([2]), TIMEOUT_S)
        assert worker.pid != first
        assert worker.status.restarts == 1
        assert "MB" in worker.status.error
        assert await speak(worker, row(7))
        assert worker.status.memory.resident_bytes < LIMIT

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path), max_bytes=LIMIT))


def test_a_limit_below_what_the_models_need_does_not_stop_the_work(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        for _ in range(3):
            assert await speak(worker, row(7))
        assert worker.status.restarts == 0

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path), max_bytes=1))


def models(folder: Path) -> Model:
    return FaultyModel(folder)


def test_requests_go_on_while_their_worker_is_replaced(tmp_path: Path) -> None:
    worker = partial(ProcessWorker, max_bytes=LIMIT)
    (tmp_path / "voices").mkdir()

    async def run() -> int:
        engine = tone_engine(silent_voices(tmp_path / "voices"), partial(models, tmp_path), worker=worker)
        async with engine:
            grower = engine.batchers[0].worker
            for id in range(-3, 0):
                await grower.run(first_stage([(id, row(Fault.GROWS))], checkpoint="kokoro"), TIMEOUT_S)
                texts = [engine.speak(f"deep water {word}", HEART) for word in ("one", "two", "three", "four")]
                assert all(len(speech.samples) for speech in await asyncio.gather(*texts))
            await engine.speak("still", HEART)  # by the last replacement
            return grower.status.restarts

    assert asyncio.run(run()) == 3


class ForgetfulWorker(ThreadWorker):
    """Is replaced, as it were, after the first stage of a row, more often than a row may be the cause of a death."""

    n_left = MAX_LOST + 1

    def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
        if run.stages == "vocoder" and self.n_left:
            self.n_left -= 1
            self.forget(run.ids)
        return super().run(run, timeout_s)


def test_a_row_is_not_blamed_for_the_replacement_of_its_worker(tmp_path: Path) -> None:
    with running(tone_engine(silent_voices(tmp_path), worker=ForgetfulWorker)) as engine:
        (speech,) = engine.stream("deep water")
        assert len(speech.samples)
        assert engine.engine.batchers[0].worker.n_left == 0  # type: ignore[attr-defined]


def test_the_setting_reaches_the_workers_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voices").mkdir()
    silent_voices(tmp_path / "voices")
    monkeypatch.setattr(build.Store, "ensure", lambda *_, **__: None)
    limits = []
    monkeypatch.setattr(build, "ProcessWorker", lambda *_, max_bytes, **__: limits.append(max_bytes))
    for chosen in ({"worker_memory_mb": 1500}, {}):
        build.open_engine(Settings(home=tmp_path, device="cpu", **chosen), for_server=True)  # type: ignore[arg-type]
    assert limits == [1.5e9, None]
