"""Wyoming, the protocol of Home Assistant: list voices and speak texts, also texts that arrive in pieces."""

import asyncio
import json
import logging
import math
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from tutti import __version__
from tutti.admission.ticket import Ticket
from tutti.audio import find_format
from tutti.errors import InvalidInput, MissingExtra, QueueFull, TuttiError, UnknownLanguage, UnknownVoice, install_hint
from tutti.server.aliases import resolve_name
from tutti.server.body_limit import check_json
from tutti.server.encoding import PieceEncoder, open_stream
from tutti.server.errors import TooLarge
from tutti.server.front.limits import MIN_BYTES_PER_S, READ_STALL_FACTOR
from tutti.server.request import SpeechRequest
from tutti.server.responses import split_bytes
from tutti.server.schemas import MAX_NAME
from tutti.server.service import Service
from tutti.server.text_feed import TextFeed
from tutti.speech import SAMPLE_RATE, SpeechParams
from tutti.tasks import cancel_all
from tutti.text import ssml
from tutti.text.incremental import Delta
from tutti.text.language import OF_OTHERS, find_language
from tutti.voices import GRADES, NAMES, VoiceInfo, Voices

try:
    from wyoming.audio import AudioChunk, AudioStart, AudioStop
    from wyoming.error import Error
    from wyoming.event import Event, Eventable, async_write_event
    from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
    from wyoming.ping import Ping, Pong
    from wyoming.tts import (
        Synthesize,
        SynthesizeChunk,
        SynthesizeStart,
        SynthesizeStop,
        SynthesizeStopped,
    )
except ModuleNotFoundError as exc:
    raise MissingExtra(f"wyoming_port needs the wyoming package; run: {install_hint('wyoming')}") from exc

MAX_LINE = 1 << 16  # bytes of an event's first line
EVENT_BYTES = 1 << 16  # of audio in one event; even, so that no sample is split
MAX_WAITING = 16  # texts that may wait on one connection
NO_PRIVATE_VOICES = " (voices private to a key cannot speak here, since Wyoming has no keys: add it with access=shared)"
PCM = find_format("pcm")
AUDIO_FORMAT = {"rate": SAMPLE_RATE, "width": 2, "channels": 1}
log = logging.getLogger("tutti.wyoming")


@asynccontextmanager
async def serve_wyoming(service: Service, sock: socket.socket) -> AsyncIterator[None]:
    """Serve clients on `sock` while this context lasts; at its end the connections that are left are aborted."""
    host, port = sock.getsockname()[:2]
    if service.settings.api_keys:
        log.warning("wyoming has no API keys: every client that can reach port %d can use the server", port)
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(connections) >= service.settings.max_connections:
            writer.close()
            return
        # Between two events any time may pass, as in a text that is being written: keep-alive detects a lost peer.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        task = asyncio.ensure_future(WyomingConnection(service, reader, writer).run())
        connections[task] = writer
        task.add_done_callback(connections.pop)

    server = await asyncio.start_server(accept, sock=sock, limit=MAX_LINE)
    log.info("wyoming listens on tcp://%s:%d", host, port)
    try:
        yield
    finally:
        server.close()
        for writer in connections.values():
            writer.transport.abort()
        await cancel_all(connections)


class WaitingText(NamedTuple):
    """A text that is spoken when those before it are."""

    feed: TextFeed
    in_pieces: bool  # it arrives so
    is_ssml: bool  # it is read when it is complete


