"""Cartesia's API: WS /tts/websocket with contexts and times, POST /tts/bytes and /tts/sse, GET /voices."""

import struct
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket

from tutti.audio.pcm import UNKNOWN_SIZE
from tutti.errors import InvalidInput, TuttiError, UnknownFormat
from tutti.server.aliases import Aliases
from tutti.server.encoding import OpenStream, PieceEncoder
from tutti.server.errors import error_body, public_error, rename_param
from tutti.server.openapi import AUDIO, EVENTS, error_responses, only_errors
from tutti.server.request import SpeechRequest
from tutti.server.responses import (
    audio_pieces,
    base64_text,
    json_line,
    start_encoder,
    start_stream,
    streamed_response,
    streaming_response,
)
from tutti.server.schemas import Name, Options, SpeechFields, at_most
from tutti.server.service import Service
from tutti.server.speech_session import Context, checked_request, run_session
from tutti.server.text_feed import TextFeed
from tutti.server.websocket import Message, MessageSocket
from tutti.server.wires.foreign import (
    encoding_format,
    foreign_model,
    foreign_voice,
    known_emotion,
    known_voice,
    language_of,
)
from tutti.server.wires.session import WireSession, WireText, context_name, phrase, text_of
from tutti.server.wires.token_times import Token, TokenTimes
from tutti.speech import FULL_SCALE, SAMPLE_RATE, Speech, WordTime
from tutti.text.visemes import ipa
from tutti.voices import VoiceInfo

IEEE_FLOAT = 3  # the tag of 32-bit numbers in a WAV file
MAX_BUFFER_DELAY_MS = 3000  # after which text is spoken that is no sentence yet, as Cartesia does by default
SPEEDS = {"slowest": 0.6, "slow": 0.8, "normal": 1.0, "fast": 1.2, "fastest": 1.5}
GENDERS = {"female": "feminine", "male": "masculine", "neutral": "gender_neutral"}
FIELD_NAMES = {
    **{"input": "transcript", "format": "output_format", "sample_rate": "output_format", "model": "model_id"},
    **{"speed": "generation_config", "volume_multiplier": "generation_config", "lexicon_id": "pronunciation_dict_id"},
}


class VoiceSpecifier(Options):
    """{"mode": "id", "id": …}; a voice of another mode is the default one."""

    id: Name | None = None


class OutputFormat(Options):
    container: Name = "raw"
    encoding: Name | None = None
    sample_rate: int | None = None

    @property
    def is_float(self) -> bool:
        """Whether samples are 32-bit numbers: 16-bit integers are made, and sent as those."""
        return self.container in ("raw", "wav") and self.encoding == "pcm_f32le"

    @property
    def name(self) -> str:
        if self.container == "raw" or self.is_float:
            return encoding_format(self.encoding or "pcm_s16le", "output_format")
        if self.container == "wav" and self.encoding not in (None, "pcm_s16le"):
            raise UnknownFormat("WAV has pcm_s16le or pcm_f32le here", param="output_format")
        return self.container

    @property
    def header(self) -> bytes:
        """The header of a WAV file of 32-bit numbers; its length is open, as in all that is streamed."""
        if self.container != "wav":
            return b""
        rate = self.sample_rate or SAMPLE_RATE
        layout = struct.pack("<IHHIIHH", 16, IEEE_FLOAT, 1, rate, 4 * rate, 4, 32)
        size = struct.pack("<I", UNKNOWN_SIZE)
        return b"RIFF" + size + b"WAVEfmt " + layout + b"data" + size


class GenerationConfig(Options):
    speed: float | None = Field(None, ge=0.25, le=4)
    volume: float | None = Field(None, ge=0, le=4)
    emotion: Annotated[Any, at_most(1000)] = None


