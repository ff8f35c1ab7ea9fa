"""WS /v1/audio/speech/stream: text in as a language model writes it, audio out as it is made (docs/live.md)."""

import asyncio
import time
from collections import deque
from collections.abc import Set
from contextlib import aclosing, suppress
from typing import Any, ClassVar

from fastapi import APIRouter
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from tutti.admission.ticket import Ticket
from tutti.errors import InvalidInput, QueueFull, TuttiError
from tutti.server.errors import TooLarge
from tutti.server.notices import ignored_names, notice_fields
from tutti.server.request import SpeechRequest
from tutti.server.responses import time_lists
from tutti.server.schemas import SpeechBody
from tutti.server.service import Service
from tutti.server.text_feed import TextFeed
from tutti.server.websocket import Message, MessageSocket, encoded_speech, error_fields
from tutti.speech import SAMPLE_RATE, Speech
from tutti.tasks import cancel_all
from tutti.text.language import request_language
from tutti.voices import parse_blend

MAX_CONTEXTS = 16  # that are spoken at once on one socket
MAX_WAITING = 16  # texts of one context, with the one being spoken
MAX_NAME = 128  # characters of a context's name
# Options of a request that have no effect on a socket.
OF_REQUESTS = ("stream", "stream_format", "return_download_link", "download_format", "optimize_for_latency")


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


class Context:
    """Texts that are spoken one after the other, in parallel with the other contexts of the socket."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.texts: deque[TextFeed] = deque()  # the first is being spoken, the last may still be arriving
        self.task: asyncio.Task[None] | None = None
        self.speaking: asyncio.Task[None] | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Stop; only the batches that are running are still computed."""
        self.cancelled = True
        if self.speaking:
            self.speaking.cancel()


