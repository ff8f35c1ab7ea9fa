"""The ZIP archive of a book: read in memory only, with limits on the unpacked size."""

import posixpath
import struct
import zipfile
import zlib
from typing import BinaryIO, Self
from urllib.parse import unquote, urlsplit

from tutti.errors import InvalidInput

MAX_MEMBERS = 20_000  # files in one archive
MAX_DIRECTORY = 300 * MAX_MEMBERS  # bytes of the list of members
_END_BYTES = 22 + 65_535 + 20  # in which a ZIP file's end record is found, and the mark of ZIP64 before it
MAX_UNPACKED = 200_000_000  # bytes that one book may unpack to, all members together
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError,
    OverflowError, MemoryError, OSError,
)  # fmt: skip


class Archive:
    """A ZIP file whose members are read by path."""

    def __init__(self, file: BinaryIO, name: str, kind: str = "an EPUB") -> None:
        """`kind`: what the file should be, for messages."""
        self._name = name
        self._bytes_left = MAX_UNPACKED
        _check_directory(file, name)
        try:
            self._zip = zipfile.ZipFile(file)
        except _ZIP_ERRORS as exc:
            raise InvalidInput(f"{name} is not {kind}: it is not a ZIP file, or a damaged one", param="book") from exc
        if len(self._zip.infolist()) > MAX_MEMBERS:
            raise InvalidInput(f"{name} has over {MAX_MEMBERS:,} files in it", param="book")
        self._members = {member.filename: member for member in self._zip.infolist()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._members)

    def __contains__(self, path: str) -> bool:
        return path in self._members

    def read(self, path: str, max_bytes: int) -> bytes:
        """Unpack a member. Raise InvalidInput if it is damaged, encrypted or too large."""
        try:
            with self._zip.open(self._members[path]) as member:
                data = member.read(min(max_bytes, self._bytes_left) + 1)
        except _ZIP_ERRORS as exc:
            reason = "is protected with a password" if "password" in str(exc) else "is damaged"
            raise InvalidInput(f"{path} in {self._name} {reason}", param="book") from exc
        self._bytes_left -= len(data)
        if len(data) > max_bytes or self._bytes_left < 0:
            raise InvalidInput(f"{path} in {self._name} unpacks to more than the limit", param="book")
        return data


def _check_directory(file: BinaryIO, name: str) -> None:
    """Raise InvalidInput if the list of members is too long to be read: the library reads all of it at once."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES))
    end = file.read(_END_BYTES)
    at = end.rfind(b"PK\x05\x06")
    file.seek(0)
    if at < 0 or len(end) - at < 22:
        return  # not a ZIP file: the library says so
    (n_bytes,) = struct.unpack_from("<I", end, at + 12)
    if n_bytes > MAX_DIRECTORY or end[max(0, at - 20) : at].startswith(b"PK\x06\x07"):  # the latter: ZIP64
        raise InvalidInput(f"{name} has over {MAX_MEMBERS:,} files in it", param="book")


def resolve_link(base: str, href: str) -> tuple[str, str]:
    """The path and the fragment of a link in the member `base`; both empty if it leads out of the archive."""
    try:
        parts = urlsplit(href.strip())
    except ValueError:
        return "", ""
    if parts.scheme or parts.netloc:
        return "", ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(parts.path))) if parts.path else base
    return path, unquote(parts.fragment)
