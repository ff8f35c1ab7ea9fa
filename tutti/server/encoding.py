"""Encode speech into bytes: as a whole, or piece by piece as it is made."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tutti.admission.ticket import NO_CLIENT, Delivery, Ticket
from tutti.audio import Encoder, true_header
from tutti.errors import NothingToSpeak
from tutti.server.audio_memory import HeldAudio
from tutti.server.encoders import DUE_S, Encoders
from tutti.server.errors import TooLarge, no_audio_within
from tutti.server.request import SpeechRequest
from tutti.speech import SAMPLE_RATE, Samples, Speech, WordTime, is_pcm
from tutti.trace import current_trace

# Samples that are encoded and sent at a time. Larger delays the first bytes, smaller costs more calls.
PIECE_SAMPLES = SAMPLE_RATE // 2
PCM_PIECE_SAMPLES = 1 << 16  # the same for samples that only have to be copied: as much as one message holds
# The first of these: more does not fit into the buffers of a connection, and the rest waits for a turn of the loop.
FIRST_PIECE_SAMPLES = 1 << 13
# Encoding a piece in these formats takes less time than handing it to a thread (15 to 100 microseconds).
FAST_FORMATS = ("pcm", "wav", "mulaw", "alaw")
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

    @property
    def n_samples(self) -> int | None:
        """How many samples there are in all, if the first chunk is all."""
        return len(self.first.samples) if self.ended else None

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


async def open_stream(
    request: SpeechRequest, stream: AsyncGenerator[Speech], timeout_s: float, ticket: Ticket = NO_CLIENT
) -> OpenStream:
    """Wait for the first speech; raise the engine's error, or DeadlineExceeded. The timeout began with the request."""
    try:
        async with asyncio.timeout(ticket.left_s(timeout_s, time.monotonic())):
            return OpenStream(request, stream, await anext(stream))
    except TimeoutError:
        raise no_audio_within(timeout_s) from None
    except StopAsyncIteration:
        raise NothingToSpeak("the text has nothing that can be spoken", param="input") from None


class PieceEncoder:
    """The encoder of one answer: it runs in the threads of all, or on the event loop for formats that take no time."""

    def __init__(
        self,
        encoders: Encoders,
        request: SpeechRequest,
        delivery: Delivery = "live",
        n_samples: int | None = None,
    ) -> None:
        """`n_samples`, if known, is written into headers."""
        self.content_type = request.content_type
        self.first_s = 0.0  # time spent on the first piece
        self._format = request.format.name
        self._encoders = encoders
        self._open = partial(request.encoder, n_samples)
        self._encoder: Encoder | None = None
        self._due_s = encoders.clock() + DUE_S[delivery]  # when the next piece is needed
        self._delivery = delivery
        self._requested_s: float | None = None  # until the first bytes of what was asked for then are there
        self._first_speech: Speech | None = None
        self._first_piece = b""

    async def encode_first(self, speech: Speech) -> None:
        """Encode the first piece in advance, for `pieces`: an error here can still set the HTTP status."""
        started = time.monotonic()
        self._requested_s = speech.timing.requested_s
        self._first_speech, self._first_piece = speech, await self.encode(speech.samples[: first_samples(speech)])
        ended = time.monotonic()
        self.first_s = ended - started
        current_trace.get().record_step("encode", started, ended, content_type=self.content_type)

    async def pieces(self, speech: Speech) -> AsyncIterator[bytes]:
        """Yield the bytes of a speech piece by piece, so that the first are sent before the last are encoded."""
        start, size = 0, piece_samples(speech)
        if speech is self._first_speech:
            start, self._first_speech = first_samples(speech), None
            yield self._first_piece
            self._first_piece = b""
        else:
            self._due_s = max(self._due_s, self._encoders.clock())  # the listener had to wait for it
            self._requested_s = speech.timing.requested_s or self._requested_s
        for at in range(start, len(speech.samples), size):
            yield await self.encode(speech.samples[at : at + size])

    async def encode(self, samples: Samples) -> bytes:
        data = await self._encoded(samples)
        if data and self._requested_s is not None:
            self._encoders.first_audio(self._encoders.clock() - self._requested_s, self._delivery)
            self._requested_s = None
        return data

    async def _encoded(self, samples: Samples) -> bytes:
        if self._format in FAST_FORMATS:
            if not is_pcm(samples):
                await asyncio.sleep(0)  # let other requests run between two pieces
            return self._encode(samples)
        due_s, n_samples = self._due_s, len(samples)
        self._due_s += n_samples / SAMPLE_RATE
        encoding = partial(self._encode, samples)
        return await self._encoders.encode(encoding, due_s, self._format, n_samples, is_live=self._delivery == "live")

    async def flush(self) -> bytes:
        return self._flush() if self._format in FAST_FORMATS else await self._encoders.run(self._flush, self._due_s)

    async def true_header(self, request: SpeechRequest, n_samples: int) -> bytes:
        """The header to write over the start of the answer, now that its length is known."""
        header = partial(true_header, self._format, sample_rate=request.sample_rate, n_samples=n_samples)
        return await self._encoders.run(header, self._due_s)

    def _encode(self, samples: Samples) -> bytes:
        self._encoder = self._encoder or self._open()  # here: it may take some milliseconds
        return self._encoder.encode(samples)

    def _flush(self) -> bytes:
        self._encoder = self._encoder or self._open()
        return self._encoder.flush()


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


async def encode_whole(
    stream: OpenStream, encoders: Encoders, budget: AnswerBudget, delivery: Delivery = "live"
) -> WholeAudio:
    """Encode the stream to its end, with the true length in the header."""
    request = stream.request
    encoder = PieceEncoder(encoders, request, delivery, stream.n_samples)
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
        header = await encoder.true_header(request, n_samples)
        data[: len(header)] = header
    return WholeAudio(bytes(data), n_samples, tuple(words), stream.first, encoder.first_s, budget.held, tuple(unspoken))
