"""Spoken audio that a link can fetch again for an hour: `return_download_link` and GET /v1/download/{name}."""

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import BinaryIO

from fastapi.responses import Response

from tutti.audio import Format
from tutti.server.responses import StreamedAudio

KEEP_S = 3600.0  # a file is deleted after this time
MAX_BYTES = 1_000_000_000  # of all files; beyond it the oldest are deleted
MAX_FILES = 10_000  # the same by number: short ones are small
ROOM_S = 10.0  # between two looks at all files; in between there may be more
NAME = re.compile(r"[\w-]{22}\.[a-z0-9]{2,5}\Z", re.ASCII)
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")  # in the name under which a client saves a file
EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
MAX_STEM = 100  # characters of such a name
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

    def link(self, response: Response, format: Format) -> Response:
        """Store the audio of a response as it is sent, and add its path as X-Download-Path."""
        if response.status_code != 200:
            return response
        self._make_room()
        name = f"{token_urlsafe(16)}{format.suffixes[0]}"
        self._made_s[name] = self._clock()
        recording = AudioRecording(self._folder, name)
        if isinstance(response, StreamedAudio):
            response.pieces = recording.of(response.pieces)
        else:
            recording.write(bytes(response.body))
            recording.finish()
        response.headers["x-download-path"] = f"/download/{name}"  # behind /v1, as clients of Kokoro-FastAPI expect
        return response

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
        self._path = folder / name
        self._partial = folder / f".{name}"
        self._file: BinaryIO | None = None
        try:
            folder.mkdir(0o700, parents=True, exist_ok=True)  # no other account may read what was said
            self._file = self._partial.open("wb")
        except OSError as error:
            log.warning("no download, the disk failed: %s", error)

    async def of(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces and write them."""
        try:
            async for piece in pieces:
                yield piece
                self.write(piece)
            self.finish()
        finally:
            self._discard()

    def write(self, piece: bytes) -> None:
        try:
            if self._file:
                self._file.write(piece)
        except OSError as error:
            log.warning("no download, the disk failed: %s", error)
            self._discard()

    def finish(self) -> None:
        """Close the file and give it its name."""
        try:
            if self._file:
                self._file.close()
                self._partial.rename(self._path)
                self._file = None
        except OSError as error:
            log.warning("no download, the disk failed: %s", error)
            self._discard()

    def _discard(self) -> None:
        file, self._file = self._file, None
        if file:
            with suppress(OSError):
                file.close()
            self._partial.unlink(missing_ok=True)


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