class GenerationBody(Options):
    """POST /tts/bytes and /tts/sse, and the first message of a context. Other options have no effect."""

    transcript: str = Field(description="the text to speak")
    model_id: Name | None = Field(None, description="any of Cartesia's names, or kokoro")
    voice: Name | VoiceSpecifier | None = None
    language: Name | None = None
    output_format: OutputFormat | None = None
    generation_config: GenerationConfig | None = None
    speed: Annotated[float, Field(ge=0.25, le=4)] | Name | None = None
    pronunciation_dict_id: Name | None = Field(None, description="a stored lexicon")
    add_timestamps: bool | None = None
    add_phoneme_timestamps: bool | None = None
    max_buffer_delay_ms: float | None = Field(None, ge=0, le=60_000)

    @property
    def format(self) -> OutputFormat:
        return self.output_format or OutputFormat.model_validate({})

    def speech_request(self, aliases: Aliases) -> SpeechRequest:
        config = self.generation_config or GenerationConfig.model_validate({})
        id = self.voice.id if isinstance(self.voice, VoiceSpecifier) else self.voice
        voice = foreign_voice(id, aliases) if id else aliases.default_voice
        emotions = config.emotion if isinstance(config.emotion, list) else [config.emotion]
        fields = {
            "voice": voice,
            "language": language_of(self.language, voice, aliases),
            "model": foreign_model(self.model_id, aliases),
            "lexicon_id": self.pronunciation_dict_id,
            "sample_rate": self.format.sample_rate,
            "speed": config.speed or (SPEEDS.get(self.speed) if isinstance(self.speed, str) else self.speed),
            "volume_multiplier": config.volume,
            "emotion": next(filter(None, map(known_emotion, emotions)), None),
        }
        with rename_param(**FIELD_NAMES):
            request = SpeechFields.model_validate(fields).build_request(self.transcript, self.format.name, aliases)
        wanted = {"word": self.add_timestamps, "phoneme": self.add_phoneme_timestamps}
        times = frozenset(name for name, is_wanted in wanted.items() if is_wanted)
        request = replace(request, times=times, ignored=self.ignored_options())
        return request if times else request.without_words()

    def ignored_options(self) -> tuple[str, ...]:
        usual = ("context_id", "continue", "flush", "use_normalized_timestamps")
        return tuple(name for name in super().ignored_options() if name not in usual)


@dataclass(slots=True)
class CartesiaContext:
    """The first message of a context, and how often it was flushed."""

    body: GenerationBody
    n_flushes: int = 0


class CartesiaText(WireText):
    """A text of a context; its end is reported if it was flushed."""

    flush_id: int | None = None
    is_float = False


