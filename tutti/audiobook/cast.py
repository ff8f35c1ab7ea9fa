"""The cast of a book: who speaks with which voice. Turns and quotes of its speakers get the mark of their voice."""

import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tutti.audiobook.book import Book
from tutti.errors import InvalidInput, TuttiError
from tutti.speech import SpeechParams
from tutti.text.ssml import is_ssml
from tutti.voices import parse_blend

MAX_SPEAKERS = 100
MIN_RATE, MAX_RATE = 0.25, 4.0
EXAMPLE = 'Anna = "af_heart", or Ben = {voice = "am_puck", rate = 0.9}'
VERBS = (
    "said|says|asked|asks|replied|replies|answered|answers|cried|cries|whispered|whispers|shouted|shouts|called|calls|"
    "murmured|murmurs|muttered|mutters|added|adds|continued|continues|exclaimed|exclaims|told|tells|agreed|agrees|"
    "began|begins|repeated|repeats|returned|returns|laughed|laughs|sighed|sighs|snapped|snaps|went on|goes on"
)
_SPEAKER = re.compile(r"[^\W_](?:[^\[\]\n<>\"'&:]{0,98}[^\W_.])?")
_QUOTE = re.compile(r"“[^“”]*(?:”|\Z)|\"[^\"]*\"|«[^«»]*»")
_BLANK = re.compile(r"(\n[ \t]*\n\s*)")
_REACH = 120  # characters before a quote in which its speaker is named


@dataclass(frozen=True, slots=True)
class Cast:
    """The speakers, as a file or a request names them."""

    voices: Mapping[str, str]  # by name
    rates: Mapping[str, float]  # times the speed, of those that have one

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.voices)

    def params(self, params: SpeechParams) -> SpeechParams:
        """Return the parameters with the names of the speakers."""
        names = {**params.voice_names, **{name.lower(): voice for name, voice in self.voices.items()}}
        rates = {**params.voice_rates, **{name.lower(): rate for name, rate in self.rates.items()}}
        return replace(params, voice_names=names, voice_rates=rates)


def read_cast(path: Path, known: Collection[str]) -> Cast:
    """Read a cast from a .json or .toml file; `known`: all voices."""
    try:
        text = path.read_text("utf-8")
        table = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except OSError as exc:
        raise InvalidInput(f"cannot read {path}: {exc.strerror}", param="cast") from exc
    except ValueError as exc:
        raise InvalidInput(f"{path} is no cast: {exc}; write for each speaker {EXAMPLE}", param="cast") from exc
    return parse_cast(table, known)


def parse_cast(table: object, known: Collection[str]) -> Cast:
    """Check a table of speakers, each with a voice or with {voice, rate}."""
    if not isinstance(table, dict) or not 1 <= len(table) <= MAX_SPEAKERS:
        raise InvalidInput(f"a cast has 1 to {MAX_SPEAKERS} speakers: {EXAMPLE}", param="cast")
    voices, rates = dict[str, str](), dict[str, float]()
    for name, entry in table.items():
        fields = entry if isinstance(entry, dict) else {"voice": entry}
        voice, rate = fields.get("voice"), fields.get("rate")
        if not _SPEAKER.fullmatch(name):
            raise InvalidInput(f"{name[:40]!r} is no name of a speaker: up to 100 characters, no signs", param="cast")
        if not isinstance(voice, str) or not fields.keys() <= {"voice", "rate"}:
            raise InvalidInput(f"{name} needs a voice: {EXAMPLE}", param="cast")
        if rate is not None and not (isinstance(rate, int | float) and MIN_RATE <= rate <= MAX_RATE):
            raise InvalidInput(f"the rate of {name} must be a number from {MIN_RATE} to {MAX_RATE:g}", param="cast")
        try:
            parse_blend(voice, known)
        except TuttiError as exc:
            exc.param = "cast"
            raise
        voices[name] = voice
        if rate is not None:
            rates[name] = float(rate)
    return Cast(voices, rates)


def with_cast(book: Book, names: Sequence[str]) -> Book:
    """Return the book with the marks of these speakers in its chapters."""
    if not names:
        return book
    chapters = tuple(replace(chapter, text=mark_speakers(chapter.text, names)) for chapter in book.chapters)
    return replace(book, chapters=chapters)


def mark_speakers(text: str, names: Sequence[str]) -> str:
    """Put the marks of voices around what these speakers say; paragraphs with a mark of a voice stay as they are.

    A line `Anna: …` is a turn of Anna up to the next one or to the end of its paragraph, without the name. A quote is
    Anna's if "said Anna" or "Anna asked" is beside it, and so are the other quotes of that paragraph if nobody else
    speaks in it.
    """
    if is_ssml(text):
        return text
    rules = _Rules.of(names)
    return "".join(part if _BLANK.fullmatch(part) else rules.marked(part) for part in _BLANK.split(text))


@dataclass(frozen=True, slots=True)
class _Rules:
    label: re.Pattern[str]
    after: re.Pattern[str]
    before: re.Pattern[str]
    names: Mapping[str, str]  # as the cast has them, by the name in lower case

    @staticmethod
    def of(names: Sequence[str]) -> "_Rules":
        one = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        bold = r"(?:\*\*|__)"
        return _Rules(
            re.compile(
                rf"^[ \t]*{bold}?(?P<name>{one})(?::{bold}|{bold}?:)[ \t]*\n?(?=\S)", re.MULTILINE | re.IGNORECASE
            ),
            re.compile(rf"\s*(?:(?:{VERBS})\s+(?P<last>{one})\b|(?P<first>{one})\s+(?:\w+ly\s+)?(?:{VERBS})\b)"),
            re.compile(rf"\b(?P<name>{one})\s+(?:\w+ly\s+)?(?:{VERBS})\b[^“”\".!?:]{{0,60}}[,:]\s*\Z"),
            {name.lower(): name for name in names},
        )

    def marked(self, paragraph: str) -> str:
        if "[voice:" in paragraph.lower():
            return paragraph
        return self._turns(paragraph) or self._quotes(paragraph)

    def _turns(self, paragraph: str) -> str:
        """The turns of a paragraph; empty if it has none."""
        labels = list(self.label.finditer(paragraph))
        if not labels:
            return ""
        ends = [*(label.start() for label in labels[1:]), len(paragraph)]
        turns = (
            self._mark(label["name"], paragraph[label.end() : end]) for label, end in zip(labels, ends, strict=True)
        )
        return paragraph[: labels[0].start()] + "".join(turns)

    def _quotes(self, paragraph: str) -> str:
        quotes = list(_QUOTE.finditer(paragraph))
        speakers = [self._speaker(paragraph, quote) for quote in quotes]
        known = {speaker for speaker in speakers if speaker}
        everyone = known.pop() if len(known) == 1 else ""
        parts, at = list[str](), 0
        for quote, speaker in zip(quotes, speakers, strict=True):
            name = speaker or everyone
            parts += (paragraph[at : quote.start()], self._mark(name, quote[0]) if name else quote[0])
            at = quote.end()
        return "".join((*parts, paragraph[at:]))

    def _speaker(self, paragraph: str, quote: re.Match[str]) -> str:
        if after := self.after.match(paragraph, quote.end()):
            return str(after["last"] or after["first"])
        before = self.before.search(paragraph[max(0, quote.start() - _REACH) : quote.start()])
        return str(before["name"]) if before else ""

    def _mark(self, name: str, said: str) -> str:
        text = said.rstrip()
        return f"[voice:{self.names[name.lower()]}]{text}[/voice]{said[len(text) :]}"
