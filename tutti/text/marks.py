"""Marks that a caller writes into the text: pauses, the IPA of a word, another voice, language, rate, emotion, …"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from unicodedata import normalize

from tutti.cloud_voices import stand_in
from tutti.errors import InvalidInput
from tutti.speech import EMOTION_NAMES, EMPHASIS_NAMES
from tutti.text.aligned_text import PLACEHOLDER, AlignedText
from tutti.text.chunk import InlineStyle
from tutti.text.language import LANGUAGES, find_language
from tutti.text.tags import tags_as_marks

MAX_PAUSE_S = 60.0  # of one pause mark
MARKS_AT_ONCE = 20_000  # characters in which marks are replaced in one turn of an event loop, 6 ms at most
MAX_VOICES = 200  # different voices and blends in one text; each is made when the request arrives
MAX_MARK = 150  # characters of any other mark
MAX_VOICE_MARK = 350  # characters of a mark or tag that names a voice
BREAKS_S = {"none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 1.0, "x-strong": 1.5}  # SSML's names
MIN_RATE, MAX_RATE = 0.25, 4.0  # times the speed of the request
MAX_PITCH = 12.0  # semitones
MAX_VOLUME = 4.0  # times the loudness of the voice
DEFAULT_STYLE = InlineStyle()  # what the request asks for, unchanged


@dataclass(frozen=True, slots=True)
class StyledText:
    """Text up to the next pause or change of voice, language or emotion; its words may differ in all else."""

    aligned: AlignedText
    ipa_overrides: dict[int, str] = field(default_factory=dict)  # IPA of the PLACEHOLDERs, by source offset
    pause_s: float = 0.0
    style: InlineStyle = DEFAULT_STYLE  # where it begins
    changes: tuple[tuple[int, InlineStyle], ...] = ()  # source offsets, and the style from there on

    def style_at(self, source: int) -> InlineStyle:
        n_before = bisect_right(self.changes, source, key=lambda change: change[0])
        return self.changes[n_before - 1][1] if n_before else self.style


def parse_marks(aligned: AlignedText) -> list[StyledText]:
    """Return the texts between `[pause:1.5s]`, `[voice:name]`, `[lang:fr]`, `[emotion:calm]` and their ends.

    Inside of them `[rate:1.2]`, `[pitch:+2]`, `[volume:0.5]` and `[emphasis:strong]` change the style of words, and
    each `[word](/ipa/)` becomes one PLACEHOLDER. Punctuation right behind a mark belongs to the words before it.
    """
    styled_texts: list[StyledText] = []
    style = DEFAULT_STYLE
    for text, mark in _split_at_marks(aligned):
        pause_s = 0.0
        styled = _styled_text(text, style)
        style = styled.changes[-1][1] if styled.changes else style
        if mark is not None and mark["pause"] is not None:
            pause_s = _seconds(mark)
        elif mark is not None:
            style = _apply_mark(style, mark)
        if pause_s or styled.aligned.text.strip():
            styled_texts.append(replace(styled, pause_s=pause_s))
    return styled_texts


def check_marks(text: str) -> None:
    """Raise InvalidInput for the first mark that `parse_marks` would refuse."""
    checked: set[str] = set()
    for mark in _MARK.finditer(text) if "[" in text else ():
        if mark[0] in checked:
            continue
        checked.add(mark[0])
        if mark["pause"] is not None:
            _seconds(mark)
        else:
            _apply_mark(DEFAULT_STYLE, mark)


def marks_as_text(text: str) -> Iterator[str]:
    """Yield a text in parts, its marks with a round bracket, so that they are read aloud; pauses and IPA still act.

    Its length does not change, so that places in it stay true.
    """
    start = 0
    while start < len(text):
        end = text.find("[", start + MARKS_AT_ONCE)  # a mark is never split
        end = len(text) if end < 0 else end
        yield _OPENING.sub("(", text[start:end])
        start = end


def update_marks(marks: dict[str, str], text: str) -> None:
    """Update `marks`, the marks in force by name, to those in force at the end of `text`."""
    for mark in _MARK.finditer(tags_as_marks(text)) if "[" in text or "<" in text else ():
        if mark["pause"] is not None:
            continue
        name = (mark["name"] or mark["end"]).lower()
        for ended in ("voice", "lang") if name == "voice" else (name,):  # a voice brings its own language
            marks.pop(ended, None)
        if mark["name"]:
            marks[name] = mark[0]


def end_marks(text: str) -> str:
    """Return the marks that end what marks in a text have begun."""
    marks: dict[str, str] = {}
    update_marks(marks, text)
    return "".join(f"[/{name}]" for name in marks)


@dataclass(frozen=True, slots=True)
class PauseMark:
    """A pause in a text: how long it is, and where its mark ends."""

    seconds: float
    end: int


def pause_marks(text: str, start: int, end: int) -> Iterator[PauseMark]:
    """Yield the pause marks and break tags of a part of a text."""
    marks = [
        PauseMark(_seconds(mark), mark.end()) for mark in _MARK.finditer(text, start, end) if mark["pause"] is not None
    ]
    if text.find("<", start, end) >= 0:
        marks += (PauseMark(break_seconds(tag), tag.end()) for tag in BREAK_TAG.finditer(text, start, end))
    yield from sorted(marks, key=lambda mark: mark.end)


def break_seconds(tag: re.Match[str]) -> float:
    """Return the pause of a match of BREAK_TAG, at most MAX_PAUSE_S."""
    if tag["time"]:
        pause_s = float(tag["time"]) / (1000 if tag["unit"].lower() == "ms" else 1)
    else:
        pause_s = BREAKS_S.get((tag["strength"] or "medium").lower(), BREAKS_S["medium"])
    return min(pause_s, MAX_PAUSE_S)


def voices_named(text: str) -> list[str]:
    """The voices that marks and SSML tags in a text name, each once, so that a wrong one is refused early."""
    if "[" not in text and "<" not in text:
        return []
    tags = dict.fromkeys(_VOICE_MARK_OR_TAG.findall(text))
    return list(dict.fromkeys(mark.strip() if mark else stand_in(tag) or tag.strip() for mark, tag in tags))


_OF_WORDS = "rate|pitch|volume|emphasis"  # these marks change words, the others end the text before them, too
_NAMES = f"{_OF_WORDS}|voice|lang|emotion"
_MARK = re.compile(
    rf"\[(?:pause:(?P<pause>[^\[\]\n]{{0,40}})|(?P<name>{_NAMES}):(?P<value>[^\[\]\n]{{0,120}})|/(?P<end>{_NAMES}))\]",
    re.IGNORECASE,
)
_MARKS_OF_WORDS = re.compile(rf"(?:\[(?:(?:{_OF_WORDS}):[^\[\]\n]{{0,120}}|/(?:{_OF_WORDS}))\])+", re.IGNORECASE)
# Two words stay two if only a mark is between them; scripts without spaces need none.
_LETTER = r"[^\W\u2e80-\U0010ffff]"
_WORD_BEFORE, _WORD_AFTER = re.compile(rf"{_LETTER}|[.,;:!?…)]"), re.compile(rf"{_LETTER}|[\[(“]")
_VOICE_MARK_OR_TAG = re.compile(
    r"\[voice:(?P<mark>[^\[\]\n]{1,120})\]|<voice\s[^<>]{0,200}?\bname\s?=\s?[\"'](?P<tag>[^\"'<>&]{1,120})[\"']",
    re.IGNORECASE,
)
# <break time="1s"/> as some services take it in plain text.
BREAK_TAG = re.compile(
    r"<break(?:\s+time\s*=\s*[\"'](?P<time>\d{1,4}(?:\.\d{1,3})?|\.\d{1,3})\s?(?P<unit>ms|s)[\"']"
    r"|\s+strength\s*=\s*[\"'](?P<strength>[a-z-]{1,10})[\"'])?\s*/?>",
    re.IGNORECASE,
)
_KOKORO_VOICE = re.compile("[a-z][fm]_", re.IGNORECASE | re.ASCII)
_CLOSING_PUNCTUATION = re.compile("[,.;:!?…。！？、，；：”’\"')）」』]*+(?=\\s|$|\\[)")
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(ms|s)\s*", re.IGNORECASE | re.ASCII)
# The bracket before a mark other than a pause of some length.
_OPENING = re.compile(
    rf"\[(?=(?:{_NAMES}):|/(?:{_NAMES})\]"
    rf"|pause:(?!(?=[^\[\]\n]{{0,40}}\]){_LENGTH.pattern}\]))",
    re.IGNORECASE | re.ASCII,
)
_RATE = re.compile(r"\s*(\d{1,4}(?:\.\d{0,9})?|\.\d{1,9})\s*(%?)\s*", re.ASCII)
_PITCH = re.compile(r"\s*([+-]?(?:\d{1,4}(?:\.\d{0,9})?|\.\d{1,9}))\s*(?:st)?\s*", re.IGNORECASE | re.ASCII)
_CODE_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*([^\s`]*)[^`\n]*")
_IPA_MARK = re.compile(r"\[[^\[\]\n]{1,200}\]\(/([^/()\n]{1,200})/\)")


def _split_at_marks(aligned: AlignedText) -> Iterator[tuple[AlignedText, re.Match[str] | None]]:
    """Yield the text between the marks that end one, each with the mark that ends it."""
    at = 0
    for match in _MARK.finditer(aligned.text):
        if _MARKS_OF_WORDS.match(match[0]):
            continue
        text = aligned[at : match.start()]
        at = match.end()
        tail = _CLOSING_PUNCTUATION.match(aligned.text, at) if match["pause"] is None and text.text.strip() else None
        if tail and tail[0]:
            text += aligned[at : tail.end()]
            at = tail.end()
        yield text, match
    yield aligned[at:], None


def _apply_mark(style: InlineStyle, mark: re.Match[str]) -> InlineStyle:
    """Return the style from this mark on."""
    kind = (mark["name"] or mark["end"]).lower()
    if mark["end"] is not None:
        match kind:
            case "rate":
                return style._replace(rate=DEFAULT_STYLE.rate)
            case "pitch":
                return style._replace(pitch=DEFAULT_STYLE.pitch)
            case "volume":
                return style._replace(volume=DEFAULT_STYLE.volume)
            case "lang":
                return style._replace(language=DEFAULT_STYLE.language)
            case "emotion":
                return style._replace(emotion=DEFAULT_STYLE.emotion)
            case "emphasis":
                return style._replace(emphasis=DEFAULT_STYLE.emphasis)
            case _:
                return style._replace(voice=DEFAULT_STYLE.voice, language=DEFAULT_STYLE.language)
    match kind:
        case "rate":
            return style._replace(rate=_factor(mark, "rate", MIN_RATE, MAX_RATE, "[rate:1.2] or [rate:120%]"))
        case "pitch":
            return style._replace(pitch=_pitch(mark))
        case "volume":
            return style._replace(volume=_factor(mark, "volume", 0, MAX_VOLUME, "[volume:0.5] or [volume:150%]"))
        case "lang":
            return style._replace(language=find_language(mark["value"]).code)
        case "emotion":
            return style._replace(emotion=_one_of(EMOTION_NAMES, mark, "emotion"))
        case "emphasis":
            name = _one_of((*EMPHASIS_NAMES, "none"), mark, "emphasis")
            return style._replace(emphasis=None if name == "none" else name)
        case _:
            return _with_voice(style, mark)


def _with_voice(style: InlineStyle, mark: re.Match[str]) -> InlineStyle:
    """Change the voice, and the language to the voice's own."""
    name = mark["value"].strip()
    if not name:
        raise InvalidInput(f"{mark[0]} names no voice: write one, such as [voice:af_heart]", param="input")
    return style._replace(voice=name, language=voice_language(name))


