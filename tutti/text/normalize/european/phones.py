"""Numbers of telephones, and postcodes before a town, digit by digit or in pairs."""

import re
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.cardinals import cardinal, digits
from tutti.text.normalize.locales import find_locale
from tutti.text.normalize.locales.locale import Locale

_PHONE = re.compile(
    r"(?<![\w.,/+-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{1,5}\)[ ]?)?\d{1,12}(?:[ .-]\d{1,8}){0,6}"
    r"(?![\w%€$°]|[.,/-]\d|\s?[€$%°])"
)
_SEVEN_DIGITS = re.compile(r"\d(?:[ ().-]{0,3}\d){6}")
_YEARS = re.compile(r"[12]\d{3}-[12]\d{3}")


def expand(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write telephone numbers in words, with a comma between their groups."""
    words = find_phone_words(locale.code)
    is_announced = bool(words and words.search(aligned.text))
    if locale.digit_words:
        aligned = aligned.sub(_digits_rule(locale.code), lambda match: {"n": _digits(match["n"], locale)})
    if _SEVEN_DIGITS.search(aligned.text):
        aligned = aligned.sub(_PHONE, lambda match: _phone(match[0], locale, is_announced))
    return aligned.sub(_postcode(locale.code), lambda match: _digits(match[0], locale))


@cache
def _postcode(code: str) -> re.Pattern[str]:
    return re.compile(find_locale(code).postcode)


@cache
def find_phone_words(code: str) -> re.Pattern[str] | None:
    """Return a pattern of the words that announce a telephone number."""
    words = find_locale(code).phone_words
    return re.compile(rf"\b(?:{words})", re.IGNORECASE) if words else None


@cache
def _digits_rule(code: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{find_locale(code).digit_words}):?\s(?P<n>\d(?:[\d./-]*\d)?)(?!\w)", re.IGNORECASE)


def _digits(text: str, locale: Locale) -> str:
    return ", ".join(digits(group, locale.code) for group in re.findall(r"\d+", text))


def _phone(text: str, locale: Locale, is_announced: bool) -> str | None:
    groups = re.findall(r"\d+", text)
    n_digits = sum(map(len, groups))
    marked = text[0] in "+(" or (text[0] == "0" and len(groups) > 1)
    if not 7 <= n_digits <= 15 or _YEARS.fullmatch(text):
        return None
    grouped = "-" not in text and len(groups) > 1 and all(len(group) == 3 for group in groups[1:])
    if not marked and not is_announced and (grouped or len(groups) == 1):
        return None  # a grouped number
    if not marked and "." in text and grouped:
        return None
    plus = f"{locale.plus} " if text[0] == "+" else ""
    return plus + ", ".join(_group(group, locale) for group in groups)


def _group(group: str, locale: Locale) -> str:
    if re.fullmatch("0[1-9]00", group):  # 0800
        return f"{cardinal(0, locale.code)} {cardinal(int(group), locale.code)}"
    if not locale.phone_by_pairs or len(group) > 3:
        return digits(group, locale.code)
    zeros = len(group) - len(group.lstrip("0")) if int(group) else len(group) - 1
    return " ".join([*[cardinal(0, locale.code)] * zeros, cardinal(int(group), locale.code)])
