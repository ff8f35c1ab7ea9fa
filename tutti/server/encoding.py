"""Encode speech into bytes: as a whole, or piece by piece as it is made."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tutti.audio import FORMATS, Encoder, true_header
from tutti.errors import NothingToSpeak
from tutti.server.audio_memory import HeldAudio
from tutti.server.errors import TooLarge, no_audio_within
from tutti.server.request import SpeechRequest
from tutti.speech import SAMPLE_RATE, Samples, Speech, WordTime, is_pcm
from tutti.trace import current

# Samples that are encoded and sent at a time. Larger delays the first bytes, smaller costs more calls.
PIECE_SAMPLES = SAMPLE_RATE // 2
PCM_PIECE_SAMPLES = 1 << 16  # the same for samples that only have to be copied: as much as one message holds
# The first of these: more does not fit into the buffers of a connection, and the rest waits for a turn of the loop.
FIRST_PIECE_SAMPLES = 1 << 13
# Encoding a piece in these formats takes less time than handing it to a thread (15 to 100 microseconds).
FAST_FORMATS = tuple(FORMATS[name].media_type for name in ("pcm", "wav", "mulaw", "alaw"))
NO_SAMPLES: Samples = np.zeros(0, np.float32)
_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, eq=False)
class WholeAudio:
    """A complete answer: its bytes, and the facts for its headers."""

    data: bytes
    n_samples: int  # at 24 kHz
    words: tuple[WordTime, ...]
    first: Speech  # without its samples
    encode_s: float
    held: HeldAudio  # counts the bytes as long as they are referenced
    unspoken: tuple[Speech, ...] = ()  # those that name symbols or notices, without samples

    @property
    def n_bytes(self) -> int:
        return len(self.data)

    @property
    def duration_s(self) -> float:
        return self.n_samples / SAMPLE_RATE


def has_letters(text: str, start: int) -> bool:
    """Whether a text has something to be spoken from there on."""
    return _LETTER.search(text, start) is not None


class OpenStream:
    """A stream of speech whose first chunk has arrived. An error before that can still set the HTTP status."""

    def __init__(self, request: SpeechRequest, stream: AsyncGenerator[Speech], first: Speech) -> None:
        self.request = request
        self.first = first
        self._stream = stream
        self._received = [first]
        self.ended = False  # no more speech follows what was received

    @property
    def may_have_ended(self) -> bool:
        """Whether the first chunk may be all: no letters of the text follow it."""
        return not has_letters(self.request.text, self.first.span[1])

    async def look_ahead(self) -> None:
        """Find out whether the first chunk was all: then the answer can have its length."""
        try:
            self._received.append(await anext(self._stream))
        except StopAsyncIteration:
            self.ended = True

    async def speeches(self) -> AsyncIterator[Speech]:
        """All speech from the first on, once; none is kept, nor are the samples of `first`."""
        self.first = replace(self.first, samples=NO_SAMPLES)
        while self._received:
            yield self._received.pop(0)
        async for speech in self._stream:
            yield speech
            del speech

    async def aclose(self) -> None:
        await self._stream.aclose()


async def open_stream(request: SpeechRequest, stream: AsyncGenerator[Speech], timeout_s: float) -> OpenStream:
    """Wait for the first speech; raise the engine's error, or DeadlineExceeded."""
    try:
        async with asyncio.timeout(timeout_s):
            return OpenStream(request, stream, await anext(stream))
    except TimeoutError:
        raise no_audio_within(timeout_s) from None
    except StopAsyncIteration:
        raise NothingToSpeak("the text has nothing that can be spoken", param="input") from None


class PieceEncoder:
    """One encoder that runs in a thread, or on the event loop for formats that take no time."""

    def __init__(self, encoder: Encoder, threads: Executor) -> None:
        self._is_fast = encoder.content_type.startswith(FAST_FORMATS)
        self.content_type = encoder.content_type
        self.first_s = 0.0  # time spent on the first piece
        self._encoder = encoder
        self._threads = threads
        self._first_speech: Speech | None = None
        self._first_piece = b""

    async def encode_first(self, speech: Speech) -> None:
        """Encode the first piece in advance, for `pieces`: an error here can still set the HTTP status."""
        started = time.monotonic()
        self._first_speech, self._first_piece = speech, await self.encode(speech.samples[: first_samples(speech)])
        ended = time.monotonic()
        self.first_s = ended - started
        current.get().span("encode", started, ended, content_type=self.content_type)

    async def pieces(self, speech: Speech) -> AsyncIterator[bytes]:
        """Yield the bytes of a speech piece by piece, so that the first are sent before the last are encoded."""
        start, size = 0, piece_samples(speech)
        if speech is self._first_speech:
            start, self._first_speech = first_samples(speech), None
            yield self._first_piece
            self._first_piece = b""
        for at in range(start, len(speech.samples), size):
            yield await self.encode(speech.samples[at : at + size])

    async def encode(self, samples: Samples) -> bytes:
        if self._is_fast:
            if not is_pcm(samples):
                await asyncio.sleep(0)  # let other requests run between two pieces
            return self._encoder.encode(samples)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._encoder.encode, samples)

    async def flush(self) -> bytes:
        if self._is_fast:
            return self._encoder.flush()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._encoder.flush)


def piece_samples(speech: Speech) -> int:
    return PCM_PIECE_SAMPLES if is_pcm(speech.samples) else PIECE_SAMPLES


def first_samples(speech: Speech) -> int:
    return min(FIRST_PIECE_SAMPLES, piece_samples(speech))


class AnswerBudget:
    """How many bytes may be buffered for one answer, which may have several parts."""

    def __init__(self, max_bytes: float, held: HeldAudio) -> None:
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self.held = held

    def spend(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self.check()
        self.held.grow(n_bytes)

    def refund(self, n_bytes: int) -> None:
        """Stop holding the bytes of a part that failed."""
        self.held.set(self.held.n_bytes - n_bytes)

    def check(self) -> None:
        """Raise if the budget was exceeded."""
        if self._n_bytes > self._max_bytes:
            raise TooLarge(
                f"a whole answer may have {self._max_bytes / 1e6:g} MB; stream it, or choose a smaller format",
                param="stream",
            )


async def encode_whole(stream: OpenStream, threads: Executor, budget: AnswerBudget) -> WholeAudio:
    """Encode the stream to its end, with the true length in the header."""
    request = stream.request
    encoder = PieceEncoder(request.encoder(len(stream.first.samples) if stream.ended else None), threads)
    data, words, unspoken, n_samples = bytearray(), list[WordTime](), list[Speech](), 0
    try:
        await encoder.encode_first(stream.first)
        async for speech in stream.speeches():
            async for piece in encoder.pieces(speech):
                budget.spend(len(piece))
                data += piece
            words += speech.words
            n_samples += len(speech.samples)
            if speech.dropped or speech.notices:
                unspoken.append(replace(speech, samples=NO_SAMPLES))
    except BaseException:  # its traceback may keep the data until a garbage collection
        budget.refund(len(data))
        data.clear()
        raise
    finally:
        await stream.aclose()
    data += await encoder.flush()
    if not stream.ended:
        header = await asyncio.get_running_loop().run_in_executor(
            threads, partial(true_header, request.format.name, sample_rate=request.sample_rate, n_samples=n_samples)
        )
        data[: len(header)] = header
    return WholeAudio(bytes(data), n_samples, tuple(words), stream.first, encoder.first_s, budget.held, tuple(unspoken))
