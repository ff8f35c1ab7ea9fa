"""Wyoming, the protocol of Home Assistant: voices told, texts said, also while they are still being written."""

import asyncio
import json
import logging
import math
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from tutti import __version__
from tutti.audio import find_format
from tutti.errors import InvalidInput, MissingExtra, QueueFull, TuttiError
from tutti.server.aliases import voice_expression
from tutti.server.encoding import Encoding, open_stream
from tutti.server.errors import TooLarge
from tutti.server.request import SpeechRequest
from tutti.server.service import Service
from tutti.server.text_feed import Written
from tutti.speech import SAMPLE_RATE, SpeechParams
from tutti.text.incremental import Delta
from tutti.text.language import language
from tutti.voices import GRADES, NAMES, gender, parse

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
    raise MissingExtra('wyoming_port needs the wyoming package; run: pip install "tutti-tts[wyoming]"') from exc

STALLED = 6  # times idle_s that a client may leave its audio unread
MAX_LINE = 1 << 16
MAX_WAITING = 16  # texts of one connection that wait for the one before them
PCM = find_format("pcm")
SOUND = {"rate": SAMPLE_RATE, "width": 2, "channels": 1}
log = logging.getLogger("tutti.wyoming")


@asynccontextmanager
async def serve_wyoming(service: Service, sock: socket.socket) -> AsyncIterator[None]:
    """While this lasts, clients on `sock` are served; at its end those left are cut."""
    host, port = sock.getsockname()[:2]
    if service.settings.api_keys:
        log.warning("wyoming knows no API keys: whoever reaches port %d may ask for speech", port)
    talking: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(talking) >= service.settings.max_connections:
            writer.close()
            return
        # A text may pause for as long as its author thinks; a peer that has vanished does not answer the kernel.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        task = asyncio.ensure_future(Talk(service, reader, writer).run())
        talking[task] = writer
        task.add_done_callback(talking.pop)

    server = await asyncio.start_server(met, sock=sock, limit=MAX_LINE)
    log.info("wyoming listens on tcp://%s:%d", host, port)
    try:
        yield
    finally:
        server.close()
        for task, writer in talking.items():
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)