def voice_language(name: str) -> str | None:
    """Return the language of a voice or blend, by its first letter; none of a name that is not Kokoro's."""
    letter = name[0].lower() if _KOKORO_VOICE.match(name) else ""
    return next((language.code for language in LANGUAGES if language.letter == letter), None)


def _styled_text(aligned: AlignedText, style: InlineStyle) -> StyledText:
    """Return a text that begins in this style, without the marks of its words."""
    ipa_overrides: dict[int, str] = {}
    changes: list[tuple[int, InlineStyle]] = []

    def note_change(marks: re.Match[str]) -> str:
        changed = changes[-1][1] if changes else style
        for mark in _MARK.finditer(marks[0]):
            changed = _apply_mark(changed, mark)
        changes.append((aligned.ends[marks.end() - 1], changed))
        between_words = _WORD_BEFORE.match(aligned.text, marks.start() - 1) if marks.start() else None
        return " " if between_words and _WORD_AFTER.match(aligned.text, marks.end()) else ""

    def to_placeholder(match: re.Match[str]) -> str:
        start, _ = plain.source(*match.span())
        ipa_overrides[start] = decompose_ipa(match[1])
        return PLACEHOLDER

    plain = aligned.sub(_MARKS_OF_WORDS, note_change)
    return StyledText(plain.sub(_IPA_MARK, to_placeholder), ipa_overrides, style=style, changes=tuple(changes))