class CartesiaSession(WireSession):
    """One socket of Cartesia's API."""

    async def handle(self, message: Message) -> None:
        name = context_name(message, "context_id")
        if message.get("cancel"):
            self.cancel(name)
            return
        transcript, continues = text_of(message, "transcript"), bool(message.get("continue"))
        if name is None:
            name = message["context_id"] = uuid4().hex
        if name not in self.contexts:
            body = _parse(message)
            checked_request(body.speech_request(self.aliases), self.aliases.known)
            self.open(name, CartesiaContext(body))
        self._speak_text(name, transcript)
        if message.get("flush"):
            self._report_flush(name)
        if not continues:
            self.close(name)

    def _speak_text(self, name: str, transcript: str) -> None:
        is_phrase = self.contexts[name].options.body.max_buffer_delay_ms == 0
        if transcript.strip() or self.contexts[name].open_text:
            self.write(name, phrase(transcript) if is_phrase else transcript)
            if is_phrase:
                self.flush(name)

    def _report_flush(self, name: str) -> None:
        """End the text, so that its end is known: what follows is another text."""
        options = self.contexts[name].options
        options.n_flushes += 1
        text = self.contexts[name].open_text or self.begin(name)
        assert isinstance(text, CartesiaText)
        text.flush_id = options.n_flushes
        text.end()

    def new_text(self, name: str | None) -> CartesiaText:
        body: GenerationBody = self.contexts[name].options.body
        delay_ms = MAX_BUFFER_DELAY_MS if body.max_buffer_delay_ms is None else body.max_buffer_delay_ms
        request = body.speech_request(self.aliases)
        text = CartesiaText(request, delay_ms / 1000 or None)
        text.is_float = body.format.is_float
        return text

    async def refuse(self, message: Message, error: TuttiError) -> None:
        """An error ends the context of its message."""
        name = None
        with suppress(InvalidInput):
            name = context_name(message, "context_id")
            self.cancel(name)
        await self.socket.send({"context_id": name, **self._error(error)})

    async def audio(self, context: Context, text: TextFeed, speech: Speech, data: bytes, *, is_new: bool) -> None:
        assert isinstance(text, CartesiaText)
        events = _times(context, text, text.tokens.take(speech.words), speech.words) if is_new else []
        if text.is_float:
            data = to_float(data)
        if data:
            step_ms = round(1000 * (speech.timing.acoustic_s + speech.timing.vocoder_s), 1)
            events.append({"type": "chunk", "data": base64_text(data), "step_time": step_ms, **_PARTIAL})
        await self.socket.send(*({"context_id": context.name, **event} for event in events))

    async def text_ended(self, context: Context, text: TextFeed) -> None:
        assert isinstance(text, CartesiaText)
        events = _times(context, text, text.tokens.take((), is_end=True), ())
        if text.flush_id is not None:
            events.append({"type": "flush_done", "flush_done": True, "flush_id": text.flush_id, **_PARTIAL})
        await self.socket.send(*({"context_id": context.name, **event} for event in events))

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        """Report the end. What was cancelled sends nothing more."""
        if error is not None:
            failed = self.socket.failed(error)
            status = public_error(error).status
            await self.socket.send({"context_id": context.name, **self._error_fields(failed, status)})
        elif not context.cancelled:
            await self.socket.send({"context_id": context.name, "type": "done", "done": True, "status_code": 200})

    def _error(self, error: TuttiError) -> Message:
        return self._error_fields(error_body(error)["error"], error.status)

    def _error_fields(self, fields: Mapping[str, Any], status: int) -> Message:
        return {
            "type": "error",
            "done": True,
            "status_code": status,
            "title": fields["type"],
            "message": fields["message"],
            "error": fields["message"],
            "error_code": fields["code"],
            "request_id": self.socket.state.request_id,
        }


_PARTIAL = {"done": False, "status_code": 206}


def _parse(message: Message) -> GenerationBody:
    try:
        return GenerationBody.model_validate({**message, "transcript": ""})
    except ValidationError as exc:
        first = exc.errors()[0]
        field = str(first["loc"][0])
        raise InvalidInput(f"{field}: {first['msg']}", param=field) from None


def _times(context: Context, text: TextFeed, tokens: list[Token], words: Iterable[WordTime]) -> list[Message]:
    """Return events with the times that are asked for, in seconds from the start of the context."""
    start_s, times, events = context.n_samples / SAMPLE_RATE, text.request.times, list[Message]()
    if tokens and "word" in times:
        rows = [(token.text, token.start_s, token.end_s) for token in tokens]
        events.append({"type": "timestamps", "word_timestamps": _lists("words", rows, start_s), **_PARTIAL})
    sounds = [(ipa(s.phoneme), s.start_s, s.end_s) for word in words for s in word.phonemes]
    if sounds and "phoneme" in times:
        lists = _lists("phonemes", sounds, start_s)
        events.append({"type": "phoneme_timestamps", "phoneme_timestamps": lists, **_PARTIAL})
    return events


def _lists(name: str, rows: list[tuple[str, float, float]], start_s: float) -> dict[str, list[Any]]:
    return {
        name: [text for text, _, _ in rows],
        "start": [round(start_s + start, 3) for _, start, _ in rows],
        "end": [round(start_s + end, 3) for _, _, end in rows],
    }


def to_float(data: bytes) -> bytes:
    """Return 16-bit samples as 32-bit numbers from -1 to 1."""
    return (np.frombuffer(data, "<i2").astype("<f4") / np.float32(FULL_SCALE)).tobytes()


