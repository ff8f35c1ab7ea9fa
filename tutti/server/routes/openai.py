"""POST /v1/audio/speech, as OpenAI's clients call it."""

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tutti.errors import InvalidInput
from tutti.server.disconnect import while_here
from tutti.server.encoding import Encoding, Opened, Room, Sound, open_stream, whole
from tutti.server.openapi import AUDIO, errors
from tutti.server.request import SpeechRequest
from tutti.server.responses import Chunked, audio, error_event, events, headers, stream_headers, told, whole_reply
from tutti.server.schemas import SpeechBody
from tutti.server.service import Service


def speech_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/speech", response_class=Response, responses={**AUDIO, **errors(404)})
    async def speech(request: Request, body: SpeechBody) -> Response:
        """Say a text. Sound is sent as it is made, unless `stream` is false."""
        ask = body.ask(service.cast)
        if body.stream_format == "sse":
            return await as_events(service, request, ask, with_words=bool(body.word_timestamps))
        if body.word_timestamps:
            ask = ask.without("word_timestamps")
        return await (cached(service, request, ask) if body.stream is False else streamed(service, request, ask))

    return routes


async def opened(service: Service, request: Request, ask: SpeechRequest) -> Opened:
    """The stream with its first speech, or the error that belongs in the status line."""
    caller = request.state.caller
    service.check_text(len(ask.text), caller)
    stream = ask.spoken(service.engine, caller=caller)
    return await while_here(request.receive, open_stream(ask, stream, patience_s(service, request)))


def patience_s(service: Service, request: Request) -> float:
    """How long this caller waits for the first sound: what its X-Request-Timeout says, if that is less than ours."""
    told = request.headers.get("x-request-timeout", "inf")
    try:
        return min(service.settings.timeout_s, max(0.0, float(told)))
    except ValueError:
        raise InvalidInput(f"X-Request-Timeout is a number of seconds, not {told[:40]!r}", param=None) from None


async def streamed(service: Service, request: Request, ask: SpeechRequest) -> Response:
    """Raw audio as it is made; where one chunk is all there is, with its true length and a tag."""
    if known := has_already(service, request, ask):
        return known
    stream = await opened(service, request, ask)
    await while_here(request.receive, stream.look_ahead())
    if stream.ended:
        sound = await while_here(request.receive, whole(stream, service.encoder_threads, service.room()))
        return whole_reply(service, ask, sound, ask.etag(service.lexicon_stamp()))
    encoding = await begun(service, stream)
    return chunked(service, request, stream, encoding, audio(stream, encoding), encoding.content_type)


async def cached(service: Service, request: Request, ask: SpeechRequest) -> Response:
    """The whole audio with its length, made once for all who ask the same at once or soon after."""
    if known := has_already(service, request, ask):
        return known
    etag = ask.etag(service.lexicon_stamp())
    caller = request.state.caller
    service.check_text(len(ask.text), caller)
    sound = await while_here(
        request.receive, service.cache.get((request.state.key, etag), lambda: made(service, ask, caller=caller))
    )
    return whole_reply(service, ask, sound, etag)


def has_already(service: Service, request: Request, ask: SpeechRequest) -> Response | None:
    """304 where the caller holds the very answer; by the letter it belongs to GET, but this POST changes nothing."""
    held = request.headers.get("if-none-match")
    if held is None or (etag := ask.etag(service.lexicon_stamp())) not in map(str.strip, held.split(",")):
        return None
    return Response(status_code=304, headers={"etag": etag})


async def made(service: Service, ask: SpeechRequest, *, caller: str, room: Room | None = None) -> Sound:
    """The whole sound. With a room of its own it is part of a larger answer, for which nobody listens yet."""
    stream = ask.spoken(service.engine, caller=caller, delivery="whole" if room is None else "bulk")
    opened = await open_stream(ask, stream, service.settings.timeout_s)
    return await whole(opened, service.encoder_threads, room or service.room())


async def as_events(service: Service, request: Request, ask: SpeechRequest, *, with_words: bool) -> Response:
    stream = await opened(service, request, ask)
    encoding = await begun(service, stream)
    pieces = told(events(stream, encoding, with_words=with_words), error_event)
    return chunked(service, request, stream, encoding, pieces, "text/event-stream")


async def begun(service: Service, stream: Opened) -> Encoding:
    """The encoding with its first piece: what cannot be encoded must fail before the status is sent."""
    encoding = Encoding(stream.ask.encoder(), service.encoder_threads)
    try:
        await encoding.begin(stream.first)
    except BaseException:
        await stream.aclose()
        raise
    return encoding


def chunked(
    service: Service,
    request: Request,
    stream: Opened,
    encoding: Encoding,
    pieces: AsyncIterator[bytes],
    media_type: str,
) -> Response:
    about = headers(service, stream.ask, stream.first, encoding.first_s)
    return Chunked(stream, pieces, media_type, about | stream_headers(service, request.state.request_id))
