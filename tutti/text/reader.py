"""Whoever reads a text for the engine: chunk by chunk, off the event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from tutti.text import Pronounce, chunks
from tutti.text.chunk import Chunk


class Reader(Protocol):
    """Text in, chunks of phonemes out, each made only when it is asked for."""

    def chunks(self, text: str, code: str) -> AsyncIterator[Chunk]: ...


class ThreadReader:
    """Reads in a thread of this process."""

    def __init__(self, pronounce: Pronounce) -> None:
        self._pronounce = pronounce

    async def chunks(self, text: str, code: str) -> AsyncIterator[Chunk]:
        coming = chunks(text, code, self._pronounce)
        while (chunk := await asyncio.to_thread(next, coming, None)) is not None:
            yield chunk
