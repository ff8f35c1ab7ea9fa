"""A worker in its own process may die or hang: it is restarted, and nothing is left behind."""

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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live_text import alive
from tests.worker.fakes import (
    TIMEOUT_S,
    Fault,
    FaultyModels,
    both_stages,
    expected_samples,
    first_stage,
    row,
    second_stage,
    wait_until,
)
from tutti.errors import WorkerLost
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.speech import Samples, Utterance
from tutti.worker.process import ProcessWorker
from tutti.worker.samples import RowFormat, map_samples, write_samples

pytestmark = pytest.mark.process

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def run_scenario(scenario: Callable[[ProcessWorker], Awaitable[None]], worker: ProcessWorker) -> None:
    async def run() -> None:
        await worker.start()
        try:
            await scenario(worker)
        finally:
            await worker.close()

    asyncio.run(run())


async def speak(worker: ProcessWorker, *rows: Utterance) -> Sequence[Samples]:
    await worker.run(first_stage(list(enumerate(rows))), TIMEOUT_S)
    return (await worker.run(second_stage(range(len(rows))), TIMEOUT_S)).samples


def test_concurrent_calls_are_answered_in_order_each_with_its_own_samples(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        rows = [row(1 + i, 2, *[3] * 15 * i) for i in range(30)]
        await worker.run(first_stage(list(enumerate(rows))), TIMEOUT_S)
        order: list[int] = []

        async def call(i: int) -> Sequence[Samples]:
            pair = (await worker.run(second_stage([i, i + 1]), TIMEOUT_S)).samples
            await worker.run(first_stage([(100 + i, row(Fault.LOGS))]), TIMEOUT_S)
            order.append(i)
            return pair

        pairs = await asyncio.gather(*(call(i) for i in range(0, 30, 2)))
        assert order == list(range(0, 30, 2))
        for utterance, samples in zip(rows, [samples for pair in pairs for samples in pair], strict=True):
            np.testing.assert_array_equal(samples, expected_samples(utterance))

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))


def test_a_killed_worker_loses_only_the_running_call_and_is_restarted(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        await worker.run(first_stage([(1, row(5))]), TIMEOUT_S)
        doomed = worker.run(first_stage([(2, row(Fault.HANGS))]), TIMEOUT_S)
        await wait_until((tmp_path / "running").exists)
        waiting = worker.run(first_stage([(3, row(6))]), TIMEOUT_S)
        first = worker.pid
        assert first
        os.kill(first, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="SIGKILL"):
            await doomed
        assert worker.status.state in ("restarting", "ready", "busy")
        await waiting
        np.testing.assert_array_equal(
            (await worker.run(second_stage([3]), TIMEOUT_S)).samples[0], expected_samples(row(6))
        )
        with pytest.raises(WorkerLost):  # between its stages when the worker died
            await worker.run(second_stage([1]), TIMEOUT_S)
        assert worker.pid != first
        assert worker.status.restarts == 1
        assert "SIGKILL" in worker.status.error

        again = worker.pid
        assert again
        os.kill(again, signal.SIGKILL)  # while it has nothing to do
        await wait_until(lambda: worker.status.restarts == 2 and worker.status.state == "ready")
        np.testing.assert_array_equal((await speak(worker, row(7)))[0], expected_samples(row(7)))

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))


def test_a_worker_that_hangs_is_killed(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        for freeze in (False, True):
            pid = worker.pid
            assert pid
            batch = [(1, row(Fault.HANGS))]
            if freeze:  # it does not even read the request, which is larger than the socket's buffer
                os.kill(pid, signal.SIGSTOP)
                batch = [(id, row(*range(1, 400))) for id in range(200)]
            with pytest.raises(WorkerLost, match="hangs"):
                await worker.run(first_stage(batch), 0.1)
            np.testing.assert_array_equal((await speak(worker, row(7)))[0], expected_samples(row(7)))
            assert not psutil.pid_exists(pid)
        assert worker.status.restarts == 2

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))


