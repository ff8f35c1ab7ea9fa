"""WS /v1/audio/speech/stream: text in as a language model writes it, audio out as it is made (docs/live.md)."""

from collections.abc import Set
from typing import Any, ClassVar

from fastapi import APIRouter
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket

from tutti.errors import InvalidInput, TuttiError
from tutti.server.notices import ignored_names, notice_fields
from tutti.server.request import SpeechRequest
from tutti.server.responses import time_lists
from tutti.server.schemas import DOWNLOAD_OPTIONS, SpeechBody
from tutti.server.service import Service
from tutti.server.speech_session import Context, SpeechSession, checked_request, run_session
from tutti.server.text_feed import TextFeed
from tutti.server.websocket import Message, MessageSocket, error_fields
from tutti.speech import SAMPLE_RATE, Speech

MAX_NAME = 128  # characters of a context's name
# Options of a request that have no effect on a socket.
OF_REQUESTS = ("stream", "stream_format", *DOWNLOAD_OPTIONS, "optimize_for_latency")


class SessionConfig(SpeechBody):
    """session.config: how to speak the texts that begin after it."""

    input: str = ""
    flush_after_ms: float | None = Field(None, ge=50, le=60_000, description="a pause this long flushes the text")

    @property
    def times(self) -> frozenset[str]:
        """Return which times are sent; those of words by default."""
        by_default = self.word_timestamps is None and self.timestamps is None
        return super().times | ({"word"} if by_default else frozenset())

    def ignored_options(self) -> tuple[str, ...]:
        names = [name for name in OF_REQUESTS if getattr(self, name) is not None]
        if self.allow_voice_tags is False:  # a mark may be split between two messages, so marks always act
            names.append("allow_voice_tags")
        return (*super().ignored_options(), *names)


class LiveSession(SpeechSession):
    """One socket and the texts that are being spoken on it."""

    CONTEXTS_STAY = False
    SILENCE_IS_ERROR = True

    def __init__(self, service: Service, socket: MessageSocket) -> None:
        super().__init__(service, socket)
        self._config = SessionConfig.model_validate({})
        self._audio_context: str | None = None  # to which the binary messages belong now

    # -- messages of the client ----------------------------------------------------------------------------------

    async def _configure(self, message: Message) -> None:
        try:
            options = message.get("session", {name: value for name, value in message.items() if name != "type"})
            config = SessionConfig.model_validate(options)
        except ValidationError as exc:
            first = exc.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else None
            raise InvalidInput(f"{field or 'session'}: {first['msg']}", param=field) from None
        self._speech_request(config)
        self._config = config

    async def _text(self, message: Message) -> None:
        text = message.get("text")
        if not isinstance(text, str):
            raise InvalidInput("input.text needs text", param="text")
        self.write(_name(message), text)

    async def _flush(self, message: Message) -> None:
        self.flush(_name(message))

    async def _done(self, message: Message) -> None:
        self.end_text(_name(message))
        if not self.is_active:
            await self.idle()

    async def _cancel(self, message: Message) -> None:
        """Drop all that is being spoken or waits, in one context or in all."""
        names = list(self.contexts) if message.get("context") is None else [_name(message)]
        self.cancel(*names)

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "session.config": _configure,
        "input.text": _text,
        "input.flush": _flush,
        "input.done": _done,
        "input.cancel": _cancel,
    }

    def new_text(self, name: str | None) -> TextFeed:
        pause_ms = self._config.flush_after_ms
        return TextFeed(self._speech_request(self._config), pause_ms / 1000 if pause_ms else None)

    def _speech_request(self, config: SessionConfig) -> SpeechRequest:
        """Return how to speak; raise if a voice or the language is unknown."""
        body = config if config.response_format else config.model_copy(update={"response_format": "pcm"})
        return checked_request(body.speech_request(self.aliases), self.aliases.known)

    async def refuse(self, message: Message, error: TuttiError) -> None:
        fields = error_fields(error, self.socket.state.request_id)
        await self.socket.send({"type": "error", "context": message.get("context"), "error": fields})

    # -- speech --------------------------------------------------------------------------------------------------

    async def audio(self, context: Context, text: TextFeed, speech: Speech, data: bytes, *, is_new: bool) -> None:
        events: list[Message] = []
        name, request = context.name, text.request
        if text.n_sent == 0:
            events.append({"type": "audio.start", "context": name, **_format_fields(request)})
        elif self._audio_context != name:
            events.append({"type": "audio.next", "context": name})
        if is_new:
            for kind, rows in _time_lists(speech, request.times).items():
                events.append({"type": f"audio.{kind}", "context": name, kind: rows})
            if unspoken := notice_fields([speech]):
                events.append({"type": "audio.notice", "context": name, **unspoken})
        self._audio_context = name
        await self.socket.send(*events, audio=data)

    async def text_ended(self, context: Context, text: TextFeed) -> None:
        duration_s = round(text.n_samples / SAMPLE_RATE, 3)
        await self.socket.send(
            {"type": "audio.done", "context": context.name, "cancelled": False, "duration": duration_s}
        )

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        if error is not None:
            await self.socket.send({"type": "error", "context": context.name, "error": self.socket.failed(error)})
        elif context.cancelled:
            await self.socket.send({"type": "audio.done", "context": context.name, "cancelled": True})

    async def idle(self) -> None:
        await self.socket.send({"type": "session.done"})


def _name(message: Message) -> str | None:
    name = message.get("context")
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME):
        raise InvalidInput(f"the name of a context has 1 to {MAX_NAME} characters", param="context")
    return name


def _format_fields(request: SpeechRequest) -> Message:
    fields: Message = {"format": request.format.name, "sample_rate": request.format.rate(request.sample_rate)}
    return fields | ({"ignored": ignored_names(request.ignored)} if request.ignored else {})


def _time_lists(speech: Speech, times: Set[str]) -> dict[str, list[Message]]:
    """Return the times that are asked for, from the start of this text's audio; words have their places, too."""
    lists = time_lists(speech.words, times)
    for row, word in zip(lists.get("words", ()), speech.words, strict=False):
        row |= {"from": word.span[0], "to": word.span[1]}
    return lists


def live_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["live"])

    @routes.websocket("/v1/audio/speech/stream")
    async def stream(websocket: WebSocket) -> None:
        socket = MessageSocket(websocket, service.settings.socket_idle_s)
        await run_session(socket, lambda: LiveSession(service, socket))

    return routes
