"""Roman numerals of rulers, centuries, chapters and wars."""

import re
from functools import cache

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize.cardinals import cardinal
from tutti.text.normalize.european.figures import is_feminine, ordinal
from tutti.text.normalize.locales import find_locale
from tutti.text.normalize.locales.locale import Locale
from tutti.text.normalize.romans import parse_roman

_ROMAN = r"(?=[IVXL])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_ANY = re.compile(r"\b[IVX][IVXL]*(?:ers?|res?|ères?|es?|èmes?|nde?s?)?\b")
_SUFFIXED = re.compile(rf"\b(?P<n>(?=[IVX]){_ROMAN})(?P<mark>ers?|res?|ères?|es?|èmes?|nde?s?)(?![\w'])")  # XXIe siècle
_NAME = re.compile(rf"\b(?P<name>[A-ZÀ-ÝŁŚŻŹĆА-ЯЁ][^\W\d_]+)\s(?P<n>{_ROMAN})(?![\w'’]|\.\w)")
_DOTTED = re.compile(rf"(?:(?P<name>\b[^\W\d_]+)\s|\b)(?P<n>(?=[IVX]){_ROMAN})\.(?=,?\s[^\W\d_])")
_FIRST = re.compile(rf"\A(?P<n>(?=[IVX]{{2}}){_ROMAN})(?=\s(?P<noun>[^\W\d_]{{4,}}))")  # II Guerra Mundial
_LONE = re.compile(rf"(?<![\w.'-])(?=[IVX]{{2}}){_ROMAN}(?![\w'’]|\.\w)")


def expand(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write Roman numerals in words, as ordinals or cardinals by the custom of the language."""
    if not _ANY.search(aligned.text):
        return aligned
    if locale.code == "fr":
        aligned = aligned.sub(_SUFFIXED, lambda match: ordinal(parse_roman(match["n"]), match["mark"], locale))
    if locale.ordinal_marks.startswith(r"\."):  # Ludwig XIV. war, im II. Weltkrieg
        aligned = aligned.sub(_DOTTED, lambda match: _dotted(match, locale))
    if locale.roman_before:
        aligned = aligned.sub(_before(locale.code), lambda match: str(parse_roman(match[0])))
    if locale.numbered:
        aligned = aligned.sub(_numbered(locale.code), lambda match: _number(match, locale))
    if locale.articles:
        aligned = aligned.sub(_FIRST, lambda match: _first(match, locale))
        aligned = aligned.sub(_behind_article(locale.code), lambda match: _nth(match, locale))
    aligned = aligned.sub(_NAME, lambda match: _ruler(match, locale))
    return aligned.sub(_LONE, lambda match: cardinal(parse_roman(match[0]), locale.code))


@cache
def _numbered(code: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?i:{find_locale(code).numbered})\s(?P<n>{_ROMAN})\b(?!')")


@cache
def _before(code: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?=[IVX]){_ROMAN}(?=\s(?:{find_locale(code).roman_before})\b)")


@cache
def _behind_article(code: str) -> re.Pattern[str]:
    articles = "|".join(find_locale(code).articles)
    return re.compile(rf"\b(?P<article>(?i:{articles}))\s(?P<n>(?=[IVX]{{2}}){_ROMAN})(?=\s[^\W\d_])")


def _dotted(match: re.Match[str], locale: Locale) -> Replacement:
    """Write the number of an ordinal in figures; of a king with his article."""
    is_ruler = match["name"] in locale.rulers.split("|")
    if len(match["n"]) == 1 and not is_ruler and match["n"] != "I" and match["name"] in (None, ""):
        return None
    return {"n": f"{locale.ruler_article if is_ruler else ''}{parse_roman(match['n'])}"}


def _number(match: re.Match[str], locale: Locale) -> Replacement:
    n = parse_roman(match["n"])
    return {"n": ordinal(n, "", locale) if locale.numbered_are_ordinal else cardinal(n, locale.code)}


def _first(match: re.Match[str], locale: Locale) -> Replacement:
    feminine = is_feminine(match["noun"].lower(), locale)
    return {"n": ordinal(parse_roman(match["n"]), locale.feminine_marks[0] if feminine else "", locale)}


def _nth(match: re.Match[str], locale: Locale) -> Replacement:
    feminine = locale.articles[match["article"].lower()]
    return {"n": ordinal(parse_roman(match["n"]), locale.feminine_marks[0] if feminine else "", locale)}


def _ruler(match: re.Match[str], locale: Locale) -> Replacement:
    name, n = match["name"], parse_roman(match["n"])
    is_ruler = name in locale.queens or name in locale.rulers.split("|")
    if len(match["n"]) == 1 and not is_ruler:
        return None
    if n > locale.last_ordinal:
        return {"n": cardinal(n, locale.code)}
    mark = locale.feminine_marks[0] if name in locale.queens else locale.ruler_ending
    return {"n": locale.ruler_article + ordinal(n, mark, locale)}
