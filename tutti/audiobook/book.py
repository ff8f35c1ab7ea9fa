"""A book, its chapters and its cover, and what every reader of a format needs."""

import struct
from dataclasses import dataclass
from typing import BinaryIO, Literal

from tutti.errors import InvalidInput

MAX_BYTES = 50_000_000  # of one document in a book, unpacked
MAX_COVER_BYTES = 20_000_000

Image = Literal["jpeg", "png"]


@dataclass(frozen=True, slots=True)
class Chapter:
    """What is read between two chapter marks, its heading included; paragraphs stand between blank lines."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Cover:
    """A picture as the book has it; nothing here decodes it."""

    data: bytes
    kind: Image
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Book:
    """What there is to read, who wrote it, and what a listener should know was not there."""

    title: str
    author: str
    chapters: tuple[Chapter, ...]
    language: str = ""  # as the book says
    cover: Cover | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_characters(self) -> int:
        return sum(len(chapter.text) for chapter in self.chapters)


def decoded(data: bytes, name: str, encoding: str | None, declared: str | None = None) -> str:
    """The bytes as text with plain line ends: by byte order mark, as told, as declared, else UTF-8; never by guess."""
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            encoding = codec
    chosen = encoding or declared or "utf-8"
    try:
        text = data.decode(chosen)
    except (LookupError, ValueError) as exc:
        if isinstance(exc, UnicodeDecodeError):
            why = f"is not {chosen} text (byte {exc.start})"
        else:
            why = f"is said to be {chosen[:40]!r}, which is no encoding"
        raise InvalidInput(f"{name} {why}; say which encoding it has, such as latin-1", param="encoding") from exc
    return text.replace("\r\n", "\n").replace("\r", "\n")


def contents(file: BinaryIO, name: str) -> bytes:
    """All of a file that is one document."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{name} is over {MAX_BYTES:,} bytes", param="book")
    return data


def cover(data: bytes) -> Cover | None:
    """The picture, if it is a JPEG or a PNG whose header can be believed."""
    if len(data) > MAX_COVER_BYTES:
        return None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        return _sized(data, "png", *struct.unpack(">II", data[16:24]))
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    return None


def _jpeg(data: bytes) -> Cover | None:
    """From segment to segment until the one with the size."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return _sized(data, "jpeg", width, height)
        at += 2 + max(length, 2)
    return None


def _sized(data: bytes, kind: Image, width: int, height: int) -> Cover | None:
    return Cover(data, kind, width, height) if 0 < width < 65_536 and 0 < height < 65_536 else None
