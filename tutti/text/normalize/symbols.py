"""Fractions, ranges, arithmetic and signs, and all digits that are left at the end."""

import re
import unicodedata

from tutti.text.aligned_text import LETTER_A, AlignedText, Replacement
from tutti.text.normalize.numbers import NUMBER, cardinal, code, number, ordinal, ordinal_of, plural, year
from tutti.text.normalize.regions import Region

_FRACTION_SIGNS = {
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
    "\\": "backslash", "µ": "micro", "•": "", "_": "", "|": "", "*": "", "{": "", "}": "",
    "¬": "not", "∧": "and", "∨": "or", "♭": "flat", "♯": "sharp", "♮": "natural", "∇": "nabla", "∀": "for all",
    "∃": "there exists", "∄": "there does not exist", "∅": "the empty set", "∪": "union", "∩": "intersection",
    "⊂": "subset of", "⊆": "subset of or equal to", "⊃": "superset of", "⊇": "superset of or equal to",
    "∉": "not in", "∏": "the product of", "∝": "proportional to", "∠": "angle", "⊥": "perpendicular to",
    "∥": "parallel to", "≡": "equivalent to", "≅": "congruent to", "≪": "much less than", "≫": "much greater than",
    "∴": "therefore", "∵": "because", "⇔": "if and only if", "⇐": "is implied by", "↦": "maps to", "↑": "up",
    "↓": "down", "⊕": "circled plus", "⊗": "circled times", "∘": "composed with", "‱": "per ten thousand",
    "℗": "sound recording copyright", "℠": "service mark", "⌘": "command", "⌥": "option", "⇧": "shift",
    "⌃": "control", "⎋": "escape", "⌫": "delete", "⇥": "tab", "№": "number", "℞": "prescription",
}  # fmt: skip
_GREEK_NAMES = str.split(
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega gamma "
    "delta theta lambda xi pi sigma phi psi omega"
)
_GREEK = dict(zip("αβγδεζηθκλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK_NAMES, strict=True)) | {"∆": "delta", "ϵ": "epsilon"}

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_MIXED_FRACTION = re.compile(rf"(?:(?<![\w.,])(?P<n>\d{{1,9}})\s?)?(?P<f>[{''.join(_FRACTION_SIGNS)}])")
_FRACTION = re.compile(
    r"(?<![\w.,/:-])(?:(?P<n>\d{1,4})[\s-])?(?P<a>\d{1,3})/(?P<b>\d{1,3})(?P<th>th|rd|nd|s)?(?![\w/]|[.,]\d)"
)
_SCIENTIFIC = re.compile(
    rf"(?<![\w.,])(?P<n>{NUMBER})(?:[eE](?P<e>[+-]?\d{{1,4}})|\s?[x×*]\s?10\^(?P<p>-?\d{{1,4}}))(?!\w)"
)
_POWER = re.compile(r"(?<=[\w)])\^\(?(?P<p>-?\d{1,4}|[A-Za-z])\)?(?!\w)|(?<=[\w)])\*\*(?P<q>\d{1,4})(?!\w)")
_SUPERSCRIPT = re.compile(r"(?<=[\w)])(?P<p>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,9})")
_SUPERSCRIPT_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SIZE = re.compile(r"(?<![\w.,])(?P<a>\d{3,4})\s?[x×]\s?(?P<b>\d{3,4})(?![\w.,])")
_BY = re.compile(rf"(?<![\w.,]){NUMBER}(?P<by>\s?[x×]\s?)(?={NUMBER})")
_TIMES_RANGE = re.compile(rf"(?<![\w.,-]){NUMBER}(?P<to>-)(?={NUMBER}[x×](?!\w))")  # 2-3x
_TIMES = re.compile(rf"(?<![\w.,])(?P<n>{NUMBER})(?P<x>[x×])(?!\w|\s?[+=*/^-])")
_PERIODS = {
    "day": "day", "d": "day", "week": "week", "wk": "week", "month": "month", "mo": "month", "year": "year",
    "yr": "year",
}  # fmt: skip
_TIMES_A = re.compile(rf"(?<![\w.,])(?P<n>{NUMBER})\s?[x×]\s?/\s?(?P<period>{'|'.join(_PERIODS)})\b")  # 3x/day
_RATIO = re.compile(r"(?<![\w.,:])(?P<a>\d{1,4})(?P<to>:)(?P<b>\d{1,4})(?![\w:])")
_RANGE = re.compile(rf"(?<![\w.,-]){NUMBER}(?P<to>\s?-\s?)(?={NUMBER}(?![\w]|-\d))")
_STAR = re.compile(rf"(?:(?<=[\d)])|(?<=\b[A-Za-z{LETTER_A}]))\s?\*\s?(?=[\d(]|[A-Za-z{LETTER_A}]\b)")
# A 5* hotel; Root 104*
_STARS = re.compile(r"(?:(?<=[1-7])(?<!\d\d)(?P<star>\*)|(?<=\d\d)(?P<out>\*))(?=[\s,.;:)]|$)")
_NEGATIVE = re.compile(r"(?<![\w.,)\]'\"-])-\s?(?=\.?\d)")
_ABOUT = re.compile(r"~\s?(?=[\d$£€.])")
_PLUS = re.compile(r"(?<=\d)\+(?!\s?[\w(.])")
_COMPARISON = re.compile(r"(?P<sign>[<>])(?P<eq>=)?")
_ORDINAL = re.compile(r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+|\d{1,18})(?:st|nd|rd|th)\b", re.IGNORECASE)
_PLURAL = re.compile(r"(?<![\w.,])(?P<n>\d{1,6})'?s\b")
_NUMBER = re.compile(rf"(?<![\w.]){NUMBER}(?![\w])|{NUMBER}")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=\d)|(?<=\d)-(?=\d)")
_SLASH = re.compile(r"(?<=\S)\s?/\s?(?=\S)|/")
_OPERATOR = re.compile(r"={2,}|!=|<>|:=|[-=]>|<-|&&|§§")
_OPERATOR_NAMES = {
    "!=": "is not equal to", "<>": "is not equal to", ":=": "becomes", "->": "to", "=>": "to", "<-": "from",
    "&&": "and", "§§": "sections",
}  # fmt: skip
_SIGN = re.compile("[" + re.escape("".join(_SIGNS)) + "]+")
_GREEK_LETTER = re.compile(rf"(?<![^\W\d_])[{''.join(_GREEK)}](?![^\W\d_])")
_GREEK_IN_FORMULA = re.compile(rf"(?<!\w)(?P<greek>[{''.join(_GREEK)}])(?=[A-Za-z]{{1,3}}(?![^\W\d_]))")  # ΔG
_COMPATIBLE = re.compile("[\u2103\u2109\u3371-\u33df]")  # ℃, ㎏: several letters in one character
_SPACES = re.compile(r" +(?=(?P<mark>[,.;:!?…)](?=\s|$)|$)?)")


def to_ascii_digits(aligned: AlignedText) -> AlignedText:
    """Turn the digits of all scripts into 0 to 9, and units of one character into letters."""
    aligned = aligned.sub(_FOREIGN_DIGIT, lambda match: str(unicodedata.digit(match[0], 0)))
    if aligned.text.isascii():
        return aligned
    return aligned.sub(_COMPATIBLE, lambda match: unicodedata.normalize("NFKC", match[0]))


def expand_products(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out powers of ten, "1920x1080" and "3x", before their letters are taken for codes."""

    def expand_scientific(match: re.Match[str]) -> Replacement:
        power = int(match["e"] or match["p"])
        return f"{number(match['n'], region)} times ten{_power(str(power), spelled=True)}"

    if not aligned.text.isascii():
        aligned = aligned.sub(_GREEK_IN_FORMULA, lambda match: {"greek": f"{_GREEK[match['greek']]} "})
    if not any(map(str.isnumeric, aligned.text)):
        return aligned
    aligned = aligned.sub(_SCIENTIFIC, expand_scientific).sub(_TIMES_RANGE, lambda match: {"to": " to "})
    aligned = aligned.sub(_SIZE, lambda match: f"{code(match['a'])} by {code(match['b'])}")
    aligned = aligned.sub(_BY, lambda match: {"by": " by " if "x" in match["by"] else " times "})
    aligned = aligned.sub(_TIMES_A, lambda match: f"{number(match['n'], region)} times a {_PERIODS[match['period']]}")
    return aligned.sub(_TIMES, lambda match: f"{number(match['n'], region)} times")


_COPYRIGHT = re.compile(r"(?i:\bcopyright)(?P<sign>\s?©)")  # one of them is spoken


def expand(aligned: AlignedText, region: Region, *, signs: bool = True) -> AlignedText:
    """Spell out every digit and sign that is left; with `signs` off only digits."""

    def expand_fraction_sign(match: re.Match[str]) -> Replacement:
        part = fraction(*_FRACTION_SIGNS[match["f"]])
        if not match["n"]:
            return part
        return f"{number(match['n'], region)} and {_with_article(part)}"

    def expand_fraction(match: re.Match[str]) -> Replacement:
        a, b = int(match["a"]), int(match["b"])
        if not (1 <= a < b):
            words = f"{number(match['a'])} over {number(match['b'])}" if not match["n"] else None
        elif b in (10, 100) and not match["n"]:
            words = f"{cardinal(a)} out of {cardinal(b)}"
        else:
            words = fraction(a, b)
        if words is None or not match["n"]:
            return words
        return f"{number(match['n'], region)} and {_with_article(words)}"

    def expand_power(match: re.Match[str]) -> Replacement:
        groups = match.groupdict()
        return _power(groups.get("p") or groups.get("q") or "1")

    def expand_superscript(match: re.Match[str]) -> Replacement:
        return _power(match["p"].translate(_SUPERSCRIPT_DIGITS))

    def expand_number(match: re.Match[str]) -> Replacement:
        before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
        words = number(match[0], region)
        return (" " if before.isalnum() else "") + words + (" " if after.isalnum() else "")

    def expand_range(match: re.Match[str]) -> Replacement:
        return {"to": " to "}

    def expand_ordinal(match: re.Match[str]) -> Replacement:
        return ordinal(int(match["n"].replace(",", "")), region)

    def expand_plural(match: re.Match[str]) -> Replacement:
        return _plural(match["n"], region)

    if "*" in aligned.text:
        aligned = aligned.sub(_STARS, lambda match: " star" if match["star"] else " not out").sub(_STAR, " times ")
    if any(map(str.isnumeric, aligned.text)):
        aligned = aligned.sub(_POWER, expand_power).sub(_SUPERSCRIPT, expand_superscript)
        aligned = aligned.sub(_MIXED_FRACTION, expand_fraction_sign).sub(_FRACTION, expand_fraction)
        aligned = aligned.sub(_RANGE, expand_range).sub(_RATIO, expand_range)
        aligned = aligned.sub(_PLUS, " plus ").sub(_ABOUT, "about ").sub(_NEGATIVE, "minus ")
        aligned = aligned.sub(_ORDINAL, expand_ordinal).sub(_PLURAL, expand_plural).sub(_HYPHEN, " ")
        aligned = aligned.sub(_NUMBER, expand_number)
        others = "".join({char for char in aligned.text if char.isdigit()})  # circled digits, subscripts and similar
        aligned = aligned.sub(re.compile(f"[{others}]"), _other_digit) if others else aligned
    if not signs:
        return aligned.sub(_SPACES, _space).strip()
    aligned = aligned.sub(_COPYRIGHT, lambda _: {"sign": ""}) if "©" in aligned.text else aligned
    aligned = aligned.sub(_OPERATOR, lambda match: f" {_OPERATOR_NAMES.get(match[0], 'equals')} ")
    aligned = aligned.sub(_COMPARISON, _comparison)
    aligned = aligned.sub(_SLASH, _slash).sub(_GREEK_LETTER, lambda match: _GREEK[match[0]])
    return aligned.sub(_SIGN, _sign).sub(_SPACES, _space).strip()


def _comparison(match: re.Match[str]) -> str:
    return f" {_SIGNS[match['sign']]}{' or equal to' if match['eq'] else ''} "


def _sign(match: re.Match[str]) -> str:
    words = " ".join(word for word in (_SIGNS[char] for char in match[0]) if word)
    return f" {words} "


def _slash(match: re.Match[str]) -> str:
    """Speak a slash, except between abbreviations: TCP/IP."""
    a, b = match.span()
    return " " if match.string[max(0, a - 2) : a].isupper() and match.string[b : b + 2].isupper() else " slash "


def _space(match: re.Match[str]) -> str | None:
    """Reduce several blanks to one, and to none before punctuation."""
    return "" if match["mark"] is not None else " " if len(match[0]) > 1 else None


def _other_digit(match: re.Match[str]) -> str:
    return f" {cardinal(unicodedata.digit(match[0]))} "


def fraction(a: int, b: int) -> str:
    """Return a fraction in words: 3/4 is "three quarters"."""
    name = {2: "half", 4: "quarter"}.get(b) or ordinal(b)
    if a == 1:
        return f"one {name}"
    return f"{cardinal(a)} {'halves' if b == 2 else name + 's'}"


def _with_article(part: str) -> str:
    return f"a {part[4:]}" if part in ("one half", "one quarter") else part


def _power(text: str, spelled: bool = False) -> str:
    if text in ("2", "3") and not spelled:
        return " squared" if text == "2" else " cubed"
    if text.isalpha():
        return f" to the {text}"
    n = int(text)
    return f" to the {'minus ' if n < 0 else ''}{ordinal_of(cardinal(abs(n)))}"


def _plural(text: str, region: Region) -> str:
    return plural(year(int(text), region) if len(text) == 4 else number(text, region))
