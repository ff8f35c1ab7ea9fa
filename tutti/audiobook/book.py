"""Book and Chapter, and helpers shared by the parsers of all formats."""

import struct
from dataclasses import dataclass
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import BinaryIO

from tutti.audio.tagged import CoverImage, ImageKind
from tutti.errors import InvalidInput

MAX_BYTES = 50_000_000  # of one unpacked document
MAX_CHARACTERS = 20_000_000  # of a whole book; a long novel has about one million
MAX_TITLE = 500  # characters of a title, or of the author; more is cut off, since every list of jobs has it
MAX_COVER_BYTES = 20_000_000
# In which texts are written, by Python's names; all are decoded in linear time. Others are for something else, and
# some of them take quadratic time.
ENCODINGS = frozenset(
    str.split(
        "ascii big5 big5hkscs cp037 cp1006 cp1026 cp1125 cp1140 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 "
        "cp1257 cp1258 cp273 cp424 cp437 cp500 cp720 cp737 cp775 cp850 cp852 cp855 cp856 cp857 cp858 cp860 cp861 "
        "cp862 cp863 cp864 cp865 cp866 cp869 cp874 cp875 cp932 cp949 cp950 euc_jis_2004 euc_jisx0213 euc_jp "
        "euc_kr gb18030 gb2312 gbk hp_roman8 hz iso2022_jp iso2022_jp_1 iso2022_jp_2 iso2022_jp_2004 iso2022_jp_3 "
        "iso2022_jp_ext iso2022_kr iso8859_1 iso8859_10 iso8859_11 iso8859_13 iso8859_14 iso8859_15 iso8859_16 "
        "iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 johab koi8_r koi8_t "
        "koi8_u kz1048 latin_1 mac_arabic mac_croatian mac_cyrillic mac_farsi mac_greek mac_iceland mac_latin2 "
        "mac_roman mac_romanian mac_turkish ptcp154 shift_jis shift_jis_2004 shift_jisx0213 tis_620 utf_16 "
        "utf_16_be utf_16_le utf_32 utf_32_be utf_32_le utf_8 utf_8_sig "
    )
)


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
    year: str = ""
    series: str = ""  # with its number, if it has one: The Winters #2
    narrator: str = ""  # who reads it, for the tags of the file

    @property
    def n_characters(self) -> int:
        return sum(len(chapter.text) for chapter in self.chapters)


def decode_text(data: bytes, name: str, encoding: str | None, declared: str | None = None) -> str:
    """Decode by byte order mark, else `encoding`, else `declared`, else UTF-8; line ends become \\n. Never guess."""
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            encoding = codec
    encoding = encoding or declared or "utf-8"
    python_name = normalize_encoding(encoding).lower()
    try:
        if aliases.get(python_name, python_name) not in ENCODINGS:
            raise LookupError
        text = data.decode(encoding)
    except (LookupError, ValueError) as exc:
        if isinstance(exc, UnicodeDecodeError):
            reason = f"is not {encoding} text (byte {exc.start})"
        else:
            reason = f"is said to be {encoding[:40]!r}, which is not an encoding of texts"
        raise InvalidInput(f"{name} {reason}; set its encoding, such as latin-1", param="encoding") from exc
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_number(n: int, limit: int, of_what: str, where: str = "the book") -> None:
    """Raise InvalidInput for more of something than a book may have."""
    if n > limit:
        raise InvalidInput(f"{where} has over {limit:,} {of_what}; split it into several books", param="book")


def check_length(n_characters: int, name: str) -> None:
    """Raise InvalidInput for a text that is longer than a book may be."""
    if n_characters > MAX_CHARACTERS:
        raise InvalidInput(
            f"{name} has {n_characters:,} characters; the limit is {MAX_CHARACTERS:,}: split it into several books",
            param="book",
        )


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
