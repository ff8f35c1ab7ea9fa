"""Parse plain text: a line such as "Chapter 12" after a blank line begins a chapter."""

import re
from itertools import islice
from typing import BinaryIO

from tutti.audiobook.book import Book, check_length, check_number, decode_text, read_document
from tutti.audiobook.formats.chapters import MAX_HEADINGS, Section, chapters
from tutti.audiobook.formats.parts import Skipping

_HEAD_LINES = 80  # searched for title, author and language


def read_plain(file: BinaryIO, name: str, encoding: str | None, _: Skipping) -> Book:
    text = decode_text(read_document(file, name), name, encoding)
    check_length(len(text), name)
    head = "\n".join(text.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    metadata = {field[1].lower(): field[2].strip() for field in _FIELD.finditer(head)}
    title, author, language = (metadata.get(field, "") for field in ("title", "author", "language"))
    return Book(title, author, chapters(plain_sections(text)), language)


def plain_sections(text: str) -> list[Section]:
    """Cut at chapter lines."""
    found = (line for line in _HEADING.finditer(text) if _follows_blank_line(text, line))
    heads = list(islice(found, MAX_HEADINGS + 1))
    check_number(len(heads), MAX_HEADINGS, "headings")
    edges = [*(line.start() for line in heads), len(text)]
    sections = [Section("", 0, before)] if (before := text[: edges[0]].strip("\n")) else []
    for line, until in zip(heads, edges[1:], strict=True):
        level = 1 if line["part"] else 2
        bare = not text[line.end() : until].strip()
        sections.append(Section(" ".join(line[0].split()), level, text[line.start() : until].strip("\n"), bare))
    return sections


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


def _follows_blank_line(text: str, line: re.Match[str]) -> bool:
    """Whether the line before it is blank; inside a paragraph the same words are part of a sentence."""
    end = line.start() - 1  # of the line before
    return end < 1 or not text[text.rfind("\n", 0, end) + 1 : end].strip()
