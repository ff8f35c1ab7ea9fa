"""Answers with audio: whole with a length, or streamed as raw bytes, server-sent events or lines of JSON."""

import asyncio
import base64
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence, Set
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from tutti.admission.ticket import Delivery, Ticket
from tutti.errors import DeadlineExceeded
from tutti.server.audio_memory import HeldAudio
from tutti.server.client_timeout import WAIT_SHARE, first_audio_timeout_s, max_start_s, requested_timeout_s
from tutti.server.disconnect import ClientDisconnected, cancel_on_disconnect
from tutti.server.encoding import (
    FAST_FORMATS,
    AnswerBudget,
    OpenStream,
    PieceEncoder,
    WholeAudio,
    encode_whole,
    open_stream,
)
from tutti.server.errors import error_body, note_cut
from tutti.server.front.limits import READ_STALL_FACTOR
from tutti.server.notices import ignored_headers, notice_fields, notice_headers
from tutti.server.reader_pace import STREAM_BYTES_PER_S, WHOLE_BYTES_PER_S, PacedSend, SlowReader
from tutti.server.request import SpeechRequest
from tutti.server.service import Service
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, PhonemeTime, Speech, WordTime
from tutti.text.visemes import ipa, visemes

SEND_BYTES = 1 << 17  # per message; even, so that no sample is split. A slow reader's buffer holds two of these
EVENT_BYTES = 24 << 10  # of audio per event, 32 kB as base64: some clients read lines of at most 64 kB
Pieces = AsyncIterator[bytes]
Tee = Callable[[AsyncGenerator[Speech]], AsyncGenerator[Speech]]
ErrorPiece = Callable[[dict[str, Any]], bytes]
Result = TypeVar("Result")


async def cached_response(service: Service, request: Request, speech_request: SpeechRequest) -> Response:
    """The whole audio with its length and ETag, from the cache if the same was requested before."""
    if response := not_modified(service, request, speech_request):
        return response
    await asyncio.sleep(0)  # the body was just parsed; its lexicon may have megabytes
    etag = service.etag(speech_request, request.state.caller)
    service.check_text(len(speech_request.text), request.state.caller)
    default_s = service.settings.timeout_s
    # Others may wait for the same answer: a hasty client gives up by itself, below.
    start_s = max(default_s, first_audio_timeout_s(request.headers, default_s))
    ticket = ticket_of(request, WAIT_SHARE * start_s if start_s > default_s else None)
    speaking = service.cache.get(
        (request.state.key, etag),
        lambda began: speak_whole(service, speech_request, ticket, began=began),
        start_s,
        ticket,
    )
    completing = complete_within(requested_timeout_s(request.headers), speaking, ticket)
    whole = await cancel_on_disconnect(request.receive, completing)
    return whole_response(service, speech_request, whole, etag)


async def streamed_response(service: Service, request: Request, speech_request: SpeechRequest) -> Response:
    """Raw audio as it is made; if the first chunk is all there is, with its duration and ETag.

    Then it has its length in bytes, too, where that is known without a wait for the encoder.
    """
    if response := not_modified(service, request, speech_request):
        return response
    return await raw_response(service, request, await start_stream(service, request, speech_request.without_words()))


async def raw_response(service: Service, request: Request, stream: OpenStream) -> Response:
    """The raw audio of a stream that has begun."""
    if stream.may_have_ended:
        await cancel_on_disconnect(request.receive, stream.look_ahead())
    if stream.ended and stream.request.format.name in FAST_FORMATS:
        response = await finished_response(service, request, stream)
        response.headers.update(stream_headers(service, request))
        return response
    encoder = await start_encoder(service, stream)
    pieces = audio_pieces(stream, encoder)
    response = streaming_response(service, request, stream, encoder, pieces, encoder.content_type)
    if stream.n_samples is not None:
        etag = service.etag(stream.request, request.state.caller)
        response.headers.update(whole_headers(stream.n_samples / SAMPLE_RATE, etag))
    return response


