"""Roman numerals, where their form or the words around them show that they are numbers."""

import re
from itertools import zip_longest

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize.numbers import cardinal, ordinal, year

_ROMAN = r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_RULERS = (
    "Henry|Louis|Charles|George|Elizabeth|Edward|Richard|William|James|John Paul|Paul|Pius|Benedict"
    "|Philip|Napoleon|Nicholas|Alexander|Catherine|Peter|Francis|Frederick|Leo|Gregory|Ramses|Ramesses"
    "|Ptolemy|Innocent|Clement|Urban|Mary|Victor|Ivan|Otto|Leopold|Wilhelm|Darius|Xerxes|Selim|Mehmed"
    "|Rama|Haakon|Harald|Olav|Christian|Gustav|Karl|Felipe|Juan Carlos|Alfonso|Ferdinand|John|Robert"
)
_NUMBERED = (
    "Chapter|Part|Volume|Act|Scene|Book|Section|Phase|Type|Class|Level|Stage|Article|Appendix|Figure"
    "|Table|Title|Unit|World War|War|Super Bowl|Rocky|Rambo|Fantasy|Episode|Apollo|Gemini|Mark|Tier"
    "|Grade|Division|Group|Model|Version|Quest|Theft Auto|Player|Schedule|Annex"
)
_ANY = re.compile(r"\b[IVXLCMD]+(?:th|st|nd|rd)?\b|\([ivx]{2,5}\)")
_RULER = re.compile(
    rf"\b(?:{_RULERS})\s(?P<n>{_ROMAN})\b(?!(?<=\sI)\s(?:am|have|will|would|think|know|can|could|do|did)\b|\.\w|'(?!s\b))"
)
_NUMBERED_THING = re.compile(
    rf"\b(?:{_NUMBERED}|{_NUMBERED.lower()})s?\s(?P<n>{_ROMAN})\b(?:(?P<to>\s?-\s?)(?P<end>{_ROMAN})\b)?(?!['.]\w)"
)
_PERSON = re.compile(rf"\b[A-Z][a-z]+\s[A-Z][a-z]+,?\s(?P<n>(?=[IVX]{{2}}){_ROMAN})\b")
_CENTURY = re.compile(rf"\b(?P<n>{_ROMAN})(?=(?:th|st|nd|rd)?\scentur)")
_LONE = re.compile(rf"(?<![\w.'-])(?P<n>(?=[IVX]){_ROMAN})(?![\w']|\.\w)")
_LINK = re.compile(r",\s(?:and\s|or\s)?|\s(?:and|or|to|through|versus|&)\s|\s?[-/]\s?")
_OTHER_WORDS = frozenset(("I", "IV", "V", "VI", "IX", "X", "XI", "XX", "XXX", "XL", "L", "C"))  # also letters and names
_YEAR = re.compile(r"(?<![\w.'-])(?=\w{4})M{1,2}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?![\w'])")
_ITEM = re.compile(r"(?<=\()(?=[ivx]{2})(?:x{0,3})(?:ix|iv|v?i{0,3})(?=\))")
_FIRST_ITEM = re.compile(r"(?<=\()i(?=\))")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def expand(aligned: AlignedText) -> AlignedText:
    """Spell out Roman numerals."""
    if not _ANY.search(aligned.text):
        return aligned
    aligned = aligned.sub(_CENTURY, lambda match: ordinal(parse_roman(match["n"])))
    aligned = aligned.sub(_NUMBERED_THING, _numbered)
    aligned = aligned.sub(_RULER, _the_nth).sub(_PERSON, _the_nth)
    aligned = aligned.sub(_YEAR, lambda match: year(parse_roman(match[0])))
    if _ITEM.search(aligned.text):
        aligned = aligned.sub(_FIRST_ITEM, "one").sub(_ITEM, lambda match: cardinal(parse_roman(match[0].upper())))
    numbers = _lone_numerals(aligned.text)
    return aligned.sub(_LONE, lambda match: cardinal(parse_roman(match["n"])) if match.start() in numbers else None)


def parse_roman(text: str) -> int:
    """Return the value of a Roman numeral: XIV is 14."""
    values = [_VALUES[char] for char in text]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def _the_nth(match: re.Match[str]) -> Replacement:
    return {"n": f"the {ordinal(parse_roman(match['n']))}"}


def _numbered(match: re.Match[str]) -> Replacement:
    words = {"n": cardinal(parse_roman(match["n"]))}
    return words | ({"to": " to ", "end": cardinal(parse_roman(match["end"]))} if match["end"] else {})


def _lone_numerals(text: str) -> set[int]:
    """Return where numerals stand that are nothing else: II and XIV, and those listed with one, as in "I, II"."""
    matches = list(_LONE.finditer(text))
    group: list[re.Match[str]] = []
    starts: set[int] = set()
    for match, following in zip_longest(matches, matches[1:]):
        group.append(match)
        if following and _LINK.fullmatch(text, match.end(), following.start()):
            continue
        if any(one["n"] not in _OTHER_WORDS for one in group):
            starts.update(one.start() for one in group)
        group = []
    return starts
