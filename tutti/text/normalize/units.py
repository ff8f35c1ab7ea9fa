"""Measures: numbers with units."""

import re
from collections.abc import Callable
from functools import partial

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize import attributive
from tutti.text.normalize.numbers import NUMBER, number
from tutti.text.normalize.regions import Region

# The plural adds "s", unless another one stands after a bar.
_UNITS = {
    "km": "kilometer", "cm": "centimeter", "mm": "millimeter", "nm": "nanometer", "µm": "micrometer",
    "μm": "micrometer", "m": "meter", "mi": "mile", "ft": "foot|feet", "yd": "yard", "yds": "yard", "kg": "kilogram",
    "mg": "milligram", "µg": "microgram", "mcg": "microgram", "g": "gram", "lb": "pound", "lbs": "pound",
    "oz": "ounce", "ml": "milliliter", "mL": "milliliter", "cl": "centiliter", "dl": "deciliter", "L": "liter",
    "l": "liter", "gal": "gallon", "tsp": "teaspoon", "tbsp": "tablespoon", "Tbsp": "tablespoon", "ha": "hectare",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "sec": "second", "secs": "second",
    "s": "second", "ms": "millisecond", "µs": "microsecond", "μs": "microsecond", "ns": "nanosecond", "yr": "year",
    "yrs": "year",
    "wk": "week", "wks": "week", "mo": "month", "Hz": "hertz|hertz", "kHz": "kilohertz|kilohertz",
    "MHz": "megahertz|megahertz", "GHz": "gigahertz|gigahertz", "THz": "terahertz|terahertz", "kB": "kilobyte",
    "KB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "PB": "petabyte", "MiB": "mebibyte",
    "GiB": "gibibyte", "Kb": "kilobit", "Mb": "megabit", "Gb": "gigabit",
    "kbps": "kilobit per second|kilobits per second", "Kbps": "kilobit per second|kilobits per second",
    "Mbps": "megabit per second|megabits per second", "Gbps": "gigabit per second|gigabits per second",
    "mph": "mile per hour|miles per hour", "kph": "kilometer per hour|kilometers per hour",
    "kmh": "kilometer per hour|kilometers per hour", "fps": "frame per second|frames per second",
    "mpg": "mile per gallon|miles per gallon", "rpm": "RPM|RPM", "bpm": "beat per minute|beats per minute",
    "dpi": "DPI|DPI", "ppm": "part per million|parts per million", "psi": "P S I|P S I", "V": "volt", "mV": "millivolt",
    "kV": "kilovolt", "W": "watt", "kW": "kilowatt", "MW": "megawatt", "GW": "gigawatt", "kWh": "kilowatt hour",
    "mAh": "milliamp hour", "mA": "milliamp", "dB": "decibel", "Pa": "pascal", "kPa": "kilopascal",
    "hPa": "hectopascal", "kcal": "kilocalorie", "cal": "calorie", "kJ": "kilojoule", "hp": "horsepower|horsepower",
    "px": "pixel", "MP": "megapixel", "Ω": "ohm", "K": "", "k": "",
    "sq ft": "square foot|square feet",
    "sq. ft": "square foot|square feet", "sqft": "square foot|square feet", "sq m": "square meter",
    "sq mi": "square mile", "sq km": "square kilometer", "sq. m": "square meter", "sq. mi": "square mile",
    "sq yd": "square yard", "sq. yd": "square yard", "sq in": "square inch|square inches",
    "sq. in": "square inch|square inches", "cu ft": "cubic foot|cubic feet", "cu. ft": "cubic foot|cubic feet",
    "cu yd": "cubic yard", "cu. yd": "cubic yard", "cu m": "cubic meter", "cc": "CC|CC", "fl oz": "fluid ounce",
    "fl. oz": "fluid ounce", "qt": "quart", "qts": "quart", "pt": "pint", "pts": "point", "pkg": "package",
    "pkgs": "package", "doz": "dozen|dozen", "ac": "acre", "bbl": "barrel", "kt": "knot", "kts": "knot",
    "nmi": "nautical mile", "mmHg": "millimeter of mercury|millimeters of mercury", "mol": "mole", "mmol": "millimole",
    "µmol": "micromole", "kmol": "kilomole", "µL": "microliter", "dL": "deciliter", "hl": "hectoliter", "J": "joule",
    "MJ": "megajoule", "GJ": "gigajoule", "eV": "electron volt", "keV": "kilo electron volt",
    "MeV": "mega electron volt", "GeV": "giga electron volt", "Nm": "newton meter", "kN": "kilonewton",
    "MPa": "megapascal", "GPa": "gigapascal", "mbar": "millibar", "atm": "atmosphere", "lm": "lumen",
    "lx": "lux|lux", "kΩ": "kilo ohm", "MΩ": "mega ohm", "mΩ": "milli ohm", "µF": "microfarad", "nF": "nanofarad",
    "pF": "picofarad", "µA": "microamp", "µV": "microvolt", "Ah": "amp hour", "MWh": "megawatt hour",
    "GWh": "gigawatt hour", "TWh": "terawatt hour", "mSv": "millisievert", "µSv": "microsievert",
    "IU": "international unit", "kcals": "kilocalorie", "Tbps": "terabit per second|terabits per second",
    "%": "percent|percent", "‰": "per mille|per mille",
}  # fmt: skip
_PER = {
    "h": "hour", "hr": "hour", "s": "second", "sec": "second", "min": "minute", "d": "day", "mo": "month",
    "yr": "year", "wk": "week", "m": "meter", "km": "kilometer", "kg": "kilogram", "g": "gram", "lb": "pound",
    "L": "liter", "l": "liter", "dL": "deciliter", "ml": "milliliter", "mL": "milliliter", "gal": "gallon",
    "GB": "gigabyte", "ft": "foot", "mi": "mile", "day": "day", "week": "week", "month": "month", "year": "year",
    "hour": "hour", "dose": "dose", "mol": "mole", "dl": "deciliter", "µL": "microliter", "cm": "centimeter",
    "ha": "hectare", "ac": "acre",
}  # fmt: skip
_MAGNITUDES = {
    "k": " thousand", "K": " thousand", "M": " million", "bn": " billion", "mn": " million", "tn": " trillion",
    "B": " billion",
}  # fmt: skip

