"""Plain text as a book: a line that says "Chapter" and a number, by itself, begins one."""

import re
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import Book, contents, decoded
from tutti.audiobook.formats.chapters import Part, chapters
from tutti.audiobook.formats.html import titled

_HEAD_LINES = 80


def read_plain(file: BinaryIO, name: str, encoding: str | None = None) -> Book:
    text = decoded(contents(file, name), name, encoding)
    head = "\n".join(text.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    about = {found[1].lower(): found[2].strip() for found in _FIELD.finditer(head)}
    title = about.get("title") or PurePath(name).stem
    return Book(title, about.get("author", ""), titled(chapters(sections(text)), title), about.get("language", ""))


def sections(text: str) -> list[Part]:
    """From one chapter line to the next."""
    heads = [found for found in _HEADING.finditer(text) if _alone(text, found)]
    edges = [*(found.start() for found in heads), len(text)]
    parts = [Part("", 0, before)] if (before := text[: edges[0]].strip("\n")) else []
    for found, until in zip(heads, edges[1:], strict=True):
        level = 1 if found["part"] else 2
        bare = not text[found.end() : until].strip()
        parts.append(Part(" ".join(found[0].split()), level, text[found.start() : until].strip("\n"), bare))
    return parts


_NUMBER = (
    r"(?:\d{1,4}|[ivxlcdm]{1,9}|(?:the[ \t]+)?(?:first|second|third|fourth|fifth|last|one|two|three|four|five|six|seven"
    r"|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)"
    r"(?:[ \t-](?:one|two|three|four|five|six|seven|eight|nine))?)"
)
_HEADING = re.compile(
    rf"(?m)^[ \t]*(?:(?P<part>part|book|volume|partie|teil|parte|libro|livre|buch)[ \t]+{_NUMBER}\b"
    rf"|(?:chapter|chapitre|kapitel|cap[ií]tulo|capitolo|canto|letter|act|scene|appendix)[ \t]+(?:{_NUMBER}|[a-z])\b"
    r"|(?:prologue|epilogue|preface|foreword|afterword|introduction|acknowledge?ments|interlude)(?=[ \t.:—-]*$))"
    r"[^\n]{0,80}$",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?m)^(title|author|language)[ \t]*:[ \t]*(\S[^\n]{0,200})$", re.IGNORECASE)


def _alone(text: str, line: re.Match[str]) -> bool:
    """Whether a blank line stands before it: inside a paragraph the same words are a sentence."""
    end = line.start() - 1  # of the line before
    return end < 1 or not text[text.rfind("\n", 0, end) + 1 : end].strip()
