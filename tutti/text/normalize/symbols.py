"""Fractions, ranges, sums and signs; what is left of digits at the end."""

import re
import unicodedata

from tutti.text.aligned_text import AlignedText, Said
from tutti.text.normalize.numbers import NUMBER, cardinal, code, number, ordinal, ordinal_of, year

_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅐": (1, 7),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_SIGNS = {
    "+": "plus", "=": "equals", "<": "less than", ">": "greater than", "≥": "greater than or equal to",
    "≤": "less than or equal to", "≠": "not equal to", "≈": "approximately", "±": "plus or minus", "×": "times",
    "÷": "divided by", "√": "the square root of", "∞": "infinity", "∑": "the sum of", "∫": "the integral of",
    "∂": "partial", "∆": "delta", "∈": "in", "→": "to", "⇒": "implies", "←": "from", "↔": "to and from", "&": "and",
    "@": "at", "#": "hash", "~": "about", "§": "section", "¶": "paragraph", "©": "copyright", "®": "registered",
    "™": "trademark", "^": "to the", "%": "percent", "‰": "per mille", "°": "degrees", "º": "degrees",
    "\\": "backslash", "µ": "micro", "•": "", "_": "", "|": "", "*": "", "†": "", "‡": "", "{": "", "}": "",
    "¬": "not", "∧": "and", "∨": "or",
}  # fmt: skip
_GREEK_NAMES = str.split(
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega delta "
    "sigma omega"
)
_GREEK = dict(zip("αβγδεζηθκλμνξπρστφχψωΔΣΩ", _GREEK_NAMES, strict=True))

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_MIXED_VULGAR = re.compile(rf"(?:(?<![\w.,])(?P<n>\d{{1,9}})\s?)?(?P<f>[{''.join(_VULGAR)}])")
_FRACTION = re.compile(
    r"(?<![\w.,/:-])(?:(?P<n>\d{1,4})[\s-])?(?P<a>\d{1,3})/(?P<b>\d{1,3})(?P<th>th|rd|nd|s)?(?![\w/]|[.,]\d)"
)
_SCIENTIFIC = re.compile(
    rf"(?<![\w.,])(?P<n>{NUMBER})(?:[eE](?P<e>[+-]?\d{{1,4}})|\s?[x×*]\s?10\^(?P<p>-?\d{{1,4}}))(?!\w)"
)
_POWER = re.compile(r"(?<=[\w)])\^\(?(?P<p>-?\d{1,4}|[A-Za-z])\)?(?!\w)|(?<=\d)\*\*(?P<q>\d{1,4})(?!\w)")
_SUPER = re.compile(r"(?<=[\w)])(?P<p>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,9})")
_SUPERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SIZE = re.compile(r"(?<![\w.,])(?P<a>\d{3,4})\s?[x×]\s?(?P<b>\d{3,4})(?![\w.,])")
_BY = re.compile(rf"(?<![\w.,]){NUMBER}(?P<by>\s?[x×]\s?)(?={NUMBER})")
_TIMES = re.compile(rf"(?<![\w.,])(?P<n>{NUMBER})(?P<x>[x×])(?!\w|\s?[+=*/^-])")
_RATIO = re.compile(r"(?<![\w.,:])(?P<a>\d{1,4})(?P<to>:)(?P<b>\d{1,4})(?![\w:])")
_SUBTRACTION = re.compile(r"(?<=[\w)])\s?-\s?(?=[\w(])")
_RANGE = re.compile(rf"(?<![\w.,-]){NUMBER}(?P<to>\s?-\s?)(?={NUMBER}(?![\w]|-\d))")
_STAR = re.compile(r"(?<=[\d)])\s?\*\s?(?=[\d(])")
_NEGATIVE = re.compile(r"(?<![\w.,)\]'\"-])-\s?(?=\.?\d)")
_ABOUT = re.compile(r"~\s?(?=[\d$£€.])")
_PLUS = re.compile(r"(?<=\d)\+(?!\s?[\w(.])")
_BELOW = re.compile(r"(?P<sign>[<>])(?P<eq>=)?")
_ORDINAL = re.compile(r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+|\d{1,18})(?:st|nd|rd|th)\b", re.IGNORECASE)
_PLURAL = re.compile(r"(?<![\w.,])(?P<n>\d{1,6})'?s\b")
_NUMBER = re.compile(rf"(?<![\w.]){NUMBER}(?![\w])|{NUMBER}")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=\d)|(?<=\d)-(?=\d)")
_SLASH = re.compile(r"(?<=\S)\s?/\s?(?=\S)|/")
_EQUALS = re.compile(r"={2,}|!=|<>|:=|[-=]>|<-")
_ARROWS = {"!=": "is not equal to", "<>": "is not equal to", ":=": "becomes", "->": "to", "=>": "to", "<-": "from"}
_SIGN = re.compile("[" + re.escape("".join(_SIGNS)) + "]+")
_GREEK_LETTER = re.compile(rf"(?<![^\W\d_])[{''.join(_GREEK)}](?![^\W\d_])")
_SPACES = re.compile(r" +(?=(?P<mark>[,.;:!?…)](?=\s|$)|$)?)")


def western(spoken: AlignedText) -> AlignedText:
    """The digits of all scripts as 0 to 9."""
    return spoken.sub(_FOREIGN_DIGIT, lambda match: str(unicodedata.digit(match[0], 0)))


