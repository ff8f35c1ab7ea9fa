"""Text in which every character knows which part of the original, its source, it reads aloud."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SourceRange = tuple[int, int]  # offsets in the original text: the first character, and the one after the last
Replacement = str | Mapping[str, str] | None  # of a match; of its named groups; none
LETTER_A = "\u1d00"  # the letter A by its name, where "a" would be an article; English normalisation puts it in
PLACEHOLDER = "\ufffc"  # stands for a word whose IPA is given; marks and user lexicons put it in, nothing else may


@dataclass(frozen=True, slots=True, eq=False)
class AlignedText:
    """A string whose character i has the source starts[i] to ends[i] in the original.

    Every character of a replacement gets the source of the whole match: "five dollars" points at "$5".
    """

    text: str
    starts: Sequence[int]  # a range until something is replaced: plain text then needs no list of its length
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str, offset: int = 0) -> "AlignedText":
        """Return text that is its own original, starting at `offset` in it."""
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

    def __getitem__(self, index: slice) -> "AlignedText":
        return AlignedText(self.text[index], self.starts[index], self.ends[index])

    def __add__(self, other: "AlignedText") -> "AlignedText":
        return AlignedText(self.text + other.text, (*self.starts, *other.starts), (*self.ends, *other.ends))

    def source(self, start: int = 0, end: int | None = None) -> SourceRange:
        """Return the source of the characters start..end."""
        if end is None:
            end = len(self.text)
        if start >= end:
            return (0, 0)
        return min(self.starts[start:end]), max(self.ends[start:end])

    def strip(self) -> "AlignedText":
        start = len(self.text) - len(self.text.lstrip())
        return self[start : len(self.text.rstrip())] if start < len(self.text) else self[:0]

    def sub(self, pattern: re.Pattern[str], repl: str | Callable[[re.Match[str]], Replacement]) -> "AlignedText":
        """Like re.sub with a literal replacement or a function.

        A function may return None to leave a match alone, or a mapping from group names to replacements: then each
        group is replaced separately and the text between the groups keeps its sources.
        """
        first = pattern.search(self.text)
        if first is None:  # so it is with nearly every rule of a sentence
            return self
        return self._replace(_edits(pattern.finditer(self.text, first.start()), repl))

    def keep_group(self, pattern: re.Pattern[str], group: str) -> "AlignedText":
        """Shrink each match to one of its groups, whose characters keep their sources."""
        return self._replace(
            edit
            for match in pattern.finditer(self.text)
            for edit in ((match.start(), match.start(group), ""), (match.end(group), match.end(), ""))
        )

    def _replace(self, edits: Iterator[tuple[int, int, str]]) -> "AlignedText":
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for match_start, match_end, new in edits:
            if match_start == match_end:
                continue
            pieces += (self.text[at:match_start], new)
            starts += self.starts[at:match_start]
            ends += self.ends[at:match_start]
            if new:
                start, end = self.source(match_start, match_end)
                starts += [start] * len(new)
                ends += [end] * len(new)
            at = match_end
        if not at:
            return self
        pieces.append(self.text[at:])
        starts += self.starts[at:]
        ends += self.ends[at:]
        return AlignedText("".join(pieces), tuple(starts), tuple(ends))


def _edits(
    matches: Iterator[re.Match[str]], repl: str | Callable[[re.Match[str]], Replacement]
) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and replacement of everything to be replaced, in order."""
    for match in matches:
        new = repl if isinstance(repl, str) else repl(match)
        if isinstance(new, str):
            yield (*match.span(), new)
        elif new is not None:
            for group, words in sorted(new.items(), key=lambda item: match.start(item[0])):
                yield (*match.span(group), words)
