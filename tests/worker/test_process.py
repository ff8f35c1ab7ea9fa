"""A worker in a process of its own is watched: it may die, hang or grow, and nothing is left behind."""

import asyncio
import gc
import logging
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live_text import alive
from tests.worker.troubled_model import Trouble, Troubled, row
from tutti.errors import WorkerLost
from tutti.model.tone import ToneModel
from tutti.speech import Model, Samples, Utterance
from tutti.worker.channel import map_samples, write_samples
from tutti.worker.process import MAX_BACKOFF_S, ProcessWorker, backoff_s

PATIENCE_S = 30.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def play(scene: Callable[[ProcessWorker], Awaitable[None]], worker: ProcessWorker) -> None:
    async def played() -> None:
        await worker.start()
        try:
            await scene(worker)
        finally:
            await worker.close()

    asyncio.run(played())


async def speak(worker: ProcessWorker, *rows: Utterance) -> list[Samples]:
    await worker.acoustic("tone", list(enumerate(rows)), PATIENCE_S)
    return await worker.vocoder("tone", range(len(rows)), PATIENCE_S)


def alone(asked: Utterance) -> Samples:
    model = ToneModel()
    return model.vocoder(model.acoustic([asked]))[0]


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.005)


def test_calls_told_at_once_are_answered_in_turn_each_with_its_own(tmp_path: Path) -> None:
    async def scene(worker: ProcessWorker) -> None:
        rows = [row(1 + i, 2, *[3] * 15 * i) for i in range(30)]
        await worker.acoustic("tone", list(enumerate(rows)), PATIENCE_S)
        order: list[int] = []

        async def call(i: int) -> list[Samples]:
            found = await worker.vocoder("tone", [i, i + 1], PATIENCE_S)
            await worker.acoustic("tone", [(100 + i, row(Trouble.LOGS))], PATIENCE_S)
            order.append(i)
            return found

        found = await asyncio.gather(*(call(i) for i in range(0, 30, 2)))
        assert order == list(range(0, 30, 2))
        for asked, samples in zip(rows, [one for pair in found for one in pair], strict=True):
            np.testing.assert_array_equal(samples, alone(asked))

    play(scene, ProcessWorker(Troubled(tmp_path)))


def test_a_killed_worker_fails_only_what_it_was_doing_and_comes_back(tmp_path: Path) -> None:
    async def scene(worker: ProcessWorker) -> None:
        await worker.acoustic("tone", [(1, row(5))], PATIENCE_S)
        doomed = worker.acoustic("tone", [(2, row(Trouble.HANGS))], PATIENCE_S)
        await until((tmp_path / "running").exists)
        waiting = worker.acoustic("tone", [(3, row(6))], PATIENCE_S)
        first = worker.pid
        assert first
        os.kill(first, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="SIGKILL"):
            await doomed
        assert worker.status.state in ("restarting", "ready", "busy")
        await waiting
        np.testing.assert_array_equal((await worker.vocoder("tone", [3], PATIENCE_S))[0], alone(row(6)))
        with pytest.raises(WorkerLost):  # between its stages when the worker died
            await worker.vocoder("tone", [1], PATIENCE_S)
        assert worker.pid != first
        assert worker.restarts == 1
        assert "SIGKILL" in worker.status.error

        again = worker.pid
        assert again
        os.kill(again, signal.SIGKILL)  # while it has nothing to do
        await until(lambda: worker.restarts == 2 and worker.status.state == "ready")
        np.testing.assert_array_equal((await speak(worker, row(7)))[0], alone(row(7)))

    play(scene, ProcessWorker(Troubled(tmp_path)))


def test_the_watchdog_kills_what_hangs(tmp_path: Path) -> None:
    async def scene(worker: ProcessWorker) -> None:
        for freeze in (False, True):
            pid = worker.pid
            assert pid
            batch = [(1, row(Trouble.HANGS))]
            if freeze:  # it does not even take the order, which is larger than the line holds
                os.kill(pid, signal.SIGSTOP)
                batch = [(id, row(*range(1, 400))) for id in range(200)]
            with pytest.raises(WorkerLost, match="hangs"):
                await worker.acoustic("tone", batch, 0.1)
            np.testing.assert_array_equal((await speak(worker, row(7)))[0], alone(row(7)))
            assert not psutil.pid_exists(pid)
        assert worker.restarts == 2

    play(scene, ProcessWorker(Troubled(tmp_path)))


