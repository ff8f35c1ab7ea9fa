"""Turn any string into readable text: Unicode NFC, no invisible characters, few kinds of quotes and dashes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category, combining, is_normalized, normalize

from tutti.text import latex, markdown
from tutti.text.aligned_text import AlignedText
from tutti.text.options import CodeBlocks
from tutti.text.symbol_names import EMOTICON, symbol_name

MAX_COMBINING = 30  # marks on one letter, as in Unicode's stream-safe text; more would make composing quadratic


@dataclass(frozen=True, slots=True)
class CleanText:
    """Readable text, and the symbols that were removed because they have no pronunciation."""

    aligned: AlignedText
    dropped: tuple[str, ...] = ()


def clean(
    text: str | AlignedText, language: str = "en-us", code_blocks: CodeBlocks = "announce", *, emoji_names: bool = False
) -> CleanText:
    """Remove what has no sound. Emoji, emoticons and boxes are reported as dropped, invisible signs and markup are not.

    With `emoji_names` emoji and emoticons are written by name, in English.
    """
    aligned = AlignedText.of(text) if isinstance(text, str) else text
    english = language.startswith("en-")
    dropped: list[str] = _TASK_BOX.findall(aligned.text) if "[" in aligned.text else []
    if not aligned.text.isascii():
        aligned = _compose(aligned)
        aligned = aligned.sub(_STARS, _count_stars) if english else aligned
        aligned = _drop(aligned.sub(_BULLET, lambda match: f"{match[1]}•"), _SYMBOLS, dropped, emoji_names and english)
        aligned = aligned.sub(_STYLED_LETTER, lambda match: normalize("NFKC", match[0]))
        aligned = _translate(aligned, _PUNCTUATION).sub(_EN_DASH, _dash)
    aligned = _translate(aligned.sub(_CRLF, "\n"), _LINE_BREAKS)
    aligned = aligned.sub(_INVISIBLE, "").sub(_DOTS, "…").sub(_DOUBLE_HYPHEN, "—")
    aligned = latex.read_formulas(_translate(aligned, _SPACES), language)
    if EMOTICON.search(aligned.text):
        aligned = _drop(aligned, EMOTICON, dropped, emoji_names and english)
    return CleanText(markdown.strip_markdown(aligned, code_blocks, language), tuple(dropped))


_EMOJI_PART = (
    "(?:[\U0001f000-\U0001fbff\u2600-\u266c\u2670-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa\u25a0-\u25ff\u2500-\u259f"
    "\u24c2\u3030\u303d\u3297\u3299\u2194-\u2199\u21a9\u21aa]\ufe0f?[\U0001f3fb-\U0001f3ff]?)"
)
_SYMBOL = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"  # flags
    "|[0-9#*]\ufe0f?\u20e3"  # keycaps
    f"|{_EMOJI_PART}(?:\u200d{_EMOJI_PART})*+[\U000e0020-\U000e007f]*+"  # one emoji, of any number of parts
    "|[\ud800-\udfff\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]"  # surrogates, private use, replacement character
)
_SYMBOLS = re.compile(f"(?:{_SYMBOL.pattern})++")
_STARS = re.compile(
    "(?P<full>[★⭐]\ufe0f?){2,10}(?P<empty>☆{0,9})|(?P<one>[★⭐]\ufe0f?)(?P<none>☆{1,9})"
)  # of a review
_TASK_BOX = re.compile(r"(?m)^[ \t]*+[-*+•][ \t]++(\[[ xX]\])[ \t]")
_BULLET = re.compile("(?m)^([ \t]*)[▪▫■□●○◦▶►➤➢❖✦]\ufe0f?(?=[ \t])")
# Letters in another form: full width, mathematical, ligatures, Roman numerals of one character.
_STYLED_LETTER = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\ufb00-\ufb06\u2160-\u217f\u203c\u2047-\u2049]"
)
_PUNCTUATION = str.maketrans(
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
_CRLF = re.compile("\r\n")
_LINE_BREAKS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x85\u2028\u2029", "\n"))
# Controls, soft hyphens, joiners, bidi controls, byte order marks and tags; white space is kept.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
_DOTS = re.compile(r"\.{3,}|\.(?: \.){2,}")
_DOUBLE_HYPHEN = re.compile(r"(?<=[\w.,;:!?'\")”*_])-{2,3}(?=[\w'\"(“*_])|(?<=\s)-{2,3}(?=[ \t])")
_SPACES = str.maketrans(
    dict.fromkeys(("\t", "\u00a0", "\u1680", *map(chr, range(0x2000, 0x200B)), "\u202f", "\u205f", "\u3000"), " ")
)


def _compose(aligned: AlignedText) -> AlignedText:
    """Apply Unicode NFC; a composed letter gets the source of all characters it was made of."""
    text = aligned.text
    if not any(map(combining, text)) and is_normalized("NFC", text):
        return aligned
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for a, b in _clusters(text):
        new = normalize("NFC", text[a:b])
        pieces.append(new)
        if new == text[a:b]:
            starts += aligned.starts[a:b]
            ends += aligned.ends[a:b]
        else:
            start, end = aligned.source(a, b)
            starts += [start] * len(new)
            ends += [end] * len(new)
    composed = "".join(pieces)
    return aligned if composed == text else AlignedText(composed, tuple(starts), tuple(ends))


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of letters with the combining marks behind them."""
    start = 0
    for i, char in enumerate(text):
        combines = char > "\u02ff" and (category(char)[0] == "M" or "\u1160" <= char <= "\u11ff")
        if i > start and (not combines or i - start > MAX_COMBINING):
            yield start, i
            start = i
    if text:
        yield start, len(text)


def _drop(aligned: AlignedText, pattern: re.Pattern[str], dropped: list[str], by_name: bool) -> AlignedText:
    """Remove symbols and add them to `dropped`; with `by_name` write those that have a name by it."""

    def drop(match: re.Match[str]) -> str:
        symbols = _SYMBOL.findall(match[0]) or [match[0]]
        names = {symbol: symbol_name(symbol) if by_name else "" for symbol in symbols}
        dropped.extend(_printable(symbol) for symbol in symbols if not names[symbol])
        before, after = aligned.text[match.start() - 1 : match.start()], aligned.text[match.end() : match.end() + 1]
        if words := ", ".join(filter(None, names.values())):
            return f"{' ' if before and not before.isspace() else ''}{words}{' ' if after.isalnum() else ''}"
        return " " if before.isalnum() and after.isalnum() else ""

    return aligned.sub(pattern, drop)


def _count_stars(match: re.Match[str]) -> str:
    n, n_empty = match[0].count("★") + match[0].count("⭐"), match[0].count("☆")
    return f"{n} out of {n + n_empty} stars" if n_empty else f"{n} stars"


@lru_cache(4096)
def _printable(symbol: str) -> str:
    """Return a symbol as it can be reported; surrogates and private characters become U+FFFD."""
    return "\ufffd" if category(symbol[0]) in ("Cs", "Co", "Cn") else symbol


def _dash(match: re.Match[str]) -> str:
    """Turn an en dash inside a range into a hyphen, elsewhere into an em dash."""
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return "—" if before.isspace() or after.isspace() or not (before and after) else "-"


def _translate(aligned: AlignedText, table: dict[int, str]) -> AlignedText:
    """Replace single characters by single characters; the sources stay."""
    text = aligned.text.translate(table)
    return aligned if text == aligned.text else AlignedText(text, aligned.starts, aligned.ends)
