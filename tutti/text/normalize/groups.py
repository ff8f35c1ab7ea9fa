"""Figures in the groups of other countries, rewritten in those of English: 1.234,56 and 1'234.56 are 1,234.56."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.regions import Region

# Groups as CLDR lists them: en-IN 12,34,567; de-CH 1'234.50; de, es, it, pt-BR 1.234,50; fr, pl, sv, SI 1 234,50.
_EDGE = r"(?<![\w.,'/:+-])"
_END = r"(?![\w'/:-]|[.,]\d)"
_INDIAN = re.compile(rf"{_EDGE}\d{{1,2}}(?:,\d\d)+,\d{{3}}(?:\.\d+)?{_END}")
_APOSTROPHES = re.compile(rf"{_EDGE}\d{{1,3}}(?:'\d{{3}})+(?:\.\d+)?{_END}")
_POINTS = re.compile(rf"{_EDGE}(?:\d{{1,3}}(?:\.\d{{3}})+,\d\d?|\d{{1,2}}(?:\.\d{{3}}){{2,}}){_END}")
_SPACES = re.compile(
    rf"(?<![\d+(-] )(?<![\d)] ){_EDGE}(?:[1-9]\d{{0,2}} \d{{3}},\d\d?|[1-9]\d? \d{{3}}(?: \d{{3}})*+|[1-9]\d\d \d{{3}})"
    rf"(?! ?\d){_END}"
)
_BEFORE_EUROS = re.compile(rf"{_EDGE}\d{{1,3}}\.\d{{3}}(?=\s?(?:€|kr\b|zł|Kč)(?!\s?/))")  # but fuel at 1.299 €/l
_DECIMAL_COMMA = re.compile(
    rf"{_EDGE}(?:0,\d+|\d{{1,3}},\d{{4,}}|\d{{1,3}},\d\d?(?=\s?(?:[%°]|(?:[mb]illion|k?g|[kcm]?m|m?l|kWh?|[GM]B)\b))){_END}"
)
_GUESSES = (
    (_SPACES, "as one number"),
    (_DECIMAL_COMMA, "with a decimal comma"),
    (_BEFORE_EUROS, "as thousands"),
)
_ANY = re.compile(r"\d[,.' ]\d")


def rewrite(aligned: AlignedText, region: Region) -> AlignedText:
    """Rewrite figures whose groups are not those of English."""
    if not _ANY.search(aligned.text):
        return aligned
    # Where lakhs are spoken, figures without groups are read in them.
    aligned = aligned.sub(_INDIAN, lambda match: match[0].replace(",", "") if region.lakh else _grouped(match[0]))
    aligned = aligned.sub(_APOSTROPHES, lambda match: match[0].replace("'", ","))
    aligned = aligned.sub(_POINTS, lambda match: _swapped(match[0]))
    aligned = aligned.sub(_BEFORE_EUROS, lambda match: _swapped(match[0]))
    aligned = aligned.sub(_SPACES, lambda match: match[0].replace(",", ".").replace(" ", ","))
    return aligned.sub(_DECIMAL_COMMA, lambda match: match[0].replace(",", "."))


def guess(text: str) -> str:
    """Return a figure whose groups may be meant otherwise, and how it is read; "" if there is none."""
    if not _ANY.search(text):
        return ""
    for pattern, how in _GUESSES:
        if match := pattern.search(text):
            return f"{match[0]!r} is read {how}"
    return ""


def _grouped(figure: str) -> str:
    whole, point, rest = figure.replace(",", "").partition(".")
    return f"{int(whole):,}{point}{rest}"


def _swapped(figure: str) -> str:
    return figure.translate(str.maketrans(".,", ",."))