def test_a_crash_loop_backs_off_and_its_cause_is_in_the_status(tmp_path: Path) -> None:
    failures_seen: list[int] = []

    def backoff(failures: int) -> float:
        failures_seen.append(failures)
        return 0.0 if failures < 4 else 3600.0

    async def scenario() -> None:
        (tmp_path / "deadly").touch()
        worker = ProcessWorker(FaultyModels(tmp_path), backoff_s=backoff)
        starting = asyncio.create_task(worker.start())
        await wait_until(lambda: len(failures_seen) == 4)
        assert worker.status.state == "restarting"
        assert "SIGSEGV" in worker.status.error
        assert FaultyModels(tmp_path).n_starts() == 4
        await worker.close()  # does not wait for the hour to pass
        with pytest.raises(WorkerLost):
            await starting

    asyncio.run(scenario())
    assert failures_seen == [1, 2, 3, 4]


def test_a_worker_that_was_ready_once_is_restarted_for_ever(tmp_path: Path) -> None:
    failures_seen: list[int] = []

    def backoff(failures: int) -> float:
        failures_seen.append(failures)
        return 0.0

    async def scenario(worker: ProcessWorker) -> None:
        for _ in range(2):  # deaths with an answer between them are not a loop
            with pytest.raises(WorkerLost):
                await worker.run(first_stage([(1, row(Fault.DIES))]), TIMEOUT_S)
            await speak(worker, row(1))
        assert failures_seen == [1, 1]
        (tmp_path / "corrupt").touch()
        with pytest.raises(WorkerLost):
            await worker.run(first_stage([(1, row(Fault.DIES))]), TIMEOUT_S)
        waiting = asyncio.create_task(speak(worker, row(9)))
        await wait_until(lambda: len(failures_seen) >= 5)
        assert worker.status.error == "the bytes are wrong"
        assert worker.status.state == "restarting"
        (tmp_path / "corrupt").unlink()
        np.testing.assert_array_equal((await waiting)[0], expected_samples(row(9)))

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path), backoff_s=backoff))


def test_a_worker_process_ignores_ctrl_c_and_sigterm(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        assert worker.pid
        for _ in range(3):
            os.kill(worker.pid, signal.SIGINT)
            os.kill(worker.pid, signal.SIGTERM)
        assert await speak(worker, row(1))
        assert worker.status.restarts == 0

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))


def test_log_records_of_the_process_reach_the_parents_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        await speak(worker, row(Fault.LOGS))
        with pytest.raises(Exception, match="unforeseen"):
            await speak(worker, row(Fault.UNEXPECTED))

    with caplog.at_level(logging.WARNING, "tutti"):
        run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))
    assert f"logged in row {Fault.LOGS:d}" in [record.getMessage() for record in caplog.records]
    assert any("Traceback" in record.getMessage() and "KeyError" in record.getMessage() for record in caplog.records)


def test_a_factory_that_cannot_be_pickled_fails_the_start() -> None:
    async def start() -> None:
        worker = ProcessWorker(lambda: {"tone": ToneModel()})
        with pytest.raises(Exception, match="lambda"):
            await worker.start()
        assert worker.status.state == "failed"
        await worker.close()

    asyncio.run(start())


@linux
def test_calls_and_crashes_leave_no_descriptor_and_no_memory_behind(tmp_path: Path) -> None:
    me, shared = psutil.Process(), Path("/dev/shm")

    def open_counts() -> tuple[int, int]:
        gc.collect()
        return me.num_fds(), Path("/proc/self/maps").read_text().count("memfd:tutti")

    async def scenario(worker: ProcessWorker) -> None:
        for _ in range(2):  # descriptors of the last two answers stay open until they have surely arrived
            await speak(worker, row(1))
        assert worker.pid
        child = psutil.Process(worker.pid)
        await wait_until(lambda: open_counts()[1] == 0)
        before, n_child, names = open_counts(), child.num_fds(), sorted(shared.iterdir())
        for i in range(200):
            await speak(worker, row(1 + i % 50), row(2))
            await worker.run(both_stages([(0, row(1 + i % 50)), (1, row(2))]), TIMEOUT_S)
        await wait_until(lambda: open_counts() == before)
        assert child.num_fds() == n_child
        samples = await speak(worker, row(3), row(4))
        assert open_counts()[1] == 1
        del samples[0]
        with pytest.raises(WorkerLost):
            await speak(worker, row(Fault.DIES))
        assert await speak(worker, row(1))
        assert open_counts()[1] >= 1
        del samples
        await wait_until(lambda: open_counts() == before)
        assert sorted(shared.iterdir()) == names

    before = me.num_fds()
    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))
    assert me.num_fds() <= before + 1  # the resource tracker of multiprocessing stays


