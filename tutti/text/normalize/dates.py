"""Dates, years and times of day."""

import re

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize.numbers import cardinal, digits, ordinal, pairs, plural, year
from tutti.text.normalize.regions import Region

MONTHS = str.split("January February March April May June July August September October November December")
_DAYS = {
    "mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday", "sat": "Saturday",
    "sun": "Sunday",
}  # fmt: skip

_MONTH = (
    r"(?P<month>(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?)"
)
_NTH = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_DAY = rf"(?P<day>{_NTH})(?:(?P<to>\s?-\s?)(?P<day2>{_NTH}))?"
_END = r"(?![\w/]|[.,:-]\d|°|%)"
_YEAR = r"(?:1\d{3}|20\d{2})"

_WEEKDAY = re.compile(
    rf"\b(?P<weekday>(?:Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\b\.?)(?=,?\s(?:{_MONTH.replace('?P<month>', '?:')}|\d))"
    r"|\b(?:Mon|Tues?|Wed|Thur?s?|Fri)\.(?=[\s,)]|$)|(?<![Tt]he )\b(?:Sat|Sun)\.(?=[,;)]|\s[a-z&(])"
)
_WEEK = r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)"
_WEEKDAYS = re.compile(rf"\b(?P<from>{_WEEK})\.?(?P<to>\s?-\s?)(?P<until>{_WEEK})\b\.?")
_NAME = _MONTH.removeprefix("(?P<month>").removesuffix(r"\b\.?)")
_MONTHS = re.compile(rf"\b(?P<from>{_NAME})\b\.?(?P<to>\s?-\s?)(?P<until>{_NAME})\b(?!\s?\d{{1,2}}\b|-)")
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s{_DAY}(?:,?\s(?P<year>{_YEAR}))?{_END}")
_DAY_MONTH = re.compile(
    rf"(?<![\w.,:/$£€-])(?P<the>[Tt]he\s)?{_DAY}(?P<of>\sof)?\s{_MONTH}(?:,?\s(?P<year>{_YEAR}){_END})?"
)
_MONTH_YEAR = re.compile(rf"\b{_MONTH},?\s(?P<year>'?\d\d\b|{_YEAR}){_END}")
_LONE_MONTH = re.compile(r"\b(?P<month>Jan|Feb|Aug|Sept?|Oct|Nov|Dec|Apr)\.(?=[\s,)]|$)")
_ISO = re.compile(
    r"(?<![\w-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?:T(?=\d\d:)|(?![\w-]))"
    r"|(?<![\w/.-])(?P<y2>(?:19|20)\d\d)/(?P<m2>\d\d?)/(?P<d2>\d\d?)(?![\w/-]|\.\d)"
)
_JOINED = re.compile(rf"(?<![\w.,/-])(?P<day>\d{{1,2}})-(?P<month>{_NAME})-(?P<year>\d{{4}}|\d\d)(?![\w-])", re.I)
_QUARTER = re.compile(r"\b(?P<q>[QH][1-4])\s?'(?P<y>\d\d)\b")
_EXPIRES = re.compile(
    r"\b(?P<exp>[Ee][Xx][Pp]\b\.?|[Ee]xpir(?:y|es|ation)):?\s(?:date:?\s)?(?P<date>(?P<m>0?[1-9]|1[0-2])/(?P<y>(?:20)?\d\d))(?![\w/])"
)
_MONTH_OF_YEAR = re.compile(r"(?<![\w/.,$£€-])(?P<m>0?[1-9]|1[0-2])/(?P<y>(?:19|20)\d\d)(?![\w/]|[.,]\d)")
_NUMERIC = re.compile(
    r"(?<![\w/.-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?![\w/-]|\.\d)"
)
_AFTER_PREPOSITION = re.compile(
    r"\b(?:on|since|until|by|before|after|from|due|dated|(?:Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\b\.?,?"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,?)\s(?P<date>(?P<a>\d{1,2})/(?P<b>\d{1,2}))(?![\w/]|[.,]\d)"
)
# 8/5-8/9; of proper fractions, 1/2-3/4, neither is a date
_DATES = re.compile(
    r"(?<![\w/.-])(?P<a>\d{1,2})/(?P<b>\d{1,2})(?P<to>\s?-\s?)(?P<a2>\d{1,2})/(?P<b2>\d{1,2})(?![\w/-]|\.\d)"
)
_DECADE = re.compile(r"(?<![\w.,'])(?P<century>1\d|20)(?P<tens>\d)0'?s\b")
_SHORT_DECADE = re.compile(r"(?<![\w.,])'?(?P<tens>[2-9])0'?s\b")
_SHORT_YEAR = re.compile(r"(?<![\w'\"])'(?P<y>\d\d)(?![\w'\"])")
_ERA = re.compile(r"(?<![\w.,])(?P<y>\d{1,4})(?P<era>\s?(?:A\.D\.|B\.C\.E\.|B\.C\.|C\.E\.|BCE?|AD|CE)(?![\w]))")
_ERA_FIRST = re.compile(r"\b(?:AD|A\.D\.)\s(?P<y>\d{1,4})(?![\d,])")
_YEARS = re.compile(rf"(?<![\w.,/$£€-])(?P<a>{_YEAR})(?P<to>\s?-\s?)(?P<b>{_YEAR}|\d\d)(?![\w/%]|[-.,]\d)")
_IN_YEAR = re.compile(
    r"\b(?:in|since|by|from|until|till|to|before|after|around|circa|year|early|late|mid|of|spring|summer|autumn|fall"
    r"|winter)[ -](?P<y>1[0-9]\d\d|20\d\d)(?![\w%]|[.,:/-]\d)",
    re.IGNORECASE,
)
_COUNT_NOUNS = (
    "items|people|users|files|rows|records|words|pages|points|steps|students|dollars|pounds|miles|times|copies|units"
    "|votes|calories|meters|metres|feet|employees|customers|members|seats|lines|tokens|samples|requests|messages|cars"
)
_LONE_YEAR = re.compile(
    rf"(?<![\w.,:/$£€+=*^~#-])(?:1[1-9]\d\d|20\d\d)(?![\w%°]|[.,:/+=*^-]\d|\s?[=+*×<>]|\s(?:{_COUNT_NOUNS})\b)"
)

