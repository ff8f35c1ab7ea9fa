"""A sentence in two scripts: the language's own, and Latin runs that are read as English."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading, Word
from tutti.text.g2p.tokens import Piece, given_words, join, marks, pieces

English = Callable[[AlignedText, Mapping[int, str]], Reading]
Native = Callable[[AlignedText], tuple[list[Word], tuple[str, ...]]]


def read_mixed(spoken: AlignedText, given: Mapping[int, str], english: English, script: str, native: Native) -> Reading:
    """Runs in `script` (the inside of a character class) go to `native`, other letters to `english`, marks between."""
    line: list[Piece] = []
    dropped: list[str] = []
    for kind, stretch in _runs(spoken, script):
        words: list[Word] = []
        lost: tuple[str, ...] = ()
        if kind == "space":
            line.append(" ")
        elif kind == "marks":
            line.append(marks(stretch.text))
        elif kind == "given":
            words, lost = given_words(stretch, given)
        elif kind == "native":
            words, lost = native(stretch)
        elif kind == "latin":
            reading = english(_narrow(stretch), {})
            words, lost = list(reading.words), reading.dropped
        else:
            lost = tuple(stretch.text)
        line += words
        dropped += lost
    return join(line, dropped)


def _runs(spoken: AlignedText, script: str) -> Iterator[tuple[str, AlignedText]]:
    for kind, stretch in pieces(spoken):
        if kind != "word":
            yield kind, stretch
            continue
        for run in _pattern(script).finditer(stretch.text):
            yield run.lastgroup or "other", stretch[run.start() : run.end()]


@cache
def _pattern(script: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<native>[{script}]+)|(?P<latin>[^\W\d_{script}][^{script}]*)|(?P<other>.)", re.DOTALL)


def _narrow(spoken: AlignedText) -> AlignedText:
    """Full-width letters as plain ones."""
    narrow = "".join(plain if len(plain := unicodedata.normalize("NFKC", one)) == 1 else one for one in spoken.text)
    return AlignedText(narrow, spoken.starts, spoken.ends)
