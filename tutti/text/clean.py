"""Any string at all becomes text that can be read: composed, visible, in few kinds of quotes and dashes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category, combining, is_normalized, normalize

from tutti.text import markdown
from tutti.text.aligned_text import AlignedText

OBJECT = "\ufffc"  # stands for a word whose phonemes the caller gave; only marks.parse may put it in
MOST_MARKS = 30  # on one letter, as in Unicode's stream-safe text; more would make composing quadratic


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Text fit to be read, and the symbols in it that nobody could say."""

    spoken: AlignedText
    dropped: tuple[str, ...] = ()


def clean(text: str | AlignedText) -> Cleaned:
    """The text without what has no sound: emoji are counted as dropped, invisible characters and markup just go."""
    spoken = AlignedText.of(text) if isinstance(text, str) else text
    dropped: tuple[str, ...] = ()
    if not spoken.text.isascii():
        spoken, dropped = _without_symbols(_composed(spoken))
        spoken = spoken.sub(_FANCY, lambda match: normalize("NFKC", match[0]))
        spoken = _translated(spoken, _SAME_LENGTH).sub(_EN_DASH, _dash)
    spoken = _translated(spoken.sub(_TWO_LINE_ENDS, "\n"), _LINE_ENDS)
    spoken = spoken.sub(_INVISIBLE, "").sub(_DOTS, "…").sub(_DOUBLE_HYPHEN, "—")
    return Cleaned(markdown.plain(_translated(spoken, _BLANKS)), dropped)


_EMOJI_PART = (
    "(?:[\U0001f000-\U0001fbff\u2600-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa\u25a0-\u25ff\u2500-\u259f"
    "\u24c2\u3030\u303d\u3297\u3299\u2194-\u2199\u21a9\u21aa]\ufe0f?[\U0001f3fb-\U0001f3ff]?)"
)
_SYMBOL = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"  # flags
    "|[0-9#*]\ufe0f?\u20e3"  # keycaps
    f"|{_EMOJI_PART}(?:\u200d{_EMOJI_PART})*+[\U000e0020-\U000e007f]*+"  # one emoji, however many parts make it
    "|[\ud800-\udfff\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]"  # no character at all, or a private one
)
_SYMBOLS = re.compile(f"(?:{_SYMBOL.pattern})++")
_BULLET = re.compile("(?m)^([ \t]*)[▪▫■□●○◦▶►➤➢❖✦]\ufe0f?(?=[ \t])")
# Letters in costume: full width, mathematical, ligatures, Roman numerals of one character.
_FANCY = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\ufb00-\ufb06\u2160-\u217f\u203c\u2047-\u2049]"
)
_SAME_LENGTH = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ´＇", "'"),
        **dict.fromkeys("„‟«〝", "“"),
        **dict.fromkeys("»〞", "”"),
        **dict.fromkeys("″＂", '"'),
        **dict.fromkeys("‐‑‒−﹣－⁃", "-"),
        **dict.fromkeys("―⸺⸻", "—"),
        **dict.fromkeys("∙‣⁌⁍", "•"),
        "⁄": "/",
        "∕": "/",
        "％": "%",
    }
)
_EN_DASH = re.compile("–")
_TWO_LINE_ENDS = re.compile("\r\n")
_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x85\u2028\u2029", "\n"))
# White space survives; soft hyphens, joiners, bidi controls, byte order marks and tags are silent anyway.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
_DOTS = re.compile(r"\.{3,}|\.(?: \.){2,}")
_DOUBLE_HYPHEN = re.compile(r"(?<=[\w.,;:!?'\")”*_])-{2,3}(?=[\w'\"(“*_])|(?<=\s)-{2,3}(?=[ \t])")
_BLANKS = str.maketrans(
    dict.fromkeys(("\t", "\u00a0", "\u1680", *map(chr, range(0x2000, 0x200B)), "\u202f", "\u205f", "\u3000"), " ")
)


def _composed(spoken: AlignedText) -> AlignedText:
    """Unicode's NFC; a composed letter is tied to all the characters it was made of."""
    text = spoken.text
    if not any(map(combining, text)) and is_normalized("NFC", text):
        return spoken
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for a, b in _clusters(text):
        new = normalize("NFC", text[a:b])
        pieces.append(new)
        if new == text[a:b]:
            starts += spoken.starts[a:b]
            ends += spoken.ends[a:b]
        else:
            start, end = spoken.span(a, b)
            starts += [start] * len(new)
            ends += [end] * len(new)
    composed = "".join(pieces)
    return spoken if composed == text else AlignedText(composed, tuple(starts), tuple(ends))


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Letters with the marks that may compose with them."""
    start = 0
    for i, char in enumerate(text):
        joins = char > "\u02ff" and (category(char)[0] == "M" or "\u1160" <= char <= "\u11ff")
        if i > start and (not joins or i - start > MOST_MARKS):
            yield start, i
            start = i
    if text:
        yield start, len(text)


def _without_symbols(spoken: AlignedText) -> tuple[AlignedText, tuple[str, ...]]:
    dropped: list[str] = []

    def drop(match: re.Match[str]) -> str:
        dropped.extend(map(_shown, _SYMBOL.findall(match[0])))
        before, after = spoken.text[match.start() - 1 : match.start()], spoken.text[match.end() : match.end() + 1]
        return " " if before.isalnum() and after.isalnum() else ""

    spoken = spoken.sub(_BULLET, lambda match: f"{match[1]}•")
    return spoken.sub(_SYMBOLS, drop), tuple(dropped)


@lru_cache(4096)
def _shown(symbol: str) -> str:
    """A symbol as people can be told of it: half a pair and private characters have no face."""
    return "\ufffd" if category(symbol[0]) in ("Cs", "Co", "Cn") else symbol


def _dash(match: re.Match[str]) -> str:
    """An en dash inside a range is a hyphen, elsewhere a pause."""
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return "—" if before.isspace() or after.isspace() or not (before and after) else "-"


def _translated(spoken: AlignedText, table: dict[int, str]) -> AlignedText:
    """One character for one: the ties stay as they are."""
    text = spoken.text.translate(table)
    return spoken if text == spoken.text else AlignedText(text, spoken.starts, spoken.ends)
