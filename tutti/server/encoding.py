"""Speech into bytes: whole, or piece by piece behind a first piece that is already there."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tutti.audio import FORMATS, Encoder, true_header
from tutti.errors import DeadlineExceeded, NothingToSpeak
from tutti.server.errors import TooLarge
from tutti.server.request import SpeechRequest
from tutti.speech import SAMPLE_RATE, Samples, Speech, WordTime

PIECE = SAMPLE_RATE // 2  # samples that are encoded and sent at a time
# What is done with a piece in less time than handing it to a thread takes: 15 to 100 microseconds.
LIGHT = tuple(FORMATS[name].media_type for name in ("pcm", "wav", "mulaw", "alaw"))
_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    """A whole answer: its bytes, and what the headers tell."""

    data: bytes
    n_samples: int  # at 24 kHz
    words: tuple[WordTime, ...]
    first: Speech  # its samples are not kept
    encode_s: float

    @property
    def n_bytes(self) -> int:
        return len(self.data)

    @property
    def duration_s(self) -> float:
        return self.n_samples / SAMPLE_RATE


class Opened:
    """A stream whose first speech has been heard; what fails before that still has a status code to fail with."""

    def __init__(self, ask: SpeechRequest, stream: AsyncGenerator[Speech], first: Speech) -> None:
        self.ask = ask
        self.first = first
        self._stream = stream
        self._head = [first]
        self.ended = False  # nothing comes after what has been heard

    async def look_ahead(self) -> None:
        """Learns whether this was all, where no words are left in the text, so that the answer comes at once."""
        if _LETTER.search(self.ask.text, self.first.span[1]):
            return
        try:
            self._head.append(await anext(self._stream))
        except StopAsyncIteration:
            self.ended = True

    async def speeches(self) -> AsyncIterator[Speech]:
        while self._head:
            yield self._head.pop(0)
        async for speech in self._stream:
            yield speech

    async def aclose(self) -> None:
        await self._stream.aclose()


async def open_stream(ask: SpeechRequest, stream: AsyncGenerator[Speech], timeout_s: float) -> Opened:
    """Waits for the first speech; raises what the engine raises, or DeadlineExceeded."""
    try:
        async with asyncio.timeout(timeout_s):
            return Opened(ask, stream, await anext(stream))
    except TimeoutError:
        raise DeadlineExceeded(f"no sound came within {timeout_s:.0f} s; the server is too busy or too slow") from None
    except StopAsyncIteration:
        raise NothingToSpeak("the text has nothing that can be said", param="input") from None


class Encoding:
    """One encoder, run beside the event loop where it has work to do: samples as they are need no thread."""

    def __init__(self, encoder: Encoder, pool: Executor) -> None:
        self._light = encoder.content_type.startswith(LIGHT)
        self.content_type = encoder.content_type
        self.first_s = 0.0  # what the first piece took
        self._encoder = encoder
        self._pool = pool
        self._begun: Speech | None = None
        self._first = b""

    async def begin(self, speech: Speech) -> None:
        """Encodes the first piece, which `pieces` will not encode again: what fails here still has a status."""
        started = time.monotonic()
        self._begun, self._first = speech, await self.encode(speech.samples[:PIECE])
        self.first_s = time.monotonic() - started

    async def pieces(self, speech: Speech) -> AsyncIterator[bytes]:
        """The bytes of a speech, piece by piece, so that the first do not wait for the last."""
        at = 0
        if speech is self._begun:
            at = PIECE
            yield self._first
        for start in range(at, len(speech.samples), PIECE):
            yield await self.encode(speech.samples[start : start + PIECE])

    async def encode(self, samples: Samples) -> bytes:
        if self._light:
            await asyncio.sleep(0)  # others have their turn between two pieces
            return self._encoder.encode(samples)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._encoder.encode, samples)

    async def flush(self) -> bytes:
        if self._light:
            return self._encoder.flush()
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._encoder.flush)


class Room:
    """How many bytes may be held back for one answer, be it one sound or many."""

    def __init__(self, max_bytes: float) -> None:
        self._max_bytes = max_bytes
        self._n_bytes = 0

    def take(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self.check()

    def check(self) -> None:
        """Raises once more was taken than there is."""
        if self._n_bytes > self._max_bytes:
            raise TooLarge(
                f"a whole answer may have {self._max_bytes / 1e6:g} MB; stream it, or choose a smaller format",
                param="stream",
            )


async def whole(opened: Opened, pool: Executor, room: Room) -> Sound:
    """Everything, encoded as it comes, with the true lengths in its header."""
    ask = opened.ask
    encoding = Encoding(ask.encoder(len(opened.first.samples) if opened.ended else None), pool)
    data, words, n_samples = bytearray(), list[WordTime](), 0
    try:
        await encoding.begin(opened.first)
        async for speech in opened.speeches():
            async for piece in encoding.pieces(speech):
                room.take(len(piece))
                data += piece
            words += speech.words
            n_samples += len(speech.samples)
    finally:
        await opened.aclose()
    data += await encoding.flush()
    if not opened.ended:
        header = await asyncio.get_running_loop().run_in_executor(
            pool, partial(true_header, ask.format.name, sample_rate=ask.sample_rate, n_samples=n_samples)
        )
        data[: len(header)] = header
    bare = replace(opened.first, samples=np.zeros(0, np.float32))
    return Sound(bytes(data), n_samples, tuple(words), bare, encoding.first_s)
