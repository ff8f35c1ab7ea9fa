"""Lexicons in the format of W3C: PLS 1.0 (https://www.w3.org/TR/pronunciation-lexicon/), read and written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from tutti.errors import InvalidInput
from tutti.text.ipa import pronunciation, to_ipa

MEDIA_TYPE = "application/pls+xml"
_NAMESPACE = "http://www.w3.org/2005/01/pronunciation-lexicon"
_SPOKEN = ("phoneme", "alias")
_UNSAFE = {code: None for code in range(32) if code not in (9, 10, 13)}


class PlsLexicon(NamedTuple):
    """The entries of a document, and what of it has no effect."""

    entries: dict[str, str]
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class _Lexeme:
    line: int
    graphemes: list[str] = field(default_factory=list)
    spoken: list[tuple[bool, str]] = field(default_factory=list)  # whether it is preferred, and the entry


class _Reader:
    """Collects the lexemes of a document while expat parses it."""

    def __init__(self) -> None:
        self.lexemes: list[_Lexeme] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self._text: list[str] = []
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text.append
        parser.EntityDeclHandler = self._refuse

    def read(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as exc:
            raise _invalid(f"is not well-formed XML: {exc}") from exc
        except (LookupError, ValueError) as exc:
            raise _invalid(f"cannot be decoded: {exc}") from exc

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if not self._open and name != "lexicon":
            raise _invalid(f"begins with <{name[:40]}> instead of <lexicon>")
        self._open.append((name, {_local(key): value for key, value in attributes.items()}))
        self._text.clear()
        if name == "lexeme":
            self.lexemes.append(_Lexeme(self._parser.CurrentLineNumber))

    def _end(self, _: str) -> None:
        name, attributes = self._open.pop()
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if name not in ("grapheme", *_SPOKEN) or not self.lexemes:
            return
        lexeme = self.lexemes[-1]
        if name == "grapheme":
            lexeme.graphemes.append(text)
        else:
            lexeme.spoken.append((attributes.get("prefer") == "true", self._entry(name, text, attributes)))

    def _entry(self, name: str, text: str, attributes: Mapping[str, str]) -> str:
        if name == "alias":
            return text
        root = self._open[0][1]
        alphabet = attributes.get("alphabet") or root.get("alphabet") or "ipa"
        try:
            return pronunciation(text, alphabet, english=root.get("lang", "en").lower().startswith("en"))
        except InvalidInput as exc:
            raise _invalid(f"line {self._parser.CurrentLineNumber}: {exc.message}") from exc

    def _refuse(self, *_: object) -> None:
        raise _invalid("declares XML entities; such files are refused")


def read_pls(data: bytes) -> PlsLexicon:
    """Return the entries of a document: the preferred pronunciation of each word, else its first."""
    reader = _Reader()
    reader.read(data)
    entries: dict[str, str] = {}
    n_others = 0
    for lexeme in reader.lexemes:
        if not lexeme.graphemes or not lexeme.spoken:
            raise _invalid(f"line {lexeme.line}: a lexeme needs a grapheme, and a phoneme or an alias")
        spoken = next((entry for preferred, entry in lexeme.spoken if preferred), lexeme.spoken[0][1])
        n_others += len(lexeme.spoken) - 1
        for grapheme in lexeme.graphemes:
            n_others += grapheme in entries
            entries.setdefault(grapheme, spoken)
    return PlsLexicon(entries, tuple(_notices(n_others)))


def write_pls(entries: Mapping[str, str]) -> str:
    """Return a document with these entries; pronunciations are written in IPA as other programs read it."""
    head = f'<lexicon version="1.0" xmlns="{_NAMESPACE}" alphabet="ipa" xml:lang="und">'
    lexemes = (f"  <lexeme><grapheme>{_text(word)}</grapheme>{_spoken(how)}</lexeme>" for word, how in entries.items())
    return "\n".join(('<?xml version="1.0" encoding="UTF-8"?>', head, *lexemes, "</lexicon>", ""))


def _notices(n_others: int) -> Iterator[str]:
    if n_others:
        yield f"{n_others} further pronunciations of words that have one already were left out"


def _spoken(entry: str) -> str:
    if len(entry) > 2 and entry[0] == entry[-1] == "/":
        return f"<phoneme>{_text(to_ipa(entry[1:-1]))}</phoneme>"
    return f"<alias>{_text(entry)}</alias>"


def _text(written: str) -> str:
    return escape(written.translate(_UNSAFE).encode("utf-8", "replace").decode())


def _local(name: str) -> str:
    return name.rpartition(" ")[2].rpartition(":")[2]


def _invalid(reason: str) -> InvalidInput:
    return InvalidInput(f"the PLS lexicon {reason}", param="file")