_HALF = r"(?P<half>\s?(?:[ap]\.\s?m\.|[ap]m\b)|(?<=:\d\d)[ap]\b)"
_TIME_RANGE = re.compile(
    r"(?<![\w.:-])\d{1,2}(?::\d\d)?(?:\s?[ap]\.?m\.?)?(?P<to>\s?-\s?)(?=\d{1,2}(?::\d\d(?!\d)|\s?[ap]\.?m\b))",
    re.IGNORECASE,
)
_TIME = re.compile(
    rf"(?<![\w.:,-])(?P<h>\d{{1,2}}):(?P<m>\d\d)(?::(?P<s>\d\d))?(?P<tenths>\.\d{{1,6}})?{_HALF}?(?![\d:])Z?",
    re.IGNORECASE,
)
_FRENCH_TIME = re.compile(r"(?<![\w.,])(?P<h>[01]?\d|2[0-3])h(?P<m>[0-5]\d)(?!\w)")  # 14h05
_HOURS_BEHIND = re.compile(r"\d\s?h(?:ou)?rs?\b")
_MILITARY = re.compile(
    r"(?<![\w.,])(?:(?<=at )|(?<=by )|(?<=from )|(?<=until )|(?<=before )|(?<=after )|(?=0))"
    r"(?P<h>[01]\d|2[0-3])(?P<m>[0-5]\d)(?P<unit>\s?(?:hrs?\b\.?|hours\b))"
)
# The full stop of Britain and Australia, rewritten as a colon: 7.15 am, open 8.00-17.30
_DOTTED_TIME = re.compile(r"(?<![\w.,:$£€])\d{1,2}(?P<dot>\.)[0-5]\d(?=\s?[ap](?:\.\s?m\.|m\b))", re.IGNORECASE)
_OPENING_HOURS = re.compile(
    r"\b(?:open|opens|from|hours:?)\s\d{1,2}(?P<from>\.[0-5]\d)\s?-\s?\d{1,2}(?P<until>\.[0-5]\d)(?!\w|\.\d)"
)
_ENDS = ("from", "until")
_TIME_TO_HOUR = re.compile(r"(?<![\w.:-])[0-2]?\d:[0-5]\d(?P<to>\s?-\s?)[0-2]?\d(?![\w:-]|[.,]\d)")
_HOUR = re.compile(rf"(?<![\w.:,/-])(?P<h>\d{{1,2}}){_HALF}", re.IGNORECASE)


