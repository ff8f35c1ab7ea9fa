"""WS /v1/audio/speech/stream: text in as a language model writes it, sound out along with it (docs/live.md)."""

import asyncio
from collections import deque
from contextlib import aclosing, suppress
from typing import Any, ClassVar

from fastapi import APIRouter
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from tutti.errors import InvalidInput, QueueFull, TuttiError
from tutti.server.errors import TooLarge
from tutti.server.request import SpeechRequest
from tutti.server.schemas import SpeechBody
from tutti.server.service import Service
from tutti.server.text_feed import Written
from tutti.server.websocket import Message, Talk, fault, sound
from tutti.speech import SAMPLE_RATE, Speech
from tutti.text.language import language as find_language
from tutti.voices import parse

MAX_CONTEXTS = 16  # that sound at once on one socket
MAX_WAITING = 16  # texts of one context that wait for those before them
MAX_NAME = 128


class Config(SpeechBody):
    """session.config: how the texts that begin after it are spoken."""

    input: str = ""
    flush_after_ms: float | None = Field(None, ge=50, le=60_000, description="a pause in the text says what has come")


class Context:
    """Texts that are said one after the other; other contexts of the same socket sound beside them."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.texts: deque[Written] = deque()  # the first is being said, the last may still be being written
        self.task: asyncio.Task[None] | None = None
        self.saying: asyncio.Task[None] | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Nothing more of it is computed than what runs now."""
        self.cancelled = True
        if self.saying:
            self.saying.cancel()