def test_a_crash_loop_backs_off_and_its_cause_can_be_read(tmp_path: Path) -> None:
    asked: list[int] = []

    def waits(failures: int) -> float:
        asked.append(failures)
        return 0.0 if failures < 4 else 3600.0

    async def scene() -> None:
        (tmp_path / "deadly").touch()
        worker = ProcessWorker(Troubled(tmp_path), backoff_s=waits)
        starting = asyncio.create_task(worker.start())
        await until(lambda: len(asked) == 4)
        assert worker.status.state == "restarting"
        assert "SIGSEGV" in worker.status.error
        assert Troubled(tmp_path).n_starts() == 4
        await worker.close()  # does not wait for the hour to pass
        with pytest.raises(WorkerLost):
            await starting

    asyncio.run(scene())
    assert asked == [1, 2, 3, 4]


def test_a_worker_that_once_was_ready_never_gives_up(tmp_path: Path) -> None:
    asked: list[int] = []

    def waits(failures: int) -> float:
        asked.append(failures)
        return 0.0

    async def scene(worker: ProcessWorker) -> None:
        for _ in range(2):  # deaths with an answer between them are not a loop
            with pytest.raises(WorkerLost):
                await worker.acoustic("tone", [(1, row(Trouble.DIES))], PATIENCE_S)
            await speak(worker, row(1))
        assert asked == [1, 1]
        (tmp_path / "corrupt").touch()
        with pytest.raises(WorkerLost):
            await worker.acoustic("tone", [(1, row(Trouble.DIES))], PATIENCE_S)
        waiting = asyncio.create_task(speak(worker, row(9)))
        await until(lambda: len(asked) >= 5)
        assert worker.status.error == "the bytes are wrong"
        assert worker.status.state == "restarting"
        (tmp_path / "corrupt").unlink()
        np.testing.assert_array_equal((await waiting)[0], alone(row(9)))

    play(scene, ProcessWorker(Troubled(tmp_path), backoff_s=waits))


@given(st.integers(1, 10_000))
def test_waits_before_a_start_grow_from_nothing_to_a_cap(failures: int) -> None:
    assert backoff_s(1) == 0.0
    assert backoff_s(failures) <= backoff_s(failures + 1) <= MAX_BACKOFF_S
    assert backoff_s(failures) == MAX_BACKOFF_S or backoff_s(failures) < backoff_s(failures + 1)


def test_signals_are_the_parents_business(tmp_path: Path) -> None:
    async def scene(worker: ProcessWorker) -> None:
        assert worker.pid
        for _ in range(3):
            os.kill(worker.pid, signal.SIGINT)
            os.kill(worker.pid, signal.SIGTERM)
        assert await speak(worker, row(1))
        assert worker.restarts == 0

    play(scene, ProcessWorker(Troubled(tmp_path)))


def test_what_is_logged_there_is_heard_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(worker: ProcessWorker) -> None:
        await speak(worker, row(Trouble.LOGS))
        with pytest.raises(Exception, match="nobody thought"):
            await speak(worker, row(Trouble.ODD))

    with caplog.at_level(logging.WARNING, "tutti"):
        play(scene, ProcessWorker(Troubled(tmp_path)))
    assert f"heard in row {Trouble.LOGS:d}" in [record.getMessage() for record in caplog.records]
    assert any("Traceback" in record.getMessage() and "KeyError" in record.getMessage() for record in caplog.records)


def test_a_worker_that_cannot_be_sent_is_refused_at_the_start() -> None:
    async def start() -> None:
        worker = ProcessWorker(lambda: {"tone": ToneModel()})
        with pytest.raises(Exception, match="lambda"):
            await worker.start()
        assert worker.status.state == "failed"
        await worker.close()

    asyncio.run(start())


@linux
def test_calls_and_deaths_leave_no_descriptor_and_no_memory_behind(tmp_path: Path) -> None:
    me, shared = psutil.Process(), Path("/dev/shm")

    def held() -> tuple[int, int]:
        gc.collect()
        return me.num_fds(), Path("/proc/self/maps").read_text().count("memfd:tutti")

    async def scene(worker: ProcessWorker) -> None:
        for _ in range(2):  # descriptors of the last two answers are kept until they have arrived for sure
            await speak(worker, row(1))
        assert worker.pid
        child = psutil.Process(worker.pid)
        await until(lambda: held()[1] == 0)
        before, n_child, names = held(), child.num_fds(), sorted(shared.iterdir())
        for i in range(200):
            await speak(worker, row(1 + i % 50), row(2))
            await worker.both("tone", [(0, row(1 + i % 50)), (1, row(2))], PATIENCE_S)
        await until(lambda: held() == before)
        assert child.num_fds() == n_child
        kept = await speak(worker, row(3), row(4))
        assert held()[1] == 1
        del kept[0]
        with pytest.raises(WorkerLost):
            await speak(worker, row(Trouble.DIES))
        assert await speak(worker, row(1))
        assert held()[1] >= 1
        del kept
        await until(lambda: held() == before)
        assert sorted(shared.iterdir()) == names

    before = me.num_fds()
    play(scene, ProcessWorker(Troubled(tmp_path)))
    assert me.num_fds() <= before + 1  # the resource tracker of multiprocessing stays


