"""A sentence in pieces: words to be said, the marks between them, and how both join to a Reading."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tutti.text.aligned_text import AlignedText, Span
from tutti.text.chunk import Reading, Word
from tutti.text.vocab import PUNCTUATION, known

OBJECT = "\ufffc"  # stands for a word whose sound the author gave

Piece = Word | str  # a word, or what is written between two words, in Kokoro's symbols

# Marks of many scripts in the few that Kokoro knows. An empty value is a mark that asks for no sound and no pause.
MARKS = (
    {mark: mark for mark in PUNCTUATION}
    | dict.fromkeys("«‹„《〈「『【〔〖", "“")
    | dict.fromkeys("»›》〉」』】〕〗", "”")
    | dict.fromkeys("（［｛[{", "(")
    | dict.fromkeys("）］｝]}", ")")
    | dict.fromkeys("。．｡।॥", ".")
    | dict.fromkeys("，、､", ",")
    | dict.fromkeys("–―‒─〜～", "—")
    | dict.fromkeys("*|^<>`´\\_/•", " ")  # read by the eye alone
    | {"！": "!", "？": "?", "：": ":", "；": ";", "⋯": "…", "・": " ", "·": " ", "＂": '"', "¿": ""}
    | {"¡": ""}
)
_MARK = re.escape("".join(MARKS))
_IN_WORD = rf"[^\s{OBJECT}{_MARK}]"
_PIECES = re.compile(
    rf"(?P<given>{OBJECT})"
    r"|(?P<space>\s+)"
    rf"|(?P<marks>[{_MARK}]+|-+(?!{_IN_WORD}))"
    rf"|(?P<word>{_IN_WORD}+(?:(?<=\w)[.:·]\w{_IN_WORD}*)*)"  # a point inside a name or an address stays in it
)


def pieces(spoken: AlignedText) -> Iterator[tuple[str, AlignedText]]:
    """The sentence from left to right as ("word" | "given" | "marks" | "space", stretch); nothing is left out."""
    for match in _PIECES.finditer(spoken.text):
        yield match.lastgroup or "word", spoken[match.start() : match.end()]


def marks(text: str) -> str:
    """Punctuation in Kokoro's symbols; a hyphen that stands alone is a dash."""
    text = re.sub(r"-+", "—", text.replace("...", "…"))
    return "".join(MARKS[mark] for mark in text)


def given_words(stretch: AlignedText, given: Mapping[int, str]) -> tuple[list[Word], tuple[str, ...]]:
    """What the author wants to hear in place of OBJECT, and the symbols in it that Kokoro has not."""
    span = stretch.span()
    phonemes, lost = known(given.get(span[0], ""))
    words = words_of(phonemes, span)
    return words, lost if words else (*lost, OBJECT)


def words_of(phonemes: str, span: Span) -> list[Word]:
    """One word for each group between spaces, all reading the same stretch; marks among the phonemes are left out."""
    groups = ("".join(symbol for symbol in group if symbol not in PUNCTUATION) for group in phonemes.split())
    return [Word(group, span) for group in groups if group]


def join(line: Iterable[Piece], dropped: Iterable[str] = ()) -> Reading:
    """Words with the marks around them: opening ones go in front of the next word, all others behind the last."""
    words: list[Word] = []
    gap: str | None = None
    quoted = False
    for piece in line:
        if isinstance(piece, Word):
            words = _close(words, gap)
            words.append(replace(piece, before=_opening(gap, first=not words) + piece.before))
            gap = None
            continue
        for symbol in piece:
            if symbol == '"':
                symbol, quoted = "”" if quoted else "“", not quoted
            gap = (gap or "") + symbol
        gap = gap or ""
    words = _close(words, (gap or "") + " ")
    return Reading(tuple(words), tuple(dropped))


def _opening(gap: str | None, *, first: bool) -> str:
    """The end of a gap that belongs to the next word."""
    symbols = re.sub(r"\s", "", gap or "")
    return symbols if first else symbols[len(symbols.rstrip("(“")) :]


def _close(words: list[Word], gap: str | None) -> list[Word]:
    """The last word with the marks behind it, one space after them; a gap of nothing joins two words."""
    if not words or gap is None:
        return words
    after = re.sub(r"\s+(?=[,.;:!?)”…])", "", re.sub(r"[\s(“]*$", "", gap))
    return [*words[:-1], replace(words[-1], after=re.sub(r"\s+", " ", after) + " " if gap else "")]
