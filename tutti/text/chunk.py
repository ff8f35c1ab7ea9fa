"""The values of the text front end: words with phonemes, pronounced sentences, and the chunks made of them.

Chunks come from another process, a dozen words in each: as named tuples they are read four times as fast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tutti.text.aligned_text import SourceRange


class WordStyle(NamedTuple):
    """How marks change some words of a sentence, beside the style of all of it."""

    rate: float = 1.0  # times the rate of the sentence
    pitch: float = 0.0  # semitones added to its pitch
    volume: float = 1.0  # times its volume
    emphasis: str | None = None  # a name of EMPHASIS_NAMES


AS_SENTENCE = WordStyle()


class PhonemeWord(NamedTuple):
    """One word in Kokoro's symbols, with its source.

    Several words may share a source: "five" and "dollars" both read "$5".
    """

    phonemes: str  # sounds and stress marks; no spaces, no punctuation
    source: SourceRange
    before: str = ""  # opening quotes and brackets in front of it
    after: str = " "  # symbols up to the next word: " ", ", ", ". "; "" inside a compound
    style: WordStyle | None = None  # none: as the sentence

    @property
    def symbols(self) -> str:
        return self.before + self.phonemes + self.after

    @property
    def n_symbols(self) -> int:
        return len(self.before) + len(self.phonemes) + len(self.after)

    @property
    def rate(self) -> float:
        return self.style.rate if self.style else 1.0


class InlineStyle(NamedTuple):
    """What marks in the text change of the request's voice, language, speed, pitch, volume and emotion."""

    voice: str | None = None  # instead of the request's
    language: str | None = None  # instead of the request's
    rate: float = 1.0  # times the request's speed
    pitch: float = 0.0  # semitones added to the request's
    volume: float = 1.0  # times the request's
    emotion: str | None = None  # a preset, beside the request's
    emphasis: str | None = None  # a name of EMPHASIS_NAMES


NO_STYLE = InlineStyle()


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """A sentence in phonemes, and the symbols in it that have no pronunciation."""

    words: tuple[PhonemeWord, ...]
    dropped: tuple[str, ...] = ()
    inline_style: InlineStyle = NO_STYLE
    notices: tuple[str, ...] = ()  # what of the text has no effect or is in another language, in sentences


class Chunk(NamedTuple):
    """What is synthesised as one row: words of one style, and the pause after them."""

    words: tuple[PhonemeWord, ...]
    pause_s: float = 0.0
    dropped: tuple[str, ...] = ()
    inline_style: InlineStyle = NO_STYLE
    notices: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it carries nothing: a long text was only looked at, so that others are read meanwhile."""
        return not (self.words or self.pause_s or self.dropped or self.notices)

    @property
    def rate(self) -> float:
        """Times the speed of the request, on average."""
        return self.inline_style.rate * mean_rate(self.words)

    @property
    def phonemes(self) -> str:
        return "".join(word.symbols for word in self.words).rstrip()

    @property
    def source(self) -> SourceRange:
        if not self.words:
            return (0, 0)
        if len(self.words) == 1:
            return self.words[0].source
        starts, ends = zip(*(word.source for word in self.words), strict=True)
        return min(starts), max(ends)

    def joined(self) -> "Chunk":
        """The same chunk with all its words as one, unless some of them have a style of their own."""
        if not self.words or any(word.style for word in self.words):
            return self
        return self._replace(words=(PhonemeWord(self.phonemes, self.source, after=""),))


def mean_rate(words: Sequence[PhonemeWord]) -> float:
    """The rate at which one style for all would take as long as these words take with theirs."""
    if not any(word.style for word in words):
        return 1.0
    return sum(word.n_symbols for word in words) / sum(word.n_symbols / word.rate for word in words)


class ChunkPace(NamedTuple):
    """How long chunks may be, so that the listener of a text hears no gap, and others do not wait long for it."""

    first_symbols: int = 100  # upper limit of the first chunk; less starts sooner, more needs fewer chunks
    seconds_per_s: float = 0.5  # seconds that the device takes for a second of audio; a slower one needs shorter chunks
    speed: float = 1.0  # at which the text is spoken; slow speech needs shorter chunks, which take as long
    joined_symbols: int = 510  # upper limit of a later chunk of several sentences; less, and others wait less for it


DEFAULT_PACE = ChunkPace()
