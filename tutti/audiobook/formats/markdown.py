"""Parse Markdown: chapters by headings, title and author from the front matter. The text stays Markdown."""

import re
from typing import BinaryIO

from tutti.audiobook.about import year_of
from tutti.audiobook.book import Book, check_length, check_number, decode_text, read_document
from tutti.audiobook.formats.chapters import MAX_HEADINGS, Section, chapters
from tutti.audiobook.formats.parts import Skipping


def read_markdown(file: BinaryIO, name: str, encoding: str | None, _: Skipping) -> Book:
    text = decode_text(read_document(file, name), name, encoding)
    check_length(len(text), name)
    metadata: dict[str, str] = {}
    if front := _FRONT.match(text):
        metadata = {field[1].lower(): field[2].strip().strip("\"'") for field in _FIELD.finditer(front[1])}
        text = text[front.end() :]
    text = _COMMENT.sub("", text)
    sections = _sections(text)
    first = next((section.title for section in sections if section.level == 1), "")
    language = metadata.get("language") or metadata.get("lang", "")
    return Book(
        metadata.get("title") or first, metadata.get("author", ""), chapters(sections), language,
        year=year_of(metadata.get("year") or metadata.get("date", "")), series=metadata.get("series", ""),
    )  # fmt: skip


def _sections(text: str) -> list[Section]:
    """Cut at headings, except inside fenced code."""
    starts: list[tuple[int, int, int, str]] = []  # start and end of the heading, level, title
    fence = ""
    line_before = (0, 0)
    for line in _LINE.finditer(text):
        check_number(len(starts), MAX_HEADINGS, "headings")
        start, end = line.span()
        content = line[0].strip()
        if fence:
            fence = "" if content.startswith(fence) and not content.strip(fence[0]) else fence
        elif opening := _FENCE.match(line[0]):
            fence = opening[1]
        elif heading := _HEADING.fullmatch(line[0]):
            starts.append((start, end, len(heading[1]), _plain_title(heading[2])))
        elif (under := _UNDERLINE.fullmatch(line[0])) and (above := text[slice(*line_before)].strip()):
            if not _NO_TITLE.match(above):
                starts.append((line_before[0], end, 1 if under[1][0] == "=" else 2, _plain_title(above)))
            line_before = (end, end)
            continue
        line_before = (start, end)
    check_number(len(starts), MAX_HEADINGS, "headings")
    sections: list[Section] = []
    edges = [*starts, (len(text), len(text), 0, "")]
    if before := text[: edges[0][0]].strip("\n"):
        sections.append(Section("", 0, before))
    for (start, end, level, title), (until, *_) in zip(starts, edges[1:], strict=True):
        sections.append(Section(title, level, text[start:until].strip("\n"), not text[end:until].strip()))
    return sections


# YAML front matter; only plain fields are read.
_FRONT = re.compile(r"---[ \t]*\n((?:[^\n]*\n){0,200}?)(?:---|\.\.\.)[ \t]*\n")
_FIELD = re.compile(r"(?m)^(title|author|language|lang|year|date|series)[ \t]*:[ \t]*(\S[^\n]*)$", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|(?m:^ {0,3}\[[^\]^\n][^\]\n]{0,200}\]:[ \t]+\S+[^\n]*$)", re.DOTALL)
_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S[^\n]*?)[ \t#]*")
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*")
_NO_TITLE = re.compile(r"[#>|*+-]|\d{1,9}[.)][ \t]|`{3}|~{3}")
_MARKUP = re.compile(r"[*_`~]+|!?\[([^\]]*)\]\([^)]*\)")


def _plain_title(heading: str) -> str:
    return " ".join(_MARKUP.sub(lambda match: match[1] or "", heading).split())