def _seconds(mark: re.Match[str]) -> float:
    length = _LENGTH.fullmatch(mark["pause"])
    pause_s = float(length[1]) / (1000 if length[2].lower() == "ms" else 1) if length else math.nan
    if not 0 < pause_s <= MAX_PAUSE_S:
        raise InvalidInput(
            f"{mark[0]} is not a pause: write a length above 0 and up to {MAX_PAUSE_S:.0f} seconds, "
            "such as [pause:1.5s] or [pause:300ms]",
            param="input",
        )
    return pause_s


def _factor(mark: re.Match[str], kind: str, least: float, most: float, examples: str) -> float:
    """Return a factor, which may be written in percent."""
    number = _RATE.fullmatch(mark["value"])
    factor = float(number[1]) / (100 if number[2] else 1) if number else math.nan
    if not least <= factor <= most:
        raise InvalidInput(f"{mark[0]} is not a {kind}: write {least:g} to {most:g}, such as {examples}", param="input")
    return factor


def _one_of(names: Sequence[str], mark: re.Match[str], kind: str) -> str:
    name = mark["value"].strip().lower()
    if name not in names:
        hint = f"write one of {', '.join(names)}, such as [{kind}:{names[1]}]"
        raise InvalidInput(f"{mark[0]} names no {kind}: {hint}", param="input")
    return name