_NAMES = "|".join(re.escape(name) for name in sorted(_UNITS, key=len, reverse=True) if name not in "Kk%‰")
_PERS = "|".join(sorted(_PER, key=len, reverse=True))
_UNIT = (
    rf"(?P<unit>(?:{_NAMES})(?:[²³]|\^[23])?)(?:(?P<slash>/)(?P<per>[A-Za-zµ]{{1,5}}[²³]?)(?:(?P<slash2>/)(?P<per2>{_PERS}))?)?(?![\w²³^'])"
    r"(?P<stop>(?<=[a-z])\.)?"
)
_SIGNED = rf"(?P<minus>(?<![\w)\d.,^])-)?(?<![\w.,/^])(?<!\^-)(?P<n>{NUMBER})"
_RANGE = re.compile(
    rf"(?<![\w.,-]){NUMBER}(?:°[CF]?|%)?(?P<to>\s?-\s?)(?={NUMBER}\s?(?:[°%]|(?:{_NAMES})(?![\w])|(?:thousand|million|billion)\b))"
)
_MEASURE = re.compile(rf"{_SIGNED}(?P<gap>\s?-?\s?){_UNIT}")
_PERCENT = re.compile(rf"{_SIGNED}\s?(?P<unit>[%‰])(?:/(?P<per>{_PERS})\b)?")
_DEGREES = re.compile(rf"(?P<minus>(?<![\w)\d.,])-\s?)?(?<![\w.,])(?P<n>{NUMBER})\s?[°º](?:\s?(?P<scale>[CFKNSEW]\b))?")
_FEET = re.compile(r"(?<![\w.,])(?P<ft>\d{1,2})'\s?(?P<in>\d{1,2}(?:\.5|½)?)(?:\"|''|(?=[\s,.;:!?)]|$))")
_FRACTION = re.compile(
    rf"(?<![\w.,/])(?P<whole>\d{{1,3}}[\s-]?)?(?:\d{{1,2}}/\d{{1,2}}|[½⅓⅔¼¾⅛⅜⅝⅞])(?P<gap>\s?)(?P<unit>{_NAMES})(?![\w/²³])"
)
_HOURS = re.compile(r"(?<![\w.,])(?P<h>\d{1,3})h\s?(?P<m>\d{1,2})m(?:in)?\b")
_MINUTES = re.compile(r"(?<![\w.,])(?P<h>\d{1,3})m\s?(?P<m>[0-5]?\d)s\b")
_AFTER_POWER = re.compile(
    rf"(?:(?<=[\d⁻⁰¹²³⁴-⁹][⁰¹²³⁴-⁹])|(?<=10\^\d)|(?<=10\^\d\d)|(?<=10\^-\d)|(?<=10\^-\d\d))(?P<gap>\s?)(?P<unit>{_NAMES})(?:(?P<slash>/)(?P<per>{'|'.join(_PER)}))?(?![\w/²³])"
)
_AFTER_PER = re.compile(rf"(?<= per )(?:{'|'.join(_PER)})(?!\w)")
_PER_AMOUNT = re.compile(rf"(?<=\d)\s?(?:{_NAMES})(?P<per>/)(?={NUMBER}\s?(?:{_NAMES})(?!\w))")  # 500mg/5mL
_PINTS = re.compile(r"(?<=\d\s)pts\.?(?=\sof\s)")
_RELAY = re.compile(rf"(?<![\w.,]){NUMBER}\s?(?P<by>[x×])\s?(?={NUMBER}\s?(?:m|cm|mm|ft|yd|in)\b)")  # 60 x 120 ft
_ROOM = re.compile(r"(?<![\w.,])(?P<a>\d{1,3})'\s?[x×]\s?(?P<b>\d{1,3})'(?!\d)")  # 12' x 14'
_TROUSERS = re.compile(r"(?<![\w.,])(?P<w>\d{2})W\s?[x×/]\s?(?P<l>\d{2})L\b")
_STONE = re.compile(r"(?<![\w.,])(?P<st>\d{1,2})\s?st\.?\s(?P<lb>\d{1,2})\s?lbs?\b")
_ARC = re.compile(
    r"(?<![\w.,])(?P<d>\d{1,3})\s?[°º]\s?(?P<m>\d{1,2}(?:\.\d+)?)'\s?(?:(?P<s>\d{1,2}(?:\.\d+)?)(?:\"|'')\s?)?"
    r"(?P<side>[NSEW]\b)?"
)
_INCH_FRACTION = re.compile(r"(?<![\w.,/])(?P<whole>\d{1,3}[ -])?\d{1,2}/\d{1,2}(?P<sign>\"|'')(?!\w)")
# K with a space in front is kelvin (SI brochure), but a race of 10 K and 300 K users are not.
_KELVIN = re.compile(
    r"(?P<minus>(?<![\w)\d.,])-)?(?<![\w.,/$£€-])(?<!\ba )(?<!\bthe )(?<!\ban )(?<!\bmy )"
    rf"(?P<n>{NUMBER})\s(?P<unit>K)(?![\w/'-])"
    r"(?!\s(?:run|race|users|people|followers|views|subscribers|likes|words|tokens|lines|rows|items|steps|dollars)\b)"
)
_INCHES = re.compile(rf"(?<![\w.,])(?P<n>{NUMBER})(?:\"|'')(?!\w)")
_FOOT = re.compile(r"(?<![\w.,'])(?P<n>\d{1,3})'(?=\s)")
_SECONDS = re.compile(
    r"\b(?:(?:wait(?:s|ed|ing)?|sleep(?:s|ing)?|slept|took|takes?|taking|lasts?|lasted|every|within|timeout|delay|least)"
    r"(?:\s(?:for|of|about|around|only|up to))?\s(?P<n>\d{1,4}s)"
    r"|(?:in|for|after|of|than|about|around|under|over)\s(?P<n2>\d{1,4}s)"
    r"(?=\s*(?:$|[.,;:!?)])|\s(?:to|before|and|or|then|after|until|if|while|flat|per|each|at)\b))(?!\w)",
    re.IGNORECASE,
)
_DECADE_CONTEXT = re.compile(
    r"\b(?:the|these|those|all|his|her|their|its|of)\s(?:\d{1,4}s(?:,\s|,?\s(?:and|or)\s))*$", re.IGNORECASE
)
_FEET_INCHES = re.compile(r"(?<![\w.,])(?P<ft>\d{1,2})\s?ft\.?\s?(?P<in>\d{1,2})\s?in\b")
_INCH_ABBREVIATION = re.compile(rf"(?<![\w.,]){NUMBER}\s?(?P<unit>in\.)(?=\s[a-z(]|[,;)])")
_ANGLE = re.compile(r"\s(?:angle|view|turn|rotation|camera|video|spin|arc|feedback|corner)\b")
_FEET_SIGN = re.compile(r"(?<![\w.,])(?P<n>\d{1,5})'(?=\s(?:tall|wide|long|deep|high|by|x)\b)")
_MAGNITUDE = re.compile(rf"(?<![\w.,-])(?P<n>{NUMBER})\s?(?P<scale>k|K|M|bn|mn|tn|B)(?P<plus>\+)?(?!\w)")
_CROWD = re.compile(r"\s(?:users|people|views|downloads|streams|dollars|messages|searches|devices|customers)\b")
_UNIT_ALONE = re.compile(
    r"(?<![\w/])(?P<unit>km|m|mi|g|kg|mg|lb|kB|MB|GB|L|ml)/(?P<per>h|hr|s|sec|min|kg|L|dL|ml|km|gal|m)(?![\w/²³])"
    r"|(?<![\w/])(?P<powered>(?:km|cm|mm|m|ft)[²³])(?![\w/])|\b(?:mph|kph)\b"
)
_CONSUMPTION = re.compile(
    rf"(?:(?<![\w.,])(?P<n>{NUMBER})\s?)?(?<![A-Za-z])(?P<unit>[Ll]|kWh)\s?/\s?100\s?(?P<distance>km|mi)\b"
)
_DEGREE_SIGN = re.compile(r"°(?:\s?(?P<scale>[CF]\b))?")
_POWERS = {"²": " squared", "³": " cubed"}
_SCALES = {
    "C": " Celsius", "F": " Fahrenheit", "K": " Kelvin", "N": " north", "S": " south", "E": " east", "W": " west",
}  # fmt: skip


