"""The text front end off the event loop: chunks of many texts concurrently, each text a few chunks at a time.

`G2PPool` runs in child processes, `G2PThread` in threads of this one; why, and which when: docs/decisions/0007.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from tutti import text as front
from tutti.errors import G2PUnavailable
from tutti.text.chunk import DEFAULT_PACE, NO_LISTENER, Chunk, ChunkPace, TextClock
from tutti.text.chunker import ChunkSizes
from tutti.text.g2p_child import MAX_CHUNKS_AT_ONCE
from tutti.text.g2p_messages import OpenText
from tutti.text.g2p_process import G2PProcess, TextLost
from tutti.text.options import DEFAULT_OPTIONS, TextOptions
from tutti.text.user_lexicon import UserLexicon


class TextFrontend(Protocol):
    """Turns texts into chunks without blocking the event loop."""

    @property
    def ready(self) -> bool:
        """Whether texts are read now."""

    async def start(self) -> None: ...

    def chunks(
        self,
        text: str,
        code: str,
        user_lexicon: UserLexicon | None = None,
        whole_text: bool = False,
        pace: ChunkPace = DEFAULT_PACE,
        options: TextOptions = DEFAULT_OPTIONS,
        clock: TextClock = NO_LISTENER,
    ) -> AsyncIterator[Chunk]:
        """Like `tutti.text.chunks` without empty chunks, and some are made ahead. Raises InvalidInput with the first.

        `clock` tells when they are needed: texts whose listeners run out of audio sooner come first.
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

    async def chunks(
        self,
        text: str,
        code: str,
        user_lexicon: UserLexicon | None = None,
        whole_text: bool = False,
        pace: ChunkPace = DEFAULT_PACE,
        options: TextOptions = DEFAULT_OPTIONS,
        clock: TextClock = NO_LISTENER,
    ) -> AsyncIterator[Chunk]:
        process = min(self._processes, key=lambda process: (process.refuses, process.n_texts))
        number = next(self._numbers)
        opened = OpenText(
            number, text, code, user_lexicon, whole_text, 0, pace, options, clock.due_s(), clock.symbol_s, clock.caller
        )
        process.open(opened)
        n_done, n_deaths, has_ended = 0, 0, False
        try:
            while not has_ended:
                try:
                    batch = await process.next_chunks(number, clock.due_s)
                except TextLost as lost:
                    n_deaths += lost.during_request
                    if n_deaths > 1:
                        raise G2PUnavailable(f"the G2P process broke twice on this text: {lost}") from None
                    process.open(opened._replace(n_done=n_done, due_s=clock.due_s()))
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

    async def chunks(
        self,
        text: str,
        code: str,
        user_lexicon: UserLexicon | None = None,
        whole_text: bool = False,
        pace: ChunkPace = DEFAULT_PACE,
        options: TextOptions = DEFAULT_OPTIONS,
        clock: TextClock = NO_LISTENER,
    ) -> AsyncIterator[Chunk]:
        chunks = front.chunks(
            text,
            code,
            self._pronounce,
            user_lexicon,
            whole_text=whole_text,
            sizes=self._sizes,
            pace=pace,
            options=options,
        )
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
