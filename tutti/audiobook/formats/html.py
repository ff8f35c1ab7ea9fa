"""Parse HTML pages: the text that a browser shows, chapters by headings."""

import re
from collections.abc import Iterable
from typing import BinaryIO

from tutti.audiobook.about import year_of
from tutti.audiobook.book import Book, decode_text, read_document
from tutti.audiobook.formats.blocks import Block, join_blocks, parse_blocks, without_skipped
from tutti.audiobook.formats.chapters import Section, chapters
from tutti.audiobook.formats.parts import Skipping, note_word
from tutti.audiobook.formats.tokens import Tag, tokens

META = {
    "author": "author", "date": "date", "dc.date": "date", "dcterms.date": "date", "article:published_time": "date",
}  # fmt: skip
_HEAD_CHARACTERS = 4096  # searched for declarations


def read_html(file: BinaryIO, name: str, encoding: str | None, skipping: Skipping) -> Book:
    data = read_document(file, name)
    markup = decode_text(data, name, encoding, declared_encoding(data))
    metadata = page_metadata(markup)
    language = metadata.get("language", "")
    title, page = parse_blocks(markup, note_word(language))
    blocks = [block for block in without_skipped(page, skipping) if block.text]
    year = year_of(metadata.get("date", ""))
    return Book(title, metadata.get("author", ""), chapters(sections_of(blocks)), language, year=year)


def declared_encoding(data: bytes) -> str | None:
    """The encoding in the XML declaration or in a meta tag near the start."""
    match = _DECLARED.search(data[:_HEAD_CHARACTERS])
    return match[1].decode("ascii") if match else None


def sections_of(blocks: Iterable[Block]) -> list[Section]:
    """Cut blocks into sections, one from each heading to the next."""
    sections: list[Section] = []
    current: list[Block] = []
    for block in blocks:
        if block.level and current:
            sections.append(_section(current))
            current = []
        current.append(block)
    return [*sections, _section(current)] if current else sections


def _section(blocks: list[Block]) -> Section:
    head = blocks[0]
    title = " ".join(head.text.split()) if head.level else ""
    return Section(title, head.level, join_blocks(blocks), head.level > 0 and len(blocks) == 1)


_DECLARED = re.compile(rb"<(?:\?xml|meta)\b[^>]{0,200}?\b(?:encoding|charset)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)


def page_metadata(markup: str) -> dict[str, str]:
    """The author, the language and the date, if declared."""
    metadata: dict[str, str] = {}
    for token in tokens(markup[: 16 * _HEAD_CHARACTERS]):
        if isinstance(token, Tag) and token.name == "html" and token.attributes.get("lang"):
            metadata.setdefault("language", token.attributes["lang"])
        elif isinstance(token, Tag) and token.name == "meta":
            name = (token.attributes.get("name") or token.attributes.get("property", "")).lower()
            if name in META:
                metadata.setdefault(META[name], token.attributes.get("content", "").strip())
    return metadata
