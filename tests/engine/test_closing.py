"""Closing ends within the grace time and a moment, whatever the processes of the model and of the text do.

The limits here are only there to end a test that hangs: a call may take an hour.
"""

import asyncio
import os
import signal
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from tests.fakes import HEART, Spelling, silent_voices, tone_engine
from tests.worker.fakes import first_stage, row, wait_until
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Utterance
from tutti.text.frontend import G2PPool
from tutti.text.g2p_messages import OpenText
from tutti.worker.process import ProcessWorker

pytestmark = pytest.mark.process

HOUR_S = 3600.0
CLOSES, HALF_SENDS, HANGS = 150, 151, 152  # tokens of rows


class StubbornModel(ToneModel):
    """Closes its connection, or sends the start of a message, and never returns."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        token = int(rows[0].tokens[1])
        sockets = [fd for fd in map(int, os.listdir("/proc/self/fd")) if is_socket(fd)]
        for fd in sockets if token in (CLOSES, HALF_SENDS) else ():
            if token == CLOSES:
                os.close(fd)
            else:
                os.write(fd, b"\1\0\0")
        if token in (CLOSES, HALF_SENDS, HANGS):
            (self.folder / "running").touch()
            time.sleep(HOUR_S)
        return super().acoustic(rows)


def is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


class StubbornModels:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> dict[str, Model]:
        return {"kokoro": StubbornModel(self.folder)}


async def begin(worker: ProcessWorker, folder: Path, token: int) -> asyncio.Future[object]:
    call = worker.run(first_stage([(1, row(token))], checkpoint="kokoro"), HOUR_S)
    await wait_until((folder / "running").exists)
    return call  # type: ignore[return-value]


async def stop_reading(worker: ProcessWorker, folder: Path) -> asyncio.Future[object]:
    """The process stands still, and the supervising thread waits to send it a call that its socket does not hold."""
    assert worker.pid
    os.kill(worker.pid, signal.SIGSTOP)
    call = worker.run(first_stage([(n, row(*range(1, 400))) for n in range(300)], checkpoint="kokoro"), HOUR_S)
    await wait_until(lambda: worker.status.state == "busy")
    return call  # type: ignore[return-value]


async def stop_idle(worker: ProcessWorker, folder: Path) -> None:
    assert worker.pid
    os.kill(worker.pid, signal.SIGSTOP)


STATES: dict[str, Callable[..., object]] = {
    "idle": lambda worker, folder: asyncio.sleep(0),
    "busy": lambda worker, folder: begin(worker, folder, HANGS),
    "stopped": stop_idle,
    "stopped, does not read": stop_reading,
    "closed its connection": lambda worker, folder: begin(worker, folder, CLOSES),
    "sent half a message": lambda worker, folder: begin(worker, folder, HALF_SENDS),
}


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
@pytest.mark.parametrize("state", STATES)
def test_a_worker_closes_whatever_its_process_does(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.worker.process.GRACE_S", 0.1)

    async def scenario() -> None:
        worker = ProcessWorker(StubbornModels(tmp_path))
        await worker.start()
        child = psutil.Process(worker.pid)
        call = await STATES[state](worker, tmp_path)  # type: ignore[misc]
        try:
            async with asyncio.timeout(30):
                await worker.close()
        finally:
            if child.is_running():
                child.kill()
        if call is not None:
            assert (await asyncio.gather(call, return_exceptions=True))[0] is not None
        assert worker.status.state == "closed"

    asyncio.run(scenario())


@pytest.mark.parametrize("state", ["idle", "stopped", "killed"])
def test_the_text_process_closes_whatever_it_does(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.text.g2p_process.GRACE_S", 0.1)

    async def scenario() -> None:
        pool = G2PPool(Spelling().pronounce, 2)
        await pool.start()
        children = [psutil.Process(pid) for pid in pool.pids]
        for child in children:
            if state != "idle":
                child.send_signal(signal.SIGSTOP if state == "stopped" else signal.SIGKILL)
        reading = asyncio.ensure_future(anext(pool.chunks(OpenText("Deep water.", "en-us"))))
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(30):
                await pool.close()
        finally:
            for child in children:
                if child.is_running():
                    child.kill()
        await asyncio.gather(reading, return_exceptions=True)

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["model", "text", "both"])
def test_an_engine_closes_while_its_processes_stand_still_and_streams_end_with_an_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutti.worker.process.GRACE_S", 0.1)
    monkeypatch.setattr("tutti.text.g2p_process.GRACE_S", 0.1)

    async def scenario() -> None:
        engine = tone_engine(silent_voices(tmp_path), worker=ProcessWorker)
        pool = engine.frontend = G2PPool(Spelling().pronounce, 1)
        await engine.start()
        worker = engine.batchers[0].worker
        assert isinstance(worker, ProcessWorker)
        pids = [pid for pid in (worker.pid if name != "text" else None, *(pool.pids if name != "model" else ())) if pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        speaking = asyncio.create_task(engine.speak("Deep water runs.", HEART))
        while not engine.n_streams:
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(30):
                await engine.close(grace_s=0.1)
                (end,) = await asyncio.gather(speaking, return_exceptions=True)
        finally:
            for pid in pids:
                if psutil.pid_exists(pid):
                    os.kill(pid, signal.SIGKILL)
        assert isinstance(end, Exception)

    asyncio.run(scenario())


def test_when_one_part_fails_to_start_the_others_are_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine = tone_engine(silent_voices(tmp_path), worker=ProcessWorker)
        worker = engine.batchers[0].worker
        assert isinstance(worker, ProcessWorker)

        async def fail() -> None:
            await wait_until(lambda: worker.pid is not None)
            raise RuntimeError("no languages")

        engine.frontend.start = fail  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="no languages"):
            await engine.start()
        assert worker.status.state == "closed"
        assert worker.pid is None

    asyncio.run(scenario())


def test_when_one_part_fails_to_close_the_others_are_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine = tone_engine(silent_voices(tmp_path), worker=ProcessWorker)
        worker = engine.batchers[0].worker
        assert isinstance(worker, ProcessWorker)
        await engine.start()

        async def fail() -> None:
            raise RuntimeError("no end")

        engine.frontend.close = fail  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="no end"):
            await engine.close()
        assert worker.pid is None

    asyncio.run(scenario())