class LiveSession:
    """One socket and the texts that are being spoken on it."""

    def __init__(self, service: Service, socket: MessageSocket) -> None:
        self._service = service
        self._socket = socket
        self._caller: str = socket.state.caller
        self._config = SessionConfig.model_validate({})
        self._contexts: dict[str | None, Context] = {}  # that accept text
        self._running: set[asyncio.Task[None]] = set()  # of those, and of cancelled ones until they have reported it
        self._cancelled: set[asyncio.Task[None]] = set()  # only the latter
        self._audio_context: str | None = None  # to which the binary messages belong now

    async def run(self) -> None:
        try:
            await self._socket.receive_all(self._handle, self._refuse)
        finally:
            await cancel_all(self._running)

    # -- messages of the client ----------------------------------------------------------------------------------

    async def _handle(self, message: Message) -> None:
        handler = self._HANDLERS.get(str(message.get("type")))
        if handler is None:
            types = ", ".join(self._HANDLERS)
            raise InvalidInput(f"unknown type {str(message.get('type'))[:40]!r}; send {types}", param="type")
        await handler(self, message)

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
        name = _name(message)
        context = self._contexts.get(name)
        feed = context.texts[-1] if context and not context.texts[-1].ended else None
        n_characters = len(text) + (feed.n_characters if feed else 0)
        max_text = self._service.settings.max_text
        if n_characters > max_text:
            raise TooLarge(f"the text has more than {max_text:,} characters", param="text")
        if feed is None:
            feed = self._begin(name)
        self._service.limits.characters.take(self._caller, len(text))
        feed.add(text)

    async def _flush(self, message: Message) -> None:
        for feed in self._open_feeds(message):
            feed.add(None)

    async def _done(self, message: Message) -> None:
        for feed in self._open_feeds(message):
            feed.end()
        if not self._running:
            await self._socket.send({"type": "session.done"})

    async def _cancel(self, message: Message) -> None:
        """Drop all that is being spoken or waits, in one context or in all."""
        names = list(self._contexts) if message.get("context") is None else [_name(message)]
        for context in [self._contexts.pop(name) for name in names if name in self._contexts]:
            context.cancel()
            if context.task in self._running:
                self._cancelled.add(context.task)

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "session.config": _configure,
        "input.text": _text,
        "input.flush": _flush,
        "input.done": _done,
        "input.cancel": _cancel,
    }

    def _open_feeds(self, message: Message) -> list[TextFeed]:
        context = self._contexts.get(_name(message))
        return [context.texts[-1]] if context and not context.texts[-1].ended else []

    def _begin(self, name: str | None) -> TextFeed:
        self._service.lifecycle.check()
        request = self._speech_request(self._config)
        context = self._contexts.get(name)
        if context is None and len(self._running) >= MAX_CONTEXTS:
            raise QueueFull(f"{MAX_CONTEXTS} contexts are active; end one, or open another socket", retry_after_s=1)
        if context is not None and len(context.texts) >= MAX_WAITING:
            raise QueueFull(f"{MAX_WAITING} texts of this context are waiting already", retry_after_s=1)
        self._service.limits.requests.take(self._caller)
        pause_ms = self._config.flush_after_ms
        feed = TextFeed(request, pause_ms / 1000 if pause_ms else None)
        if context is None:
            context = self._contexts[name] = Context(name)
            context.texts.append(feed)
            context.task = asyncio.create_task(self._speak_all(context, set(self._cancelled)))
            self._running.add(context.task)
        else:
            context.texts.append(feed)
        return feed

    def _speech_request(self, config: SessionConfig) -> SpeechRequest:
        """Return how to speak; raise if a voice or the language is unknown."""
        body = config if config.response_format else config.model_copy(update={"response_format": "pcm"})
        request = body.speech_request(self._service.aliases)
        for voice in filter(None, (request.params.voice, request.params.style)):
            parse_blend(voice)
        request_language(request.params.language, "en-us")
        return request

    async def _refuse(self, message: Message, error: TuttiError) -> None:
        await self._socket.send(self._error(message.get("context"), error))

    # -- speech --------------------------------------------------------------------------------------------------

    async def _speak_all(self, context: Context, cancelled: set[asyncio.Task[None]]) -> None:
        """Speak the texts of a context in order; each ends with audio.done or an error."""
        lifecycle, name = self._service.lifecycle, context.name
        lifecycle.enter()
        last: list[Message] = []
        try:
            if cancelled:
                await asyncio.wait(cancelled)  # cancelled contexts report that before new audio starts
            while context.texts and not context.cancelled:
                context.speaking = asyncio.create_task(self._speak(name, context.texts[0]))
                await asyncio.wait([context.speaking])
                if not context.cancelled:
                    context.speaking.result()
                    context.texts.popleft()
            if context.cancelled:
                last.append({"type": "audio.done", "context": name, "cancelled": True})
        except WebSocketDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - sent to the client, and logged if it is a bug
            last.append({"type": "error", "context": name, "error": self._socket.failed(error)})
        finally:
            # Before any await: a text that arrives now must not be added to a context that has ended.
            if self._contexts.get(name) is context:
                del self._contexts[name]
            context.cancel()
            await cancel_all(filter(None, [context.speaking]))
            lifecycle.leave()
        with suppress(WebSocketDisconnect):
            await self._finish(last)

    async def _finish(self, last: list[Message]) -> None:
        """Send the last events of a context, and session.done if no other is active."""
        await self._socket.send(*last)
        task = asyncio.current_task()
        assert task is not None
        self._running.discard(task)
        self._cancelled.discard(task)
        if not self._running:
            await self._socket.send({"type": "session.done"})

    async def _speak(self, name: str | None, feed: TextFeed) -> None:
        request = feed.request
        ticket = Ticket(self._caller, id=self._socket.state.request_id, arrived_s=time.monotonic())
        speeches = self._service.speak(request, ticket, feed.pieces(), feed.pause_s)
        last: Speech | None = None
        n_samples = 0
        async with aclosing(encoded_speech(self._service, request, speeches)) as pieces:
            async for speech, piece in pieces:
                events: list[Message] = []
                if last is None:
                    events.append({"type": "audio.start", "context": name, **_format_fields(request)})
                elif self._audio_context != name:
                    events.append({"type": "audio.next", "context": name})
                if speech is not last:
                    for kind, rows in _time_lists(speech, request.times).items():
                        events.append({"type": f"audio.{kind}", "context": name, kind: rows})
                    n_samples += len(speech.samples)
                    if unspoken := notice_fields([speech]):
                        events.append({"type": "audio.notice", "context": name, **unspoken})
                last, self._audio_context = speech, name
                await self._socket.send(*events, audio=piece)
        duration_s = round(n_samples / SAMPLE_RATE, 3)
        await self._socket.send({"type": "audio.done", "context": name, "cancelled": False, "duration": duration_s})

    def _error(self, context: object, error: Exception) -> Message:
        return {"type": "error", "context": context, "error": error_fields(error, self._socket.state.request_id)}


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
        await socket.accept()
        with suppress(WebSocketDisconnect):
            await LiveSession(service, socket).run()

    return routes
