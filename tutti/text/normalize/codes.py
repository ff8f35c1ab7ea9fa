"""Names made of letters and digits, and digits that count nothing: telephones, cards, models."""

import re

from tutti.text.aligned_text import AlignedText, Said
from tutti.text.normalize.numbers import cardinal, code, digits, year

_SPECIAL = {
    "24/7": "twenty-four seven", "24/7/365": "twenty-four seven three sixty-five", "9/11": "nine eleven",
    "50/50": "fifty-fifty", "50-50": "fifty-fifty",
    "20-20": "twenty twenty", "80/20": "eighty twenty", "20/20": "twenty twenty",
    "007": "double oh seven", "at&t": "A T and T", "q&a": "Q and A", "c++": "C plus plus", "c#": "C sharp",
    "f#": "F sharp", "g++": "G plus plus", ".net": "dot net", "401k": "four oh one K", "401(k)": "four oh one K",
    "b2b": "B to B", "b2c": "B to C", "p2p": "P to P", "d2c": "D to C", "h2o": "H two O", "x86": "X eighty-six",
    "x64": "X sixty-four", "wwii": "World War Two", "wwi": "World War One", "ww2": "World War Two",
    "ww1": "World War One", "k8s": "kubernetes", "i18n": "internationalization", "a11y": "accessibility",
    "w3c": "W three C", "y2k": "Y two K", "1-on-1": "one on one", "k-12": "K through twelve",
    "tl;dr": "T L D R", "tldr": "T L D R", "yoy": "year over year", "qoq": "quarter over quarter",
}  # fmt: skip
_SPECIALS = re.compile(
    r"(?<![\w./+$£€-])(?:"
    + "|".join(re.escape(name) for name in sorted(_SPECIAL, key=len, reverse=True))
    + r")(?![\w/+#-]|\.\d|,\d)",
    re.IGNORECASE,
)
_MONTHLY = re.compile(r"\bMoM\b")
_CARD = re.compile(r"(?<![\w.,-])\d{4}(?:[ -]\d{4}){2,3}(?![\w-]|[.,]\d)")
_PHONE = re.compile(
    r"(?<![\w.,/])(?:"
    r"(?:\+?\d{1,3}[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}"
    r"|\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}|\d{3}-\d{4}"
    r"|\(?0\d{2,4}\)?[ -]\d{3,4}[ -]?\d{3,4}|\d{3}-\d{2}-\d{4}"
    r")(?:\s?(?:x|ext\.?)\s?(?P<ext>\d{1,6}))?(?![\w/-]|[.,]\d)"
)
_EXTENSION = re.compile(r"\bext\.?\s?(?P<n>\d{1,6})\b")
_ROAD = re.compile(
    r"\b(?:Route|Highway|Hwy|Interstate|Flight|Room|Rm|Suite|Apt|Boeing|Airbus|Bus|Gate|Channel|Unit|Error|Port|Area"
    r"|[Pp]ort|[Rr]oom|[Ff]light|[Ee]rror(?: code)?|[Ss]tatus(?: code)?|HTTP):?\s(?P<n>\d{3,4})(?![\w]|[.,]\d)"
)
_DIALLED = re.compile(r"\b(?:[Cc]all(?:ed|ing|s)?|[Dd]ial(?:l?ed|l?ing|s)?)\s(?P<n>\d{3})(?![\w]|[.,-]\d)")
_STREET = re.compile(
    r"(?<![\w.,$-])(?P<n>\d{3,5})(?=\s(?:[NSEW]\.?\s)?(?:[A-Z][a-z]+\s){1,3}(?:St|Ave|Blvd|Rd|Dr|Ln|Street|Avenue|Road|Drive|Lane|Boulevard|Way|Court|Ct|Place|Pl)\b)"
)
_FROM_TO = re.compile(r"(?<=\d)-to-(?=\d)")
_ZIP = re.compile(r"(?<=[A-Z]{2} )(?P<n>\d{5}(?:-\d{4})?)(?![\w-])")
_HEX = re.compile(r"\b0x(?P<n>[0-9a-fA-F]{1,64})\b|#(?P<rgb>[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
_SCREEN = re.compile(r"(?<![\w.,])(?P<n>\d{3,4})(?P<p>[pi])\b")
_HYPHENED = re.compile(
    r"(?<![\w.,-])(?P<name>(?![AaPp][Mm]-)[A-Za-z]{1,16})(?P<hyphen>-)(?P<n>\d{1,5})(?![\w]|[.,]\d|-\d)"
)
# Letters and digits in one breath; an ordinal or a plural is none.
_MIXED = re.compile(
    r"(?<![\w.,'])(?=[A-Za-z_]*\d)(?=\d*[A-Za-z_])(?!\d+(?:st|nd|rd|th|s)\b)[A-Za-z0-9_]{2,64}(?!\w)", re.IGNORECASE
)
_STANDARD = re.compile(r"\b[A-Z]{2,6}\s(?P<n>[1-9]\d{3})(?![\w%]|[.,:/-]\d)")
_POINTED = re.compile(r"(?<![\w.])(?P<letter>[A-Z])\.(?P<n>\d{1,4})(?![\w.])")
_PIECE = re.compile(r"\d+|[^\W\d_]+")


def say(spoken: AlignedText) -> AlignedText:
    """Codes as they are said: "F-16" is "F sixteen", "MP3" "M P three"."""
    spoken = spoken.sub(_SPECIALS, lambda match: _SPECIAL[match[0].lower()]).sub(_MONTHLY, "month over month")
    if not any(char.isdecimal() for char in spoken.text):
        return spoken
    spoken = spoken.sub(_POINTED, lambda match: f"{match['letter']} {code(match['n'])}")
    spoken = spoken.sub(_CARD, _groups).sub(_PHONE, _phone)
    spoken = spoken.sub(_EXTENSION, lambda match: f"extension {code(match['n'])}")
    spoken = spoken.sub(_DIALLED, lambda match: {"n": digits(match["n"])})
    spoken = spoken.sub(_ROAD, _named).sub(_STREET, _named).sub(_ZIP, lambda match: digits(match["n"])).sub(_HEX, _hex)
    spoken = spoken.sub(_SCREEN, lambda match: f"{code(match['n'])} {match['p'].upper()}")
    spoken = spoken.sub(_HYPHENED, lambda match: {"hyphen": " ", "n": code(match["n"])})
    return spoken.sub(_FROM_TO, " to ")


def say_mixed(spoken: AlignedText) -> AlignedText:
    """What is still half letters, half digits once measures have been said: "MP3", "x86_64", "4K"."""
    spoken = spoken.sub(_MIXED, lambda match: mixed(match[0]))
    return spoken.sub(_STANDARD, lambda match: {"n": year(int(match["n"]))})


def mixed(text: str) -> str:
    """Runs of letters and runs of digits, one after the other; short runs of letters are spelled."""
    pieces = _PIECE.findall(text)
    if len(pieces) > 1 and pieces[-1] == "s" and pieces[-2].isdecimal():
        return f"{mixed(text[:-1])}{'es' if pieces[-2][-1] == '6' else 's'}"  # MP3s, not MP3S
    return " ".join(_number(piece) if piece.isdecimal() else _letters(piece) for piece in pieces) or "underscore"


def _number(piece: str) -> str:
    return code(piece) if piece.isascii() else digits(piece)


def _letters(piece: str) -> str:
    if len(piece) == 1:
        return piece.upper()
    if (len(piece) == 2 and piece.isupper()) or (len(piece) <= 3 and not re.search(r"[aeiouyAEIOUY]", piece)):
        return " ".join(piece.upper())
    return piece


def _named(match: re.Match[str]) -> Said:
    return {"n": code(match["n"])}


def _groups(match: re.Match[str]) -> str:
    return ", ".join(digits(group) for group in re.findall(r"\d+", match[0]))


def _phone(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match[0])
    ext = f", extension {code(groups.pop())}" if match["ext"] else ""
    said = ", ".join("eight hundred" if group == "800" else digits(group) for group in groups)
    return f"{'plus ' if match[0].startswith('+') else ''}{said}{ext}"


def _hex(match: re.Match[str]) -> str | None:
    text = match["n"] or match["rgb"]
    if match["rgb"] and (text.isdecimal() or text.isalpha()):
        return None
    signs = " ".join(cardinal(int(char)) if char.isdecimal() else char.upper() for char in text)
    return f"hex {signs}" if match["n"] else f"hash {signs}"
