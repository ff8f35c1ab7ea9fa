"""Abbreviations and Roman numerals, where their neighbours show what they mean."""

import re
from collections.abc import Iterable

from tutti.text.aligned_text import AlignedText, Said
from tutti.text.normalize.numbers import cardinal, digits, ordinal

# Said so wherever they stand with their point; the point ends the sentence only where nothing follows.
_ALWAYS = {
    "mr": "Mister", "mrs": "Missus", "ms": "Miz", "prof": "Professor", "gov": "Governor", "rev": "Reverend",
    "messrs": "Messers", "jr": "Junior", "sr": "Senior", "inc": "Incorporated", "ltd": "Limited",
    "corp": "Corporation", "bros": "Brothers", "co": "Company", "ave": "Avenue", "blvd": "Boulevard",
    "pkwy": "Parkway", "hwy": "Highway", "bldg": "Building", "approx": "approximately", "dept": "department",
    "etc": "et cetera", "vs": "versus", "viz": "namely", "cf": "compare", "govt": "government", "univ": "University",
    "assn": "Association", "assoc": "associate", "misc": "miscellaneous", "avg": "average", "tel": "telephone",
    "appt": "appointment", "incl": "including", "excl": "excluding", "esp": "especially", "resp": "respectively",
    "tbsp": "tablespoon", "tsp": "teaspoon", "mt": "Mount", "natl": "national", "intl": "international",
    "hrs": "hours", "lbs": "pounds", "mins": "minutes", "yrs": "years", "acct": "account", "attn": "attention",
    "mgr": "manager", "asst": "assistant", "dist": "district", "ed": "edition",
}  # fmt: skip
# Only before a capital: a title and a name.
_TITLES = {
    "gen": "General", "col": "Colonel", "capt": "Captain", "lt": "Lieutenant", "sgt": "Sergeant", "cpl": "Corporal",
    "maj": "Major", "adm": "Admiral", "cmdr": "Commander", "sen": "Senator", "rep": "Representative",
    "pres": "President", "hon": "Honorable", "ft": "Fort", "pvt": "Private", "supt": "Superintendent",
}  # fmt: skip
# Only before a number.
_COUNTED = {
    "no": "number", "nos": "numbers", "nr": "number", "vol": "volume", "vols": "volumes", "ch": "chapter",
    "chap": "chapter", "fig": "figure", "figs": "figures", "eq": "equation", "sec": "section", "sect": "section",
    "pp": "pages", "p": "page", "pg": "page", "apt": "apartment", "rm": "room", "ste": "suite", "art": "article",
    "ver": "version", "c": "circa", "ca": "circa", "est": "established", "max": "maximum", "min": "minimum",
    "rte": "route", "ext": "extension", "para": "paragraph", "op": "opus",
}  # fmt: skip
_DOTTED = {
    "e.g": "for example",
    "i.e": "that is",
    "a.k.a": "also known as",
    "et al": "et al",
    "w.r.t": "with respect to",
}
_DOTTED |= {"a.m": "AM", "p.m": "PM", "r.i.p": "rest in peace", "p.s": "PS", "e.t.a": "ETA"}
_STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California", "CO": "Colorado",
    "CT": "Connecticut", "DE": "Delaware", "FL": "Florida", "GA": "Georgia", "HI": "Hawaii", "ID": "Idaho",
    "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana",
    "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota",
    "MS": "Mississippi", "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire",
    "NJ": "New Jersey", "NM": "New Mexico", "NY": "New York", "NC": "North Carolina", "ND": "North Dakota",
    "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island",
    "SC": "South Carolina", "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont",
    "VA": "Virginia", "WA": "Washington", "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming", "DC": "DC",
}  # fmt: skip


def _any(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, names))


