"""Abbreviations, where the words around them show what they mean."""

import re
from collections.abc import Iterable
from functools import cache

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize.numbers import digits
from tutti.text.normalize.regions import Region

# Expanded wherever they stand with their point, which ends the sentence only if nothing follows.
_ANYWHERE = {
    "mr": "Mister", "mrs": "Missus", "ms": "Miz", "prof": "Professor", "gov": "Governor", "rev": "Reverend",
    "messrs": "Messers", "jr": "Junior", "sr": "Senior", "inc": "Incorporated", "ltd": "Limited",
    "corp": "Corporation", "bros": "Brothers", "co": "Company", "ave": "Avenue", "blvd": "Boulevard",
    "pkwy": "Parkway", "hwy": "Highway", "bldg": "Building", "approx": "approximately", "dept": "department",
    "etc": "et cetera", "vs": "versus", "viz": "namely", "cf": "compare", "govt": "government", "univ": "University",
    "assn": "Association", "assoc": "associate", "misc": "miscellaneous", "avg": "average", "tel": "telephone",
    "appt": "appointment", "incl": "including", "excl": "excluding", "esp": "especially", "resp": "respectively",
    "tbsp": "tablespoon", "tsp": "teaspoon", "mt": "Mount", "natl": "national", "intl": "international",
    "hrs": "hours", "lbs": "pounds", "mins": "minutes", "yrs": "years", "acct": "account", "attn": "attention",
    "mgr": "manager", "asst": "assistant", "dist": "district", "ed": "edition", "esq": "Esquire", "terr": "Terrace",
    "agg": "aggregate", "cir": "Circle",
    "pde": "Parade", "opp": "opposite", "equiv": "equivalent", "ea": "each",
}  # fmt: skip
# Expanded only before a capital letter: titles before a name.
_TITLES = {
    "gen": "General", "col": "Colonel", "capt": "Captain", "lt": "Lieutenant", "sgt": "Sergeant", "cpl": "Corporal",
    "maj": "Major", "adm": "Admiral", "cmdr": "Commander", "sen": "Senator", "rep": "Representative",
    "pres": "President", "hon": "Honorable", "ft": "Fort", "pvt": "Private", "supt": "Superintendent",
    "smt": "Shrimati", "pt": "Point", "dir": "Director",
}  # fmt: skip
# Expanded only before a number.
_BEFORE_NUMBER = {
    "no": "number", "nos": "numbers", "nr": "number", "vol": "volume", "vols": "volumes", "ch": "chapter",
    "chap": "chapter", "fig": "figure", "figs": "figures", "eq": "equation", "sec": "section", "sect": "section",
    "pp": "pages", "p": "page", "pg": "page", "apt": "apartment", "rm": "room", "ste": "suite", "art": "article",
    "ver": "version", "c": "circa", "ca": "circa", "est": "established", "max": "maximum", "min": "minimum",
    "rte": "route", "ext": "extension", "para": "paragraph", "op": "opus",
    "hwy": "highway", "bldg": "building", "dep": "departs", "arr": "arrives",
}  # fmt: skip
_DOTTED = {
    "e.g": "for example",
    "i.e": "that is",
    "a.k.a": "also known as",
    "et al": "et al",
    "w.r.t": "with respect to",
}
_DOTTED |= {"a.m": "AM", "p.m": "PM", "r.i.p": "rest in peace", "p.s": "PS", "e.t.a": "ETA"}
_DOTTED |= {"ph.d": "PhD", "m.sc": "M S C", "b.sc": "B S C", "d.sc": "D S C", "ed.d": "E D D", "m.phil": "M Phil"}
_DOTTED |= {"d.phil": "D Phil", "psy.d": "Psy D", "b.eng": "B Eng", "m.eng": "M Eng", "ll.b": "L L B", "ll.m": "L L M"}
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


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, names))