async def finished_response(service: Service, request: Request, stream: OpenStream) -> Response:
    """The whole audio of a stream that has begun."""
    whole = await finish_stream(service, request, stream)
    return whole_response(service, stream.request, whole, service.etag(stream.request, request.state.caller))


async def event_response(service: Service, request: Request, speech_request: SpeechRequest) -> Response:
    """Server-sent events as the audio is made."""
    stream = await start_stream(service, request, speech_request)
    encoder = await start_encoder(service, stream)
    pieces = audio_events(stream, encoder)
    return streaming_response(service, request, stream, encoder, pieces, "text/event-stream", error_event)


def not_modified(service: Service, request: Request, speech_request: SpeechRequest) -> Response | None:
    """Return 304 if the caller has this answer. HTTP defines that for GET only, but this POST changes nothing."""
    tags = request.headers.get("if-none-match")
    if tags is None:
        return None
    etag = service.etag(speech_request, request.state.caller)
    if etag not in map(str.strip, tags.split(",")):
        return None
    return Response(status_code=304, headers={"etag": etag})


async def start_stream(
    service: Service,
    request: Request,
    speech_request: SpeechRequest,
    tee: Tee = lambda speeches: speeches,
    delivery: Delivery = "live",
) -> OpenStream:
    """Return the stream with its first speech, or raise an error that can still set the status; `tee` sees it all."""
    service.check_text(len(speech_request.text), request.state.caller)
    default_s = service.settings.timeout_s
    ticket = ticket_of(request, max_start_s(request.headers, default_s))._replace(delivery=delivery)
    timeout_s = first_audio_timeout_s(request.headers, default_s)
    opening = open_stream(speech_request, tee(service.speak(speech_request, ticket)), timeout_s, ticket)
    return await cancel_on_disconnect(request.receive, opening)


def ticket_of(request: Request, max_start_s: float | None = None) -> Ticket:
    """The ticket of a request, as far as the middleware knows it, with the wait that its client allows."""
    state = request.state
    return Ticket(state.caller, id=state.request_id, arrived_s=state.arrived_s, max_start_s=max_start_s)


async def complete_within(timeout_s: float | None, work: Coroutine[Any, Any, Result], ticket: Ticket) -> Result:
    """Return the result of `work`; raise DeadlineExceeded if it is not there in time, and cancel the work."""
    try:
        async with asyncio.timeout(None if timeout_s is None else ticket.left_s(timeout_s, time.monotonic())):
            return await work
    except TimeoutError:
        raise DeadlineExceeded(f"not complete within {timeout_s:g} s, the time in X-Request-Timeout") from None


async def finish_stream(service: Service, request: Request, stream: OpenStream) -> WholeAudio:
    """Encode the stream to its end."""
    encoding = encode_whole(stream, service.encoders, service.answer_budget(request.state.caller))
    return await cancel_on_disconnect(request.receive, encoding)


async def speak_whole(
    service: Service,
    request: SpeechRequest,
    ticket: Ticket,
    *,
    budget: AnswerBudget | None = None,
    began: asyncio.Event | None = None,
) -> WholeAudio:
    """Speak to the end. With a shared `budget` it is one part of a larger answer, and has low priority.

    `began` is set with the first audio; then its callers watch the time until that, and not this function.
    """
    delivery: Delivery = "live" if request.urgent else "whole" if budget is None else "bulk"
    stream = service.speak(request, ticket._replace(delivery=delivery))
    opened = await open_stream(request, stream, service.settings.timeout_s if began is None else math.inf)
    if began is not None:
        began.set()
    return await encode_whole(opened, service.encoders, budget or service.answer_budget(ticket.caller), delivery)


async def start_encoder(service: Service, stream: OpenStream) -> PieceEncoder:
    """Encode the first piece, so that an encoder's error comes before the status is sent."""
    encoder = PieceEncoder(service.encoders, stream.request, n_samples=stream.n_samples)
    try:
        await encoder.encode_first(stream.first)
    except BaseException:
        await stream.aclose()
        raise
    return encoder


