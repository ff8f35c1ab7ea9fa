"""The text front end beside the event loop: chunks of many texts at once, each text's piece by piece.

`G2PPool` reads in processes of its own, `G2PThread` in threads of this one; why, and which when: docs/decisions/0007.
"""

import asyncio
import atexit
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from tutti import text as front
from tutti.errors import G2PUnavailable
from tutti.text.chunk import Chunk
from tutti.text.g2p_process import G2PProcess, NextChunks, OpenStream, StreamLost
from tutti.text.user_lexicon import UserLexicon

MAX_CHUNKS_AT_ONCE = 4  # a new text waits for at most so many chunks of another


class TextFrontend(Protocol):
    """Whoever turns texts into chunks without holding up the event loop."""

    async def start(self) -> None: ...

    def chunks(
        self, text: str, code: str, own: UserLexicon | None = None, patient: bool = False
    ) -> AsyncIterator[Chunk]:
        """As `tutti.text.chunks`, but made some ahead. Raises InvalidInput with the first."""

    async def close(self) -> None: ...


class G2PPool:
    """Processes that read, at a low priority: what sounds now matters more than what sounds next."""

    def __init__(self, pronounce: front.Pronounce, workers: int = 1, *, warm: Sequence[str] = ("en-us",)) -> None:
        """`pronounce` must be picklable; `warm` names the languages to load before the first text."""
        self._clerks = [G2PProcess(pronounce, tuple(warm)) for _ in range(workers)]
        self._streams = itertools.count()

    @property
    def pids(self) -> list[int]:
        """Of the processes that live now."""
        return [pid for clerk in self._clerks if (pid := clerk.pid)]

    async def start(self) -> None:
        """Returns when every process is warm; raises what keeps it from being so."""
        atexit.register(self._kill)
        await asyncio.gather(*(clerk.start() for clerk in self._clerks))

    async def chunks(
        self, text: str, code: str, own: UserLexicon | None = None, patient: bool = False
    ) -> AsyncIterator[Chunk]:
        clerk = min(self._clerks, key=lambda clerk: clerk.n_streams)
        stream, n_done, open_ = next(self._streams), 0, False
        clerk.n_streams += 1
        try:
            for n_chunks in sizes():
                deaths = 0
                while True:
                    try:
                        opens = None if open_ else OpenStream(text, code, own, patient, n_done)
                        made = await clerk.next_chunks(NextChunks(stream, n_chunks, opens))
                        break
                    except StreamLost as lost:
                        open_ = False
                        deaths += lost.during_request
                        if deaths > 1:
                            raise G2PUnavailable(f"the G2P process broke twice on this text: {lost}") from None
                open_ = True
                n_done += len(made)
                for chunk in made:
                    yield chunk
                if len(made) < n_chunks:
                    return
        finally:
            clerk.n_streams -= 1
            clerk.close_stream(stream)

    async def close(self) -> None:
        await asyncio.gather(*(clerk.close() for clerk in self._clerks))
        atexit.unregister(self._kill)

    def _kill(self) -> None:
        for clerk in self._clerks:
            clerk.kill()


class G2PThread:
    """Threads that read: for one listener, or where the words are pronounced by a service far away."""

    def __init__(self, pronounce: front.Pronounce, workers: int = 1) -> None:
        self._pronounce = pronounce
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="g2p")

    async def start(self) -> None:
        pass

    async def chunks(
        self, text: str, code: str, own: UserLexicon | None = None, patient: bool = False
    ) -> AsyncIterator[Chunk]:
        made = front.chunks(text, code, self._pronounce, own, patient=patient)
        loop = asyncio.get_running_loop()
        for n_chunks in sizes():
            batch = await loop.run_in_executor(self._threads, take, made, n_chunks)
            for chunk in batch:
                yield chunk
            if len(batch) < n_chunks:
                return

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def sizes() -> Iterator[int]:
    """How many chunks to make at a time: one, so that sound comes early, then more and more."""
    n_chunks = 1
    while True:
        yield n_chunks
        n_chunks = min(2 * n_chunks, MAX_CHUNKS_AT_ONCE)


def take(chunks: Iterator[Chunk], n_chunks: int) -> list[Chunk]:
    return list(itertools.islice(chunks, n_chunks))
