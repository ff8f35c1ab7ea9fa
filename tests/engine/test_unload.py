"""Unloading: the process of the model ends and gives its memory back, and the next request loads it again."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import serving
from tutti.engine.batcher import Batcher
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.engine.row import Row, RowAudio
from tutti.errors import WrongState
from tutti.speech import SpeechParams
from tutti.worker.process import ProcessWorker

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

PARAMS = SpeechParams("af_heart")
TEXT = "deep water. " * 40  # several chunks


def engine_of(folder: Path, **settings: Any) -> Engine:
    return tone_engine(silent_voices(folder), worker=ProcessWorker, **settings)


def worker_of(engine: Engine) -> ProcessWorker:
    worker = engine.batchers[0].worker
    assert isinstance(worker, ProcessWorker)
    return worker


async def until_asleep(engine: Engine) -> None:
    while worker_of(engine).status.state != "asleep":
        await asyncio.sleep(0.005)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_the_process_ends_and_the_next_text_sounds_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            before = await engine.speak(TEXT, PARAMS)
            pid = worker_of(engine).pid
            assert await engine.unload() == 1
            assert pid is not None
            assert not psutil.pid_exists(pid)
            status = worker_of(engine).status
            assert (status.state, status.memory.resident_bytes, worker_of(engine).pid) == ("asleep", 0, None)
            assert engine.workers()["readyWorkers"] == 1  # it takes requests
            assert np.array_equal((await engine.speak(TEXT, PARAMS)).samples, before.samples)
            assert worker_of(engine).status.restarts == 0

    run(scenario())


def test_who_waits_for_the_model_gets_it_though_it_is_to_be_unloaded_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            worker = worker_of(engine)
            await worker.unload()
            waking = asyncio.create_task(worker.wake())
            while worker.status.state != "starting":
                await asyncio.sleep(0)
            await asyncio.gather(waking, worker.unload())
            assert worker.status.state == "asleep"
            assert (await engine.speak("deep water", PARAMS)).words

    run(scenario())


def test_rows_are_queued_only_when_the_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time of loading would count as that of a batch, and the cost model would learn it."""

    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            batcher, states = engine.batchers[0], list[str]()

            def speak(row: Row) -> asyncio.Future[RowAudio]:
                states.append(batcher.worker.status.state)
                return Batcher.speak(batcher, row)

            monkeypatch.setattr(batcher, "speak", speak)
            await engine.unload()
            await asyncio.gather(*(engine.speak("deep water", PARAMS) for _ in range(4)))
            assert len(states) == 4
            assert set(states) <= {"ready", "busy"}

    run(scenario())


def test_many_texts_at_once_wake_it_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path, first_audio_ms=60_000) as engine:
            expected = (await engine.speak("deep water", PARAMS)).samples
            await engine.unload()
            speeches = await asyncio.gather(*(engine.speak("deep water", PARAMS) for _ in range(8)))
            assert all(np.array_equal(speech.samples, expected) for speech in speeches)
            assert worker_of(engine).status.restarts == 0

    run(scenario())


def test_nothing_is_unloaded_while_something_is_spoken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            stream = engine.stream(StreamRequest(TEXT, PARAMS))
            await anext(stream)
            with pytest.raises(WrongState, match="being spoken"):
                await engine.unload()
            await stream.aclose()
            assert await engine.unload() == 1

    run(scenario())


def test_nobody_unloads_what_another_caller_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            await engine.speak("deep water", PARAMS, caller="one")
            with pytest.raises(WrongState, match="others"):
                await engine.unload("two")
            assert await engine.unload("one") == 1
            await engine.speak("deep water", PARAMS, caller="one")
            monkeypatch.setattr("tutti.engine.engine.IN_USE_S", 0.0)  # a while later
            assert await engine.unload("two") == 1

    run(scenario())


def test_a_text_that_comes_while_the_model_is_unloaded_is_spoken(tmp_path: Path) -> None:
    """Whatever comes first: no frames are lost between the two stages, so no row runs twice."""

    async def scenario() -> None:
        async with engine_of(tmp_path, first_audio_ms=60_000) as engine:
            for _ in range(3):
                unloading = asyncio.create_task(engine.unload())
                await asyncio.sleep(0)
                assert len((await engine.speak(TEXT, PARAMS)).words) == 80
                await unloading
            assert engine.batch_stats.as_dict()["batches_by_outcome"].keys() == {"done"}

    run(scenario())


def test_it_unloads_after_idle_time_also_without_any_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path, idle_unload_s=0.01) as engine:
            await until_asleep(engine)
            assert (await engine.speak("deep water", PARAMS)).words
            await until_asleep(engine)

    run(scenario())


def test_it_never_unloads_by_itself_without_the_setting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            await engine.speak("deep water", PARAMS)
            assert not [task for task in asyncio.all_tasks() if task.get_name() == "tutti-idle"]

    run(scenario())


def test_an_engine_closes_while_its_model_is_unloaded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_of(tmp_path) as engine:
            await engine.unload()
        assert worker_of(engine).status.state == "closed"

    run(scenario())


@pytest.mark.server
def test_the_route_unloads_and_the_server_stays_ready(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    with serving(engine) as server:
        first = server.speak(response_format="pcm", input="deep water one").content
        assert server.post("/dev/unload").json() == {"status": "unloaded", "workers": 1}
        assert server.get("/readyz").status_code == 200
        assert server.get("/health/batching").json()["status"] == "healthy"
        assert worker_of(engine).pid is None
        assert len(server.speak(response_format="pcm", input="deep water two").content) == len(first)