def audio_headers(
    service: Service, request: SpeechRequest, first: Speech, encode_s: float, unspoken: Iterable[Speech] | None = None
) -> dict[str, str]:
    """Headers of every answer with audio; `unspoken` are the speeches with something to name, by default the first."""
    timing = first.timing
    steps = {"g2p": timing.g2p_s, "queue": timing.queue_s, "acoustic": timing.acoustic_s, "vocoder": timing.vocoder_s}
    headers = {
        "cache-control": "no-store",
        "server-timing": ", ".join(f"{step};dur={1000 * s:.1f}" for step, s in {**steps, "encode": encode_s}.items()),
        "x-accel-buffering": "no",
        "x-batch-size": str(timing.batch_rows),
        "x-batching-enabled": str(service.engine.batching_enabled).lower(),
        "x-voice-used": request.params.voice,
    }
    return headers | ignored_headers(request.ignored) | notice_headers([first] if unspoken is None else unspoken)


def whole_response(service: Service, request: SpeechRequest, whole: WholeAudio, etag: str) -> Response:
    headers = audio_headers(service, request, whole.first, whole.encode_s, whole.unspoken)
    headers |= whole_headers(whole.duration_s, etag)
    return WholeResponse(service, whole.data, whole.held, headers=headers, media_type=request.content_type)


def whole_headers(duration_s: float, etag: str) -> dict[str, str]:
    """Headers of an answer whose audio is known to its end."""
    return {"x-audio-duration": f"{duration_s:.3f}", "etag": etag}


def stream_headers(service: Service, request: Request) -> dict[str, str]:
    """Headers of every answer that may be streamed, also if it is sent at once."""
    mode, n_chunks = service.streaming_mode, service.n_bypass_chunks
    mode = f"bypass-first-{n_chunks}-chunks" if mode == "bypass-first-chunks" else mode
    return {
        "x-stream-id": request.state.request_id,
        "x-streaming-mode": mode,
        "x-bypass-chunks": str(n_chunks),
    }


def streaming_response(
    service: Service,
    request: Request,
    stream: OpenStream,
    encoder: PieceEncoder,
    pieces: Pieces,
    media_type: str,
    error_piece: ErrorPiece | None = None,
) -> Response:
    headers = audio_headers(service, stream.request, stream.first, encoder.first_s) | stream_headers(service, request)
    return StreamedAudio(service, stream, pieces, media_type, headers, error_piece)