def expand(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out dates and times; 1/5 is in January in American English, in May in British English."""

    def month_day(match: re.Match[str]) -> Replacement:
        return _date_parts(match, region, day=("the " if region.british else "") + _day(match["day"]))

    def day_month(match: re.Match[str]) -> Replacement:
        of = "" if match["of"] else " of"
        words = f"{'' if match['the'] else 'the '}{_day(match['day'])}"
        if match["day2"]:
            return _date_parts(match, region, day=words, day2=f"{_day(match['day2'])}{of}")
        return _date_parts(match, region, day=words + of)

    def iso(match: re.Match[str]) -> str | None:
        y, m, d = (int(match[name] or match[f"{name}2"]) for name in "ymd")
        words = _date(y, m, d, region)
        return f"{words}, " if words and match[0].endswith("T") else words

    def numeric(match: re.Match[str]) -> str | None:
        a, b = int(match["a"]), int(match["b"])
        day_first = region.british or match["sep"] == "."
        day, month = (a, b) if (day_first and b <= 12) or a > 12 else (b, a)
        return _date(_full_year(match["y"]), month, day, region)

    def after_preposition(match: re.Match[str]) -> Replacement:
        a, b = int(match["a"]), int(match["b"])
        words = _date(None, *((b, a) if region.british else (a, b)), region)
        return {"date": words} if words else None

    def years(match: re.Match[str]) -> Replacement:
        b = match["b"]
        if len(b) == 2 and b <= match["a"][2:]:
            return None
        return {
            "a": year(int(match["a"]), region),
            "to": " to ",
            "b": _two_digit_year(b) if len(b) == 2 else year(int(b), region),
        }

    def one_year(match: re.Match[str]) -> Replacement:
        return {"y": year(int(match["y"]), region)}

    aligned = aligned.sub(_WEEKDAYS, lambda match: f"{_day_name(match['from'])} to {_day_name(match['until'])}")
    aligned = aligned.sub(_MONTHS, lambda match: f"{_month_name(match['from'])} to {_month_name(match['until'])}")
    text = aligned.text
    if not any(char.isdecimal() for char in text):
        return aligned.sub(_WEEKDAY, _weekday).sub(_LONE_MONTH, _month) if "." in text else aligned
    aligned = aligned.sub(_ISO, iso).sub(_WEEKDAY, _weekday)
    aligned = aligned.sub(_MONTH_DAY, month_day).sub(_DAY_MONTH, day_month)
    aligned = aligned.sub(_MONTH_YEAR, lambda match: _date_parts(match, region)).sub(_LONE_MONTH, _month)
    aligned = aligned.sub(_NUMERIC, numeric).sub(_AFTER_PREPOSITION, after_preposition)
    aligned = aligned.sub(_TIME_RANGE, lambda match: {"to": " to "})
    aligned = aligned.sub(_TIME_TO_HOUR, lambda _: {"to": " to "}) if ":" in text and "-" in text else aligned
    aligned = aligned.sub(_MILITARY, _military) if _HOURS_BEHIND.search(text) else aligned
    aligned = aligned.sub(_TIME, _time) if ":" in text else aligned
    aligned = aligned.sub(_FRENCH_TIME, _time).sub(_HOUR, _time)
    aligned = aligned.sub(_QUARTER, _quarter) if "'" in text else aligned
    aligned = aligned.sub(_DECADE, _decade).sub(_SHORT_DECADE, lambda match: plural(cardinal(int(match["tens"]) * 10)))
    aligned = aligned.sub(_SHORT_YEAR, lambda match: _two_digit_year(match["y"]))
    aligned = aligned.sub(_ERA, lambda match: _era(match, region))
    aligned = aligned.sub(_ERA_FIRST, one_year).sub(_YEARS, years).sub(_IN_YEAR, one_year)
    return aligned.sub(_LONE_YEAR, lambda match: year(int(match[0]), region))


def guess(text: str, region: Region) -> str:
    """Return a date whose day and month may be meant the other way round, and how it is read; "" if there is none."""
    if text.count("/") < 2 and text.count("-") < 2 and text.count(".") < 2:
        return ""
    for match in _NUMERIC.finditer(text):
        if int(match["a"]) <= 12 and int(match["b"]) <= 12 and match["a"] != match["b"]:
            first = "day" if region.british or match["sep"] == "." else "month"
            return f"{match[0]!r} is read with the {first} first: write the year first to be sure, or set the language"
    return ""


def expand_joined(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out dates whose hyphens and slashes would be taken for those of codes and fractions; mark dotted times."""

    def dates(match: re.Match[str]) -> str | None:
        pairs = [(int(match[a]), int(match[b])) for a, b in (("a", "b"), ("a2", "b2"))]
        if all(a < b <= 16 for a, b in pairs):
            return None
        words = [_date(None, *((b, a) if region.british else (a, b)), region) for a, b in pairs]
        return f"{words[0]} to {words[1]}" if all(words) else None

    def joined(match: re.Match[str]) -> str | None:
        month = MONTHS.index(_month_name(match["month"].capitalize())) + 1
        return _date(_full_year(match["year"]), month, int(match["day"]), region)

    def expires(match: re.Match[str]) -> Replacement:
        word = "expires" if len(match["exp"].rstrip(".")) == 3 else match["exp"]
        return {"exp": word, "date": _month_of_year(match, region)}

    if "." in aligned.text:
        aligned = aligned.sub(_DOTTED_TIME, lambda _: {"dot": ":"})
        aligned = aligned.sub(_OPENING_HOURS, lambda match: {name: _minutes_of_hour(match[name]) for name in _ENDS})
    if "-" not in aligned.text and "/" not in aligned.text:
        return aligned
    aligned = aligned.sub(_JOINED, joined).sub(_EXPIRES, expires).sub(_DATES, dates)
    return aligned.sub(_MONTH_OF_YEAR, lambda match: _month_of_year(match, region))


def _minutes_of_hour(dotted: str) -> str:
    """Write `.30` as `:30`, and leave `.00` out: open eight to seventeen thirty."""
    return "" if dotted == ".00" else f":{dotted[1:]}"


def _month_of_year(match: re.Match[str], region: Region) -> str:
    return f"{MONTHS[int(match['m']) - 1]} {year(_full_year(match['y']), region)}"


def _full_year(text: str) -> int:
    n = int(text)
    return n if len(text) > 2 else n + (2000 if n < 50 else 1900)


def _date_parts(match: re.Match[str], region: Region, **words: str) -> dict[str, str]:
    """Return each part of a date separately, so that each keeps its source."""
    groups = match.groupdict()
    words = {"month": _month_name(match["month"])} | words
    if groups.get("day2"):
        words = {"to": " to ", "day2": _day(match["day2"])} | words
    if groups.get("year"):
        text = match["year"]
        words["year"] = year(_full_year(text.strip("'")), region)
    return words


def _day(text: str) -> str:
    return ordinal(int(re.sub(r"\D", "", text)))


def _month_name(text: str) -> str:
    return next(month for month in MONTHS if month.startswith(text[:3]))


def _month(match: re.Match[str]) -> str:
    return _month_name(match["month"]) + _full_stop(match)


def _day_name(text: str) -> str:
    return _DAYS[text[:3].lower()]


def _weekday(match: re.Match[str]) -> str:
    return _day_name(match[0]) + (_full_stop(match) if match[0].endswith(".") else "")


def _full_stop(match: re.Match[str]) -> str:
    """Return "." if the point of an abbreviation also ends the sentence, because nothing follows."""
    return "." if match[0].rstrip().endswith(".") and not match.string[match.end() :].strip(" \"')”") else ""


def _date(y: int | None, m: int, d: int, region: Region) -> str | None:
    if not (1 <= m <= 12 and 1 <= d <= 31):
        return None
    day = f"the {ordinal(d)} of {MONTHS[m - 1]}" if region.british else f"{MONTHS[m - 1]} {ordinal(d)}"
    return day if y is None else f"{day}, {year(y, region)}"


def _two_digit_year(text: str) -> str:
    n = int(text)
    return cardinal(n) if n > 9 else f"oh {cardinal(n)}" if n else "two thousand"


def _decade(match: re.Match[str]) -> str:
    n = int(match["century"] + match["tens"]) * 10
    if n % 1000 == 0:
        return f"{cardinal(n)}s"
    return plural(pairs(n))


def _era(match: re.Match[str], region: Region) -> dict[str, str]:
    era = match["era"].replace(".", "").strip()
    return {"y": year(int(match["y"]), region), "era": f" {era}" + _full_stop(match)}


def _time(match: re.Match[str]) -> str | None:
    groups: dict[str, str | None] = {"half": None, "tenths": None} | match.groupdict()
    h, m, s = int(match["h"]), int(groups.get("m") or 0), groups.get("s")
    half = ""
    if text := groups["half"]:
        half = (" AM" if text.strip()[0] in "aA" else " PM") + _full_stop(match)
    if h > 24 or m > 59 or (half and h > 12):
        return None
    hour = cardinal(h)
    tenths = f" point {digits(groups['tenths'])}" if groups["tenths"] else ""
    if s and (int(s) or tenths):
        return f"{hour} {_minutes(m) or 'zero'} {_seconds(int(s), tenths)}{half}"
    if tenths:  # minutes and seconds: 4:21.07
        return f"{hour} {_seconds(m, tenths)}{half}"
    if m:
        return f"{hour} {_minutes(m)}{half}"
    if half:
        return hour + half
    return f"{hour} o'clock" if 1 <= h <= 12 else f"{hour} hundred" if h else "zero hundred"


def _seconds(s: int, tenths: str) -> str:
    return f"{cardinal(s)}{tenths}" if tenths else _minutes(s) or "zero"


def _quarter(match: re.Match[str]) -> str:
    return f"{match['q'][0]} {cardinal(int(match['q'][1]))} {year(_full_year(match['y']))}"


def _military(match: re.Match[str]) -> str:
    h, m = match["h"], int(match["m"])
    hour = f"zero {cardinal(int(h[1]))}" if h[0] == "0" else cardinal(int(h))
    return f"{hour} {_minutes(m) or 'hundred'} hours" + (_full_stop(match) if match["unit"].endswith(".") else "")


def _minutes(m: int) -> str:
    return "" if not m else f"oh {cardinal(m)}" if m < 10 else cardinal(m)
