"""Text on its way to being spoken, every character tied to its place in the original."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A string whose character i reads aloud the original text from starts[i] to ends[i].

    Rewriting keeps the ties: every character of a replacement points at the whole match it replaces, so that
    "five dollars" still knows that it was "$5".
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, text: str, offset: int = 0) -> "Spoken":
        """Text that is its own original, beginning at `offset` there."""
        n = len(text)
        return cls(text, tuple(range(offset, offset + n)), tuple(range(offset + 1, offset + n + 1)))

    def __len__(self) -> int:
        return len(self.text)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __getitem__(self, where: slice) -> "Spoken":
        return Spoken(self.text[where], self.starts[where], self.ends[where])

    def __add__(self, other: "Spoken") -> "Spoken":
        return Spoken(self.text + other.text, self.starts + other.starts, self.ends + other.ends)

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """The stretch of the original that characters start..end read aloud."""
        if end is None:
            end = len(self.text)
        if start >= end:
            return (0, 0)
        return min(self.starts[start:end]), max(self.ends[start:end])

    def strip(self) -> "Spoken":
        left = len(self.text) - len(self.text.lstrip())
        return self[left : len(self.text.rstrip())] if left < len(self.text) else self[:0]

    def sub(self, pattern: re.Pattern[str], repl: str | Callable[[re.Match[str]], str | None]) -> "Spoken":
        """Like re.sub with a literal replacement or a function; a function may return None to leave a match alone."""
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for match in pattern.finditer(self.text):
            new = repl if isinstance(repl, str) else repl(match)
            a, b = match.span()
            if new is None or a == b:
                continue
            pieces.append(self.text[done:a])
            starts += self.starts[done:a]
            ends += self.ends[done:a]
            start, end = self.span(a, b)
            pieces.append(new)
            starts += [start] * len(new)
            ends += [end] * len(new)
            done = b
        if not pieces:
            return self
        pieces.append(self.text[done:])
        starts += self.starts[done:]
        ends += self.ends[done:]
        return Spoken("".join(pieces), tuple(starts), tuple(ends))

    def split(self, pattern: re.Pattern[str]) -> Iterator["Spoken"]:
        """The pieces between matches, ties kept."""
        done = 0
        for match in pattern.finditer(self.text):
            yield self[done : match.start()]
            done = match.end()
        yield self[done:]
