"""Sentences in two scripts: the language's own, and Latin runs that are pronounced as English."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p.tokens import Piece, join_words, override_words, to_kokoro_punctuation, tokenize

INNER_POINTS = tuple(".:·")  # between two words without blanks: 电话:010
PronounceEnglish = Callable[[AlignedText, Mapping[int, str]], Pronunciation]
PronounceNative = Callable[[AlignedText], tuple[list[PhonemeWord], tuple[str, ...]]]


def pronounce_mixed(
    aligned: AlignedText,
    ipa_overrides: Mapping[int, str],
    english: PronounceEnglish,
    script: str,
    native: PronounceNative,
) -> Pronunciation:
    """Pronounce runs in `script` (the inside of a character class) with `native`, other letters with `english`."""
    pieces: list[Piece] = []
    dropped: list[str] = []
    for kind, token in _runs(aligned, script):
        words: list[PhonemeWord] = []
        unknown: tuple[str, ...] = ()
        if kind == "space":
            pieces.append(" ")
        elif kind == "punctuation":
            pieces.append(to_kokoro_punctuation(token.text))
        elif kind == "placeholder":
            words, unknown = override_words(token, ipa_overrides)
        elif kind == "native":
            words, unknown = native(token)
        elif token.text in INNER_POINTS:
            pieces.append(to_kokoro_punctuation(token.text))
        elif kind == "latin":
            pronunciation = english(_to_half_width(token), {})
            words, unknown = list(pronunciation.words), pronunciation.dropped
        else:
            unknown = tuple(token.text)
        pieces += words
        dropped += unknown
    return join_words(pieces, dropped)


def _runs(aligned: AlignedText, script: str) -> Iterator[tuple[str, AlignedText]]:
    for kind, token in tokenize(aligned):
        if kind != "word":
            yield kind, token
            continue
        for run in _pattern(script).finditer(token.text):
            yield run.lastgroup or "other", token[run.start() : run.end()]


@cache
def _pattern(script: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<native>[{script}]+)|(?P<latin>[^\W\d_{script}][^{script}]*)|(?P<other>.)", re.DOTALL)


def _to_half_width(aligned: AlignedText) -> AlignedText:
    """Turn full-width letters into plain ones."""
    pairs = [(char, unicodedata.normalize("NFKC", char)) for char in aligned.text]
    narrow = "".join(plain if len(plain) == 1 else char for char, plain in pairs)
    return AlignedText(narrow, aligned.starts, aligned.ends)
