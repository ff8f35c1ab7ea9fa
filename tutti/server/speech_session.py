"""Texts that are spoken over one socket: contexts side by side, and in each of them one text after the other.

Our own live text and the wires of other services derive from it: each translates its messages into these calls, and
what becomes of its texts into its own events.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, ClassVar

from starlette.websockets import WebSocketDisconnect

from tutti.admission.ticket import Ticket
from tutti.errors import InvalidInput, NothingToSpeak, QueueFull, TuttiError
from tutti.server.aliases import Aliases
from tutti.server.errors import TooLarge
from tutti.server.request import SpeechRequest
from tutti.server.service import Service
from tutti.server.text_feed import TextFeed
from tutti.server.websocket import Message, MessageSocket, encoded_speech
from tutti.speech import Speech
from tutti.tasks import cancel_all
from tutti.text.language import request_language
from tutti.voices import Voices

MAX_CONTEXTS = 16  # that are open at once on one socket


def checked_request(request: SpeechRequest, voices: Voices) -> SpeechRequest:
    """Return a request for texts that are to come; raise if its voice, style or language is unknown."""
    for voice in filter(None, (request.params.voice, request.params.style)):
        voices.parse(voice)
    request_language(request.params.language, "en-us")
    return request


class Context:
    """Texts that are spoken one after the other, in parallel with the other contexts of the socket."""

    def __init__(self, name: str | None, options: Any = None, *, stays: bool) -> None:
        """`options`: what a protocol knows of it. `stays`: without a text until it is closed; else it ends then."""
        self.name, self.options = name, options
        self.texts: deque[TextFeed] = deque()  # the first is being spoken, the last may still be arriving
        self.n_samples = 0  # of the texts that have been spoken
        self.cancelled = False
        self.task: asyncio.Task[None] | None = None
        self._speaking: asyncio.Task[None] | None = None
        self._stays = stays
        self._changed = asyncio.Event()

    @property
    def open_text(self) -> TextFeed | None:
        """The text that is still arriving."""
        return self.texts[-1] if self.texts and not self.texts[-1].ended else None

    def add(self, text: TextFeed) -> None:
        self.texts.append(text)
        self._changed.set()

    def close(self) -> None:
        """Let it end with its last text."""
        self._stays = False
        self._changed.set()

    def cancel(self) -> None:
        """Stop; only the batches that are running are still computed."""
        self.cancelled = True
        self.close()
        if self._speaking:
            self._speaking.cancel()

    async def next_text(self) -> TextFeed | None:
        """Return the text to speak next; None if the context has ended."""
        while not self.texts and self._stays:
            self._changed.clear()
            await self._changed.wait()
        return None if self.cancelled or not self.texts else self.texts[0]

    async def run(self, speaking: asyncio.Task[None]) -> None:
        """Wait until the first text is spoken, or the context is cancelled; raise what has stopped it."""
        self._speaking = speaking
        await asyncio.wait([speaking])
        if not self.cancelled:
            speaking.result()

    async def stop(self) -> None:
        """End at once, and wait for that."""
        await cancel_all(filter(None, [self._speaking]))


class SpeechSession:
    """One socket and the texts that are being spoken on it. A protocol defines what its messages and events are."""

    CONTEXTS_STAY: ClassVar[bool] = True  # until they are closed; else until their texts have been spoken
    MAX_TEXTS: ClassVar[int] = 16  # of one context, with the one being spoken
    SILENCE_IS_ERROR: ClassVar[bool] = False  # a text in which nothing can be spoken ends its context

    def __init__(self, service: Service, socket: MessageSocket) -> None:
        self.service = service
        self.socket = socket
        self.caller: str = socket.state.caller
        self.contexts: dict[str | None, Context] = {}  # that accept text
        self._running: dict[asyncio.Task[None], Context] = {}  # those, and closed ones until they have reported it

    @property
    def aliases(self) -> Aliases:
        """The names that its caller may use."""
        return self.service.aliases_of_caller(self.caller)

    @property
    def is_active(self) -> bool:
        """Whether a context is open, or still being spoken."""
        return bool(self._running)

    async def run(self) -> None:
        try:
            await self.socket.receive_all(self.handle, self.refuse)
        finally:
            await cancel_all(self._running)
            for context in self._running.values():  # also those whose task had not begun
                self._drop_texts(context)

    # -- of a protocol --------------------------------------------------------------------------------------------

    _HANDLERS: ClassVar[Mapping[str, Any]] = {}  # by the type of a message

    async def handle(self, message: Message) -> None:
        """Do what a message of the client says, or raise a TuttiError. By its type, unless a protocol has none."""
        handler = self._HANDLERS.get(str(message.get("type")))
        if handler is None:
            types = ", ".join(self._HANDLERS)
            raise InvalidInput(f"unknown type {str(message.get('type'))[:40]!r}; send {types}", param="type")
        await handler(self, message)

    async def refuse(self, message: Message, error: TuttiError) -> None:
        """Report an error in a message."""
        raise NotImplementedError

    def new_text(self, name: str | None) -> TextFeed:
        """Return an empty text with the way in which it is spoken."""
        raise NotImplementedError

    def parts(self, speech: Speech, text: TextFeed) -> Iterable[Speech]:
        """Cut a speech into what is sent together."""
        return (speech,)

    async def audio(self, context: Context, text: TextFeed, speech: Speech, data: bytes, *, is_new: bool) -> None:
        """Send a piece of audio; `is_new`: the first one of this speech. `text.n_samples` are before the speech."""
        raise NotImplementedError

    async def text_ended(self, context: Context, text: TextFeed) -> None:
        """Report that all audio of a text has been sent."""

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        """Report that a context has ended: with its last text, cancelled, or with an error."""

    async def idle(self) -> None:
        """Report that no context is left."""

    # -- calls of a protocol --------------------------------------------------------------------------------------

    def open(self, name: str | None, options: Any = None) -> Context:
        """Open a context; one of the same name that is still spoken comes before it."""
        self._check_room()
        context = self.contexts[name] = Context(name, options, stays=self.CONTEXTS_STAY)
        before = [task for task, other in self._running.items() if other.cancelled or other.name == name]
        context.task = asyncio.create_task(self._speak_all(context, before))
        self._running[context.task] = context
        return context

    def write(self, name: str | None, piece: str) -> None:
        """Add to the open text of a context; begin a text, and open the context, if there is none."""
        context = self.contexts.get(name)
        text = context.open_text if context else None
        max_text = self.service.settings.max_text
        if len(piece) + (text.n_characters if text else 0) > max_text:
            raise TooLarge(f"the text has more than {max_text:,} characters", param="text")
        text = text or self.begin(name)
        self.service.limits.characters.take(self.caller, len(piece))
        text.add(piece)

    def begin(self, name: str | None) -> TextFeed:
        """Begin a text of a context, behind those that wait."""
        self.service.lifecycle.check()
        text = self.new_text(name)
        context = self.contexts.get(name)
        if context is not None and len(context.texts) >= self.MAX_TEXTS:
            raise QueueFull(f"{self.MAX_TEXTS} texts of this context are waiting already", retry_after_s=1)
        if context is None:
            self._check_room()
        self.service.limits.requests.take(self.caller)
        context = context or self.open(name)
        self.service.lifecycle.enter()
        context.add(text)
        return text

    def flush(self, name: str | None) -> None:
        """Speak all that has arrived of the open text."""
        if text := self._open_text(name):
            text.add(None)

    def end_text(self, name: str | None, limit: int | None = None) -> bool:
        """End the open text, if there is one; nothing behind its first `limit` characters is spoken."""
        text = self._open_text(name)
        if text is not None:
            text.end(limit)
        return text is not None

    def close(self, name: str | None) -> None:
        """End a context with the texts that it has."""
        if context := self.contexts.pop(name, None):
            if text := context.open_text:
                text.end()
            context.close()

    def cancel(self, *names: str | None) -> None:
        """Drop all that is being spoken or waits in these contexts, also if they were closed."""
        for context in self._running.values():
            if context.name in names:
                self.contexts.pop(context.name, None)
                context.cancel()

    def _check_room(self) -> None:
        if len(self._running) >= MAX_CONTEXTS:
            raise QueueFull(f"{MAX_CONTEXTS} contexts are active; end one, or open another socket", retry_after_s=1)

    def _open_text(self, name: str | None) -> TextFeed | None:
        context = self.contexts.get(name)
        return context.open_text if context else None

    # -- speech ---------------------------------------------------------------------------------------------------

    async def _speak_all(self, context: Context, before: list[asyncio.Task[None]]) -> None:
        """Speak the texts of a context in order, then report its end."""
        lifecycle = self.service.lifecycle
        error: Exception | None = None
        try:
            if before:
                await asyncio.wait(before)  # they report their end before new audio starts
            while (text := await context.next_text()) is not None:
                await context.run(asyncio.create_task(self._speak(context, text)))
                if not context.cancelled:
                    context.texts.popleft()
                    lifecycle.leave()
        except WebSocketDisconnect:
            return
        except Exception as exc:  # noqa: BLE001 - reported by the protocol, which logs it if it is a bug
            error = exc
        finally:
            # Before any await: a text that arrives now must not be added to a context that has ended.
            if self.contexts.get(context.name) is context:
                del self.contexts[context.name]
            await context.stop()
            self._drop_texts(context)
        with suppress(WebSocketDisconnect):
            await self._finish(context, error)

    def _drop_texts(self, context: Context) -> None:
        for _ in context.texts:
            self.service.lifecycle.leave()
        context.texts.clear()

    async def _finish(self, context: Context, error: Exception | None) -> None:
        await self.context_ended(context, error)
        task = asyncio.current_task()
        assert task is not None
        self._running.pop(task, None)
        if not self._running:
            await self.idle()

    async def _speak(self, context: Context, text: TextFeed) -> None:
        if not (text.ended and text.n_characters == 0):
            with suppress(*(() if self.SILENCE_IS_ERROR else (NothingToSpeak,))):
                await self._send_speech(context, text)
        context.n_samples += text.n_samples
        await self.text_ended(context, text)

    async def _send_speech(self, context: Context, text: TextFeed) -> None:
        ticket = Ticket(self.caller, id=self.socket.state.request_id, arrived_s=time.monotonic())
        speeches = self.service.speak(text.request, ticket, text.pieces(), text.pause_s)
        last: Speech | None = None
        async with aclosing(encoded_speech(self.service, text.request, self._parts(text, speeches))) as pieces:
            async for speech, piece in pieces:
                is_new = speech is not last
                if is_new and last is not None:
                    text.n_samples += len(last.samples)
                last = speech
                await self.audio(context, text, speech, piece, is_new=is_new)
                text.n_sent += 1
        if last is not None:
            text.n_samples += len(last.samples)

    async def _parts(self, text: TextFeed, speeches: AsyncGenerator[Speech]) -> AsyncGenerator[Speech]:
        """Yield the parts of the speeches, up to the limit of the text."""
        async with aclosing(speeches):
            async for speech in speeches:
                if text.limit is not None and speech.words and speech.words[0].span[0] >= text.limit:
                    return
                for part in self.parts(speech, text):
                    yield part
                    del part
                del speech


async def run_session(socket: MessageSocket, open_session: Callable[[], SpeechSession]) -> None:
    """Accept a socket and run its session; refuse it before the upgrade if the session cannot be opened."""
    try:
        session = open_session()
    except TuttiError as error:
        await socket.deny(error)
        return
    await socket.accept()
    with suppress(WebSocketDisconnect):
        await session.run()
