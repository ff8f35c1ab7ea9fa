"""Parse XML into a flat list of elements, or tokens. Fetches nothing; a document that declares entities is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from tutti.audiobook.formats.tokens import Tag
from tutti.errors import InvalidInput

STEP_BYTES = 1 << 16  # of a document that are parsed before its tokens are used
MAX_ELEMENTS = 100_000  # of one document; a book of 20,000 files has 40,000 in its package
MAX_DEPTH = 200


@dataclass(slots=True)
class Element:
    """An element without its namespace, and the pieces of its own text."""

    name: str
    attributes: dict[str, str]
    parent: int  # its index in the list; -1 for the root
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


def elements(data: bytes, name: str) -> list[Element]:
    """All elements in the order of their start tags. Raise InvalidInput if the XML is not well-formed."""
    parsed: list[Element] = []
    open_elements: list[int] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(parsed) >= MAX_ELEMENTS or len(open_elements) > MAX_DEPTH:
            raise InvalidInput(f"{name} has too many elements", param="book")
        parent = open_elements[-1] if open_elements else -1
        parsed.append(Element(_local(tag), {_local(key): text for key, text in attributes.items()}, parent))
        open_elements.append(len(parsed) - 1)

    def end(_: str) -> None:
        open_elements.pop()

    def text(characters: str) -> None:
        if open_elements:
            parsed[open_elements[-1]].pieces.append(characters)

    parser = _parser(name)
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    _parse(parser, data, name, final=True)
    return parsed


def xml_tokens(data: bytes, name: str, encoding: str | None = None) -> Iterator[Tag | str]:
    """Tags and text in the order of a document, whatever its number of elements. Raise InvalidInput as `elements`."""
    found: list[Tag | str] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{name} has too many elements in each other", param="book")
        found.append(Tag(_local(tag), {_local(key): text for key, text in attributes.items()}))

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        found.append(Tag(_local(tag), closes=True))

    parser = _parser(name, encoding)
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = found.append
    for at in range(0, len(data) + 1, STEP_BYTES):
        _parse(parser, data[at : at + STEP_BYTES], name, final=at + STEP_BYTES > len(data))
        yield from found
        found.clear()


def _parser(name: str, encoding: str | None = None) -> Any:
    def refuse(*_: object) -> None:
        raise InvalidInput(f"{name} declares XML entities; such books are refused", param="book")

    try:
        parser = expat.ParserCreate(encoding, " ")
    except (TypeError, ValueError) as exc:
        raise InvalidInput(f"{str(encoding)[:40]!r} is no encoding of texts", param="encoding") from exc
    parser.buffer_text = True
    parser.EntityDeclHandler = refuse
    return parser


def _parse(parser: Any, data: bytes, name: str, *, final: bool) -> None:
    try:
        parser.Parse(data, final)
    except expat.ExpatError as exc:
        raise InvalidInput(f"{name} is not well-formed XML: {exc}", param="book") from exc
    except (LookupError, ValueError) as exc:  # unknown encoding
        raise InvalidInput(f"{name} cannot be decoded: {exc}", param="book") from exc


def _local(name: str) -> str:
    return name.rpartition(" ")[2].rpartition(":")[2]
