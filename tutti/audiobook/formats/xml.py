"""XML as a flat list of elements. Declares nothing, fetches nothing: an entity of one's own is refused."""

from dataclasses import dataclass, field
from xml.parsers import expat

from tutti.errors import InvalidInput

MAX_ELEMENTS = 500_000


@dataclass(slots=True)
class Element:
    """One element without its namespace: its name, its attributes, its own text, those that it is in."""

    name: str
    attributes: dict[str, str]
    within: tuple[int, ...]  # numbers of the elements around it, the outermost first
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


def elements(data: bytes, name: str) -> list[Element]:
    """All elements in the order of their start tags. Raises InvalidInput where it is not well formed."""
    found: list[Element] = []
    open_: list[int] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(found) >= MAX_ELEMENTS or len(open_) > 200:
            raise InvalidInput(f"{name} has more elements than any book needs", param="book")
        found.append(Element(_local(tag), {_local(key): text for key, text in attributes.items()}, tuple(open_)))
        open_.append(len(found) - 1)

    def end(_: str) -> None:
        open_.pop()

    def text(characters: str) -> None:
        if open_:
            found[open_[-1]].pieces.append(characters)

    def refuse(*_: object) -> None:
        raise InvalidInput(f"{name} declares entities of its own; such books are not read", param="book")

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
    except (LookupError, ValueError) as exc:  # an encoding that nobody knows
        raise InvalidInput(f"{name} cannot be decoded: {exc}", param="book") from exc
    return found


def _local(name: str) -> str:
    return name.rpartition(" ")[2].rpartition(":")[2]