_ANYWHERE_RULE = re.compile(
    rf"(?<![\w.])(?!(?<=\d )tb?sp)(?P<abbr>{_alternatives(_ANYWHERE)})"
    r"(?:\.|(?<=[Mm]r)(?=\s[A-Z])|(?<=[Mm]rs)(?=\s[A-Z])|(?-i:(?<=vs))(?=\s))(?![\w.])",
    re.I,
)
_TITLE_RULE = re.compile(
    rf"(?<![\w.])(?P<abbr>dir|{_alternatives(name.capitalize() for name in _TITLES)})\.?(?=\s[A-Z])"
)
_BEFORE_NUMBER_RULE = re.compile(
    rf"(?<![\w.'-])(?P<abbr>{_alternatives(_BEFORE_NUMBER)})\.(?=\s?(?:(?:[A-Z]{{3}}\s)?\(?\d|[IVX]{{2}}))"
    r"|\b(?P<bare>(?-i:Rm|Apt|Ste|Hwy|Rte|Fig|Figs|Vol|Bldg))(?=\s\d)",
    re.I,
)
_DOTTED_RULE = re.compile(rf"(?<![\w.])(?P<abbr>{_alternatives(_DOTTED)})\.(?!\w)", re.I)
_TITLE_OR_STREET = re.compile(
    r"(?P<before>(?<!\w)(?:[A-Z]\w{1,30}(?:'s)?|\d{1,3}(?:st|nd|rd|th))\s)?\b(?P<abbr>(?:Dr|St|Rd|Ln)\b\.?)(?:(?=(?P<after>\s[A-Z])))?"
)
_ANY_STREET = re.compile(r"\b(?:Dr|St|Rd|Ln)\b")
_STATE = re.compile(
    rf"(?<=[a-z],\s)(?P<abbr>{_alternatives(_STATES)})(?:\s(?P<zip>\d{{5}}(?:-\d{{4}})?)(?![\w-])|(?=[,.;!?)]|$|\s[a-z]))"
)
_VERSUS = re.compile(r"(?<=[\w.] )v\.(?=\s[A-Z])")  # Roe v. Wade
# Fifth Ave, without a full stop; not in Ave Maria
_AVENUE = re.compile(
    r"\b(?:[A-Z][a-z]+|\d+(?:st|nd|rd|th))\s(?P<abbr>Ave|Blvd)(?=[,;)]|$|\s(?:[NS][EW]?|[EW]|and|in|at|to)\b)"
)
_REGARDING = re.compile(r"\ARe(?=:\s)")  # the head of a letter
# J. K. Rowling, George W. Bush, by A. Writer: the stop of an initial is no pause. "plan B. Bob left" keeps its own.
_INITIAL = re.compile(
    r"(?:\A(?=[A-Z]\.\s[A-Z]\.)|(?<=\b[A-Z]\.\s)|(?<!\w)(?:[A-Z][\w'’]+|and|by|with|from|to|of|for|met|\d+)\.?,?\s)"
    r"[A-Z](?P<stop>\.)(?=\s[A-Z])"
)
_FLOOR = re.compile(r"(?<=\d[snrt][tdh] )[Ff]l\b(?! oz)(?:\.(?!$))?")  # 2nd fl.
_UNITED = re.compile(r"(?<=[a-z] )Utd\b\.?")
# N. Clark St., Penn Ave. NW, I-95 N
_WAY = r"(?:St|Ave|Blvd|Rd|Dr|Ln|Hwy|Pkwy|Street|Avenue|Boulevard|Road|Drive|Lane|Highway)"
_SIDES = {
    "N": "North", "S": "South", "E": "East", "W": "West", "NW": "Northwest", "NE": "Northeast", "SW": "Southwest",
    "SE": "Southeast",
}  # fmt: skip
_ANY_SIDE = re.compile(r"\b[NSEW]{1,2}\b")
_SIDE = re.compile(
    rf"(?<![\w.])(?P<before>[NSEW]\b\.?)(?=\s(?:[A-Z][a-z]+\s){{1,2}}{_WAY}\b)"
    rf"|\b{_WAY}\.?,?\s(?P<behind>[NS][EW])\b|\b(?:I|US|Route|Hwy)[- ]\d{{1,3}}\s(?P<road>[NSEW])\b(?![.-]\w)"
    r"|\b(?P<of>[NS][EW]|(?<=km )[NSEW]|(?<=mi )[NSEW])(?= of )"
)
_NOT_NAMES = frozenset(
    str.split("The In At On By For To From And But When Where While If As So Is Was Of With Dear Saw See")
)
_SLASHED = {
    "w/o": "without", "w/": "with ", "b/c": "because", "c/o": "care of", "n/a": "not applicable", "&c": "et cetera",
    "&c.": "et cetera", "a/c": "A C", "i/o": "I O", "and/or": "and or", "he/she": "he or she", "she/he": "she or he",
    "his/her": "his or her", "him/her": "him or her", "s/he": "he or she", "yes/no": "yes or no",
    "either/or": "either or",
}  # fmt: skip
_SLASHED_RULE = re.compile(
    rf"(?<![\w/&])(?:{_alternatives(sorted(_SLASHED, key=len, reverse=True))})(?![/&])(?:(?<=w/)|(?!\w))", re.I
)


