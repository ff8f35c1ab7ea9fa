"""What is known of a book beside its text: year, series and narrator, and the folder in which libraries look for it."""

import re
import unicodedata
from dataclasses import replace
from pathlib import Path

from tutti.audiobook.book import Book
from tutti.errors import InvalidInput

MAX_NAME = 100  # characters of a folder's name; file systems take 255 bytes
UNKNOWN = "Unknown Author"
EXAMPLE = "The Winters #2"
_YEAR = re.compile(r"(?<!\d)(1[0-9]{3}|2[01][0-9]{2})(?!\d)")
_SERIES = re.compile(r"(?P<name>.*\S)\s+#\s*(?P<number>\d{1,4}(?:\.\d{1,2})?)")
_NOT_IN_NAMES = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]+')
_KOKORO_VOICE = re.compile(r"[a-z]{2}_(\w+)")


def year_of(date: str) -> str:
    """The first year in a date; "" if there is none."""
    found = _YEAR.search(date)
    return found[1] if found else ""


def check_year(year: str) -> str:
    if year and not _YEAR.fullmatch(year):
        raise InvalidInput(f"{year[:20]!r} is no year; write four digits", param="year")
    return year


def series_of(name: str, number: str) -> str:
    """A series as we write it: with "#" before the number, if it has one."""
    plain = number.strip().removesuffix(".0")
    return f"{name.strip()} #{plain}" if name.strip() and plain else name.strip()


def split_series(series: str) -> tuple[str, str]:
    """The name and the number of a series; the number is "" if it has none."""
    found = _SERIES.fullmatch(series.strip())
    return (found["name"], found["number"]) if found else (series.strip(), "")


def narrator_of(voice: str) -> str:
    """The name of a voice for listeners: "af_heart" is Heart; a blend has the names of its voices."""
    names = [re.sub(r"\([^()]*\)", "", part).strip() for part in voice.split("+")]
    known = [_KOKORO_VOICE.fullmatch(name) for name in names]
    shown = [match[1].title() if match else name for name, match in zip(names, known, strict=True)]
    return " + ".join(dict.fromkeys(shown))


def with_reader(book: Book, voice: str, language: str) -> Book:
    """The book with what its reader decides: a narrator, and the language in which it is read if it names none."""
    return replace(book, narrator=book.narrator or narrator_of(voice), language=book.language or language)


def library_path(book: Book, library: Path, suffix: str) -> Path:
    """Where Audiobookshelf looks for a book: Author/Series/Vol 2 - Title/Title.m4b; without a series, Author/Title."""
    series, number = split_series(book.series)
    title = as_name(book.title) or "Book"
    folder = library / (as_name(book.author) or UNKNOWN)
    if series:
        folder /= as_name(series) or "Series"
    return folder / (f"Vol {number} - {title}" if series and number else title) / f"{title}{suffix}"


def as_name(text: str) -> str:
    """A text as the name of a folder on any file system."""
    clean = unicodedata.normalize("NFC", _NOT_IN_NAMES.sub("_", text))
    return " ".join(clean.split())[:MAX_NAME].strip(" .")