class Live:
    """One socket and what is being said on it."""

    def __init__(self, service: Service, talk: Talk) -> None:
        self._service = service
        self._talk = talk
        self._caller: str = talk.state.caller
        self._config = Config.model_validate({})
        self._contexts: dict[str | None, Context] = {}  # that take text
        self._running: set[asyncio.Task[None]] = set()  # those, and cancelled ones that have not said so yet
        self._leaving: set[asyncio.Task[None]] = set()  # only the latter
        self._sounding: str | None = None  # whose binary messages these are

    async def run(self) -> None:
        try:
            await self._talk.hear(self._take, self._refuse)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    # -- what the client says ------------------------------------------------------------------------------------

    async def _take(self, message: Message) -> None:
        take = self._KNOWN.get(str(message.get("type")))
        if take is None:
            known = ", ".join(self._KNOWN)
            raise InvalidInput(f"unknown type {str(message.get('type'))[:40]!r}; send {known}", param="type")
        await take(self, message)

    async def _configure(self, message: Message) -> None:
        try:
            config = Config.model_validate(message.get("session", message))
        except ValidationError as exc:
            wrong = exc.errors()[0]
            field = str(wrong["loc"][0]) if wrong["loc"] else None
            raise InvalidInput(f"{field or 'session'}: {wrong['msg']}", param=field) from None
        self._ask(config)
        self._config = config

    async def _text(self, message: Message) -> None:
        text = message.get("text")
        if not isinstance(text, str):
            raise InvalidInput("input.text needs text", param="text")
        name = _name(message)
        context = self._contexts.get(name)
        written = context.texts[-1] if context and not context.texts[-1].ended else None
        n_characters = len(text) + (written.n_characters if written else 0)
        max_text = self._service.settings.max_text
        if n_characters > max_text:
            raise TooLarge(f"the text has more than {max_text:,} characters", param="text")
        if written is None:
            written = self._begin(name)
        self._service.limits.characters.take(self._caller, len(text))
        written.add(text)

    async def _flush(self, message: Message) -> None:
        for written in self._open(message):
            written.add(None)

    async def _done(self, message: Message) -> None:
        for written in self._open(message):
            written.end()
        if not self._running:
            await self._talk.tell({"type": "session.done"})

    async def _cancel(self, message: Message) -> None:
        """All that is said or waits, in one context or in all, is dropped now."""
        names = list(self._contexts) if message.get("context") is None else [_name(message)]
        for context in [self._contexts.pop(name) for name in names if name in self._contexts]:
            context.cancel()
            if context.task in self._running:
                self._leaving.add(context.task)

    _KNOWN: ClassVar[dict[str, Any]] = {
        "session.config": _configure,
        "input.text": _text,
        "input.flush": _flush,
        "input.done": _done,
        "input.cancel": _cancel,
    }

    def _open(self, message: Message) -> list[Written]:
        context = self._contexts.get(_name(message))
        return [context.texts[-1]] if context and not context.texts[-1].ended else []

    def _begin(self, name: str | None) -> Written:
        self._service.lifecycle.check()
        ask = self._ask(self._config)
        context = self._contexts.get(name)
        if context is None and len(self._running) >= MAX_CONTEXTS:
            raise QueueFull(f"{MAX_CONTEXTS} contexts sound already; end one, or open another socket", retry_after_s=1)
        if context is not None and len(context.texts) >= MAX_WAITING:
            raise QueueFull(f"{MAX_WAITING} texts of this context wait already", retry_after_s=1)
        self._service.limits.requests.take(self._caller)
        after_ms = self._config.flush_after_ms
        with_words = self._config.word_timestamps is not False
        written = Written(ask, after_ms / 1000 if after_ms else None, with_words=with_words)
        if context is None:
            context = self._contexts[name] = Context(name)
            context.texts.append(written)
            context.task = asyncio.create_task(self._say_all(context, set(self._leaving)))
            self._running.add(context.task)
        else:
            context.texts.append(written)
        return written

    def _ask(self, config: Config) -> SpeechRequest:
        asked = config if config.response_format else config.model_copy(update={"response_format": "pcm"})
        ask = asked.ask(self._service.cast)
        for voice in filter(None, (ask.params.voice, ask.params.style)):
            parse(voice)
        if ask.params.language:
            find_language(ask.params.language)
        return ask

    async def _refuse(self, message: Message, error: TuttiError) -> None:
        await self._talk.tell(self._error(message.get("context"), error))

    # -- what is said --------------------------------------------------------------------------------------------

    async def _say_all(self, context: Context, before: set[asyncio.Task[None]]) -> None:
        """The texts of a context in order; each ends with audio.done or an error. After the last, session.done."""
        lifecycle, name = self._service.lifecycle, context.name
        lifecycle.enter()
        last: list[Message] = []
        try:
            if before:
                await asyncio.wait(before)  # what was cancelled says so before anything new sounds
            while context.texts and not context.cancelled:
                context.saying = asyncio.create_task(self._say(name, context.texts[0]))
                await asyncio.wait([context.saying])
                if not context.cancelled:
                    context.saying.result()
                    context.texts.popleft()
            if context.cancelled:
                last.append({"type": "audio.done", "context": name, "cancelled": True})
        except WebSocketDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - told to the client, and logged where it is a bug
            last.append(self._error(name, error))
        finally:
            # Before anything is awaited: a text that comes now must find no context that has said its last.
            if self._contexts.get(name) is context:
                del self._contexts[name]
            context.cancel()
            await asyncio.gather(*filter(None, [context.saying]), return_exceptions=True)
            lifecycle.leave()
        with suppress(WebSocketDisconnect):
            await self._farewell(last)

    async def _farewell(self, last: list[Message]) -> None:
        """What ends a context; where it was the only one, nothing is left to say."""
        await self._talk.tell(*last)
        task = asyncio.current_task()
        assert task is not None
        self._running.discard(task)
        self._leaving.discard(task)
        if not self._running:
            await self._talk.tell({"type": "session.done"})

    async def _say(self, name: str | None, written: Written) -> None:
        ask = written.ask
        speeches = ask.spoken(self._service.engine, caller=self._caller, live=written.pieces(), pause_s=written.pause_s)
        last: Speech | None = None
        n_samples = 0
        async with aclosing(sound(self._service, ask, speeches)) as pieces:
            async for speech, piece in pieces:
                events: list[Message] = []
                if last is None:
                    events.append({"type": "audio.start", "context": name, **_about(ask)})
                elif self._sounding != name:
                    events.append({"type": "audio.next", "context": name})
                if speech is not last and speech.words and written.with_words:
                    events.append({"type": "audio.words", "context": name, "words": _words(speech)})
                if speech is not last:
                    n_samples += len(speech.samples)
                last, self._sounding = speech, name
                await self._talk.tell(*events, sound=piece)
        duration_s = round(n_samples / SAMPLE_RATE, 3)
        await self._talk.tell({"type": "audio.done", "context": name, "cancelled": False, "duration": duration_s})

    def _error(self, context: object, error: Exception) -> Message:
        return {"type": "error", "context": context, "error": fault(error, self._talk.state.request_id)}


def _name(message: Message) -> str | None:
    name = message.get("context")
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME):
        raise InvalidInput(f"a context is named by 1 to {MAX_NAME} characters", param="context")
    return name


def _about(ask: SpeechRequest) -> Message:
    about: Message = {"format": ask.format.name, "sample_rate": ask.format.rate(ask.sample_rate)}
    return about | ({"ignored": list(ask.ignored)} if ask.ignored else {})


def _words(speech: Speech) -> list[Message]:
    """Seconds from the start of this text's sound; places count from where the text began."""
    return [
        {"word": word.word, "start": round(word.start_s, 3), "end": round(word.end_s, 3),
         "from": word.span[0], "to": word.span[1]}
        for word in speech.words
    ]  # fmt: skip


def live_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["live"])

    @routes.websocket("/v1/audio/speech/stream")
    async def stream(websocket: WebSocket) -> None:
        talk = Talk(websocket)
        await talk.begin()
        with suppress(WebSocketDisconnect):
            await Live(service, talk).run()

    return routes