def expand_seconds(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out "wait 10s", before it is taken for a decade."""

    def expand_match(match: re.Match[str]) -> Replacement:
        name = "n" if match["n"] else "n2"
        n = match[name][:-1]
        return {name: f"{number(n, region)} {'second' if n == '1' else 'seconds'}"}

    return aligned.sub(_SECONDS, expand_match)


def guess(text: str) -> str:
    """Return a K that may be meant otherwise, and how it is read; "" if there is none."""
    match = _KELVIN.search(text) if " K" in text else None
    return f"{match[0]!r} is read in kelvin" if match else ""


# 13 A fuse; elsewhere an A behind a figure is a letter: gate 13 A
_AMPS = re.compile(
    r"(?<=\d)(?P<unit>[ -]?A)(?=[ -](?:socket|fuse|plug|circuit|breaker|current|charger|supply|battery|outlet)s?\b)"
)


def expand(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out measures: "10kg" is "ten kilograms"."""
    if re.search(r"\d", aligned.text):
        aligned = aligned.sub(_RANGE, lambda match: {"to": " to "})
        aligned = aligned.sub(_AMPS, lambda _: {"unit": " amp"}) if "A" in aligned.text else aligned
    else:
        aligned = aligned.sub(_UNIT_ALONE, partial(_expand_unit_alone, region))
    for pattern, signs, rule in _RULES:
        if not signs or any(sign in aligned.text for sign in signs):
            aligned = aligned.sub(pattern, partial(rule, region))
    return aligned


def _expand_measure(region: Region, match: re.Match[str]) -> Replacement:
    unit, n = match["unit"], match["n"]
    if unit in ("m", "g", "s", "h", "l", "V", "W", "L", "K") and "-" in match["gap"]:
        return None
    if unit == "s" and match["gap"] == "" and "." not in n and n.endswith("0"):
        return None  # the 90s
    before = match.string[max(0, match.start() - 40) : match.start()]
    if unit == "s" and not match["gap"] and _DECADE_CONTEXT.search(before):
        return None  # the 5s and 6s
    adjective = "-" in match["gap"]
    name = _name(unit, n == "1" or adjective or attributive.is_attributive(match), region)
    if match["per"]:
        per, power = match["per"].rstrip("²³"), match["per"][-1]
        if per not in _PER:
            return None
        if power in "²³" and per not in ("s", "sec", "h", "hr", "min"):  # per cubic meter, but per second squared
            name += f" per {'square' if power == '²' else 'cubic'} {_spelling(_PER[per], region)}"
        else:
            name += f" per {_spelling(_PER[per], region)}{_POWERS.get(power, '')}"
    if match["per2"]:
        name += f" per {_spelling(_PER[match['per2']], region)}"
        return f"{'minus ' if match['minus'] else ''}{number(n, region)} {name}"
    stop = "." if match["stop"] and not match.string[match.end() :].strip(" \"')”") else ""
    amount = ("minus " if match["minus"] else "") + number(n, region)
    if not match["gap"]:
        return f"{amount} {name}{stop}"
    words = {"n": number(n, region), "gap": "-" if adjective else " "}
    words |= {"minus": "minus "} if match["minus"] else {}
    if match["per"]:
        words |= {"unit": name.partition(" per ")[0], "slash": " per ", "per": name.partition(" per ")[2]}
    else:
        words["unit"] = name
    return words | ({"stop": stop} if match["stop"] else {})


def _expand_percent(region: Region, match: re.Match[str]) -> Replacement:
    per = f" per {_PER[match['per']]}" if match["per"] else ""
    return f"{'minus ' if match['minus'] else ''}{number(match['n'], region)} {_name(match['unit'], True, region)}{per}"


def _expand_degrees(region: Region, match: re.Match[str]) -> Replacement:
    singular = match["n"] == "1" or _ANGLE.match(match.string, match.end())
    minus, ending = "minus " if match["minus"] else "", "" if singular else "s"
    return f"{minus}{number(match['n'], region)} degree{ending}{_SCALES.get(match['scale'], '')}"


def _expand_feet(region: Region, match: re.Match[str]) -> Replacement:
    return f"{number(match['ft'], region)} foot {number(match['in'].replace('½', '.5'), region)}"


def _expand_fraction(region: Region, match: re.Match[str]) -> Replacement:
    return {"unit": ("" if match["gap"] else " ") + _name(match["unit"], not match["whole"], region)}


def _expand_hours(region: Region, match: re.Match[str]) -> Replacement:
    h, m = match["h"], match["m"]
    return f"{number(h, region)} hour{'' if h == '1' else 's'} {number(m.lstrip('0') or '0')} minutes"


def _expand_minutes(region: Region, match: re.Match[str]) -> Replacement:
    h, m = match["h"], match["m"].lstrip("0") or "0"
    minutes = f"{number(h, region)} minute{'' if h == '1' else 's'}"
    return f"{minutes} {number(m, region)} second{'' if m == '1' else 's'}"


def _expand_inches(region: Region, match: re.Match[str]) -> Replacement:
    if match.string.count('"', 0, match.start()) % 2 or "“" in match.string:
        return None  # it closes a quotation
    singular = match["n"] == "1" or attributive.noun_follows(match)
    return f"{number(match['n'], region)} inch{'' if singular else 'es'}"


def _expand_inch_fraction(_: Region, match: re.Match[str]) -> Replacement:
    if match["sign"] == '"' and match.string.count('"', 0, match.start("sign")) % 2:
        return None  # it closes a quotation
    return {"sign": " inches" if match["whole"] and not attributive.noun_follows(match) else " inch"}


def _expand_arc(region: Region, match: re.Match[str]) -> Replacement:
    parts = ((match["d"], "degree"), (match["m"], "minute"), (match["s"], "second"))
    words = [f"{number(n.lstrip('0') or '0', region)} {name}{'' if n == '1' else 's'}" for n, name in parts if n]
    return " ".join(words) + _SCALES.get(match["side"], "")


def _expand_stone(region: Region, match: re.Match[str]) -> Replacement:
    return f"{number(match['st'], region)} stone {number(match['lb'], region)} pounds"


def _expand_kelvin(region: Region, match: re.Match[str]) -> Replacement:
    return {"n": number(match["n"], region), "unit": "kelvin"} | ({"minus": "minus "} if match["minus"] else {})


def _expand_foot(region: Region, match: re.Match[str]) -> Replacement:
    if not attributive.is_attributive(match) or re.search(r"(?<!\w)'", match.string[: match.start()]):
        return None  # it closes a quotation
    return f"{number(match['n'], region)} foot"


def _expand_magnitude(region: Region, match: re.Match[str]) -> Replacement:
    n, scale = match["n"], match["scale"]
    crowd = _CROWD.match(match.string, match.end())
    if scale == "M" and len(n) == 2 and match.string[match.start() - 1 : match.end() + 1] == f"({match[0]})":
        return None  # an age: (31M)
    if scale in "KB" and "." not in n and not crowd and (scale == "B" or n in ("2", "4", "5", "8", "10", "12", "16")):
        return None
    return f"{number(n, region)}{_MAGNITUDES[scale]}{' plus' if match['plus'] else ''}"


def _expand_after_power(region: Region, match: re.Match[str]) -> Replacement:
    words = {"gap": " ", "unit": _name(match["unit"], False, region)}
    if not match["gap"]:
        words = {"unit": f" {words['unit']}"}
    return words | ({"slash": " per ", "per": _spelling(_PER[match["per"]], region)} if match["per"] else {})


def _expand_consumption(region: Region, match: re.Match[str]) -> Replacement:
    words = f"{_name(match['unit'], match['n'] == '1', region)} per hundred {_name(match['distance'], False, region)}"
    return f"{number(match['n'], region)} {words}" if match["n"] else words


def _expand_unit_alone(region: Region, match: re.Match[str]) -> Replacement:
    if match["powered"]:
        return _name(match["powered"], False, region)
    if match["unit"] is None:
        return _name(match[0], False, region)
    return f"{_name(match['unit'], False, region)} per {_spelling(_PER[match['per']], region)}"


# In the order in which they apply. A rule needs one of the signs, if any is given.
_RULES: tuple[tuple[re.Pattern[str], str, Callable[[Region, re.Match[str]], Replacement]], ...] = (
    (_CONSUMPTION, "/", _expand_consumption),
    (_AFTER_POWER, "", _expand_after_power),
    (_ARC, "°º", _expand_arc),
    (_RELAY, "x×", lambda _, match: {"by": " by "}),
    (_TROUSERS, "x×/", lambda _, match: f"{number(match['w'])} W by {number(match['l'])} L"),
    (_ROOM, "'", lambda region, match: f"{number(match['a'], region)} foot by {number(match['b'], region)} foot"),
    (_STONE, "", _expand_stone),
    (_PINTS, "", lambda _, match: "pt"),
    (_PER_AMOUNT, "/", lambda _, match: {"per": " per "}),
    (_KELVIN, "K", _expand_kelvin),
    (_INCH_FRACTION, "\"'", _expand_inch_fraction),
    (_FRACTION, "/½⅓⅔¼¾⅛⅜⅝⅞", _expand_fraction),
    (_HOURS, "", _expand_hours),
    (_MINUTES, "", _expand_minutes),
    (_AFTER_PER, "", lambda region, match: _spelling(_PER[match[0]], region)),
    (_FEET, "'", _expand_feet),
    (_FEET_INCHES, "", _expand_feet),
    (_INCH_ABBREVIATION, "", lambda _, match: {"unit": " inches"}),
    (_FEET_SIGN, "'", lambda region, match: f"{number(match['n'], region)} feet"),
    (_FOOT, "'", _expand_foot),
    (_INCHES, "\"'", _expand_inches),
    (_DEGREES, "°º", _expand_degrees),
    (_PERCENT, "%‰", _expand_percent),
    (_MEASURE, "", _expand_measure),
    (_MAGNITUDE, "", _expand_magnitude),
    (_UNIT_ALONE, "", _expand_unit_alone),
    (_DEGREE_SIGN, "°", lambda _, match: f" degrees{_SCALES.get(match['scale'], '')}"),
)


def _name(unit: str, singular: bool, region: Region) -> str:
    power = {"²": "square ", "2": "square ", "³": "cubic ", "3": "cubic "}.get(unit[-1:], "")
    if power:
        unit = unit.rstrip("²³^23")
    name, bar, plural = _UNITS[unit].partition("|")
    return power + _spelling(name if singular else plural if bar else f"{name}s", region)


def _spelling(name: str, region: Region) -> str:
    return (
        re.sub(r"\b(|kilo|centi|milli|nano|micro|deci)(met|lit)er(?=s|\b)", r"\1\2re", name) if region.british else name
    )
