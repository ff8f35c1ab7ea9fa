"""Spoken audio that a link can fetch again for an hour: `return_download_link` and GET /v1/download/{name}."""

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, BinaryIO

from fastapi.responses import Response

from tutti.audio import Format, find_format
from tutti.server.encoding import PieceEncoder
from tutti.server.errors import rename_param
from tutti.server.notices import add_notice
from tutti.server.request import SpeechRequest
from tutti.server.responses import StreamedAudio, Tee
from tutti.server.schemas import SpeechBody
from tutti.server.service import Service
from tutti.speech import SAMPLE_RATE, Speech, Timing
from tutti.text.marks import strip_marks

KEEP_S = 3600.0  # a file is deleted after this time
MAX_BYTES = 1_000_000_000  # of all files; beyond it the oldest are deleted
MAX_FILES = 10_000  # the same by number: short ones are small
ROOM_S = 10.0  # between two looks at all files; in between there may be more
TIMES = ".json"  # behind the name of the audio, for the times of its parts
NAME = re.compile(r"[\w-]{22}\.[a-z0-9]{2,5}(\.json)?\Z", re.ASCII)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")  # of SSML
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")  # in the name under which a client saves a file
EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
MAX_STEM = 100  # characters of such a name
NOT_STORED = "the audio could not be stored for a download: the disk of the server failed or is full"
log = logging.getLogger("tutti.server")


