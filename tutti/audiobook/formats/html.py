"""HTML pages as books: what a browser would show, chapters by their headings."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import Book, Chapter, contents, decoded
from tutti.audiobook.formats.blocks import Block, blocks, joined
from tutti.audiobook.formats.chapters import Part, chapters
from tutti.audiobook.formats.tokens import Tag, tokens

_HEAD_CHARACTERS = 4096


def read_html(file: BinaryIO, name: str, encoding: str | None = None) -> Book:
    data = contents(file, name)
    markup = decoded(data, name, encoding, declared_encoding(data))
    title, made = blocks(markup)
    found = chapters(headed(made))
    about = _about(markup)
    stem = PurePath(name).stem
    return Book(title or stem, about.get("author", ""), titled(found, title or stem), about.get("language", ""))


def declared_encoding(data: bytes) -> str | None:
    """As a page says in its XML declaration or in a meta tag near its start."""
    found = _DECLARED.search(data[:_HEAD_CHARACTERS])
    return found[1].decode("ascii") if found else None


def headed(made: Iterable[Block]) -> list[Part]:
    """The blocks from heading to heading."""
    parts: list[Part] = []
    section: list[Block] = []
    for block in made:
        if block.level and section:
            parts.append(_part(section))
            section = []
        section.append(block)
    return [*parts, _part(section)] if section else parts


def titled(found: Iterable[Chapter], otherwise: str) -> tuple[Chapter, ...]:
    """Chapters that all have a title: their own, else that of the book or a number."""
    these = tuple(found)
    return tuple(
        chapter if chapter.title else Chapter(otherwise if n == 0 else f"{n + 1}", chapter.text)
        for n, chapter in enumerate(these)
    )


def _part(section: list[Block]) -> Part:
    head = section[0]
    title = " ".join(head.text.split()) if head.level else ""
    return Part(title, head.level, joined(section), head.level > 0 and len(section) == 1)


_DECLARED = re.compile(rb"<(?:\?xml|meta)\b[^>]{0,200}?\b(?:encoding|charset)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)


def _about(markup: str) -> dict[str, str]:
    """Author and language, where the page says them."""
    found: dict[str, str] = {}
    for token in tokens(markup[: 16 * _HEAD_CHARACTERS]):
        if isinstance(token, Tag) and token.name == "html" and token.attributes.get("lang"):
            found.setdefault("language", token.attributes["lang"])
        elif isinstance(token, Tag) and token.name == "meta" and token.attributes.get("name", "").lower() == "author":
            found.setdefault("author", token.attributes.get("content", "").strip())
    return found
