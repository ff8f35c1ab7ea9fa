"""Parse XML into a flat list of elements. Fetches nothing; a document that declares entities is refused."""

from dataclasses import dataclass, field
from xml.parsers import expat

from tutti.errors import InvalidInput

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

    def refuse(*_: object) -> None:
        raise InvalidInput(f"{name} declares XML entities; such books are refused", param="book")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as exc:
        raise InvalidInput(f"{name} is not well-formed XML: {exc}", param="book") from exc
    except (LookupError, ValueError) as exc:  # unknown encoding
        raise InvalidInput(f"{name} cannot be decoded: {exc}", param="book") from exc
    return parsed


def _local(name: str) -> str:
    return name.rpartition(" ")[2].rpartition(":")[2]