def say_products(spoken: AlignedText, british: bool) -> AlignedText:
    """Powers of ten, "1920x1080" and "3x", before anyone takes their letters for names."""

    def scientific(match: re.Match[str]) -> Said:
        power = int(match["e"] or match["p"])
        return f"{number(match['n'], british)} times ten{_power(str(power), spelled=True)}"

    if not any(map(str.isnumeric, spoken.text)):
        return spoken
    spoken = spoken.sub(_SCIENTIFIC, scientific)
    spoken = spoken.sub(_SIZE, lambda match: f"{code(match['a'])} by {code(match['b'])}")
    spoken = spoken.sub(_BY, lambda match: {"by": " by " if "x" in match["by"] else " times "})
    return spoken.sub(_TIMES, lambda match: f"{number(match['n'], british)} times")


def say(spoken: AlignedText, british: bool) -> AlignedText:
    """Every digit and sign that is left, in words."""

    def vulgar(match: re.Match[str]) -> Said:
        part = fraction(*_VULGAR[match["f"]])
        if not match["n"]:
            return part
        return f"{number(match['n'], british)} and {_a(part)}"

    def slashed(match: re.Match[str]) -> Said:
        a, b = int(match["a"]), int(match["b"])
        if not (1 <= a < b):
            said = f"{number(match['a'])} over {number(match['b'])}" if not match["n"] else None
        elif b in (10, 100) and not match["n"]:
            said = f"{cardinal(a)} out of {cardinal(b)}"
        else:
            said = fraction(a, b)
        if said is None or not match["n"]:
            return said
        return f"{number(match['n'], british)} and {_a(said)}"

    def power(match: re.Match[str]) -> Said:
        groups = match.groupdict()
        return _power(groups.get("p") or groups.get("q") or "1")

    def plain(match: re.Match[str]) -> Said:
        before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
        said = number(match[0], british)
        return (" " if before.isalnum() else "") + said + (" " if after.isalnum() else "")

    def to(match: re.Match[str]) -> Said:
        return {"to": " to "}

    def nth(match: re.Match[str]) -> Said:
        return ordinal(int(match["n"].replace(",", "")), british)

    def plural(match: re.Match[str]) -> Said:
        return _plural(match["n"], british)

    if any(map(str.isnumeric, spoken.text)):
        spoken = spoken.sub(_POWER, power).sub(_SUPER, lambda match: _power(match["p"].translate(_SUPERS)))
        spoken = spoken.sub(_MIXED_VULGAR, vulgar).sub(_FRACTION, slashed)
        if "=" in spoken.text:
            spoken = spoken.sub(_SUBTRACTION, " minus ")
        spoken = spoken.sub(_RANGE, to).sub(_RATIO, to).sub(_STAR, " times ").sub(_PLUS, " plus ").sub(_ABOUT, "about ")
        spoken = spoken.sub(_NEGATIVE, "minus ").sub(_ORDINAL, nth).sub(_PLURAL, plural).sub(_HYPHEN, " ")
        spoken = spoken.sub(_NUMBER, plain)
        odd = "".join({char for char in spoken.text if char.isdigit()})  # circled ones, subscripts and their like
        spoken = spoken.sub(re.compile(f"[{odd}]"), _odd_digit) if odd else spoken
    spoken = spoken.sub(_EQUALS, lambda match: f" {_ARROWS.get(match[0], 'equals')} ")
    spoken = spoken.sub(_BELOW, lambda match: f" {_SIGNS[match['sign']]}{' or equal to' if match['eq'] else ''} ")
    spoken = spoken.sub(_SLASH, _slash).sub(_GREEK_LETTER, lambda match: _GREEK[match[0]])
    return spoken.sub(_SIGN, _sign).sub(_SPACES, _space).strip()


def _sign(match: re.Match[str]) -> str:
    said = " ".join(word for word in (_SIGNS[char] for char in match[0]) if word)
    return f" {said} "


def _slash(match: re.Match[str]) -> str:
    """Between abbreviations nobody says it: TCP/IP."""
    a, b = match.span()
    return " " if match.string[max(0, a - 2) : a].isupper() and match.string[b : b + 2].isupper() else " slash "


def _space(match: re.Match[str]) -> str | None:
    """One blank where the words put several, and none before a mark."""
    return "" if match["mark"] is not None else " " if len(match[0]) > 1 else None


def _odd_digit(match: re.Match[str]) -> str:
    return f" {cardinal(unicodedata.digit(match[0]))} "


def fraction(a: int, b: int) -> str:
    """3/4 is "three quarters"."""
    name = {2: "half", 4: "quarter"}.get(b) or ordinal(b)
    if a == 1:
        return f"one {name}"
    return f"{cardinal(a)} {'halves' if b == 2 else name + 's'}"


def _a(part: str) -> str:
    return f"a {part[4:]}" if part in ("one half", "one quarter") else part


def _power(text: str, spelled: bool = False) -> str:
    if text in ("2", "3") and not spelled:
        return " squared" if text == "2" else " cubed"
    if text.isalpha():
        return f" to the {text}"
    n = int(text)
    return f" to the {'minus ' if n < 0 else ''}{ordinal_of(cardinal(abs(n)))}"


def _plural(text: str, british: bool) -> str:
    said = year(int(text), british) if len(text) == 4 else number(text, british)
    return f"{said[:-1]}ies" if said.endswith("y") else said + ("es" if said.endswith(("x", "s")) else "s")
