"""Numbers in English words."""

import re

NUMBER = r"(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?|(?<![\w.])\.\d++)"  # 1,234.5 or 12 or .5

_SMALL = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ["", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion"]
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_ORDINALS["twelve"] = "twelfth"
_LAST_WORD = re.compile(r"\w+$")


def cardinal(n: int, british: bool = False) -> str:
    """Return a number in words: 105 is "one hundred five", in British English "one hundred and five"."""
    if n < 0:
        return f"minus {cardinal(-n, british)}"
    if n < 1000:
        return _below_thousand(n, british)
    if n >= 1000 ** len(_SCALES):
        return digits(str(n))
    groups: list[str] = []
    for scale in _SCALES:
        n, part = divmod(n, 1000)
        if part:
            groups.insert(0, f"{_below_thousand(part, british)} {scale}".strip())
            if british and not scale and part < 100:
                groups[0] = f"and {groups[0]}"
        if not n:
            break
    return " ".join(groups)


def _below_thousand(n: int, british: bool) -> str:
    if n < 20:
        return _SMALL[n]
    if n < 100:
        return _TENS[n // 10] + (f"-{_SMALL[n % 10]}" if n % 10 else "")
    rest = f"{' and' if british else ''} {_below_thousand(n % 100, british)}" if n % 100 else ""
    return f"{_SMALL[n // 100]} hundred{rest}"


def ordinal(n: int, british: bool = False) -> str:
    """Return an ordinal: 21 is "twenty-first"."""
    return ordinal_of(cardinal(n, british))


def ordinal_of(words: str) -> str:
    """Turn the last word into an ordinal: "twenty-one" is "twenty-first"."""

    def last(match: re.Match[str]) -> str:
        word = match[0]
        return _ORDINALS.get(word) or (f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th")

    return _LAST_WORD.sub(last, words)


def digits(text: str) -> str:
    """Return the digits one by one."""
    return " ".join(_SMALL[int(char)] for char in text if char.isdecimal())


def year(n: int, british: bool = False) -> str:
    """Return a year in words: 1905 is "nineteen oh five", 2024 is "twenty twenty-four"."""
    if n < 1000 or n % 1000 < 10 or n > 9999:
        return cardinal(n, british)
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


def number(text: str, british: bool = False) -> str:
    """Return digits with commas and a point in words: "1,234.50" is "one thousand two hundred … point five zero"."""
    whole, point, rest = text.replace(",", "").partition(".")
    words = integer(whole, british) if whole else ""
    return f"{words or 'zero'} point {digits(rest)}" if point else words


def integer(text: str, british: bool = False) -> str:
    """Return a whole number in words; digit by digit if it has leading zeros or is long."""
    if (len(text) > 1 and text.startswith("0")) or (len(text) > 9 and not text.endswith("000")) or len(text) > 27:
        return digits(text)
    return cardinal(int(text), british)


def plural(words: str) -> str:
    """Return the plural: "nineteen ninety" becomes "nineteen nineties"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return words + ("es" if words.endswith(("x", "s")) else "s")