@linux
def test_without_a_free_descriptor_a_call_is_lost_but_not_the_worker(tmp_path: Path) -> None:
    async def scenario(worker: ProcessWorker) -> None:
        await worker.run(first_stage([(1, row(5))]), TIMEOUT_S)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            with pytest.raises(WorkerLost, match="descriptor"):
                await worker.run(second_stage([1]), TIMEOUT_S)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await speak(worker, row(7))
        assert worker.status.restarts == 0

    run_scenario(scenario, ProcessWorker(FaultyModels(tmp_path)))


PARENT = """
    import asyncio, sys, time
    from pathlib import Path
    from tests.worker.fakes import Fault, FaultyModels, first_stage, row
    from tutti.worker.process import ProcessWorker

    async def main(folder, action):
        worker = ProcessWorker(FaultyModels(folder))
        await worker.start()
        print(worker.pid, flush=True)
        if action == "exits":
            sys.exit(3)
        if action == "works":
            await worker.run(first_stage([(1, row(Fault.HANGS))]), 600)
        await asyncio.sleep(600)

    if __name__ == "__main__":
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("action", ["idles", "works", "exits"])
def test_no_worker_process_outlives_its_parent(action: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    shared = Path("/dev/shm")
    before = sorted(shared.iterdir()) if shared.exists() else []
    parent = subprocess.Popen(
        [sys.executable, script, tmp_path, action],
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
            if action == "exits":
                assert parent.wait(TIMEOUT_S) == 3
            if action == "works":
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
def test_samples_written_to_shared_memory_are_mapped_unchanged(lengths: list[int]) -> None:
    rows = [np.random.default_rng(n).random(n).astype(np.float32) for n in lengths]
    descriptor = write_samples([np.repeat(part, 2)[::2] for part in rows])
    mapped = map_samples(descriptor, [RowFormat(length) for length in lengths])
    os.close(descriptor)
    for expected, actual in zip(rows, mapped, strict=True):
        np.testing.assert_array_equal(actual, expected)


def official_model(path: Path) -> dict[str, Model]:
    from tutti.model.onnx.model import OnnxModel

    return {"tone": OnnxModel(path, "int8", threads=2)}


@pytest.mark.weights
def test_the_real_model_sounds_the_same_in_a_worker_process_also_after_a_crash(official: dict[str, Path]) -> None:
    random = np.random.default_rng(0)
    style = random.normal(0, 0.05, 256).astype(np.float32)
    rows = [Utterance(np.array([0, *random.integers(43, 120, n), 0]), style) for n in (12, 40)]
    model = official_model(official["int8"])["tone"]
    expected_frames = model.acoustic(rows)
    expected = model.vocoder(expected_frames)
    model.close()

    async def assert_same(worker: ProcessWorker) -> None:
        durations = (await worker.run(first_stage(list(enumerate(rows))), TIMEOUT_S)).durations
        for actual, frames in zip(durations, expected_frames, strict=True):
            np.testing.assert_array_equal(actual, frames.durations)
        spoken = (await worker.run(second_stage(range(len(rows))), TIMEOUT_S)).samples
        for samples, expected_row in zip(spoken, expected, strict=True):
            np.testing.assert_array_equal(samples, expected_row)

    async def scenario(worker: ProcessWorker) -> None:
        await assert_same(worker)
        await worker.run(first_stage([(id, rows[1]) for id in range(16)]), TIMEOUT_S)
        assert worker.pid
        child = psutil.Process(worker.pid)
        spent_s = child.cpu_times().user
        doomed = worker.run(second_stage(range(16)), TIMEOUT_S)
        await wait_until(lambda: child.cpu_times().user > spent_s + 0.2)  # in the middle of the network
        child.kill()
        with pytest.raises(WorkerLost, match="SIGKILL"):
            await doomed
        await assert_same(worker)
        assert worker.status.restarts == 1

    run_scenario(scenario, ProcessWorker(partial(official_model, official["int8"])))
