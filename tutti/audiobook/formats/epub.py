"""Parse EPUB 2 and 3: order from the spine, chapters from the table of contents, metadata from the package."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import BinaryIO

from tutti.audio.tagged import CoverImage
from tutti.audiobook.about import series_of, year_of
from tutti.audiobook.book import MAX_BYTES, MAX_COVER_BYTES, Book, Chapter, decode_text, parse_cover
from tutti.audiobook.formats.archive import Archive, resolve_link
from tutti.audiobook.formats.blocks import Block, join_blocks, parse_blocks, without_skipped
from tutti.audiobook.formats.chapters import Section, chapters
from tutti.audiobook.formats.html import declared_encoding, sections_of
from tutti.audiobook.formats.parts import (
    MAX_COPYRIGHT_CHARACTERS,
    MAX_COVER_CHARACTERS,
    OF_TYPE,
    Skipping,
    is_copyright,
    note_word,
)
from tutti.audiobook.formats.tokens import tokens
from tutti.audiobook.formats.xml import Element, elements
from tutti.errors import InvalidInput

FONTS = (
    "http://www.idpf.org/2008/embedding",
    "http://ns.adobe.com/pdf/enc#RC",
)  # obfuscate fonts, not text
MAX_ENTRIES = 20_000  # of the table of contents
MAX_NOTES = 20  # what is missing from a book; more is counted
COVER_NAME = re.compile(r"(?:front)?cover(?:page|-page|_page)?", re.IGNORECASE)  # of a page, without its suffix
MAX_OF_PART = {"cover": MAX_COVER_CHARACTERS, "copyright": MAX_COPYRIGHT_CHARACTERS}  # of a page that is declared so
PAGES = ("application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document", "")


@dataclass(frozen=True, slots=True)
class TocEntry:
    """A line of the table of contents."""

    title: str
    path: str
    anchor: str
    level: int


@dataclass(frozen=True, slots=True)
class ManifestItem:
    """A line of the manifest."""

    path: str
    media_type: str
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpinePage:
    """A document of the spine."""

    path: str
    title: str
    blocks: list[Block]


def read_epub(file: BinaryIO, name: str, encoding: str | None, skipping: Skipping) -> Book:
    with Archive(file, name) as archive:
        package_path = _package_path(archive, name)
        _refuse_drm(archive, name)
        package = elements(archive.read(package_path, MAX_BYTES), package_path)
        items = _items(package, package_path)
        notes: list[str] = []
        language = _metadata(package, "language")
        found = _pages(archive, package, items, encoding, notes, note_word(language))
        declared = _declared_parts(archive, package, items, package_path)
        pages = [_without_skipped(page, declared.get(page.path, ""), skipping) for page in found]
        if not pages:
            reason = f": {notes[0]}" if notes else ""
            raise InvalidInput(f"{name} has no text that can be read{reason}", param="book")
        entries = _contents(archive, items, notes)
        by_contents = chapters(_sections(pages, entries)) if entries else ()
        return Book(
            _metadata(package, "title"),
            ", ".join(dict.fromkeys(element.text for element in package if element.name == "creator" and element.text)),
            by_contents if len(by_contents) > 1 else _by_heading(pages),
            language,
            _cover(archive, package, items, notes),
            _few(notes),
            year_of(_metadata(package, "date")),
            _series(package),
        )


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    more = len(notes) - MAX_NOTES
    return (*notes[:MAX_NOTES], *([f"and {more:,} more such notes"] if more > 0 else []))


def _package_path(archive: Archive, name: str) -> str:
    container = "META-INF/container.xml"
    if container not in archive:
        raise InvalidInput(f"{name} is not an EPUB: it has no {container}", param="book")
    for element in elements(archive.read(container, MAX_BYTES), container):
        path, _ = resolve_link("", element.attributes.get("full-path", "")) if element.name == "rootfile" else ("", "")
        if path in archive:
            return path
    raise InvalidInput(f"{name} is not an EPUB: its package document is missing", param="book")


def _refuse_drm(archive: Archive, name: str) -> None:
    path = "META-INF/encryption.xml"
    if path not in archive:
        return
    for element in elements(archive.read(path, MAX_BYTES), path):
        if element.name == "EncryptionMethod" and element.attributes.get("Algorithm") not in FONTS:
            raise InvalidInput(f"{name} is protected by DRM; only its seller's reader can open it", param="book")


def _items(package: Sequence[Element], base: str) -> dict[str, ManifestItem]:
    return {
        element.attributes["id"]: ManifestItem(
            resolve_link(base, element.attributes.get("href", ""))[0],
            element.attributes.get("media-type", "").lower(),
            tuple(element.attributes.get("properties", "").split()),
        )
        for element in package
        if element.name == "item" and "id" in element.attributes
    }


def _pages(
    archive: Archive,
    package: Sequence[Element],
    items: Mapping[str, ManifestItem],
    encoding: str | None,
    notes: list[str],
    note: str,
) -> Iterator[SpinePage]:
    """The documents of the spine in order, without the contents page; missing ones are noted."""
    seen: set[str] = set()
    for element in package:
        if element.name != "itemref":
            continue
        item = items.get(element.attributes.get("idref", ""))
        if item is None or item.path not in archive:
            notes.append(f"{item.path if item else element.attributes.get('idref', '?')} is missing from the book")
        elif item.path in seen or "nav" in item.properties:
            continue
        elif item.media_type not in PAGES:
            notes.append(f"{item.path} is {item.media_type} and was not read")
        else:
            seen.add(item.path)
            data = archive.read(item.path, MAX_BYTES)
            markup = decode_text(data, item.path, encoding, declared_encoding(data))
            yield SpinePage(item.path, *parse_blocks(markup, note))


def _without_skipped(page: SpinePage, declared: str, skipping: Skipping) -> SpinePage:
    """A page without the parts that are left out; `declared`: what the book says that the whole page is."""
    n_characters = sum(len(block.text) for block in page.blocks)
    part = declared or ("cover" if COVER_NAME.fullmatch(PurePath(page.path).stem) else "")
    part = part if n_characters <= MAX_OF_PART.get(part, 0) else ""
    if not part and is_copyright(join_blocks(page.blocks)):
        part = "copyright"
    blocks = [replace(block, parts=(*block.parts, part)) for block in page.blocks] if part else page.blocks
    return replace(page, blocks=without_skipped(blocks, skipping))


def _declared_parts(
    archive: Archive, package: Sequence[Element], items: Mapping[str, ManifestItem], base: str
) -> dict[str, str]:
    """Which pages are the cover or the copyright page, by the guide and the landmarks."""
    links = [
        (base, element.attributes.get("type", ""), element.attributes.get("href", ""))
        for element in package
        if element.name == "reference"
    ]
    for item in items.values():
        if "nav" in item.properties and item.path in archive:
            data = archive.read(item.path, MAX_BYTES)
            for token in tokens(decode_text(data, item.path, None, declared_encoding(data))):
                if not isinstance(token, str) and token.name == "a":
                    links.append((item.path, token.attributes.get("epub:type", ""), token.attributes.get("href", "")))
    parts = ((resolve_link(base, href), OF_TYPE.get(kind, "")) for base, kind, href in links)
    return {path: part for (path, _), part in parts if part in MAX_OF_PART}


def _contents(archive: Archive, items: Mapping[str, ManifestItem], notes: list[str]) -> list[TocEntry]:
    """The table of contents: the nav page of EPUB 3, else the NCX file of EPUB 2."""
    try:
        for item in items.values():
            if "nav" in item.properties and item.path in archive:
                data = archive.read(item.path, MAX_BYTES)
                if entries := _nav(decode_text(data, item.path, None, declared_encoding(data)), item.path):
                    return entries
        for item in items.values():
            if item.media_type == "application/x-dtbncx+xml" and item.path in archive:
                return _ncx(elements(archive.read(item.path, MAX_BYTES), item.path), item.path)
    except InvalidInput as exc:
        notes.append(f"the table of contents was not used: {exc.message}")
    return []


def _nav(markup: str, base: str) -> list[TocEntry]:
    entries: list[TocEntry] = []
    inside, depth, link, words = False, 0, "", list[str]()
    for token in tokens(markup):
        if isinstance(token, str):
            words.append(token)
        elif token.name == "nav":
            inside = not token.closes and "toc" in token.attributes.get("epub:type", "").split()
        elif inside and token.name == "ol":
            depth += -1 if token.closes else 1
        elif inside and token.name == "a":
            if token.closes and link and len(entries) < MAX_ENTRIES:
                entries.append(TocEntry(" ".join("".join(words).split()), *resolve_link(base, link), max(1, depth)))
            link, words = "" if token.closes else token.attributes.get("href", ""), []
    return entries


def _ncx(file: Sequence[Element], base: str) -> list[TocEntry]:
    titles: dict[int, str] = {}
    entries: list[TocEntry] = []
    points: list[int] = []  # of each element: the navPoint that it is in, or -1
    levels: list[int] = []  # and in how many
    for element in file:
        is_point = element.parent >= 0 and file[element.parent].name == "navPoint"
        outer, level = (points[element.parent], levels[element.parent]) if element.parent >= 0 else (-1, 0)
        point, level = (element.parent, level + 1) if is_point else (outer, level)
        points.append(point)
        levels.append(level)
        if element.name == "text" and point >= 0:
            titles.setdefault(point, element.text)
        elif element.name == "content" and point >= 0 and len(entries) < MAX_ENTRIES:
            target = resolve_link(base, element.attributes.get("src", ""))
            entries.append(TocEntry(titles.get(point, ""), *target, level))
    return entries


def _sections(pages: Sequence[SpinePage], entries: Sequence[TocEntry]) -> list[Section]:
    """Cut the pages at the entries of the table of contents."""
    numbers = {page.path: n for n, page in enumerate(pages)}
    places = {  # of each anchor: the first block that has it
        (n, anchor): i
        for n, page in reversed(list(enumerate(pages)))
        for i, block in reversed(list(enumerate(page.blocks)))
        for anchor in block.ids
    }
    starts: dict[tuple[int, int], TocEntry] = {}  # by page and block
    for entry in entries:
        if entry.path in numbers:
            n = numbers[entry.path]
            starts.setdefault((n, places.get((n, entry.anchor), 0) if entry.anchor else 0), entry)
    sections: list[Section] = []
    current, collected = TocEntry("", "", "", 0), list[Block]()
    for n, page in enumerate(pages):
        for i, block in enumerate([*page.blocks, None]):
            if (n, i) in starts:
                sections.append(_section(current, collected))
                current, collected = starts[n, i], []
            if block is not None:
                collected.append(block)
    sections.append(_section(current, collected))
    return [section for section in sections if section.text]


def _section(entry: TocEntry, blocks: list[Block]) -> Section:
    bare = entry.level > 0 and all(block.level for block in blocks if block.text)
    return Section(entry.title, entry.level, join_blocks(blocks), bare)


def _by_heading(pages: Sequence[SpinePage]) -> tuple[Chapter, ...]:
    """Chapters by headings, or one for each document if there are none."""
    spoken = [(page.title, [block for block in page.blocks if block.text]) for page in pages]
    sections = [section for _, blocks in spoken for section in sections_of(blocks)]
    if sum(section.level > 0 for section in sections) > 1:
        return chapters(sections)
    return tuple(Chapter(title, join_blocks(blocks)) for title, blocks in spoken if blocks)


def _series(package: Sequence[Element]) -> str:
    """The series as Calibre writes it, else as EPUB 3 has it."""
    named = {element.attributes.get("name", ""): element.attributes.get("content", "") for element in package}
    if name := named.get("calibre:series", ""):
        return series_of(name, named.get("calibre:series_index", ""))
    properties = [element for element in package if element.name == "meta" and element.text]
    positions = {
        element.attributes.get("refines", ""): element.text
        for element in properties
        if element.attributes.get("property") == "group-position"
    }
    for element in properties:
        if element.attributes.get("property") == "belongs-to-collection":
            return series_of(element.text, positions.get(f"#{element.attributes.get('id', '')}", ""))
    return ""


def _cover(
    archive: Archive, package: Sequence[Element], items: Mapping[str, ManifestItem], notes: list[str]
) -> CoverImage | None:
    names = [element.attributes.get("content", "") for element in package if element.attributes.get("name") == "cover"]
    candidates = [item for item in items.values() if "cover-image" in item.properties]
    candidates += [items[name] for name in names if name in items]
    for item in candidates:
        if item.path in archive and item.media_type.startswith("image/"):
            cover = parse_cover(archive.read(item.path, MAX_COVER_BYTES))
            if cover is None:
                notes.append(f"the cover {item.path} was ignored: it is neither JPEG nor PNG")
            return cover
    return None


def _metadata(package: Sequence[Element], name: str) -> str:
    return next((element.text for element in package if element.name == name and element.text), "")
