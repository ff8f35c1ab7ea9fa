"""Markdown as a book: chapters by its headings, title and author from its front matter. The text stays Markdown."""

import re
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import Book, contents, decoded
from tutti.audiobook.formats.chapters import Part, chapters
from tutti.audiobook.formats.html import titled


def read_markdown(file: BinaryIO, name: str, encoding: str | None = None) -> Book:
    text = decoded(contents(file, name), name, encoding)
    about: dict[str, str] = {}
    if front := _FRONT.match(text):
        about = {found[1].lower(): found[2].strip().strip("\"'") for found in _FIELD.finditer(front[1])}
        text = text[front.end() :]
    text = _COMMENT.sub("", text)
    parts = sections(text)
    first = next((part.title for part in parts if part.level == 1), "")
    title = about.get("title") or first or PurePath(name).stem
    author = about.get("author", "")
    return Book(title, author, titled(chapters(parts), title), about.get("language") or about.get("lang", ""))


def sections(text: str) -> list[Part]:
    """From heading to heading; what looks like one inside a fence is code."""
    starts: list[tuple[int, int, int, str]] = []  # where the heading begins, where it ends, level, title
    fence = ""
    line_before = (0, 0)
    for line in _LINE.finditer(text):
        start, end = line.span()
        said = line[0].strip()
        if fence:
            fence = "" if said.startswith(fence) and not said.strip(fence[0]) else fence
        elif opening := _FENCE.match(line[0]):
            fence = opening[1]
        elif heading := _HEADING.fullmatch(line[0]):
            starts.append((start, end, len(heading[1]), _bare(heading[2])))
        elif (under := _UNDERLINE.fullmatch(line[0])) and (above := text[slice(*line_before)].strip()):
            if not _NO_TITLE.match(above):
                starts.append((line_before[0], end, 1 if under[1][0] == "=" else 2, _bare(above)))
            line_before = (end, end)
            continue
        line_before = (start, end)
    parts: list[Part] = []
    edges = [*starts, (len(text), len(text), 0, "")]
    if before := text[: edges[0][0]].strip("\n"):
        parts.append(Part("", 0, before))
    for (start, end, level, title), (until, *_) in zip(starts, edges[1:], strict=True):
        parts.append(Part(title, level, text[start:until].strip("\n"), not text[end:until].strip()))
    return parts


# A front matter of YAML, of which only plain fields are read.
_FRONT = re.compile(r"---[ \t]*\n((?:[^\n]*\n){0,200}?)(?:---|\.\.\.)[ \t]*\n")
_FIELD = re.compile(r"(?m)^(title|author|language|lang)[ \t]*:[ \t]*(\S[^\n]*)$", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|(?m:^ {0,3}\[[^\]^\n][^\]\n]{0,200}\]:[ \t]+\S+[^\n]*$)", re.DOTALL)
_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S[^\n]*?)[ \t#]*")
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*")
_NO_TITLE = re.compile(r"[#>|*+-]|\d{1,9}[.)][ \t]|`{3}|~{3}")
_SIGNS = re.compile(r"[*_`~]+|!?\[([^\]]*)\]\([^)]*\)")


def _bare(heading: str) -> str:
    return " ".join(_SIGNS.sub(lambda found: found[1] or "", heading).split())
