"""Spoken audio that a link can fetch again for an hour: `return_download_link` and GET /v1/download/{name}."""

import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import BinaryIO

from fastapi.responses import Response

from tutti.audio import Format
from tutti.server.responses import StreamedAudio

KEEP_S = 3600.0  # a file is deleted after this time
MAX_BYTES = 1_000_000_000  # of all files; beyond it the oldest are deleted
NAME = re.compile(r"[\w-]{22}\.[a-z0-9]{2,5}\Z", re.ASCII)
log = logging.getLogger("tutti.server")


class Downloads:
    """Files with names that cannot be guessed; whoever has the name may fetch the file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def link(self, response: Response, format: Format) -> Response:
        """Store the audio of a response as it is sent, and add its path as X-Download-Path."""
        if response.status_code != 200:
            return response
        name = f"{token_urlsafe(16)}{format.suffixes[0]}"
        recording = AudioRecording(self._folder, name)
        if isinstance(response, StreamedAudio):
            response.pieces = recording.of(response.pieces)
        else:
            recording.write(bytes(response.body))
            recording.finish()
        response.headers["x-download-path"] = f"/v1/download/{name}"
        return response

    def find(self, name: str) -> Path | None:
        """Return the complete file of this name."""
        path = self._folder / name
        if NAME.match(name) is None or not path.is_file() or time.time() - path.stat().st_mtime > KEEP_S:
            return None
        return path


class AudioRecording:
    """A file that gets its name when it is complete. A disk that fails costs the file, never the stream.

    The writes are small and not synced, so they take no time on the event loop.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._partial = folder / f".{name}"
        self._file: BinaryIO | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            make_room(folder)
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


def make_room(folder: Path) -> None:
    """Delete files that are too old, and the oldest while there are too many."""
    n_bytes, now = 0, time.time()
    files = [(path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir()]
    for changed_s, size, path in sorted(files, reverse=True):
        n_bytes += size
        if n_bytes > MAX_BYTES or now - changed_s > KEEP_S:
            path.unlink(missing_ok=True)