# Matches any abbreviation, to skip sentences without one.
ANY_ABBREVIATION = re.compile(
    rf"\b(?:{_alternatives([*_ANYWHERE, *_TITLES, *_BEFORE_NUMBER])}|dr|st|rd|ln|al|[a-z])\."
    r"|\b(?:M[rs]|Mrs|Dr|St|vs|Utd|Ave|Blvd)\b|\ARe:",
    re.IGNORECASE,
)


def expand(aligned: AlignedText) -> AlignedText:
    """Spell out abbreviations."""
    text = aligned.text
    if "/" in text or "&" in text:
        aligned = aligned.sub(_SLASHED_RULE, lambda match: _SLASHED[match[0].lower()])
    aligned = aligned.sub(_REGARDING, "ree") if text.startswith("Re:") else aligned
    aligned = aligned.sub(_AVENUE, _avenue).sub(_STATE, _state)
    aligned = aligned.sub(_SIDE, _side) if _ANY_SIDE.search(text) else aligned
    aligned = aligned.sub(_UNITED, "United") if "Utd" in text else aligned
    aligned = aligned.sub(_FLOOR, "floor") if "fl" in text else aligned
    aligned = aligned.sub(_TITLE_OR_STREET, _title_or_street) if _ANY_STREET.search(text) else aligned
    aligned = aligned.sub(_TITLE_RULE, lambda match: _TITLES[match["abbr"].lower()])
    aligned = aligned.sub(_ANYWHERE_RULE, lambda match: _with_stop(match, _ANYWHERE[match["abbr"].lower()]))
    aligned = aligned.sub(_BEFORE_NUMBER_RULE, _before_number)
    if "." in text:
        aligned = aligned.sub(_VERSUS, "versus") if " v." in text else aligned
        aligned = aligned.sub(_DOTTED_RULE, lambda match: _with_stop(match, _DOTTED[match["abbr"].lower()]))
        aligned = aligned.sub(_INITIAL, lambda _: {"stop": ""})
    return aligned


def expand_regional(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out the abbreviations and postcodes of one country."""
    if region.postcode:
        aligned = aligned.sub(region.postcode, lambda match: {"n": digits(match["n"])})
    names = region.abbreviations
    return (
        aligned.sub(_regional_rule(tuple(names)), lambda match: _with_stop(match, names[match["abbr"]]))
        if names
        else aligned
    )


@cache
def _regional_rule(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?P<abbr>{_alternatives(names)})(?:\.|(?=\s\d|[,;)]|$))(?!\w)")


def _with_stop(match: re.Match[str], words: str) -> str:
    last = match[0].endswith(".") and not match.string[match.end() :].strip(" \"')”")
    if match[0][0].isupper() and not words.isupper():
        words = words[0].upper() + words[1:]
    return f"{words}." if last else words


def _avenue(match: re.Match[str]) -> Replacement:
    return {"abbr": "Avenue" if match["abbr"] == "Ave" else "Boulevard"}


def _state(match: re.Match[str]) -> Replacement:
    words = {"abbr": _STATES[match["abbr"]]}
    return words | ({"zip": digits(match["zip"])} if match["zip"] else {})


def _side(match: re.Match[str]) -> Replacement:
    kind = next(name for name in ("before", "behind", "road", "of") if match[name])
    words = _SIDES[match[kind].rstrip(".")]
    return {kind: words.lower() if kind == "of" else words}


def _before_number(match: re.Match[str]) -> str | None:
    abbreviation = match["abbr"] or match["bare"]
    if abbreviation in ("I", "NO", "P", "C"):
        return None
    words = _BEFORE_NUMBER[abbreviation.lower()]
    words = words.capitalize() if abbreviation[0].isupper() else words
    return words if match.string[match.end()].isspace() else f"{words} "


def _title_or_street(match: re.Match[str]) -> Replacement:
    """Expand "Dr." and "St.": before a name Doctor and Saint, behind one Drive and Street."""
    kind, dot = match["abbr"].rstrip("."), match["abbr"].endswith(".")
    behind = match["before"] is not None and match["before"].strip() not in _NOT_NAMES
    before = match["after"] is not None and (kind in ("Dr", "St"))
    if kind == "St" and behind and before:
        behind = False if match["before"].strip() in ("Port", "Mount", "Fort", "Lake") else behind
    if behind and not (kind == "Dr" and before):
        words = {"Dr": "Drive", "St": "Street", "Rd": "Road", "Ln": "Lane"}[kind]
    elif before:
        words = {"Dr": "Doctor", "St": "Saint"}[kind]
    else:
        return None
    ends = dot and not match.string[match.end() :].strip(" \"')”") and not match["after"]
    return {"abbr": words + ("." if ends else "")}