class WholeResponse(Response):
    """An answer with its length, sent at the pace of its reader. Its bytes count as held until then."""

    def __init__(self, service: Service, data: bytes, held: HeldAudio, **options: Any) -> None:
        super().__init__(data, **options)
        self._held = held
        self._grace_s = READ_STALL_FACTOR * service.settings.idle_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await cancel_on_disconnect(receive, PacedSend(send, self._grace_s, WHOLE_BYTES_PER_S).run(self._send))
        except ClientDisconnected:
            scope["state"]["outcome"] = "left"
        except SlowReader as error:  # uvicorn closes the connection before the end of the answer
            scope["state"]["outcome"] = f"cut:{error.code}"
        finally:  # the traceback of an error may keep this object until a garbage collection
            self.body = b""
            del self._held

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in split_bytes(bytes(self.body), SEND_BYTES):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class StreamedAudio(Response):
    """An answer that is sent while it is made. A disconnect of the client closes the stream.

    After an error it ends with the `error_piece`; raw audio has none, and its transfer is broken off.
    """

    def __init__(
        self,
        service: Service,
        stream: OpenStream,
        pieces: Pieces,
        media_type: str,
        headers: dict[str, str],
        error_piece: ErrorPiece | None = None,
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._stream = stream
        self.pieces = pieces
        self._error_piece = error_piece
        self._grace_s = READ_STALL_FACTOR * service.settings.idle_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        try:
            sending = PacedSend(send, self._grace_s, STREAM_BYTES_PER_S).run(lambda paced: self._send(paced, state))
            await cancel_on_disconnect(receive, sending)
        except ClientDisconnected:
            state["outcome"] = "left"
        except Exception as error:  # noqa: BLE001 - a bug is logged with its traceback
            # Return without the final chunk: uvicorn closes the connection, and the client sees a broken transfer.
            note_cut(state, error)
        finally:
            await self._stream.aclose()

    async def _send(self, send: Send, state: dict[str, Any]) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for piece in self.pieces:
                for part in split_bytes(piece, SEND_BYTES):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                    del part
                del piece  # sent: it need not be held until the next one is there
        except Exception as error:
            if self._error_piece is None:
                raise
            last = self._error_piece(error_body(note_cut(state, error)))
            await send({"type": "http.response.body", "body": last, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def split_bytes(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


async def audio_pieces(stream: OpenStream, encoder: PieceEncoder) -> Pieces:
    """Yield the bytes of a raw stream."""
    async for speech in stream.speeches():
        async for piece in encoder.pieces(speech):
            yield piece
            del piece
        del speech
    yield await encoder.flush()


async def audio_events(stream: OpenStream, encoder: PieceEncoder) -> Pieces:
    """Yield the audio as OpenAI's server-sent events; after each part of it the times that are asked for."""
    n_samples = 0
    async for speech in stream.speeches():
        n_samples += len(speech.samples)
        async for piece in encoder.pieces(speech):
            for delta in delta_events(piece):
                yield delta
            await asyncio.sleep(0)  # many pieces may be ready, and a fast reader keeps no send waiting
        if unspoken := notice_fields([speech]):
            yield sse_event({"type": "speech.audio.notice", **unspoken})
        for name, rows in time_lists(speech.words, stream.request.times).items():
            yield sse_event({"type": f"speech.audio.{name}", name: rows})
            await asyncio.sleep(0)
        del speech
    for delta in delta_events(await encoder.flush()):
        yield delta
    n_in, n_out = len(stream.request.text), n_samples // SAMPLES_PER_FRAME
    usage = {"input_tokens": n_in, "output_tokens": n_out, "total_tokens": n_in + n_out}
    yield sse_event({"type": "speech.audio.done", "usage": usage})


def error_event(error: dict[str, Any]) -> bytes:
    return sse_event({"type": "speech.audio.error", **error})


def delta_events(data: bytes) -> Iterator[bytes]:
    parts = split_bytes(data, EVENT_BYTES)
    return (sse_event({"type": "speech.audio.delta", "audio": base64_text(part)}) for part in parts)


def sse_event(content: dict[str, Any]) -> bytes:
    return b"data: " + json_line(content) + b"\n"


def json_line(content: dict[str, Any]) -> bytes:
    """Encode as ASCII: a text may have half of a surrogate pair, or characters that some clients take for line ends."""
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def time_lists(words: Sequence[WordTime], times: Set[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the lists that are asked for by name, those that are not empty."""
    lists = {
        "words": word_times(words, "start", "end", speakers="speaker" in times) if "word" in times else [],
        "phonemes": sound_times((s for word in words for s in word.phonemes), "phoneme") if "phoneme" in times else [],
        "visemes": sound_times(visemes(words), "viseme") if "viseme" in times else [],
    }
    return {name: rows for name, rows in lists.items() if rows}


def sound_times(sounds: Iterable[PhonemeTime], name: str) -> list[dict[str, Any]]:
    """Return sounds or shapes of the mouth with their times; phonemes as IPA."""
    write = ipa if name == "phoneme" else str
    return [
        {name: write(sound.phoneme), "start": round(sound.start_s, 3), "end": round(sound.end_s, 3)} for sound in sounds
    ]


def word_times(words: Iterable[WordTime], start: str, end: str, *, speakers: bool = False) -> list[dict[str, Any]]:
    return [
        {"word": word.word, start: round(word.start_s, 3), end: round(word.end_s, 3)}
        | ({"speaker": word.voice} if speakers else {})
        for word in words
    ]


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