class Talk:
    """One connection. Questions are answered at once, texts are said one after the other; who leaves is forgotten."""

    def __init__(self, service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._caller = str((writer.get_extra_info("peername") or ("",))[0])
        self._orders: asyncio.Queue[tuple[Written, bool]] = asyncio.Queue()  # texts, and whether they came in pieces
        self._open: Written | None = None  # its text is still arriving

    async def run(self) -> None:
        tasks = [asyncio.ensure_future(self._hear()), asyncio.ensure_future(self._say_all())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            self._writer.transport.abort()  # it hung up, or reads no more
        except TuttiError as error:
            await self._stop(tasks)
            await self._fail(error)
        except Exception:
            log.exception("failed caller=%s", self._caller)
            await self._stop(tasks)
            await self._fail(TuttiError("something broke in the server; its log says more"))
        finally:
            await self._stop(tasks)
            await self._hang_up()

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _hang_up(self) -> None:
        """Closes once the last bytes are sent, or will never be."""
        self._writer.close()
        try:
            async with asyncio.timeout(STALLED * self._service.settings.idle_s):
                await self._writer.wait_closed()
        except OSError:
            self._writer.transport.abort()

    async def _hear(self) -> None:
        """Reads until the client leaves."""
        while (event := await read_event(self._reader, self._service.settings.max_body)) is not None:
            if Describe.is_type(event.type):
                await self._tell(Info(tts=[program()]))
            elif Ping.is_type(event.type):
                await self._tell(Pong(text=Ping.from_event(event).text))
            else:
                self._take(event)

    def _take(self, event: Event) -> None:
        """An event of the text: a whole one, or one piece after the other. Others are not for us."""
        if Synthesize.is_type(event.type):
            if self._open is None:  # else it repeats the pieces, for servers that cannot stream
                text = _text(event)
                self._add(self._order(event, text), text)
        elif SynthesizeStart.is_type(event.type):
            if self._open is not None:
                raise InvalidInput("a text is still open; end it with synthesize-stop before the next")
            self._open = self._order(event)
        elif SynthesizeChunk.is_type(event.type) and self._open is not None:
            self._add(self._open, _text(event))
        elif SynthesizeStop.is_type(event.type) and self._open is not None:
            self._open.end()
            self._open = None

    def _order(self, event: Event, text: str | None = None) -> Written:
        if event.data.get("text_format") not in (None, "text"):
            raise InvalidInput("text_format: only plain text is understood", param="text_format")
        if self._orders.qsize() >= MAX_WAITING:
            raise QueueFull(f"{MAX_WAITING} texts wait already on this connection", retry_after_s=1)
        self._service.lifecycle.check()
        self._service.limits.requests.take(self._caller)
        voice = self._voice(event.data.get("voice"))
        order = Written(SpeechRequest(text or "", SpeechParams(voice, voice_names=self._service.cast.names), PCM))
        self._orders.put_nowait((order, text is None))
        return order

    def _voice(self, wanted: object) -> str:
        cast = self._service.cast
        # By hand: older versions of the library lose the language where there is no name.
        asked = wanted if isinstance(wanted, dict) else {}
        if asked.get("name"):
            return voice_expression(str(asked["name"]), cast.names)
        return speaker(str(asked["language"]), cast.voice) if asked.get("language") else cast.voice

    def _add(self, order: Written, piece: str) -> None:
        max_text = self._service.settings.max_text
        if order.n_characters + len(piece) > max_text:
            raise TooLarge(f"the text has more than {max_text:,} characters", param="text")
        self._service.limits.characters.take(self._caller, len(piece))
        order.add(piece)

    async def _say_all(self) -> None:
        while True:
            order, in_pieces = await self._orders.get()
            lifecycle = self._service.lifecycle
            lifecycle.enter()
            try:
                n_samples = await self._say(order, in_pieces=in_pieces)
            finally:
                lifecycle.leave()
            log.info("said caller=%s voice=%s characters=%d seconds=%.1f", self._caller, order.ask.params.voice,
                     order.n_characters, n_samples / SAMPLE_RATE)  # fmt: skip

    async def _say(self, order: Written, *, in_pieces: bool) -> int:
        """The text, its end and, where it came in pieces, that nothing more follows."""
        n_samples = 0
        live = order.pieces() if in_pieces else None
        async with aclosing(self._sound(order.ask, live)) as sound:
            async for piece in sound:
                if n_samples == 0:
                    await self._tell(AudioStart(**SOUND))
                n_samples += len(piece) // 2
                await self._tell(AudioChunk(**SOUND, audio=piece))
        await self._tell(AudioStop())
        if in_pieces:
            await self._tell(SynthesizeStopped())
        return n_samples

    async def _sound(self, ask: SpeechRequest, live: AsyncIterator[Delta] | None) -> AsyncGenerator[bytes]:
        """Half seconds of s16le."""
        service = self._service
        stream = ask.spoken(service.engine, caller=self._caller, live=live)
        # How long its author takes over the first words is nobody's fault.
        opened = await open_stream(ask, stream, service.settings.timeout_s if live is None else math.inf)
        encoding = Encoding(ask.encoder(), service.encoder_threads)
        async with aclosing(opened):
            async for speech in opened.speeches():
                async for piece in encoding.pieces(speech):
                    yield piece

    async def _tell(self, what: Eventable) -> None:
        async with asyncio.timeout(STALLED * self._service.settings.idle_s):
            await async_write_event(what.event(), self._writer)

    async def _fail(self, error: TuttiError) -> None:
        """Says what is wrong and hangs up: many clients wait for the end of the audio and look at nothing else."""
        log.info("refused caller=%s code=%s", self._caller, error.code)
        with suppress(OSError, TimeoutError):
            await self._tell(Error(text=error.message.encode("utf-8", "replace").decode(), code=error.code))
            # What it still sends must be read, or closing would reset the connection and take these words along.
            self._writer.write_eof()
            async with asyncio.timeout(self._service.settings.idle_s):
                while await self._reader.read(MAX_LINE):
                    pass


async def read_event(reader: asyncio.StreamReader, max_bytes: int) -> Event | None:
    """The next event, or none where the client has left. The library's own reader takes any length on trust."""
    try:
        line = await reader.readline()
    except ValueError as exc:
        raise TooLarge(f"an event's first line may have {MAX_LINE:,} bytes") from exc
    if not line:
        return None
    head = _object(line)
    sizes = [head.get(name) or 0 for name in ("data_length", "payload_length")]
    if not all(isinstance(size, int) and 0 <= size <= max_bytes for size in sizes):
        raise TooLarge(f"an event may have {max_bytes:,} bytes")
    more, payload = [await reader.readexactly(size) for size in sizes]
    data = head.get("data") or {}
    if not isinstance(data, dict):
        raise InvalidInput("an event's data must be a JSON object")
    return Event(str(head.get("type")), data | (_object(more) if more else {}), payload or None)


def _object(text: bytes) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise InvalidInput("this is not Wyoming: an event begins with a JSON object on one line")
    return read


def _text(event: Event) -> str:
    text = event.data.get("text")
    if not isinstance(text, str):
        raise InvalidInput(f"{event.type} needs a text", param="text")
    return text


def program() -> TtsProgram:
    """What Home Assistant shows: every voice, each with its language."""
    return TtsProgram(
        name="tutti",
        attribution=Attribution("tutti", ""),
        installed=True,
        description="All voices, one pass: Kokoro-82M",
        version=__version__,
        voices=[_voice(name) for name in NAMES],
        supports_synthesize_streaming=True,
    )


def _voice(name: str) -> TtsVoice:
    spoken = language(name[0])
    code, _, region = spoken.code.partition("-")
    return TtsVoice(
        name=name,
        attribution=Attribution("hexgrad", "https://huggingface.co/hexgrad/Kokoro-82M"),
        installed=True,
        description=f"{name[3:].title()} ({spoken.name}, {gender(name)})",
        version="1.0",
        languages=[f"{code}-{region.upper()}" if region else code],
    )


def speaker(wanted: str, default: str) -> str:
    """The voice for a language: the default where it speaks that language, else the best of those that do."""
    letter = language(wanted).letter
    (first, _), *_ = parse(default)
    if first.startswith(letter):
        return default
    return min((name for name in NAMES if name.startswith(letter)), key=_rank)


def _rank(name: str) -> tuple[str, int]:
    grade = GRADES[name]
    return grade[0], ("+", "", "-").index(grade[1:])
