"""Split a sentence into words and punctuation, and join pronounced words with it again."""

import re
from collections.abc import Iterable, Iterator, Mapping

from tutti.text.aligned_text import PLACEHOLDER, AlignedText, SourceRange
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.vocab import PUNCTUATION, split_known

Piece = PhonemeWord | str  # a word, or the symbols between two words

# Punctuation of many scripts in the few symbols that Kokoro knows; "" means neither sound nor pause.
KOKORO_PUNCTUATION = (
    {mark: mark for mark in PUNCTUATION}
    | dict.fromkeys("«‹„《〈「『【〔〖", "“")
    | dict.fromkeys("»›》〉」』】〕〗", "”")
    | dict.fromkeys("（［｛[{", "(")
    | dict.fromkeys("）］｝]}", ")")
    | dict.fromkeys("。．｡।॥", ".")
    | dict.fromkeys("，、､", ",")
    | dict.fromkeys("–―‒─〜～", "—")
    | dict.fromkeys("*|^<>`´\\_/•", " ")  # not spoken
    | {"！": "!", "？": "?", "：": ":", "；": ";", "⋯": "…", "・": " ", "·": " ", "＂": '"', "¿": ""}
    | {"،": ",", "؛": ";", "؟": "?", "۔": "."}
    | {"¡": ""}
)
_PUNCTUATION = re.escape("".join(KOKORO_PUNCTUATION))
_IN_WORD = rf"[^\s{PLACEHOLDER}{_PUNCTUATION}]"
_TOKEN = re.compile(
    rf"(?P<placeholder>{PLACEHOLDER})"
    r"|(?P<space>\s+)"
    rf"|(?P<punctuation>[{_PUNCTUATION}]+|-+(?!{_IN_WORD}))"
    rf"|(?P<word>{_IN_WORD}+(?:(?<=\w)[.:·]\w{_IN_WORD}*)*)"  # with points inside a name or an address
)


def tokenize(aligned: AlignedText) -> Iterator[tuple[str, AlignedText]]:
    """Yield the sentence as ("word" | "placeholder" | "punctuation" | "space", token); nothing is left out."""
    for match in _TOKEN.finditer(aligned.text):
        yield match.lastgroup or "word", aligned[match.start() : match.end()]


def to_kokoro_punctuation(text: str) -> str:
    """Return punctuation in Kokoro's symbols; a hyphen between spaces is a dash."""
    text = re.sub(r"-+", "—", text.replace("...", "…"))
    return "".join(KOKORO_PUNCTUATION[mark] for mark in text)


def override_words(token: AlignedText, ipa_overrides: Mapping[int, str]) -> tuple[list[PhonemeWord], tuple[str, ...]]:
    """Return the words of the IPA given for a PLACEHOLDER, and the symbols in it that Kokoro lacks."""
    source = token.source()
    phonemes, unknown = split_known(ipa_overrides.get(source[0], ""))
    words = split_phonemes(phonemes, source)
    return words, unknown if words else (*unknown, PLACEHOLDER)


def split_phonemes(phonemes: str, source: SourceRange) -> list[PhonemeWord]:
    """Return one word for each group between spaces, all with the same source, without punctuation."""
    groups = ("".join(symbol for symbol in group if symbol not in PUNCTUATION) for group in phonemes.split())
    return [PhonemeWord(group, source) for group in groups if group]


def join_words(pieces: Iterable[Piece], dropped: Iterable[str] = ()) -> Pronunciation:
    """Attach punctuation to the words: opening symbols to the next word, all others to the previous one."""
    words: list[PhonemeWord] = []
    gap: str | None = None
    quoted = False
    for piece in pieces:
        if isinstance(piece, PhonemeWord):
            words = _attach(words, gap)
            words.append(piece._replace(before=_opening(gap, first=not words) + piece.before))
            gap = None
            continue
        for symbol in piece:
            if symbol == '"':
                symbol, quoted = "”" if quoted else "“", not quoted
            gap = (gap or "") + symbol
        gap = gap or ""
    words = _attach(words, (gap or "") + " ")
    return Pronunciation(tuple(words), tuple(dropped))


def _opening(gap: str | None, *, first: bool) -> str:
    """Return the end of a gap that belongs to the next word."""
    symbols = re.sub(r"\s", "", gap or "")
    return symbols if first else symbols[len(symbols.rstrip("(“")) :]


def _attach(words: list[PhonemeWord], gap: str | None) -> list[PhonemeWord]:
    """Put the gap behind the last word, with one space at its end; an empty gap joins two words."""
    if not words or gap is None:
        return words
    after = re.sub(r"\s+(?=[,.;:!?)”…])", "", re.sub(r"[\s(“]*$", "", gap))
    return [*words[:-1], words[-1]._replace(after=re.sub(r"\s+", " ", after) + " " if gap else "")]
