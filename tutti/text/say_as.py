"""<say-as> of SSML: rewrite a text so that the front end reads it as what it is."""

import re
from collections.abc import Mapping

from tutti.text.normalize.dates import MONTHS
from tutti.text.normalize.numbers import cardinal, ordinal
from tutti.text.normalize.symbols import fraction

SPELLED = frozenset(("characters", "character", "spell-out", "verbatim", "letters", "digits", "number:digits"))
UNCHANGED = frozenset(("unit", "currency", "address", "name", "net", "duration", "number:decimal"))
_INTEGER = re.compile(r"\s*([+-]?)([\d, ]{1,24})(?:st|nd|rd|th)?\s*", re.ASCII)
_FRACTION = re.compile(r"\s*(?:(\d{1,6})[ +])?\s*(\d{1,4})\s*/\s*(\d{1,4})\s*", re.ASCII)
_DURATION = re.compile(r"\s*(\d{1,3})'\s*(\d{1,2})\"?\s*", re.ASCII)
_PARTS = re.compile(r"\d+|[^\W\d_]+")


def say_as(text: str, attributes: Mapping[str, str], english: bool) -> str | None:
    """Return what to read instead of `text`; None if its kind is unknown."""
    kind, layout = attributes.get("interpret-as", "").strip().lower(), attributes.get("format", "").strip().lower()
    if kind in SPELLED:
        return " ".join(char.upper() for char in text if not char.isspace())
    if kind in UNCHANGED:
        return text
    match kind:
        case "cardinal" | "number" | "ordinal":
            return _number(text, english, as_ordinal=kind == "ordinal" or layout == "ordinal")
        case "fraction":
            return _fraction(text) if english else text
        case "date":
            return _date(text, layout, english)
        case "time":
            return _duration(text) if english else text
        case "telephone" | "phone":
            groups = re.findall(r"\d+", text)
            return ("+ " if text.strip().startswith("+") else "") + ", ".join(
                " ".join(group) for group in groups
            ) or text
        case "expletive" | "bleep":
            return "beep"
    return None


def _number(text: str, english: bool, *, as_ordinal: bool) -> str:
    integer = _INTEGER.fullmatch(text)
    digits = re.sub(r"\D", "", integer[2]) if integer else ""
    if not (integer and digits and english):
        return text
    words = ordinal(int(digits)) if as_ordinal else cardinal(int(digits))
    return f"minus {words}" if integer[1] == "-" else words


def _fraction(text: str) -> str:
    parts = _FRACTION.fullmatch(text)
    if not parts or int(parts[3]) < 2:
        return text
    words = fraction(int(parts[2]), int(parts[3]))
    return f"{cardinal(int(parts[1]))} and {words}" if parts[1] else words


def _duration(text: str) -> str:
    parts = _DURATION.fullmatch(text)
    if not parts:
        return text
    minutes, seconds = int(parts[1]), int(parts[2])
    return f"{minutes} minute{'s' * (minutes != 1)} and {seconds} second{'s' * (seconds != 1)}"


def _date(text: str, layout: str, english: bool) -> str:
    """Return a date in a form that is read as one; `layout` names the order of its parts, such as "dmy"."""
    order = re.sub(r"(.)\1+", r"\1", re.sub(r"[^dmy]", "", layout)) or "mdy"
    parts = _PARTS.findall(text)
    if len(parts) == 1 and len(parts[0]) == 8 and parts[0].isdecimal():  # 20200324
        parts, order = [parts[0][:4], parts[0][4:6], parts[0][6:]], "ymd"
    elif len(parts) == 3 and len(parts[0]) == 4:
        order = "ydm" if order == "ydm" else "ymd"
    if len(parts) != len(order) or not all(part.isdecimal() for part in parts):
        return text
    values = dict(zip(order, map(int, parts), strict=True))
    day, month, year = values.get("d"), values.get("m"), values.get("y")
    if not 1 <= (month or 1) <= 12 or not 1 <= (day or 1) <= 31:
        return text
    if year is not None and year < 100:
        year += 2000 if year < 50 else 1900
    if not english:
        return "/".join(str(value) for value in (day, month, year) if value is not None)
    name = MONTHS[month - 1] if month else ""
    date = f"{name} {day}" if name and day else name or (ordinal(day) if day else "")
    return f"{date}, {year}" if date and day and year else f"{date} {year}".strip() if year else date
