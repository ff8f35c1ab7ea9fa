"""Numbers in English words after CLDR: spellout-cardinal of common/rbnf/en.xml, British ones its -cardinal-verbose.

Years after spellout-numbering-year of en_IN.xml: 2005 is "two thousand five", where en.xml has "twenty oh-five".
"""

import re

from tutti.text.normalize.regions import AMERICAN, Region

NUMBER = r"(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?|(?<![\w.])\.\d++)"  # 1,234.5 or 12 or .5

LAKH = 100_000
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")

_SMALL = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ["", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion"]
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_ORDINALS["twelve"] = "twelfth"
_LAST_WORD = re.compile(r"\w+$")


def cardinal(n: int, region: Region = AMERICAN) -> str:
    """Return a number in words: 105 is "one hundred five", in British English "one hundred and five"."""
    if n < 0:
        return f"minus {cardinal(-n, region)}"
    if n < 1000:
        return _below_thousand(n, region)
    if n >= 1000 ** len(_SCALES):
        return digits(str(n))
    if region.lakh and n >= LAKH:
        return _lakhs(n, region)
    groups: list[str] = []
    for scale in _SCALES:
        n, part = divmod(n, 1000)
        if part:
            groups.insert(0, f"{_below_thousand(part, region)} {scale}".strip())
            if region.british and not scale and part < 100:
                groups[0] = f"and {groups[0]}"
        if not n:
            break
    return " ".join(groups)


def _lakhs(n: int, region: Region) -> str:
    """Return a number in crores and lakhs: 1,50,000 is "one lakh fifty thousand"."""
    crores, rest = divmod(n, 100 * LAKH)
    lakhs, rest = divmod(rest, LAKH)
    words = [f"{cardinal(crores, region)} crore"] if crores else []
    words += [f"{cardinal(lakhs, region)} lakh"] if lakhs else []
    if rest:
        words.append(f"{'and ' if rest < 100 else ''}{cardinal(rest, region)}")
    return " ".join(words)


def _below_thousand(n: int, region: Region) -> str:
    if n < 20:
        return _SMALL[n]
    if n < 100:
        return _TENS[n // 10] + (f"-{_SMALL[n % 10]}" if n % 10 else "")
    rest = f"{' and' if region.british else ''} {_below_thousand(n % 100, region)}" if n % 100 else ""
    return f"{_SMALL[n // 100]} hundred{rest}"


def ordinal(n: int, region: Region = AMERICAN) -> str:
    """Return an ordinal: 21 is "twenty-first"."""
    return ordinal_of(cardinal(n, region))


def ordinal_of(words: str) -> str:
    """Turn the last word into an ordinal: "twenty-one" is "twenty-first"."""

    def last(match: re.Match[str]) -> str:
        word = match[0]
        return _ORDINALS.get(word) or (f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th")

    return _LAST_WORD.sub(last, words)


def digits(text: str) -> str:
    """Return the digits one by one."""
    return " ".join(_SMALL[int(char)] for char in text if char.isdecimal())


def year(n: int, region: Region = AMERICAN) -> str:
    """Return a year in words: 1905 is "nineteen oh five", 2024 is "twenty twenty-four"."""
    if n < 1000 or n % 1000 < 10 or n > 9999:
        return cardinal(n, region)
    return pairs(n)


def pairs(n: int) -> str:
    """Return digits in pairs from the right: 1905 is "nineteen oh five", 747 is "seven forty-seven"."""
    high, low = divmod(n, 100)
    tail = "hundred" if not low else f"oh {_SMALL[low]}" if low < 10 else cardinal(low)
    return f"{cardinal(high)} {tail}"


def code(text: str) -> str:
    """Return a number that is a name (of a model, a port, a road) in words: 747 is "seven forty-seven"."""
    if (text.startswith("0") and len(text) > 1) or len(text) > 4:
        return digits(text)
    n = int(text)
    if n < 100 or n % 1000 == 0:
        return cardinal(n)
    return pairs(n)


def number(text: str, region: Region = AMERICAN) -> str:
    """Return digits with commas and a point in words: "1,234.50" is "one thousand two hundred … point five zero"."""
    whole, point, rest = text.replace(",", "").partition(".")
    if region.lakh and _GROUPED.fullmatch(text.partition(".")[0]):
        region = region._replace(lakh=False)  # grouped by thousands, so read in millions
    words = integer(whole, region) if whole else ""
    return f"{words or 'zero'} point {digits(rest)}" if point else words


def integer(text: str, region: Region = AMERICAN) -> str:
    """Return a whole number in words; digit by digit if it has leading zeros or is long."""
    if (len(text) > 1 and text.startswith("0")) or (len(text) > 9 and not text.endswith("000")) or len(text) > 27:
        return digits(text)
    return cardinal(int(text), region)


def plural(words: str) -> str:
    """Return the plural: "nineteen ninety" becomes "nineteen nineties"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return words + ("es" if words.endswith(("x", "s")) else "s")
