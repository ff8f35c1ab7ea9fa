"""Text on its way to being spoken, every character tied to its place in the original."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Span = tuple[int, int]
Said = str | Mapping[str, str] | None


@dataclass(frozen=True, slots=True, eq=False)
class AlignedText:
    """A string whose character i reads aloud the original text from starts[i] to ends[i].

    Rewriting keeps the ties: every character of a replacement points at the whole match it replaces, so that
    "five dollars" still knows that it was "$5".
    """

    text: str
    starts: Sequence[int]  # a range while nothing has moved: a megabyte of plain text then costs nothing
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str, offset: int = 0) -> "AlignedText":
        """Text that is its own original, beginning at `offset` there."""
        n = len(text)
        return cls(text, range(offset, offset + n), range(offset + 1, offset + n + 1))

    def __len__(self) -> int:
        return len(self.text)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AlignedText):
            return NotImplemented
        return self.text == other.text and (*self.starts,) == (*other.starts,) and (*self.ends,) == (*other.ends,)

    def __hash__(self) -> int:
        return hash(self.text)

    def __getitem__(self, where: slice) -> "AlignedText":
        return AlignedText(self.text[where], self.starts[where], self.ends[where])

    def __add__(self, other: "AlignedText") -> "AlignedText":
        return AlignedText(self.text + other.text, (*self.starts, *other.starts), (*self.ends, *other.ends))

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """The stretch of the original that characters start..end read aloud."""
        if end is None:
            end = len(self.text)
        if start >= end:
            return (0, 0)
        return min(self.starts[start:end]), max(self.ends[start:end])

    def strip(self) -> "AlignedText":
        left = len(self.text) - len(self.text.lstrip())
        return self[left : len(self.text.rstrip())] if left < len(self.text) else self[:0]

    def sub(self, pattern: re.Pattern[str], repl: str | Callable[[re.Match[str]], Said]) -> "AlignedText":
        """Like re.sub with a literal replacement or a function.

        A function may return None to leave a match alone, or a mapping from group names to words: then each group is
        replaced on its own and what stands between the groups keeps its ties.
        """
        return self._replace(_edits(pattern.finditer(self.text), repl))

    def keep(self, pattern: re.Pattern[str], group: str) -> "AlignedText":
        """Each match shrinks to one of its groups, whose characters keep their ties."""
        return self._replace(
            edit
            for match in pattern.finditer(self.text)
            for edit in ((match.start(), match.start(group), ""), (match.end(group), match.end(), ""))
        )

    def _replace(self, edits: Iterator[tuple[int, int, str]]) -> "AlignedText":
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for a, b, new in edits:
            if a == b:
                continue
            pieces += (self.text[done:a], new)
            starts += self.starts[done:a]
            ends += self.ends[done:a]
            if new:
                start, end = self.span(a, b)
                starts += [start] * len(new)
                ends += [end] * len(new)
            done = b
        if not done:
            return self
        pieces.append(self.text[done:])
        starts += self.starts[done:]
        ends += self.ends[done:]
        return AlignedText("".join(pieces), tuple(starts), tuple(ends))

    def split(self, pattern: re.Pattern[str]) -> Iterator["AlignedText"]:
        """The pieces between matches, ties kept."""
        done = 0
        for match in pattern.finditer(self.text):
            yield self[done : match.start()]
            done = match.end()
        yield self[done:]


def _edits(
    matches: Iterator[re.Match[str]], repl: str | Callable[[re.Match[str]], Said]
) -> Iterator[tuple[int, int, str]]:
    for match in matches:
        new = repl if isinstance(repl, str) else repl(match)
        if isinstance(new, str):
            yield (*match.span(), new)
        elif new is not None:
            for name, said in sorted(new.items(), key=lambda item: match.start(item[0])):
                yield (*match.span(name), said)