@linux
def test_without_a_free_descriptor_a_call_is_lost_but_not_the_worker(tmp_path: Path) -> None:
    async def scene(worker: ProcessWorker) -> None:
        await worker.acoustic("tone", [(1, row(5))], PATIENCE_S)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            with pytest.raises(WorkerLost, match="descriptor"):
                await worker.vocoder("tone", [1], PATIENCE_S)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await speak(worker, row(7))
        assert worker.restarts == 0

    play(scene, ProcessWorker(Troubled(tmp_path)))


PARENT = """
    import asyncio, sys, time
    from pathlib import Path
    from tests.worker.troubled_model import Trouble, Troubled, row
    from tutti.worker.process import ProcessWorker

    async def main(folder, does):
        worker = ProcessWorker(Troubled(folder))
        await worker.start()
        print(worker.pid, flush=True)
        if does == "leaves":
            sys.exit(3)
        if does == "works":
            await worker.acoustic("tone", [(1, row(Trouble.HANGS))], 600)
        await asyncio.sleep(600)

    if __name__ == "__main__":
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("does", ["idles", "works", "leaves"])
def test_no_worker_outlives_its_parent(does: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    shared = Path("/dev/shm")
    before = sorted(shared.iterdir()) if shared.exists() else []
    parent = subprocess.Popen(
        [sys.executable, script, tmp_path, does],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with parent:
        assert parent.stdout
        assert parent.stderr
        child = int(parent.stdout.readline())
        try:
            if does == "leaves":
                assert parent.wait(PATIENCE_S) == 3
            if does == "works":
                while not (tmp_path / "running").exists():
                    time.sleep(0.005)
            parent.kill()
            while alive(child):
                time.sleep(0.005)
            assert parent.stderr.read() == ""
        finally:
            for pid in (parent.pid, child):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert (sorted(shared.iterdir()) if shared.exists() else []) == before


@given(st.lists(st.integers(0, 3000), max_size=6))
def test_what_is_put_on_the_shelf_is_taken_from_it(lengths: list[int]) -> None:
    rows = [np.random.default_rng(n).random(n).astype(np.float32) for n in lengths]
    descriptor = write_samples([np.repeat(part, 2)[::2] for part in rows])
    taken = map_samples(descriptor, lengths)
    os.close(descriptor)
    for there, here in zip(rows, taken, strict=True):
        np.testing.assert_array_equal(there, here)


def official_model(path: Path) -> dict[str, Model]:
    from tutti.model.onnx.model import OnnxModel

    return {"tone": OnnxModel(path, "int8", threads=2)}


@pytest.mark.weights
def test_the_real_model_sounds_the_same_there_and_survives_its_death(official: dict[str, Path]) -> None:
    random = np.random.default_rng(0)
    style = random.normal(0, 0.05, 256).astype(np.float32)
    rows = [Utterance(np.array([0, *random.integers(43, 120, n), 0]), style) for n in (12, 40)]
    model = official_model(official["int8"])["tone"]
    here = model.acoustic(rows)
    expected = model.vocoder(here)
    model.close()

    async def same(worker: ProcessWorker) -> None:
        durations = await worker.acoustic("tone", list(enumerate(rows)), PATIENCE_S)
        for there, frames in zip(durations, here, strict=True):
            np.testing.assert_array_equal(there, frames.durations)
        for spoken, wanted in zip(await worker.vocoder("tone", range(len(rows)), PATIENCE_S), expected, strict=True):
            np.testing.assert_array_equal(spoken, wanted)

    async def scene(worker: ProcessWorker) -> None:
        await same(worker)
        await worker.acoustic("tone", [(id, rows[1]) for id in range(16)], PATIENCE_S)
        assert worker.pid
        child = psutil.Process(worker.pid)
        spent_s = child.cpu_times().user
        doomed = worker.vocoder("tone", range(16), PATIENCE_S)
        await until(lambda: child.cpu_times().user > spent_s + 0.2)  # in the middle of the network
        child.kill()
        with pytest.raises(WorkerLost, match="SIGKILL"):
            await doomed
        await same(worker)
        assert worker.restarts == 1

    play(scene, ProcessWorker(partial(official_model, official["int8"])))
