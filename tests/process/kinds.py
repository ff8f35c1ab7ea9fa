"""The kinds of children of a server, each as its owner has them, for tests that hold for all.

`python -m tests.process.kinds NAME FOLDER` starts one, prints its process id, and waits.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from tests.fakes import FakeEngine, Spelling, silent_voices
from tests.worker.fakes import FaultyModels, both_stages, row
from tutti.audiobook.jobs import book_process
from tutti.audiobook.jobs.book_process import BookFile, BookProcesses
from tutti.process.supervisor import Supervisor
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.front import pool
from tutti.server.front.pool import HttpProcess, HttpProcesses
from tutti.settings import Settings
from tutti.text import g2p_process
from tutti.text.frontend import G2PPool
from tutti.text.g2p_messages import OpenText
from tutti.worker import process
from tutti.worker.process import ProcessWorker

PATIENT_S = 60.0  # a child that starts may take long on a busy machine
GRACE_S = 0.2


class Kind:
    """An owner of one child."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def supervisor(self) -> Supervisor:
        raise NotImplementedError

    async def start(self) -> None: ...

    def call(self) -> Awaitable[object]:
        """What a caller of the child waits for."""
        raise NotImplementedError

    async def close(self) -> None: ...

    @staticmethod
    def set_limits(monkeypatch: pytest.MonkeyPatch, hang_s: float) -> None:
        """Let a child that does not answer for so long count as hung."""


class TextKind(Kind):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pool = G2PPool(Spelling().pronounce, 1)
        self.start, self.close = self.pool.start, self.pool.close  # type: ignore[method-assign]

    @property
    def supervisor(self) -> Supervisor:
        return self.pool._processes[0]._supervisor

    async def call(self) -> object:
        return [chunk async for chunk in self.pool.chunks(OpenText("Deep water runs.", "en-us"))]

    @staticmethod
    def set_limits(monkeypatch: pytest.MonkeyPatch, hang_s: float) -> None:
        monkeypatch.setattr(g2p_process, "GRACE_S", GRACE_S)
        monkeypatch.setattr(g2p_process, "HANG_S", hang_s)
        monkeypatch.setattr(g2p_process, "START_S", hang_s)


class BookKind(Kind):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.books = BookProcesses()
        self.close = self.books.close  # type: ignore[method-assign]
        (folder / "book.txt").write_text("Deep water runs.\n" * 10)

    @property
    def supervisor(self) -> Supervisor:
        return [*self.books._used, *self.books._unused][0]._supervisor

    async def start(self) -> None:
        await self.call()

    def call(self) -> Awaitable[object]:
        return self.books.check(BookFile(self.folder / "book.txt", "book.txt", None, {}, ()))

    @staticmethod
    def set_limits(monkeypatch: pytest.MonkeyPatch, hang_s: float) -> None:
        monkeypatch.setattr(book_process, "TIMEOUT_S", hang_s)


class WorkerKind(Kind):
    hang_s = PATIENT_S

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.worker = ProcessWorker(FaultyModels(folder))
        self.start, self.close = self.worker.start, self.worker.close  # type: ignore[method-assign]

    @property
    def supervisor(self) -> Supervisor:
        return self.worker._supervisor

    def call(self) -> Awaitable[object]:
        return self.worker.run(both_stages([(1, row(5, 6))]), self.hang_s)

    @staticmethod
    def set_limits(monkeypatch: pytest.MonkeyPatch, hang_s: float) -> None:
        monkeypatch.setattr(process, "GRACE_S", GRACE_S)
        monkeypatch.setattr(process, "START_TIMEOUT_S", hang_s)
        monkeypatch.setattr(WorkerKind, "hang_s", hang_s)


class HttpKind(Kind):
    """While no process answers, the server accepts its connections: here it closes them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.engine = FakeEngine(silent_voices(folder))
        self.listening = socket.create_server(("127.0.0.1", 0))
        # The routes for speech need no more of an engine.
        self.pool = HttpProcesses(cast(EngineProtocol, self.engine), Settings(), CollectorRegistry(), 1)
        self.process: HttpProcess

    @property
    def supervisor(self) -> Supervisor:
        return self.process._supervisor

    async def start(self) -> None:
        await self.engine.start()
        self.pool.load._busy_until_s.value = inf  # the process answers all requests for speech
        self.pool.start([self.listening], lambda sock, _: sock.close())
        self.process = self.pool._processes[0]
        while isinstance(await asyncio.gather(self.call(), return_exceptions=True), Exception):
            await asyncio.sleep(0.05)

    async def call(self) -> object:
        """A refused request, which the process answers by itself."""
        reader, writer = await asyncio.open_connection(*self.listening.getsockname())
        try:
            body = b'{"input": "deep", "speed": 99}'
            writer.write(b"POST /v1/audio/speech HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
            if not (line := await reader.readline()):
                raise ConnectionError("nobody answers")
            return line
        finally:
            writer.close()

    async def close(self) -> None:
        await self.pool.close()
        self.listening.close()

    @staticmethod
    def set_limits(monkeypatch: pytest.MonkeyPatch, hang_s: float) -> None:
        monkeypatch.setattr(pool, "EXIT_S", GRACE_S)
        monkeypatch.setattr(pool, "BEAT_S", 0.1)
        for name, part in (("LATE_BEATS", 0.5), ("HUNG_BEATS", 1.0), ("START_BEATS", 1.0)):
            monkeypatch.setattr(pool, name, round(hang_s / 0.1 * part))


KINDS: dict[str, Callable[[Path], Kind]] = {"worker": WorkerKind, "text": TextKind, "http": HttpKind, "book": BookKind}


async def _wait(kind: Kind) -> None:
    await kind.start()
    print(kind.supervisor.pid, flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(_wait(KINDS[sys.argv[1]](Path(sys.argv[2]))))