class Downloads:
    """Files with names that cannot be guessed; whoever has the name may fetch the file.

    The age of a file is measured by the monotonic clock, since steps of the wall clock must not end links; only that
    of a file of an earlier process, or of another server, is what the file system says.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._made_s: dict[str, float] = {}  # when this process made a file, by its name
        self._next_look_s = 0.0

    def begin(self, format: Format, *, with_times: bool = False) -> "Download":
        """Begin to store audio in this format, and the times of its parts if they are wanted."""
        self._make_room()
        name = f"{token_urlsafe(16)}{format.suffixes[0]}"
        return Download(format, self._recording(name), self._recording(f"{name}{TIMES}") if with_times else None)

    @contextmanager
    def storing(self, request: SpeechRequest, body: SpeechBody) -> Iterator["Download"]:
        """Begin to store the speech of a request as its body asks for; nothing stays if the block fails."""
        format = request.format
        if body.download_format is not None:
            with rename_param(format="download_format"):
                format = find_format(body.download_format)
        format.rate(request.sample_rate)
        download = self.begin(format, with_times=bool(body.return_timing))
        try:
            yield download
        except BaseException:
            download.discard()
            raise

    def _recording(self, name: str) -> "AudioRecording":
        self._made_s[name] = self._clock()
        return AudioRecording(self._folder, name)

    def _make_room(self) -> None:
        """Delete what is too much, now and then and in a thread: looking at thousands of files takes a while."""
        now = self._clock()
        if now >= self._next_look_s:
            self._next_look_s = now + ROOM_S
            asyncio.get_running_loop().run_in_executor(None, make_room, self._folder, self._made_s, now)
            self._made_s = {name: made_s for name, made_s in self._made_s.items() if now - made_s <= KEEP_S}

    def find(self, name: str) -> Path | None:
        """Return the complete file of this name."""
        path = self._folder / name
        if NAME.match(name) is None or not path.is_file():
            return None
        return path if _age_s(path, self._made_s, self._clock()) <= KEEP_S else None


def shown_name(stored: str, wanted: str) -> str:
    """Return the name under which a client saves a file: the one it wants, in plain characters, with our extension."""
    plain = UNSAFE.sub("_", wanted)
    stem = EXTENSION.sub("", plain).strip("._-")[:MAX_STEM].strip("._-")
    return f"{stem or 'speech'}{Path(stored).suffix}"


class AudioRecording:
    """A file that gets its name when it is complete. A disk that fails costs the file, never the stream.

    The writes are small and not synced, so they take no time on the event loop.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.failed = False  # there will be no file
        self._path = folder / name
        self._partial = folder / f".{name}"
        self._file: BinaryIO | None = None
        try:
            folder.mkdir(0o700, parents=True, exist_ok=True)  # no other account may read what was said
            self._file = self._partial.open("wb")
        except OSError as error:
            self._fail(error)

    async def of(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces and write them."""
        try:
            async for piece in pieces:
                yield piece
                self.write(piece)
            self.finish()
        finally:
            self.discard()

    def write(self, piece: bytes) -> None:
        try:
            if self._file:
                self._file.write(piece)
        except OSError as error:
            self._fail(error)

    def finish(self, header: bytes = b"") -> None:
        """Write the header over the start, close the file and give it its name."""
        try:
            if self._file:
                if header:
                    self._file.seek(0)
                    self._file.write(header)
                self._file.close()
                self._partial.rename(self._path)
                self._file = None
        except OSError as error:
            self._fail(error)

    def discard(self) -> None:
        """Delete the file, unless it is complete."""
        file, self._file = self._file, None
        if file:
            with suppress(OSError):
                file.close()
            self._partial.unlink(missing_ok=True)

    def _fail(self, error: OSError) -> None:
        log.warning("no download, the disk failed: %s", error)
        self.failed = True
        self.discard()


@dataclass(frozen=True, slots=True)
class Download:
    """What is stored of one answer: its audio, and the times of its parts."""

    format: Format
    audio: AudioRecording
    times: AudioRecording | None = None

    def announce(self, response: Response) -> None:
        """Name the paths in headers, behind /v1 as clients of Kokoro-FastAPI expect, or say that there are none."""
        for header, recording in (("x-download-path", self.audio), ("x-timing-path", self.times)):
            if recording and not recording.failed:
                response.headers[header] = f"/download/{recording.name}"
        if self.audio.failed or (self.times and self.times.failed):
            response.headers["x-download-status"] = "unavailable"
            add_notice(response.headers, NOT_STORED)

    def discard(self) -> None:
        """Delete what is not complete."""
        for recording in filter(None, (self.audio, self.times)):
            recording.discard()

    def record(self, response: Response) -> None:
        """Store the bytes of an answer as they are sent."""
        if isinstance(response, StreamedAudio):
            response.pieces = self.audio.of(response.pieces)
        else:
            self.audio.write(bytes(response.body))
            self.audio.finish()

    def tee(self, service: Service, request: SpeechRequest, *, audio: bool) -> Tee:
        """Return what stores the speech of a request on its way: the times of its parts, and if asked for its audio."""
        copy = replace(request, format=self.format) if audio else None
        return lambda speeches: self._store(service, request.text, copy, speeches)

    async def _store(
        self, service: Service, text: str, copy: SpeechRequest | None, speeches: AsyncGenerator[Speech]
    ) -> AsyncGenerator[Speech]:
        """Yield the speeches, and store what is asked for once there is no more."""
        encoder, times = PieceEncoder(service.encoders, copy, "whole") if copy else None, PartTimes(text)
        try:
            async with aclosing(speeches):
                async for speech in speeches:
                    yield speech
                    times.add(speech)
                    if encoder:
                        await self._encode(encoder, speech)
                    del speech
            if self.times:
                self.times.write(times.json())
                self.times.finish()
            if encoder and copy:
                self.audio.write(await encoder.flush())
                self.audio.finish(await encoder.true_header(copy, times.n_samples))
        finally:
            for recording in filter(None, (self.times, self.audio if copy else None)):
                recording.discard()

    async def _encode(self, encoder: PieceEncoder, speech: Speech) -> None:
        # Without its timing: the first audio is what the listener gets.
        async for piece in encoder.pieces(replace(speech, timing=Timing())):
            self.audio.write(piece)


class PartTimes:
    """When each part of a text is spoken, in the form of Kokoro-FastAPI."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.n_samples = 0
        self._parts: list[dict[str, Any]] = []

    def add(self, speech: Speech) -> None:
        """Add what a speech reads; one without words, as a pause, belongs to the part before it."""
        start_s = self.n_samples / SAMPLE_RATE
        self.n_samples += len(speech.samples)
        end_s = round(self.n_samples / SAMPLE_RATE, 3)
        if speech.words:
            start, end = speech.span
            text = _TAG.sub("", strip_marks(self._text[start:end]))
            self._parts.append({"text": " ".join(text.split()), "start": round(start_s, 3), "end": end_s})
        elif self._parts:
            self._parts[-1]["end"] = end_s

    def json(self) -> bytes:
        return json.dumps({"chunks": self._parts}).encode()


def make_room(folder: Path, made_s: Mapping[str, float], now: float) -> None:
    """Delete files that are too old, and the oldest while there are too many."""
    n_bytes = 0
    try:
        with os.scandir(folder) as entries:
            files = [(_age_s(Path(entry), made_s, now), entry.stat().st_size, Path(entry)) for entry in entries]
        for n, (age_s, size, path) in enumerate(sorted(files)):
            n_bytes += size
            if n_bytes > MAX_BYTES or n >= MAX_FILES or age_s > KEEP_S:
                path.unlink(missing_ok=True)
    except OSError as error:  # no folder yet, or a file was deleted meanwhile: the next look is soon
        log.debug("no room made for downloads: %s", error)


def _age_s(path: Path, made_s: Mapping[str, float], now: float) -> float:
    """Seconds since a file was made, also while it is not complete."""
    made = made_s.get(path.name.removeprefix("."))
    return time.time() - path.stat().st_mtime if made is None else now - made