def voice_fields(voice: VoiceInfo) -> dict[str, Any]:
    return {
        "id": voice.name,
        "name": voice.label,
        "description": voice.description,
        "language": voice.language.split("-")[0],
        "gender": GENDERS[voice.gender],
        "created_at": "2025-01-01T00:00:00Z",
        "is_owner": False,
        "is_public": True,
    }


async def _floats(pieces: AsyncIterator[bytes], header: bytes) -> AsyncIterator[bytes]:
    yield header
    async for piece in pieces:
        yield to_float(piece)


async def _events(stream: OpenStream, encoder: PieceEncoder, *, is_float: bool) -> AsyncIterator[bytes]:
    """Yield the audio of a stream as the events of a socket."""
    context, text = Context(None, stays=False), TextFeed(stream.request)
    tokens = TokenTimes()
    tokens.add(stream.request.text)
    async for speech in stream.speeches():
        for event in _times(context, text, tokens.take(speech.words), speech.words):
            yield _sse(event)
        async for piece in encoder.pieces(speech):
            yield _sse(_chunk(to_float(piece) if is_float else piece))
        del speech
    for event in _times(context, text, tokens.take((), is_end=True), ()):
        yield _sse(event)
    if rest := await encoder.flush():
        yield _sse(_chunk(to_float(rest) if is_float else rest))
    yield _sse({"type": "done", "done": True, "status_code": 200})


def _chunk(data: bytes) -> Message:
    return {"type": "chunk", "data": base64_text(data), "step_time": 0.0, **_PARTIAL}


def _sse(event: Message) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + json_line(event) + b"\n"


def _sse_error(error: dict[str, Any]) -> bytes:
    fault = error["error"]
    return _sse({"type": "error", "done": True, "status_code": 500, "error": fault["message"], **fault})


def cartesia_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["cartesia"])

    @routes.post("/tts/bytes", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def speak(request: Request, body: GenerationBody) -> Response:
        """Speak a text; the audio is sent as it is made."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(service.aliases_of(request))
            if not body.format.is_float:
                return await streamed_response(service, request, speech_request)
            stream = await start_stream(service, request, speech_request.without_words())
        encoder = await start_encoder(service, stream)
        pieces = _floats(audio_pieces(stream, encoder), body.format.header)
        media_type = encoder.content_type.replace("audio/pcm", "audio/pcm;encoding=f32le")
        media_type = "audio/wav" if body.format.header else media_type
        return streaming_response(service, request, stream, encoder, pieces, media_type)

    @routes.post("/tts/sse", response_class=Response, responses={**EVENTS, **error_responses(404)})
    async def events(request: Request, body: GenerationBody) -> Response:
        """Speak a text; events with audio in base64, and with times if they are asked for."""
        with rename_param(**FIELD_NAMES):
            stream = await start_stream(service, request, body.speech_request(service.aliases_of(request)))
        encoder = await start_encoder(service, stream)
        pieces = _events(stream, encoder, is_float=body.format.is_float)
        return streaming_response(service, request, stream, encoder, pieces, "text/event-stream", _sse_error)

    @routes.get("/voices/{voice_id}", responses=only_errors(400))
    async def one_voice(request: Request, voice_id: str) -> dict[str, Any]:
        """One voice, in Cartesia's form."""
        return voice_fields(known_voice(voice_id, service.aliases_of(request), "id"))

    @routes.get("/voices")
    async def list_voices(request: Request, starting_after: str = "", limit: int | None = None) -> dict[str, Any]:
        """The voices after one, in Cartesia's form: its SDKs ask for pages until one is empty."""
        voices = service.aliases_of(request).known.all()
        names = list(voices)
        first = names.index(starting_after) + 1 if starting_after in names else 0
        page = names[first:] if limit is None else names[first : first + max(0, limit)]
        has_more = first + len(page) < len(names)
        return {"data": [voice_fields(voices[name]) for name in page], "has_more": has_more, "next_page": None}

    @routes.websocket("/tts/websocket")
    async def stream(websocket: WebSocket) -> None:
        socket = MessageSocket(websocket, service.settings.socket_idle_s)
        await run_session(socket, lambda: CartesiaSession(service, socket))

    return routes
