"""Times of what stands between white spaces, and of single characters, in a text as it was sent."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tutti.speech import WordTime

# Chinese and Japanese have no spaces: there each character is a token.
_SPACELESS = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_LETTER = re.compile(r"[^\W_]")


class Token(NamedTuple):
    """A token, punctuation included, with its times in seconds from the start of the text's audio."""

    text: str
    start_s: float
    end_s: float
    is_spaced: bool  # white space or nothing follows


class CharTime(NamedTuple):
    char: str
    start_s: float


class TokenTimes:
    """Takes a text as it arrives and the times of its words as they are spoken; returns each token once, in order."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._at = 0  # where the first piece begins in the whole text
        self._words: list[WordTime] = []  # of tokens that are not returned yet
        self._end_s = 0.0  # of the last token

    def add(self, piece: str) -> None:
        self._pieces.append(piece)

    def take(self, words: Iterable[WordTime], *, is_end: bool = False) -> list[Token]:
        """Return the tokens that are complete with these words; at the end all that are left."""
        self._words += words
        if not self._words and not is_end:
            return []
        text, tokens, taken = "".join(self._pieces), list[Token](), 0
        last = self._words[-1].span[1] - self._at if self._words else 0
        for match in _TOKEN.finditer(text):
            start, end = match.span()
            if not is_end and (start >= last or not self._is_complete(text, start, end)):
                break
            times = self._times(start, end) or (self._end_s, self._end_s)
            self._end_s = max(self._end_s, times[1])
            tokens.append(Token(match[0], times[0], self._end_s, not text[end : end + 1].strip()))
            taken = end
        self._pieces, self._at = [text[taken:]], self._at + taken
        self._words = [word for word in self._words if word.span[1] > self._at]
        return tokens

    def _is_complete(self, text: str, start: int, end: int) -> bool:
        """Whether all words of a token are known: a later one is, or no letter of it is left."""
        known = self._words[-1].span[1] - self._at
        return known >= end or not _LETTER.search(text, max(start, known), end)

    def _times(self, start: int, end: int) -> tuple[float, float] | None:
        """Return when the words within a token begin and end; a longer word is spread evenly over its characters."""
        start, end = start + self._at, end + self._at
        parts = [_part(word, start, end) for word in self._words if word.span[0] < end and word.span[1] > start]
        return (parts[0][0], parts[-1][1]) if parts else None


def _part(word: WordTime, start: int, end: int) -> tuple[float, float]:
    first, last = word.span
    char_s = (word.end_s - word.start_s) / max(1, last - first)
    return word.start_s + max(0, start - first) * char_s, word.end_s - max(0, last - end) * char_s


def char_times(tokens: Sequence[Token]) -> list[CharTime]:
    """Return when each character begins, spread evenly over its token, with a space after each token that has one."""
    times = []
    for token in tokens:
        char_s = (token.end_s - token.start_s) / len(token.text)
        times += [CharTime(char, token.start_s + n * char_s) for n, char in enumerate(token.text)]
        if token.is_spaced:
            times.append(CharTime(" ", token.end_s))
    return times
