"""ElevenLabs' WebSockets: stream-input (one text), multi-stream-input (contexts) and text-to-dialogue (voices)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

from fastapi import APIRouter
from starlette.websockets import WebSocket

from tutti.errors import InvalidInput, TuttiError, UnknownVoice
from tutti.server.client_key import message_key
from tutti.server.errors import error_body
from tutti.server.middleware.auth import ApiKeys
from tutti.server.request import SpeechRequest
from tutti.server.responses import base64_text
from tutti.server.service import Service
from tutti.server.speech_session import Context, checked_request, run_session
from tutti.server.text_feed import TextFeed
from tutti.server.websocket import Message, MessageSocket
from tutti.server.wires.elevenlabs import DEFAULT_FORMAT, TextToSpeechBody
from tutti.server.wires.elevenlabs_dictionaries import message_entries
from tutti.server.wires.foreign import foreign_voice, speed_of
from tutti.server.wires.session import WireSession, WireText, context_name, phrase, text_of
from tutti.server.wires.token_times import CharTime, Token, char_times
from tutti.speech import SAMPLE_RATE, Speech

KEY_WAIT_S = 10.0  # for a first message with the key; a longer one lets strangers keep sockets open
POLICY_VIOLATION = 1008  # the code of every error, as ElevenLabs closes a socket with it
NEAR_S = 0.05  # a space that begins so soon after the audio of a message still belongs to it
MAX_TEXTS = 256  # of a dialogue: each change of the voice begins one


class CharText(WireText):
    """A text whose messages carry the characters that begin in their audio."""

    def __init__(self, request: SpeechRequest, *, holds_start: bool) -> None:
        """`holds_start`: silence before the first word is sent with it, not before it."""
        super().__init__(request)
        self._holds_start = holds_start
        self._chars: list[CharTime] = []  # that are not sent yet
        self._unsent = b""  # audio in which no character begins, in the middle of a token or before the first
        self._start_s = 0.0  # of the audio that is sent next
        self._last = ""  # the last character that was sent

    def know(self, tokens: Sequence[Token]) -> None:
        self._chars += char_times(tokens)

    def take(self, data: bytes, end_s: float, *, is_last: bool = False) -> tuple[bytes, Message | None]:
        """Return what to send of the audio up to this time, and its characters with times from its own start.

        The clocks of clients go on by the length of each alignment, so it spans exactly the audio beside it. Some drop
        spaces before the first word, and their times with them: there the first alignment spans all audio so far.
        """
        n_chars = sum(char.start_s < end_s for char in self._chars)
        if self._chars[n_chars : n_chars + 1] and self._chars[n_chars].start_s < end_s + NEAR_S:
            n_chars += self._chars[n_chars].char == " "
        chars = self._chars if is_last else self._chars[:n_chars]
        if not chars and not is_last and self._last != " ":
            if not self._last and not self._holds_start:
                return data, None
            self._unsent += data
            return b"", None
        if not chars and end_s > self._start_s:
            chars = [CharTime(" ", self._start_s)]
        alignment = alignment_of(chars, self._start_s, end_s) if chars else None
        data, self._unsent, self._start_s = self._unsent + data, b"", max(end_s, self._start_s)
        self._last = chars[-1].char if chars else self._last
        del self._chars[: len(chars)]
        return data, alignment


def alignment_of(chars: Sequence[CharTime], start_s: float, end_s: float) -> Message:
    """Return characters with times in milliseconds: each lasts until the next, and the last until the end."""
    edges_ms = [round(1000 * min(max(char.start_s, start_s), end_s)) for char in chars] + [round(1000 * end_s)]
    start_ms = round(1000 * start_s)
    return {
        "chars": [char.char for char in chars],
        "starts": [edge - start_ms for edge in edges_ms[:-1]],
        "durations": [after - before for before, after in pairwise(edges_ms)],
    }


@dataclass(slots=True)
class ElevenLabsContext:
    """What is known of a context: how it speaks, and what of its open text was flushed."""

    voice: str
    speed: float | None = None
    lexicon: Mapping[str, str] = field(default_factory=dict)
    n_flushed: int = 0  # characters, by a message that says so
    is_broken: bool = False  # an error ended it


class MultiStreamSession(WireSession):
    """A socket of multi-stream-input: contexts by name, all with the voice of the path."""

    HOLDS_START: ClassVar[bool] = False
    NAME: ClassVar[str] = "contextId"
    FINAL: ClassVar[str] = "isFinal"

    def __init__(self, service: Service, socket: MessageSocket, keys: ApiKeys, query: Mapping[str, str], voice: str):
        super().__init__(service, socket)
        self._keys = keys
        self._query = query
        self._voice = voice
        self._is_automatic = query.get("auto_mode", "").lower() == "true"
        self._is_closing = False
        # Without a key yet, it could be a private voice.
        with suppress(*(() if socket.state.key is not None else (UnknownVoice,))):
            self._request(ElevenLabsContext(voice))

    # -- messages of the client ----------------------------------------------------------------------------------

    async def handle(self, message: Message) -> None:
        if self.socket.state.key is None:
            self._check_key(message)
        name = context_name(message, "context_id", "contextId")
        if message.get("close_socket"):
            await self._close_socket()
        elif message.get("close_context"):
            self._close_context(name)
        else:
            self._add(name, message)

    def _check_key(self, message: Message) -> None:
        key = self._keys.caller(message_key(message))
        self.caller = key
        self.socket.state.key, self.socket.state.caller = key, key
        self.socket.idle_s = self.service.settings.socket_idle_s

    def _add(self, name: str | None, message: Message) -> None:
        text = text_of(message, "text")
        if text or "voice_settings" in message:
            self._open(name, message)
        if name in self.contexts:
            self._speak_text(name, text, is_flushed=bool(message.get("flush")))

    def _open(self, name: str | None, message: Message) -> None:
        """Open a context, or change how it speaks from its next text on."""
        context = self.contexts.get(name)
        speed = _speed(message)
        if context is None:
            options = ElevenLabsContext(self._voice, speed, message_entries(message, self.aliases))
            self._request(options)
            self.open(name, options)
        elif speed is not None and speed != context.options.speed:
            self._request(replace(context.options, speed=speed))
            context.options.speed = speed
            self.end_text(name)

    def _speak_text(self, name: str | None, text: str, *, is_flushed: bool) -> None:
        context = self.contexts[name]
        is_automatic = self._is_automatic and bool(text.strip())
        if text.strip() or (text and context.open_text):
            if context.open_text is None:
                context.options.n_flushed = 0
            self.write(name, phrase(text) if is_automatic else text)
        if is_automatic or is_flushed:
            self.flush(name)
        if is_flushed and context.open_text:
            context.options.n_flushed = context.open_text.n_characters

    def _close_context(self, name: str | None) -> None:
        """Finish what was flushed, and drop the rest: a close alone is how clients interrupt."""
        context = self.contexts.get(name)
        if context is not None and context.open_text is not None:
            if context.options.n_flushed == 0 and len(context.texts) == 1:
                self.cancel(name)
                return
            self.end_text(name, context.options.n_flushed)
        self.close(name)

    async def _close_socket(self) -> None:
        """Close the socket when all contexts have sent their audio."""
        self._is_closing = True
        for name in list(self.contexts):
            self._close_context(name)
        if not self.is_active:
            await self.idle()

    async def idle(self) -> None:
        if self._is_closing:
            await self.socket.close(1000)

    async def refuse(self, message: Message, error: TuttiError) -> None:
        """An error ends the context of its message; without a key, or a context to name, the socket."""
        name: str | None = None
        with suppress(InvalidInput):
            name = context_name(message, "context_id", "contextId")
        if context := self.contexts.get(name):
            context.options.is_broken = True
            self.cancel(name)
        await self._send_error(name, error_body(error)["error"])
        if self.socket.state.key is None:
            await self.socket.close(POLICY_VIOLATION, error.code)

    # -- speech --------------------------------------------------------------------------------------------------

    def new_text(self, name: str | None) -> CharText:
        return CharText(self._request(self.contexts[name].options), holds_start=self.HOLDS_START)

    def _request(self, options: ElevenLabsContext) -> SpeechRequest:
        """Return how a context is spoken; raise if it cannot be."""
        query, aliases = self._query, self.aliases
        body = TextToSpeechBody.model_validate({"text": "", "language_code": query.get("language_code")})
        format = query.get("output_format", DEFAULT_FORMAT)
        request = checked_request(
            body.speech_request(foreign_voice(options.voice, aliases), format, aliases), aliases.known
        )
        speed = 1.0 if options.speed is None else options.speed
        model = query.get("model_id")
        model = model if model in aliases.checkpoints else None
        return replace(request, params=replace(request.params, speed=speed, model=model, lexicon=options.lexicon))

    async def audio(self, context: Context, text: TextFeed, speech: Speech, data: bytes, *, is_new: bool) -> None:
        assert isinstance(text, CharText)
        if not is_new:
            await self._send_audio(context, data, None)
            return
        text.know(text.tokens.take(speech.words))
        data, alignment = text.take(data, (text.n_samples + len(speech.samples)) / SAMPLE_RATE)
        await self._send_audio(context, data, alignment)

    async def text_ended(self, context: Context, text: TextFeed) -> None:
        assert isinstance(text, CharText)
        text.know(text.tokens.take((), is_end=True) if text.n_samples else [])
        data, alignment = text.take(b"", text.n_samples / SAMPLE_RATE, is_last=True)
        await self._send_audio(context, data, alignment)

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        if error is not None:
            await self._send_error(context.name, self.socket.failed(error))
        elif not context.options.is_broken:
            await self.socket.send({**self._head(context.name), "audio": None, self.FINAL: True})

    async def _send_audio(self, context: Context, data: bytes, alignment: Message | None) -> None:
        if data or alignment:
            await self.socket.send({**self._head(context.name), **self._audio_fields(data, alignment)})

    def _audio_fields(self, data: bytes, alignment: Message | None) -> Message:
        named = alignment and {
            "chars": alignment["chars"],
            "charStartTimesMs": alignment["starts"],
            "charDurationsMs": alignment["durations"],
        }
        audio = base64_text(data) if data else None
        return {"audio": audio, "isFinal": None, "alignment": named, "normalizedAlignment": named}

    def _head(self, name: str | None) -> Message:
        return {} if name is None else {self.NAME: name}

    async def _send_error(self, name: str | None, fault: Mapping[str, Any]) -> None:
        fields = {"error": fault["code"], "message": fault["message"], "code": POLICY_VIOLATION}
        await self.socket.send({**self._head(name), **fields, "param": fault["param"]})


class StreamInputSession(MultiStreamSession):
    """A socket of stream-input: one text, which an empty message ends."""

    async def handle(self, message: Message) -> None:
        message = {key: value for key, value in message.items() if key not in ("context_id", "contextId")}
        await super().handle(message)
        if message.get("text") == "" and not message.get("flush"):
            if not self.contexts:
                self.open(None, ElevenLabsContext(self._voice))
            self._is_closing = True
            self.close(None)

    async def refuse(self, message: Message, error: TuttiError) -> None:
        await super().refuse({}, error)
        await self.socket.close(POLICY_VIOLATION, error.code)

    async def context_ended(self, context: Context, error: Exception | None) -> None:
        await super().context_ended(context, error)
        if error is not None:
            await self.socket.close(POLICY_VIOLATION, "the text failed")


class DialogueSession(MultiStreamSession):
    """A socket of text-to-dialogue: each input has a voice of its own."""

    HOLDS_START = True  # LiveKit's clock goes on by the bytes of this wire, Pipecat's by its alignments
    MAX_TEXTS = MAX_TEXTS
    NAME = "context_id"
    FINAL = "is_final"

    def _add(self, name: str | None, message: Message) -> None:
        inputs = message.get("inputs")
        if inputs is not None and not (isinstance(inputs, list) and all(isinstance(each, dict) for each in inputs)):
            raise InvalidInput('inputs is a list: [{"text": …, "voice_id": …}]', param="inputs")
        if "voices" in message or "voice_settings" in message or inputs:
            self._open(name, message)
        for each in inputs or ():
            self._choose_voice(name, each.get("voice_id"))
            if (text := text_of(each, "text")).strip():
                self.write(name, phrase(text))
                self.flush(name)

    def _choose_voice(self, name: str | None, voice: object) -> None:
        """Begin another text if an input has another voice than the one before it."""
        options: ElevenLabsContext = self.contexts[name].options
        if voice is not None and not isinstance(voice, str):
            raise InvalidInput("voice_id must be a text", param="voice_id")
        if voice and voice != options.voice:
            self._request(replace(options, voice=voice))
            options.voice = voice
            self.end_text(name)

    def _close_context(self, name: str | None) -> None:
        self.close(name)

    def _audio_fields(self, data: bytes, alignment: Message | None) -> Message:
        named = alignment and {
            "chars": alignment["chars"],
            "char_start_times_ms": alignment["starts"],
            "char_durations_ms": alignment["durations"],
        }
        return {"audio": base64_text(data) if data else None, "alignment": named}


def _speed(message: Message) -> float | None:
    settings = message.get("voice_settings")
    if settings is not None and not isinstance(settings, dict):
        raise InvalidInput("voice_settings is an object", param="voice_settings")
    return speed_of((settings or {}).get("speed"), "voice_settings.speed")


def elevenlabs_sockets(service: Service, keys: ApiKeys) -> APIRouter:
    routes = APIRouter(tags=["elevenlabs"])

    async def run(websocket: WebSocket, kind: type[MultiStreamSession], voice: str) -> None:
        is_known = websocket.state.key is not None
        socket = MessageSocket(websocket, service.settings.socket_idle_s if is_known else KEY_WAIT_S)
        await run_session(socket, lambda: kind(service, socket, keys, websocket.query_params, voice))

    @routes.websocket("/v1/text-to-speech/{voice_id}/stream-input")
    async def stream_input(websocket: WebSocket, voice_id: str) -> None:
        await run(websocket, StreamInputSession, voice_id)

    @routes.websocket("/v1/text-to-speech/{voice_id}/multi-stream-input")
    async def multi_stream_input(websocket: WebSocket, voice_id: str) -> None:
        await run(websocket, MultiStreamSession, voice_id)

    @routes.websocket("/v1/text-to-dialogue/multi-stream-input")
    async def dialogue(websocket: WebSocket) -> None:
        await run(websocket, DialogueSession, service.aliases.default_voice)

    return routes