class WyomingConnection:
    """One connection. Describe and ping are answered at once; texts are spoken one after the other."""

    def __init__(self, service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._caller = str((writer.get_extra_info("peername") or ("",))[0])
        self._texts: asyncio.Queue[WaitingText] = asyncio.Queue()
        self._open: TextFeed | None = None  # the text that is still arriving

    async def run(self) -> None:
        tasks = [asyncio.ensure_future(self._receive_all()), asyncio.ensure_future(self._speak_all())]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            self._writer.transport.abort()  # the client disconnected, or stopped reading
        except TuttiError as error:
            await cancel_all(tasks)
            await self._fail(error)
        except Exception:  # a bug: the client must get an answer
            log.exception("failed caller=%s", self._caller)
            await cancel_all(tasks)
            await self._fail(TuttiError("internal error; the server log has the details"))
        finally:
            await cancel_all(tasks)
            await self._close()

    async def _close(self) -> None:
        """Close after the last bytes are sent, or abort if they are not read in time."""
        self._writer.close()
        try:
            async with asyncio.timeout(READ_STALL_FACTOR * self._service.settings.idle_s):
                await self._writer.wait_closed()
        except OSError:
            self._writer.transport.abort()

    async def _receive_all(self) -> None:
        """Handle events until the client disconnects."""
        settings = self._service.settings
        while (event := await read_event(self._reader, settings.max_body, settings.idle_s)) is not None:
            if Describe.is_type(event.type):
                await self._write(info(self._service.aliases.known))
            elif Ping.is_type(event.type):
                await self._send(Pong(text=Ping.from_event(event).text))
            else:
                self._handle_text(event)
            await asyncio.sleep(0)  # thousands of events that have arrived must not keep the event loop from others

    def _handle_text(self, event: Event) -> None:
        """Handle a whole text, or the pieces of one. Other events are ignored."""
        if Synthesize.is_type(event.type):
            if self._open is None:  # else it repeats the pieces, for servers without streaming
                text = _text(event)
                self._add(self._queue_text(event, text), text)
        elif SynthesizeStart.is_type(event.type):
            if self._open is not None:
                raise InvalidInput("a text is still open; end it with synthesize-stop before the next")
            self._open = self._queue_text(event)
        elif SynthesizeChunk.is_type(event.type) and self._open is not None:
            self._add(self._open, _text(event))
        elif SynthesizeStop.is_type(event.type) and self._open is not None:
            self._open.end()
            self._open = None

    def _queue_text(self, event: Event, text: str | None = None) -> TextFeed:
        text_format = event.data.get("text_format")
        if text_format not in (None, "text", "ssml"):
            raise InvalidInput(f"text_format {str(text_format)[:40]!r}: send text or ssml", param="text_format")
        if self._texts.qsize() >= MAX_WAITING:
            raise QueueFull(f"{MAX_WAITING} texts wait already on this connection", retry_after_s=1)
        self._service.lifecycle.check()
        self._service.limits.requests.take(self._caller)
        voice = self._voice(event.data.get("voice"))
        params = SpeechParams(voice, voice_names=self._service.aliases.voices)
        feed = TextFeed(SpeechRequest(text or "", params, PCM))
        self._texts.put_nowait(WaitingText(feed, text is None, text_format == "ssml"))
        return feed

    def _voice(self, fields: object) -> str:
        aliases = self._service.aliases
        # Not by the library: its older versions drop the language if there is no name.
        voice = fields if isinstance(fields, dict) else {}
        name, language = voice.get("name"), voice.get("language")
        if any(value and not (isinstance(value, str) and len(value) <= MAX_NAME) for value in (name, language)):
            raise InvalidInput(f"name and language of a voice are texts of up to {MAX_NAME} characters", param="voice")
        if name:
            return resolve_name(name, aliases)
        default = aliases.default_voice
        return best_voice(language, default, aliases.known) if language else default

    def _add(self, feed: TextFeed, piece: str) -> None:
        max_text = self._service.settings.max_text
        if feed.n_characters + len(piece) > max_text:
            raise TooLarge(f"the text has more than {max_text:,} characters", param="text")
        self._service.limits.characters.take(self._caller, len(piece))
        feed.add(piece)

    async def _speak_all(self) -> None:
        while True:
            waiting = await self._texts.get()
            lifecycle = self._service.lifecycle
            lifecycle.enter()
            try:
                n_samples = await self._speak(waiting)
            finally:
                lifecycle.leave()
            feed = waiting.feed
            log.info("spoken caller=%s voice=%s characters=%d seconds=%.1f", self._caller, feed.request.params.voice,
                     feed.n_characters, n_samples / SAMPLE_RATE)  # fmt: skip

    async def _speak(self, waiting: WaitingText) -> int:
        """Send the audio of a text and its end, and return the number of samples."""
        feed, in_pieces, is_ssml = waiting
        n_samples = 0
        request, live = feed.request, feed.pieces() if in_pieces else None
        if is_ssml:
            text = request.text if live is None else "".join([piece async for piece in live if piece])
            request, live = replace(request, text=with_root(text)), None
        async with aclosing(self._pcm(request, live)) as pieces:
            async for piece in pieces:
                if n_samples == 0:
                    await self._send(AudioStart(**AUDIO_FORMAT))
                n_samples += len(piece) // 2
                await self._send(AudioChunk(**AUDIO_FORMAT, audio=piece))
        await self._send(AudioStop())
        if in_pieces:
            await self._send(SynthesizeStopped())
        return n_samples

    async def _pcm(self, request: SpeechRequest, live: AsyncIterator[Delta] | None) -> AsyncGenerator[bytes]:
        """Yield s16le in parts of a size for one event."""
        service = self._service
        speeches = service.speak(request, Ticket(self._caller, arrived_s=time.monotonic()), live)
        # No time limit for a text in pieces: the first words may come late.
        stream = await open_stream(request, speeches, service.settings.timeout_s if live is None else math.inf)
        encoder = PieceEncoder(service.encoders, request)
        async with aclosing(stream):
            async for speech in stream.speeches():
                async for piece in encoder.pieces(speech):
                    for part in split_bytes(piece, EVENT_BYTES):
                        yield part

    async def _send(self, event: Eventable) -> None:
        await self._write(event.event())

    async def _write(self, event: Event) -> None:
        async with asyncio.timeout(READ_STALL_FACTOR * self._service.settings.idle_s):
            await async_write_event(event, self._writer)

    async def _fail(self, error: TuttiError) -> None:
        """Send an error and end the connection: many clients wait for the end of the audio, and ignore errors."""
        log.info("refused caller=%s code=%s", self._caller, error.code)
        if isinstance(error, UnknownVoice) and self._service.settings.api_keys:
            error = UnknownVoice(error.message + NO_PRIVATE_VOICES, param=error.param)
        with suppress(OSError, TimeoutError):
            await self._send(Error(text=error.message.encode("utf-8", "replace").decode(), code=error.code))
            # Read what the client still sends: closing with unread data resets the connection, and the error is lost.
            self._writer.write_eof()
            async with asyncio.timeout(self._service.settings.idle_s):
                while await self._reader.read(MAX_LINE):
                    pass


async def read_event(reader: asyncio.StreamReader, max_bytes: int, idle_s: float = math.inf) -> Event | None:
    """Read an event; None at the end. The library's own reader has no limit on its length.

    It may come at any time, but must then arrive as fast as a request over HTTP; else TimeoutError.
    """
    first = await reader.read(1)
    if not first:
        return None
    try:
        async with asyncio.timeout(idle_s):
            line = first + (await reader.readline() if first != b"\n" else b"")
    except ValueError as exc:
        raise TooLarge(f"an event's first line may have {MAX_LINE:,} bytes") from exc
    head = _parse_object(line)
    sizes = [head.get(name) or 0 for name in ("data_length", "payload_length")]
    if not all(isinstance(size, int) and 0 <= size <= max_bytes for size in sizes):
        raise TooLarge(f"an event may have {max_bytes:,} bytes")
    async with asyncio.timeout(idle_s + sum(sizes) / MIN_BYTES_PER_S):
        more, payload = [await _read_paced(reader, size, idle_s) for size in sizes]
    data = head.get("data") or {}
    if not isinstance(data, dict):
        raise InvalidInput("an event's data must be a JSON object")
    return Event(str(head.get("type")), data | (_parse_object(more) if more else {}), payload or None)


async def _read_paced(reader: asyncio.StreamReader, n_bytes: int, idle_s: float) -> bytes:
    """Read so many bytes; raise TimeoutError if none come for a while."""
    data = bytearray()
    while len(data) < n_bytes:
        async with asyncio.timeout(idle_s):
            part = await reader.read(min(n_bytes - len(data), MAX_LINE))
        if not part:
            raise asyncio.IncompleteReadError(bytes(data), n_bytes)
        data += part
    return bytes(data)


def _parse_object(text: bytes) -> dict[str, Any]:
    check_json(text)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise InvalidInput("not a Wyoming event: it must begin with a JSON object on one line")
    return parsed


def with_root(text: str) -> str:
    """Return SSML as a document: a part of one gets its <speak>."""
    return text if ssml.is_ssml(text) else f"<speak>{text}</speak>"


def _text(event: Event) -> str:
    text = event.data.get("text")
    if not isinstance(text, str):
        raise InvalidInput(f"{event.type} needs a text", param="text")
    return text


def info(voices: Voices) -> Event:
    """Describe the server for Home Assistant: every voice with its language."""
    program = TtsProgram(
        name="tutti",
        attribution=Attribution("tutti", ""),
        installed=True,
        description="All voices, one pass: Kokoro-82M",
        version=__version__,
        voices=[_voice(voice) for voice in voices.all().values()],
        supports_synthesize_streaming=True,
    )
    return Info(tts=[program]).event()


def _voice(voice: VoiceInfo) -> TtsVoice:
    code, _, region = voice.language.partition("-")
    return TtsVoice(
        name=voice.name,
        attribution=Attribution("", "")
        if voice.is_own
        else Attribution("hexgrad", "https://huggingface.co/hexgrad/Kokoro-82M"),
        installed=True,
        description=voice.label,
        version="1.0",
        languages=[f"{code}-{region.upper()}" if region else code],
    )


def best_voice(code: str, default: str, voices: Voices) -> str:
    """Return the voice for a language: the default if it speaks that language, else the one with the best grade."""
    language = find_language(code)
    letter = language.letter
    if find_language(voices.language_of(default)).letter == letter:
        return default
    if language in OF_OTHERS:
        raise UnknownLanguage(f"no voice of the default model speaks {language.name}", param="language")
    return min((name for name in NAMES if name.startswith(letter)), key=_rank)


def _rank(name: str) -> tuple[str, int]:
    grade = GRADES[name]
    return grade[0], ("+", "", "-").index(grade[1:])
