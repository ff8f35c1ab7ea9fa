"""Deepgram's API: POST and WS /v1/speak and /v2/speak (Flux)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field
from starlette.websockets import WebSocket

from tutti.errors import InvalidInput, TuttiError
from tutti.server.aliases import Aliases
from tutti.server.errors import error_body, rename_param
from tutti.server.openapi import AUDIO, error_responses
from tutti.server.request import SpeechRequest
from tutti.server.responses import streamed_response
from tutti.server.schemas import MAX_NAME, Options, SpeechFields
from tutti.server.service import Service
from tutti.server.speech_session import Context, checked_request, run_session
from tutti.server.text_feed import TextFeed
from tutti.server.websocket import Message, MessageSocket
from tutti.server.wires.foreign import encoding_format, foreign_model, foreign_voice, positive, speed_of
from tutti.server.wires.session import WireSession, WireText, text_of
from tutti.speech import SAMPLE_RATE, Speech

FIELD_NAMES = {"input": "text", "voice": "model", "format": "encoding"}
VERSION = "kokoro"


class SpeakBody(Options):
    """POST /v1/speak and /v2/speak; how to speak is in the query."""

    text: str = Field(description="the text to speak")


def query_request(query: Mapping[str, str], text: str, format: str, aliases: Aliases) -> SpeechRequest:
    """Return the request that a query describes; options that are not known have no effect."""
    model = query.get("model", "")[:MAX_NAME]
    fields = {
        "voice": aliases.default_voice if not model or foreign_model(model, aliases) else foreign_voice(model, aliases),
        "model": foreign_model(model, aliases),
        "sample_rate": _number(query, "sample_rate"),
        "lexicon_id": query.get("lexicon_id"),
    }
    speed = speed_of(_number(query, "speed"), "speed")
    with rename_param(**FIELD_NAMES):
        request = SpeechFields.model_validate(fields).build_request(text, format, aliases)
    return replace(request, params=replace(request.params, speed=1.0 if speed is None else speed)).without_words()


def _number(query: Mapping[str, str], name: str) -> float | None:
    if not (value := query.get(name)):
        return None
    try:
        number = float(value)
    except ValueError:
        raise InvalidInput(f"{name} must be a number, not {value[:40]!r}", param=name) from None
    number = positive(number, name) or 0.0
    return int(number) if number.is_integer() else number


def whole_format(query: Mapping[str, str]) -> str:
    """Return the format of an answer over HTTP: linear16 is in a WAV file unless the container is none."""
    encoding = query.get("encoding", "mp3")
    is_bare = query.get("container", "wav") == "none"
    return ("pcm" if is_bare else "wav") if encoding == "linear16" else encoding


class SpeakText(WireText):
    """One turn; its end is reported if it was flushed."""

    def __init__(self, request: SpeechRequest) -> None:
        super().__init__(request)
        self.id = uuid4().hex
        self.is_flushed = False


class SpeakSession(WireSession):
    """A socket of /v1/speak: one text after the other, in binary messages."""

    def __init__(self, service: Service, socket: MessageSocket, query: Mapping[str, str]) -> None:
        super().__init__(service, socket)
        format = encoding_format(query.get("encoding", "linear16"), "encoding")
        self._request = checked_request(query_request(query, "", format, self.aliases), self.aliases.known)
        self._model = query.get("model", "")[:MAX_NAME]
        self._n_reports = 0
        self._is_closing = False

    async def run(self) -> None:
        await self.socket.send(self._greeting())
        await super().run()

    def _greeting(self) -> Message:
        id = self.socket.state.request_id
        model = {"model_name": self._model, "model_version": VERSION, "model_uuid": id}
        return {"type": "Metadata", "request_id": id, **model}

    # -- messages of the client ----------------------------------------------------------------------------------

    async def _speak_text(self, message: Message) -> None:
        text = text_of(message, "text")
        if text.strip() or self._open_text(None):
            self.write(None, text)

    async def _flush(self, _: Message) -> None:
        """End the turn; an empty one is reported, too."""
        text = self._open_text(None) or self.begin(None)
        assert isinstance(text, SpeakText)
        text.is_flushed = True
        text.end()

    async def _clear(self, _: Message) -> None:
        if not self.is_active:
            await self.socket.send(self._numbered("Cleared"))
        self.cancel(None)

    async def _close(self, _: Message) -> None:
        """Close the socket when all is spoken."""
        self._is_closing = True
        self.close(None)
        if not self.is_active:
            await self.idle()

    _HANDLERS: ClassVar[dict[str, Any]] = {"Speak": _speak_text, "Flush": _flush, "Clear": _clear, "Close": _close}

    def new_text(self, name: str | None) -> SpeakText:
        return SpeakText(self._request)

    async def refuse(self, message: Message, error: TuttiError) -> None:
        await self._send_error(error_body(error)["error"])

    # -- speech --------------------------------------------------------------------------------------------------

    async def audio(self, context: Context, text: TextFeed, speech: Speech, data: bytes, *, is_new: bool) -> None:
        await self.socket.send(audio=data)

    async def text_ended(self, context: Context, text: TextFeed) -> None:
        assert isinstance(text, SpeakText)
        if text.is_flushed:
            await self.socket.send(self._numbered("Flushed"))

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        if error is not None:
            await self._send_error(self.socket.failed(error))
        elif context.cancelled:
            await self.socket.send(self._numbered("Cleared"))

    async def idle(self) -> None:
        if self._is_closing:
            await self.socket.close(1000)

    def _numbered(self, kind: str) -> Message:
        self._n_reports += 1
        return {"type": kind, "sequence_id": self._n_reports - 1}

    async def _send_error(self, fault: Mapping[str, Any]) -> None:
        fields = {"description": fault["message"], "code": fault["code"]}
        names = {"err_code": fault["code"], "err_msg": fault["message"], "request_id": self.socket.state.request_id}
        await self.socket.send({"type": "Error", **fields, **names})


class FluxSession(SpeakSession):
    """A socket of /v2/speak: turns have ids, and their length is reported."""

    def __init__(self, service: Service, socket: MessageSocket, query: Mapping[str, str]) -> None:
        super().__init__(service, socket, query)
        self._n_characters, self._n_samples = 0, 0
        self._speech: SpeakText | None = None  # the last turn

    def _greeting(self) -> Message:
        id = self.socket.state.request_id
        model = {"model_name": self._model, "model_version": VERSION, "model_uuids": [id]}
        return {"type": "Connected", "request_id": id, **model}

    async def _speak_text(self, message: Message) -> None:
        before = self._speech
        await super()._speak_text(message)
        if self._speech is not None and self._speech is not before:
            await self.socket.send({"type": "SpeechStarted", "speech_id": self._speech.id})

    async def _interrupt(self, message: Message) -> None:
        if not self.is_active:
            warning = {"code": "NO_ACTIVE_SPEECH", "description": "nothing is being spoken"}
            await self.socket.send({"type": "Warning", **warning})
        self.cancel(None)

    async def _configure(self, message: Message) -> None:
        try:
            speed = speed_of(message.get("speed"), "speed")
        except InvalidInput as error:
            fault = {"code": "INVALID_VALUE", "field": "speed", "value": str(message.get("speed"))[:40]}
            await self.socket.send({"type": "ConfigureFailure", **fault, "description": error.message})
            return
        if speed is not None:
            self._request = replace(self._request, params=replace(self._request.params, speed=speed))
        await self.socket.send({"type": "ConfigureSuccess", "applied": {"speed": self._request.params.speed}})

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "Speak": _speak_text,
        "Flush": SpeakSession._flush,
        "Interrupt": _interrupt,
        "Clear": _interrupt,
        "Configure": _configure,
        "Close": SpeakSession._close,
    }

    def new_text(self, name: str | None) -> SpeakText:
        self._speech = super().new_text(name)
        return self._speech

    async def text_ended(self, context: Context, text: TextFeed) -> None:
        assert isinstance(text, SpeakText)
        if text.n_characters:
            await self.socket.send({"type": "SpeechMetadata", **self._metadata(text)})
        self._n_characters += text.n_characters
        self._n_samples += text.n_samples
        if text.is_flushed:
            await self.socket.send({"type": "Flushed", "speech_id": text.id})

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        if error is not None:
            await self._send_error(self.socket.failed(error))
        elif context.cancelled and self._speech is not None:
            text = self._speech
            played = {"audio_played_ms": _ms(text.n_samples), "metadata": self._metadata(text)}
            await self.socket.send({"type": "SpeechInterrupted", "speech_id": text.id, **played})

    async def idle(self) -> None:
        if self._is_closing:
            totals = {
                "total_audio_duration_ms": _ms(self._n_samples),
                "total_input_character_count": self._n_characters,
            }
            billed = {"total_billable_character_count": self._n_characters}
            await self.socket.send({"type": "SessionMetadata", **totals, **billed})
        await super().idle()

    def _metadata(self, text: SpeakText) -> Message:
        counts = {"input_character_count": text.n_characters, "billable_character_count": text.n_characters}
        length = {"audio_duration_ms": _ms(text.n_samples)}
        return {"speech_id": text.id, **length, **counts, "controls_applied": {}}


def _ms(n_samples: int) -> int:
    return round(1000 * n_samples / SAMPLE_RATE)


def deepgram_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["deepgram"])

    async def run(websocket: WebSocket, kind: type[SpeakSession]) -> None:
        socket = MessageSocket(websocket, service.settings.socket_idle_s)
        await run_session(socket, lambda: kind(service, socket, websocket.query_params))

    @routes.post("/v1/speak", response_class=Response, responses={**AUDIO, **error_responses(404)})
    @routes.post("/v2/speak", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def speak(request: Request, body: SpeakBody) -> Response:
        """Speak a text as the query says: model (the voice), encoding, sample_rate, container, speed."""
        query = request.query_params
        with rename_param(**FIELD_NAMES):
            speech_request = query_request(query, body.text, whole_format(query), service.aliases_of(request))
            speech_request = replace(speech_request, ignored=body.ignored_options())
            return await streamed_response(service, request, speech_request)

    @routes.websocket("/v1/speak")
    async def stream(websocket: WebSocket) -> None:
        await run(websocket, SpeakSession)

    @routes.websocket("/v2/speak")
    async def flux(websocket: WebSocket) -> None:
        await run(websocket, FluxSession)

    return routes
