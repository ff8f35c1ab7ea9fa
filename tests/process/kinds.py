"""The kinds of children of a server, each as its owner has them, for tests that hold for all.

`python -m tests.process.kinds NAME FOLDER` starts one, prints its process id, and waits.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.fakes import Spelling
from tests.worker.fakes import FaultyModels, row
from tutti.audiobook.jobs import book_process
from tutti.audiobook.jobs.book_process import BookFile, BookProcesses
from tutti.process.supervisor import Supervisor
from tutti.text import g2p_process
from tutti.text.frontend import G2PPool
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
        return [chunk async for chunk in self.pool.chunks("Deep water runs.", "en-us")]

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
        return self.books.check(BookFile(self.folder / "book.txt", "book.txt", None, {}))

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
        return self.worker.both_stages("tone", [(1, row(5, 6))], self.hang_s)

    @staticmethod
    def set_limits(monkeypatch: pytest.MonkeyPatch, hang_s: float) -> None:
        monkeypatch.setattr(process, "GRACE_S", GRACE_S)
        monkeypatch.setattr(process, "START_TIMEOUT_S", hang_s)
        monkeypatch.setattr(WorkerKind, "hang_s", hang_s)


KINDS: dict[str, Callable[[Path], Kind]] = {"worker": WorkerKind, "text": TextKind, "book": BookKind}


async def _wait(kind: Kind) -> None:
    await kind.start()
    print(kind.supervisor.pid, flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(_wait(KINDS[sys.argv[1]](Path(sys.argv[2]))))
