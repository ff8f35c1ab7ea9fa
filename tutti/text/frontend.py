"""The text front end off the event loop: chunks of many texts concurrently, each text a few chunks at a time.

`G2PPool` runs in child processes, `G2PThread` in threads of this one; why: docs/contributing/decisions/README.md.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Protocol

from tutti import text as front
from tutti.errors import G2PUnavailable
from tutti.text.chunk import Chunk
from tutti.text.chunker import ChunkSizes
from tutti.text.g2p_child import MAX_CHUNKS_AT_ONCE
from tutti.text.g2p_messages import OpenText
from tutti.text.g2p_process import G2PProcess, TextLost

DueTime = Callable[[], float]  # on the monotonic clock


def never() -> float:
    """Nobody listens."""
    return inf


class TextFrontend(Protocol):
    """Turns texts into chunks without blocking the event loop."""

    @property
    def ready(self) -> bool:
        """Whether texts are read now."""

    async def start(self) -> None: ...

    def chunks(self, text: OpenText, due_s: DueTime = never) -> AsyncIterator[Chunk]:
        """Like `tutti.text.chunks` without empty chunks, and some are made ahead. Raises InvalidInput with the first.

        `due_s` tells when the audio of the next one is needed: texts whose listeners run out of it sooner come first.
        """

    async def close(self) -> None: ...


class G2PPool:
    """A pool of processes at a low OS priority: synthesis comes before the text of later chunks."""

    def __init__(
        self,
        pronounce: front.Pronounce,
        workers: int = 1,
        *,
        warm: Sequence[str] = ("en-us",),
        sizes: ChunkSizes | None = None,
    ) -> None:
        """`pronounce` must be picklable; `warm` names the languages to load before the first text."""
        self._processes = [G2PProcess(pronounce, tuple(warm), sizes) for _ in range(workers)]
        self._numbers = itertools.count()

    @property
    def pids(self) -> list[int]:
        """The running processes."""
        return [pid for process in self._processes if (pid := process.pid)]

    @property
    def ready(self) -> bool:
        """Whether a process can answer now."""
        return not all(process.stalled for process in self._processes)

    async def start(self) -> None:
        """Wait until every process has loaded its languages; raise what prevents it."""
        await asyncio.gather(*(process.start() for process in self._processes))

    async def chunks(self, text: OpenText, due_s: DueTime = never) -> AsyncIterator[Chunk]:
        process = min(self._processes, key=lambda process: (process.refuses, process.n_texts))
        number = next(self._numbers)
        process.open(text._replace(number=number, due_s=due_s()))
        n_done, n_deaths, has_ended = 0, 0, False
        try:
            while not has_ended:
                try:
                    batch = await process.next_chunks(number, due_s)
                except TextLost as lost:
                    n_deaths += lost.during_request
                    if n_deaths > 1:
                        raise G2PUnavailable(f"the G2P process broke twice on this text: {lost}") from None
                    process.open(text._replace(number=number, n_done=n_done, due_s=due_s()))
                    continue
                n_deaths, has_ended = 0, batch.ended
                n_done += len(batch.chunks)
                for chunk in batch.chunks:
                    yield chunk
        finally:
            process.close_text(number, ended=has_ended)

    async def close(self) -> None:
        await asyncio.gather(*(process.close() for process in self._processes))


class G2PThread:
    """A pool of threads: for a single listener, or with a remote G2P service."""

    def __init__(self, pronounce: front.Pronounce, workers: int = 1, *, sizes: ChunkSizes | None = None) -> None:
        self._pronounce = pronounce
        self._sizes = sizes
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="g2p")
        self.ready = True

    async def start(self) -> None:
        pass

    async def chunks(self, text: OpenText, due_s: DueTime = never) -> AsyncIterator[Chunk]:
        chunks = text.chunks(self._pronounce, self._sizes)
        loop = asyncio.get_running_loop()
        n_chunks = 1  # at first, so that audio starts early
        while True:
            batch = await loop.run_in_executor(self._threads, take, chunks, n_chunks)
            for chunk in batch:
                if not chunk.is_empty:
                    yield chunk
            if len(batch) < n_chunks:
                return
            if not batch[-1].is_empty:
                n_chunks = MAX_CHUNKS_AT_ONCE

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def take(chunks: Iterator[Chunk], n_chunks: int) -> list[Chunk]:
    return list(itertools.islice(chunks, n_chunks))
