"""A stream of pieces: `AsyncStream` for async code, `Stream` for blocking code."""

from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Self

from tutti.client.audio import Piece
from tutti.client.call_stats import Call, Stopwatch
from tutti.client.sync_bridge import LoopThread

PieceLists = AsyncGenerator[list[Piece]]  # the pieces of one network read each


class AsyncStream:
    """`async for piece in stream`. Leaving early closes it, and the server stops synthesis."""

    def __init__(self, start: Callable[[Stopwatch], PieceLists], watch: Stopwatch) -> None:
        self._watch = watch
        self._batches = start(watch)
        self._ready: list[Piece] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        while not self._ready:
            self._ready = (await anext(self._batches))[::-1]
        return self._ready.pop()

    async def batch(self) -> list[Piece]:
        """Return the pieces of the next network read, or an empty list at the end."""
        ready, self._ready = self._ready[::-1], []
        return ready or await anext(self._batches, [])

    @property
    def call(self) -> Call:
        """Timings up to now."""
        return self._watch.call()

    async def aclose(self) -> None:
        self._ready = []
        await self._batches.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Stream:
    """`for piece in stream`. Leaving a `with` early, or dropping the stream, closes it."""

    def __init__(self, stream: AsyncStream, loop: LoopThread) -> None:
        self._stream = stream
        self._loop = loop
        self._ready: list[Piece] = []
        self._open = True

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        # One switch to the loop's thread for each network read, not for each small piece.
        if not self._ready and self._open:
            self._ready = self._loop.run(self._stream.batch())[::-1]
        if not self._ready:
            self._open = False
            raise StopIteration
        return self._ready.pop()

    @property
    def call(self) -> Call:
        return self._stream.call

    def close(self) -> None:
        if self._open:
            self._open, self._ready = False, []
            self._loop.run(self._stream.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