def _pitch(mark: re.Match[str]) -> float:
    number = _PITCH.fullmatch(mark["value"])
    semitones = float(number[1]) if number else math.nan
    if not abs(semitones) <= MAX_PITCH:
        raise InvalidInput(
            f"{mark[0]} is not a pitch: write semitones from -{MAX_PITCH:g} to {MAX_PITCH:g}, such as [pitch:+2]",
            param="input",
        )
    return semitones


def decompose_ipa(ipa: str) -> str:
    """Write tildes as symbols of their own, as Kokoro spells nasal vowels; ç stays one symbol."""
    return "".join(char if char == "ç" else normalize("NFD", char) for char in ipa.strip())


def shown_word(written: str) -> str:
    """Return how a word is shown in captions and word times: without marks, in one line, code in brackets."""
    if fence := _CODE_FENCE.fullmatch(written):  # its first line stands for the whole block
        return f"[{fence[1]} code]" if fence[1] else "[code]"
    return " ".join(strip_marks(written).split()) if "\n" in written else strip_marks(written)


def strip_marks(written: str) -> str:
    """Return what captions show of a text: `[word](/ipa/)` is word, `&amp;` is &, other marks are removed."""
    if _IPA_MARK.fullmatch(written):
        return written[1 : written.index("]")]
    return unescape(_MARK.sub("", written)) if "[" in written or "&" in written else written
