"""Marks that a caller writes into the text: pauses, the phonemes of a word, another voice, rate or pitch."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import unescape
from unicodedata import normalize

from tutti.errors import InvalidInput
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Manner
from tutti.text.clean import OBJECT
from tutti.text.language import LANGUAGES
from tutti.text.language import language as find_language

LONGEST_PAUSE_S = 60.0
MIN_RATE, MAX_RATE = 0.25, 4.0
MAX_PITCH = 12.0  # semitones


AS_ASKED = Manner()  # as the request says


@dataclass(frozen=True, slots=True)
class Passage:
    """Text up to the next pause or change of manner, the phonemes given for its OBJECTs, and the pause."""

    spoken: AlignedText
    given: dict[int, str] = field(default_factory=dict)  # where the mark starts in the original: its IPA
    pause_s: float = 0.0
    manner: Manner = AS_ASKED


def parse(spoken: AlignedText) -> list[Passage]:
    """The passages between `[pause:1.5s]`, `[rate:1.2]`, `[pitch:+2]`, `[voice:name]`, `[lang:fr]` and their ends,
    each `[word](/ipa/)` turned into one OBJECT. Punctuation right behind a mark belongs to the words before it.
    """
    passages: list[Passage] = []
    manner = AS_ASKED
    for text, mark in _stretches(spoken):
        pause_s = 0.0
        following = manner
        if mark is not None and mark["pause"] is not None:
            pause_s = _seconds(mark)
        elif mark is not None:
            following = _changed(manner, mark)
        if pause_s or text.text.strip():
            passages.append(_passage(text, pause_s, manner))
        manner = following
    return passages


def check(text: str) -> None:
    """Raises InvalidInput for the first mark that `parse` would not understand."""
    for mark in _MARK.finditer(text) if "[" in text else ():
        if mark["pause"] is not None:
            _seconds(mark)
        else:
            _changed(AS_ASKED, mark)


def carry(marks: dict[str, str], text: str) -> None:
    """Update `marks`, the marks in force by name, to those in force at the end of `text`."""
    for mark in _MARK.finditer(text) if "[" in text else ():
        if mark["pause"] is not None:
            continue
        name = (mark["name"] or mark["end"]).lower()
        for ended in ("voice", "lang") if name == "voice" else (name,):  # a voice brings its own language
            marks.pop(ended, None)
        if mark["name"]:
            marks[name] = mark[0]


def voices_named(text: str) -> Iterator[str]:
    """The voices that marks in a text ask for, so that a wrong name is refused before anything is said."""
    for match in _VOICES.finditer(text) if "[" in text or "<" in text else ():
        yield (match["mark"] or match["tag"]).strip()


_MARK = re.compile(
    r"\[(?:pause:(?P<pause>[^\[\]\n]{0,40})|(?P<name>rate|pitch|voice|lang):(?P<value>[^\[\]\n]{0,120})"
    r"|/(?P<end>rate|pitch|voice|lang))\]",
    re.IGNORECASE,
)
_VOICES = re.compile(
    r"\[voice:(?P<mark>[^\[\]\n]{1,120})\]|<voice\s[^<>]{0,200}?\bname\s?=\s?[\"'](?P<tag>[^\"'<>&]{1,120})[\"']",
    re.IGNORECASE,
)
_OWN_NAME = re.compile("[a-z][fm]_", re.IGNORECASE | re.ASCII)
_CLOSING = re.compile("[,.;:!?…。！？、，；：”’\"')）」』]*+(?=\\s|$|\\[)")
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(ms|s)\s*", re.IGNORECASE | re.ASCII)
_RATE = re.compile(r"\s*(\d{1,4}(?:\.\d{0,9})?|\.\d{1,9})\s*(%?)\s*", re.ASCII)
_PITCH = re.compile(r"\s*([+-]?(?:\d{1,4}(?:\.\d{0,9})?|\.\d{1,9}))\s*(?:st)?\s*", re.IGNORECASE | re.ASCII)
_GIVEN = re.compile(r"\[[^\[\]\n]{1,200}\]\(/([^/()\n]{1,200})/\)")


def _stretches(spoken: AlignedText) -> Iterator[tuple[AlignedText, re.Match[str] | None]]:
    """What lies between the marks, each with the mark that ends it."""
    done = 0
    for match in _MARK.finditer(spoken.text):
        stretch = spoken[done : match.start()]
        done = match.end()
        tail = _CLOSING.match(spoken.text, done) if match["pause"] is None and stretch.text.strip() else None
        if tail and tail[0]:
            stretch += spoken[done : tail.end()]
            done = tail.end()
        yield stretch, match
    yield spoken[done:], None


def _changed(manner: Manner, mark: re.Match[str]) -> Manner:
    """The manner from this mark on."""
    what = (mark["name"] or mark["end"]).lower()
    if mark["end"] is not None:
        match what:
            case "rate":
                return replace(manner, rate=AS_ASKED.rate)
            case "pitch":
                return replace(manner, pitch=AS_ASKED.pitch)
            case "lang":
                return replace(manner, language=AS_ASKED.language)
            case _:
                return replace(manner, voice=AS_ASKED.voice, language=AS_ASKED.language)
    match what:
        case "rate":
            return replace(manner, rate=_rate(mark))
        case "pitch":
            return replace(manner, pitch=_pitch(mark))
        case "lang":
            return replace(manner, language=find_language(mark["value"]).code)
        case _:
            return _with_voice(manner, mark)


def _with_voice(manner: Manner, mark: re.Match[str]) -> Manner:
    """A voice reads in its own language, which its name begins with: af_heart; other names say nothing of theirs."""
    name = mark["value"].strip()
    if not name:
        raise InvalidInput(f"{mark[0]} names no voice: write one, such as [voice:af_heart]", param="input")
    letter = name[0].lower() if _OWN_NAME.match(name) else ""
    own = next((language.code for language in LANGUAGES if language.letter == letter), None)
    return replace(manner, voice=name, language=own)


def _passage(spoken: AlignedText, pause_s: float, manner: Manner) -> Passage:
    given: dict[int, str] = {}

    def one_object(match: re.Match[str]) -> str:
        start, _ = spoken.span(*match.span())
        given[start] = symbols(match[1])
        return OBJECT

    return Passage(spoken.sub(_GIVEN, one_object), given, pause_s, manner)


def _seconds(mark: re.Match[str]) -> float:
    length = _LENGTH.fullmatch(mark["pause"])
    pause_s = float(length[1]) / (1000 if length[2].lower() == "ms" else 1) if length else math.nan
    if not 0 < pause_s <= LONGEST_PAUSE_S:
        raise InvalidInput(
            f"{mark[0]} is no pause: write a length above 0 and up to {LONGEST_PAUSE_S:.0f} seconds, "
            "such as [pause:1.5s] or [pause:300ms]",
            param="input",
        )
    return pause_s


def _rate(mark: re.Match[str]) -> float:
    found = _RATE.fullmatch(mark["value"])
    rate = float(found[1]) / (100 if found[2] else 1) if found else math.nan
    if not MIN_RATE <= rate <= MAX_RATE:
        raise InvalidInput(
            f"{mark[0]} is no rate: write a number from {MIN_RATE} to {MAX_RATE:g}, such as [rate:1.2] or [rate:120%]",
            param="input",
        )
    return rate


def _pitch(mark: re.Match[str]) -> float:
    found = _PITCH.fullmatch(mark["value"])
    semitones = float(found[1]) if found else math.nan
    if not abs(semitones) <= MAX_PITCH:
        raise InvalidInput(
            f"{mark[0]} is no pitch: write semitones from -{MAX_PITCH:g} to {MAX_PITCH:g}, such as [pitch:+2]",
            param="input",
        )
    return semitones


def symbols(ipa: str) -> str:
    """IPA with its tildes on their own, as Kokoro spells nasal vowels; ç is one symbol there."""
    return "".join(char if char == "ç" else normalize("NFD", char) for char in ipa.strip())


def bare(written: str) -> str:
    """What a reader sees of a stretch of text: `[word](/ipa/)` is word, `&amp;` is &, other marks are not seen."""
    if _GIVEN.fullmatch(written):
        return written[1 : written.index("]")]
    return unescape(_MARK.sub("", written)) if "[" in written or "&" in written else written
