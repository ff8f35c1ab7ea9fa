"""EPUB 2 and 3: the spine says the order, the table of contents the chapters, the package who wrote it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO

from tutti.audiobook.book import MAX_BYTES, MAX_COVER_BYTES, Book, Chapter, Cover, cover, decoded
from tutti.audiobook.formats.archive import Archive, resolved
from tutti.audiobook.formats.blocks import Block, blocks, joined
from tutti.audiobook.formats.chapters import Part, chapters
from tutti.audiobook.formats.html import declared_encoding, headed, titled
from tutti.audiobook.formats.tokens import tokens
from tutti.audiobook.formats.xml import Element, elements
from tutti.errors import InvalidInput

FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # scrambled fonts lock no text
PAGES = ("application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document", "")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table of contents."""

    title: str
    path: str
    place: str
    level: int


@dataclass(frozen=True, slots=True)
class Item:
    """A line of the manifest."""

    path: str
    media_type: str
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A document of the spine."""

    path: str
    title: str
    blocks: list[Block]


def read_epub(file: BinaryIO, name: str, encoding: str | None = None) -> Book:
    with Archive(file, name) as archive:
        package_path = _package_path(archive, name)
        _refuse_locked(archive, name)
        package = elements(archive.read(package_path, MAX_BYTES), package_path)
        items = _items(package, package_path)
        notes: list[str] = []
        pages = list(_pages(archive, package, items, encoding, notes))
        if not pages:
            why = f": {notes[0]}" if notes else ""
            raise InvalidInput(f"{name} has no text that can be read{why}", param="book")
        title = _said(package, "title") or PurePath(name).stem
        entries = _contents(archive, items, notes)
        made = chapters(_parts(pages, entries)) if entries else ()
        return Book(
            title,
            ", ".join(dict.fromkeys(each.text for each in package if each.name == "creator" and each.text)),
            titled(made if len(made) > 1 else _by_heading(pages), title),
            _said(package, "language"),
            _cover(archive, package, items, notes),
            tuple(notes),
        )


def _package_path(archive: Archive, name: str) -> str:
    container = "META-INF/container.xml"
    if container not in archive:
        raise InvalidInput(f"{name} is not an EPUB: it has no {container}", param="book")
    for each in elements(archive.read(container, MAX_BYTES), container):
        path, _ = resolved("", each.attributes.get("full-path", "")) if each.name == "rootfile" else ("", "")
        if path in archive:
            return path
    raise InvalidInput(f"{name} is not an EPUB: its package document is missing", param="book")


def _refuse_locked(archive: Archive, name: str) -> None:
    path = "META-INF/encryption.xml"
    if path not in archive:
        return
    for each in elements(archive.read(path, MAX_BYTES), path):
        if each.name == "EncryptionMethod" and each.attributes.get("Algorithm") not in FONTS:
            raise InvalidInput(f"{name} is locked (DRM); only its seller's reader can open it", param="book")


def _items(package: Sequence[Element], base: str) -> dict[str, Item]:
    return {
        each.attributes["id"]: Item(
            resolved(base, each.attributes.get("href", ""))[0],
            each.attributes.get("media-type", "").lower(),
            tuple(each.attributes.get("properties", "").split()),
        )
        for each in package
        if each.name == "item" and "id" in each.attributes
    }


def _pages(
    archive: Archive, package: Sequence[Element], items: Mapping[str, Item], encoding: str | None, notes: list[str]
) -> Iterator[Page]:
    """The documents of the spine in its order; what is missing is noted, the contents page passed over."""
    seen: set[str] = set()
    for each in package:
        if each.name != "itemref":
            continue
        item = items.get(each.attributes.get("idref", ""))
        if item is None or item.path not in archive:
            notes.append(f"{item.path if item else each.attributes.get('idref', '?')} is missing from the book")
        elif item.path in seen or "nav" in item.properties:
            continue
        elif item.media_type not in PAGES:
            notes.append(f"{item.path} is {item.media_type} and was not read")
        else:
            seen.add(item.path)
            data = archive.read(item.path, MAX_BYTES)
            yield Page(item.path, *blocks(decoded(data, item.path, encoding, declared_encoding(data))))


def _contents(archive: Archive, items: Mapping[str, Item], notes: list[str]) -> list[Entry]:
    """The table of contents: EPUB 3's page, else EPUB 2's file."""
    try:
        for item in items.values():
            if "nav" in item.properties and item.path in archive:
                data = archive.read(item.path, MAX_BYTES)
                if found := _nav(decoded(data, item.path, None, declared_encoding(data)), item.path):
                    return found
        for item in items.values():
            if item.media_type == "application/x-dtbncx+xml" and item.path in archive:
                return _ncx(elements(archive.read(item.path, MAX_BYTES), item.path), item.path)
    except InvalidInput as exc:
        notes.append(f"the table of contents was not used: {exc.message}")
    return []


def _nav(markup: str, base: str) -> list[Entry]:
    found: list[Entry] = []
    inside, depth, link, words = False, 0, "", list[str]()
    for token in tokens(markup):
        if isinstance(token, str):
            words.append(token)
        elif token.name == "nav":
            inside = not token.closes and "toc" in token.attributes.get("epub:type", "").split()
        elif inside and token.name == "ol":
            depth += -1 if token.closes else 1
        elif inside and token.name == "a":
            if token.closes and link:
                found.append(Entry(" ".join("".join(words).split()), *resolved(base, link), max(1, depth)))
            link, words = "" if token.closes else token.attributes.get("href", ""), []
    return found


def _ncx(file: Sequence[Element], base: str) -> list[Entry]:
    titles: dict[int, str] = {}
    found: list[Entry] = []
    for each in file:
        points = [n for n in each.within if file[n].name == "navPoint"]
        if each.name == "text" and points:
            titles.setdefault(points[-1], each.text)
        elif each.name == "content" and points:
            target = resolved(base, each.attributes.get("src", ""))
            found.append(Entry(titles.get(points[-1], ""), *target, len(points)))
    return found


def _parts(pages: Sequence[Page], entries: Sequence[Entry]) -> list[Part]:
    """The pages from one entry of the table of contents to the next."""
    at = {page.path: n for n, page in enumerate(pages)}
    begins: dict[tuple[int, int], Entry] = {}  # by page and block
    for entry in entries:
        if entry.path in at:
            n = at[entry.path]
            places = (i for i, block in enumerate(pages[n].blocks) if entry.place in block.ids)
            begins.setdefault((n, next(places, 0) if entry.place else 0), entry)
    parts: list[Part] = []
    entry_now, section = Entry("", "", "", 0), list[Block]()
    for n, page in enumerate(pages):
        for i, block in enumerate([*page.blocks, None]):
            if (n, i) in begins:
                parts.append(_part(entry_now, section))
                entry_now, section = begins[n, i], []
            if block is not None:
                section.append(block)
    parts.append(_part(entry_now, section))
    return [part for part in parts if part.text]


def _part(entry: Entry, section: list[Block]) -> Part:
    bare = entry.level > 0 and all(block.level for block in section)
    return Part(entry.title, entry.level, joined(section), bare)


def _by_heading(pages: Sequence[Page]) -> tuple[Chapter, ...]:
    """Without a table of contents: chapters by headings, else one for each document that has text."""
    parts = [part for page in pages for part in headed(page.blocks)]
    if sum(part.level > 0 for part in parts) > 1:
        return chapters(parts)
    return tuple(Chapter(page.title, joined(page.blocks)) for page in pages if page.blocks)


def _cover(archive: Archive, package: Sequence[Element], items: Mapping[str, Item], notes: list[str]) -> Cover | None:
    named = [each.attributes.get("content", "") for each in package if each.attributes.get("name") == "cover"]
    chosen = [item for item in items.values() if "cover-image" in item.properties]
    chosen += [items[name] for name in named if name in items]
    for item in chosen:
        if item.path in archive and item.media_type.startswith("image/"):
            found = cover(archive.read(item.path, MAX_COVER_BYTES))
            if found is None:
                notes.append(f"the cover {item.path} is neither JPEG nor PNG and was not taken")
            return found
    return None


def _said(package: Sequence[Element], name: str) -> str:
    return next((each.text for each in package if each.name == name and each.text), "")
