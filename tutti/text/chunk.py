"""The nouns of the text front end: words with their phonemes, pauses, and chunks of one breath."""

from dataclasses import dataclass

from tutti.text.aligned_text import Span


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word in Kokoro's symbols, with the stretch of the original text that it reads aloud.

    Several words may share a span: "five", "dollars" both read "$5".
    """

    phonemes: str  # letters of sound and stress; no spaces, no punctuation
    span: Span
    before: str = ""  # symbols in front that belong to it: opening quotes and brackets
    after: str = " "  # symbols up to the next word: " ", ", ", ". ", "" inside a compound

    @property
    def symbols(self) -> str:
        return self.before + self.phonemes + self.after


@dataclass(frozen=True, slots=True)
class Manner:
    """What marks in the text ask for, on top of what the request asks for."""

    voice: str | None = None  # instead of the request's
    language: str | None = None  # instead of the request's
    rate: float = 1.0  # times the request's speed
    pitch: float = 0.0  # semitones added to the request's


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence as it will be said, and the symbols in it that nobody could say."""

    words: tuple[Word, ...]
    dropped: tuple[str, ...] = ()
    manner: Manner = Manner()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text for one breath: its words, the pause after it, its place in the original text."""

    words: tuple[Word, ...]
    pause_s: float = 0.0
    dropped: tuple[str, ...] = ()
    manner: Manner = Manner()

    @property
    def phonemes(self) -> str:
        return "".join(word.symbols for word in self.words).rstrip()

    @property
    def span(self) -> Span:
        if not self.words:
            return (0, 0)
        return min(word.span[0] for word in self.words), max(word.span[1] for word in self.words)
