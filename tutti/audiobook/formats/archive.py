"""The ZIP file around an EPUB: nothing is unpacked to disk, and no member may grow past its limit."""

import posixpath
import struct
import zipfile
import zlib
from typing import BinaryIO, Self
from urllib.parse import unquote, urlsplit

from tutti.errors import InvalidInput

MAX_MEMBERS = 20_000
MAX_UNPACKED = 200_000_000  # bytes that one book may unpack to, all members together
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError,
    OverflowError, MemoryError, OSError,
)  # fmt: skip


class Archive:
    """The members of a ZIP file by their path."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self._room = MAX_UNPACKED
        try:
            self._zip = zipfile.ZipFile(file)
        except _BROKEN as exc:
            raise InvalidInput(f"{name} is not an EPUB: it is no ZIP file, or a broken one", param="book") from exc
        if len(self._zip.infolist()) > MAX_MEMBERS:
            raise InvalidInput(f"{name} has over {MAX_MEMBERS:,} files in it", param="book")
        self._members = {member.filename: member for member in self._zip.infolist()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, path: str) -> bool:
        return path in self._members

    def read(self, path: str, max_bytes: int) -> bytes:
        """A member's bytes. Raises InvalidInput where it is broken, locked or too large."""
        try:
            with self._zip.open(self._members[path]) as member:
                data = member.read(min(max_bytes, self._room) + 1)
        except _BROKEN as exc:
            locked = "password" in str(exc)
            why = "is locked with a password" if locked else "is broken"
            raise InvalidInput(f"{path} in {self._name} {why}", param="book") from exc
        self._room -= len(data)
        if len(data) > max_bytes or self._room < 0:
            raise InvalidInput(f"{path} in {self._name} unpacks to more than a book can have", param="book")
        return data


def resolved(base: str, href: str) -> tuple[str, str]:
    """The path that a link in the member `base` leads to, and the place in it; none where it leads outside."""
    try:
        parts = urlsplit(href.strip())
    except ValueError:
        return "", ""
    if parts.scheme or parts.netloc:
        return "", ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(parts.path))) if parts.path else base
    return path, unquote(parts.fragment)
