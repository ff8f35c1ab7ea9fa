"""Book and Chapter, and helpers shared by the parsers of all formats."""

import struct
from dataclasses import dataclass
from typing import BinaryIO

from tutti.audio.tagged import CoverImage, ImageKind
from tutti.errors import InvalidInput

MAX_BYTES = 50_000_000  # of one unpacked document
MAX_COVER_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Chapter:
    """The text of a chapter, with its heading; blank lines separate paragraphs."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Book:
    """A parsed book; `notes` name what is missing from it."""

    title: str
    author: str
    chapters: tuple[Chapter, ...]
    language: str = ""  # as declared in the book
    cover: CoverImage | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_characters(self) -> int:
        return sum(len(chapter.text) for chapter in self.chapters)


def decode_text(data: bytes, name: str, encoding: str | None, declared: str | None = None) -> str:
    """Decode by byte order mark, else `encoding`, else `declared`, else UTF-8; line ends become \\n. Never guess."""
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            encoding = codec
    encoding = encoding or declared or "utf-8"
    try:
        text = data.decode(encoding)
    except (LookupError, ValueError) as exc:
        if isinstance(exc, UnicodeDecodeError):
            reason = f"is not {encoding} text (byte {exc.start})"
        else:
            reason = f"declares the unknown encoding {encoding[:40]!r}"
        raise InvalidInput(f"{name} {reason}; set its encoding, such as latin-1", param="encoding") from exc
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_document(file: BinaryIO, name: str) -> bytes:
    """Read a file that is one document, up to MAX_BYTES."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{name} is larger than {MAX_BYTES:,} bytes", param="book")
    return data


def parse_cover(data: bytes) -> CoverImage | None:
    """The image with its size, or None if it is not a valid JPEG or PNG."""
    if len(data) > MAX_COVER_BYTES:
        return None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        return _checked_cover(data, "png", *struct.unpack(">II", data[16:24]))
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg_cover(data)
    return None


def _jpeg_cover(data: bytes) -> CoverImage | None:
    """Walk the segments up to the frame header, which holds the size."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return _checked_cover(data, "jpeg", width, height)
        at += 2 + max(length, 2)
    return None


def _checked_cover(data: bytes, kind: ImageKind, width: int, height: int) -> CoverImage | None:
    return CoverImage(data, kind, width, height) if 0 < width < 65_536 and 0 < height < 65_536 else None