_ALWAYS_RULE = re.compile(
    rf"(?<![\w.])(?P<abbr>{_any(_ALWAYS)})(?:\.|(?<=[Mm]r)(?=\s[A-Z])|(?<=[Mm]rs)(?=\s[A-Z])|(?<=vs)(?=\s))(?![\w.])",
    re.I,
)
_TITLE_RULE = re.compile(rf"(?<![\w.])(?P<abbr>{_any(name.capitalize() for name in _TITLES)})\.?(?=\s[A-Z])")
_COUNTED_RULE = re.compile(rf"(?<![\w.'-])(?P<abbr>{_any(_COUNTED)})\.(?=\s?(?:\d|[IVX]{{2}}))", re.I)
_DOTTED_RULE = re.compile(rf"(?<![\w.])(?P<abbr>{_any(_DOTTED)})\.(?!\w)", re.I)
_DOCTOR = re.compile(
    r"(?P<before>(?<!\w)(?:[A-Z]\w{1,30}|\d{1,3}(?:st|nd|rd|th))\s)?\b(?P<abbr>(?:Dr|St|Rd|Ln)\b\.?)(?P<after>\s[A-Z])?"
)
_STATE = re.compile(
    rf"(?<=[a-z],\s)(?P<abbr>{_any(_STATES)})(?:\s(?P<zip>\d{{5}}(?:-\d{{4}})?)(?![\w-])|(?=[,.;!?)]|$|\s[a-z]))"
)
_NOT_NAMES = frozenset(
    (
        "The",
        "In",
        "At",
        "On",
        "By",
        "For",
        "To",
        "From",
        "And",
        "But",
        "When",
        "Where",
        "While",
        "If",
        "As",
        "So",
        "Is",
        "Was",
        "Of",
        "With",
        "Dear",
        "Saw",
        "See",
    )
)
_SHORT = {
    "w/o": "without", "w/": "with ", "b/c": "because", "c/o": "care of", "n/a": "not applicable", "&c": "et cetera",
    "&c.": "et cetera", "a/c": "A C", "i/o": "I O", "and/or": "and or", "he/she": "he or she", "she/he": "she or he",
    "his/her": "his or her", "him/her": "him or her", "s/he": "he or she", "yes/no": "yes or no",
    "either/or": "either or",
}  # fmt: skip
_SHORT_RULE = re.compile(
    rf"(?<![\w/&])(?:{_any(sorted(_SHORT, key=len, reverse=True))})(?![/&])(?:(?<=w/)|(?!\w))", re.I
)

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
_ANY_ROMAN = re.compile(r"\b[IVXLC]+(?:th|st|nd|rd)?\b")
_RULER = re.compile(
    rf"\b(?:{_RULERS})\s(?P<n>{_ROMAN})\b(?!\s(?:am|have|will|would|think|know|can|could|do|did)\b|\.\w|'(?!s\b))"
)
_COUNT = re.compile(rf"\b(?:{_NUMBERED}|{_NUMBERED.lower()})\s(?P<n>{_ROMAN})\b(?!['.]\w)")
_PERSON = re.compile(rf"\b[A-Z][a-z]+\s[A-Z][a-z]+,?\s(?P<n>(?=[IVX]{{2}}){_ROMAN})\b")
_CENTURY = re.compile(rf"\b(?P<n>{_ROMAN})(?=(?:th|st|nd|rd)?\scentur)")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


# What abbreviations look like, for those who want to know whether there is anything to do.
FOUND = re.compile(
    rf"\b(?:{_any([*_ALWAYS, *_TITLES, *_COUNTED])}|dr|st|rd|ln|al|[a-z])\.|\b(?:M[rs]|Mrs|Dr|St|vs)\b", re.IGNORECASE
)


def say(spoken: AlignedText) -> AlignedText:
    """Abbreviations spelled out, Roman numerals in words."""
    text = spoken.text
    if "/" in text or "&" in text:
        spoken = spoken.sub(_SHORT_RULE, lambda match: _SHORT[match[0].lower()])
    spoken = spoken.sub(_STATE, _state)
    spoken = spoken.sub(_DOCTOR, _doctor).sub(_TITLE_RULE, lambda match: _TITLES[match["abbr"].lower()])
    spoken = spoken.sub(_ALWAYS_RULE, lambda match: _with_stop(match, _ALWAYS[match["abbr"].lower()]))
    if "." in text:
        spoken = spoken.sub(_DOTTED_RULE, lambda match: _with_stop(match, _DOTTED[match["abbr"].lower()]))
        spoken = spoken.sub(_COUNTED_RULE, _counted)
    if not _ANY_ROMAN.search(spoken.text):
        return spoken
    spoken = spoken.sub(_CENTURY, lambda match: ordinal(roman(match["n"])))
    spoken = spoken.sub(_COUNT, lambda match: {"n": cardinal(roman(match["n"]))})
    spoken = spoken.sub(_RULER, _the_nth)
    return spoken.sub(_PERSON, _the_nth)


def roman(text: str) -> int:
    """XIV is 14."""
    values = [_VALUES[char] for char in text]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def _the_nth(match: re.Match[str]) -> Said:
    return {"n": f"the {ordinal(roman(match['n']))}"}


def _with_stop(match: re.Match[str], said: str) -> str:
    last = match[0].endswith(".") and not match.string[match.end() :].strip(" \"')”")
    if match[0][0].isupper() and not said.isupper():
        said = said[0].upper() + said[1:]
    return f"{said}." if last else said


def _state(match: re.Match[str]) -> Said:
    said = {"abbr": _STATES[match["abbr"]]}
    return said | ({"zip": digits(match["zip"])} if match["zip"] else {})


def _counted(match: re.Match[str]) -> str | None:
    abbreviation = match["abbr"]
    if abbreviation in ("I", "NO", "P", "C"):
        return None
    said = _COUNTED[abbreviation.lower()]
    said = said.capitalize() if abbreviation[0].isupper() else said
    return said if match.string[match.end()].isspace() else f"{said} "


def _doctor(match: re.Match[str]) -> Said:
    """ "Dr." and "St." before a name are Doctor and Saint, behind one Drive and Street."""
    kind, dot = match["abbr"].rstrip("."), match["abbr"].endswith(".")
    behind = match["before"] is not None and match["before"].strip() not in _NOT_NAMES
    before = match["after"] is not None and (kind in ("Dr", "St"))
    if kind == "St" and behind and before:
        behind = False if match["before"].strip() in ("Port", "Mount", "Fort", "Lake") else behind
    if behind and not (kind == "Dr" and before):
        said = {"Dr": "Drive", "St": "Street", "Rd": "Road", "Ln": "Lane"}[kind]
    elif before:
        said = {"Dr": "Doctor", "St": "Saint"}[kind]
    else:
        return None
    ends = dot and not match.string[match.end() :].strip(" \"')”") and not match["after"]
    return {"abbr": said + ("." if ends else "")}
