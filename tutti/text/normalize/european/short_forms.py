"""Abbreviations, acronyms and codes: Sr., n.º 12, EE. UU., ADN, N-340."""

import re
from collections.abc import Iterable
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.european.addresses import spell_letters
from tutti.text.normalize.locales import find_locale
from tutti.text.normalize.locales.locale import Locale

_START = r"(?<![\w\u0900-\u0963])"  # of a word; the vowel signs of Hindi are no letters to a regular expression
_ACRONYM = re.compile(r"(?<![\w.-])(?<![A-ZÀ-Ý]{2}\s)[A-Z]{2,6}(?!\w|\s[A-ZÀ-Ý]{2})")
_CODE = re.compile(r"(?<!\w)(?P<letters>[A-Z]{1,3})(?P<hyphen>-?)(?=\d)")
_NUMBER = re.compile(r"\d|\b[IVX]{1,5}\b")
_FEMININE_NAME = re.compile(r"\s[A-Z]\w*a\b")  # Santa Chiara
_VOWEL = re.compile("[AEIOUYÀ-Ý]")


def expand(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write abbreviations in full where what stands beside them shows what they mean."""
    if locale.word_endings and "." in aligned.text:
        aligned = aligned.sub(_endings(locale.code), lambda match: locale.word_endings[match[0]])
    for pattern, words in locale.rewrites:
        aligned = aligned.sub(re.compile(pattern), lambda _, words=words: {"n": words})  # type: ignore[misc]
    has_number = _NUMBER.search(aligned.text)
    for kind in ("abbreviations", "before_number", "after_number", "before_name"):
        rule = _rule(locale.code, kind) if has_number or "number" not in kind else None
        if rule:
            aligned = aligned.sub(rule, lambda match, kind=kind: _expand(match, locale.code, kind))  # type: ignore[misc]
    return aligned


def expand_acronyms(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Spell the acronyms that nobody can say as a word, except between other words in capitals."""
    if not locale.letters:
        return aligned

    def expand_acronym(match: re.Match[str]) -> str:
        spelled = match[0] in locale.spelled or not _VOWEL.search(match[0])
        return spell_letters(match[0], locale) if spelled else match[0].lower()

    return aligned.sub(_ACRONYM, expand_acronym)


def expand_codes(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Part letters from the number behind them: N-340, A7."""
    if not locale.letters:
        return aligned

    def expand_code(match: re.Match[str]) -> dict[str, str] | None:
        if match["letters"] in locale.money:
            return None
        return {"letters": spell_letters(match["letters"], locale) + " "} | ({"hyphen": ""} if match["hyphen"] else {})

    return aligned.sub(_CODE, expand_code)


@cache
def _endings(code: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=[^\W\d_])(?:{_alternatives(find_locale(code).word_endings)})(?=\s)")


def _expand(match: re.Match[str], code: str, kind: str) -> str:
    units = find_locale(code).units
    if (match[0] in units or match[0].rstrip(".") in units) and match.string[: match.start()].rstrip()[-1:].isdecimal():
        return match[0]  # 15 min.
    words = _table(code, kind)[match[0].replace(" ", "")]
    if words == "san" and _FEMININE_NAME.match(match.string, match.end()):
        words = "santa"
    if match.string[match.end() : match.end() + 1].isdecimal():
        return f"{words} "
    if kind == "after_number" and match.string[match.start() - 1].isdecimal():
        words = f" {words}"
    if words.endswith(" ") or match[0][-1] != ".":
        return words
    return f"{words}." if not match.string[match.end() :].strip(" \"')”»") else words


@cache
def _table(code: str, kind: str) -> dict[str, str]:
    """Return abbreviations without blanks, also with a capital where they may begin a sentence."""
    names: dict[str, str] = getattr(find_locale(code), kind)
    return {key.replace(" ", ""): words for name, words in names.items() for key in (_capitalised(name), name)}


def _capitalised(name: str) -> str:
    return name[0].upper() + name[1:]


@cache
def _rule(code: str, kind: str) -> re.Pattern[str] | None:
    names = getattr(find_locale(code), kind)
    if not names:
        return None
    spellings = _alternatives({spelling for name in names for spelling in (name, _capitalised(name))})
    match kind:
        case "before_number":
            return re.compile(rf"{_START}(?<!\.)(?:{spellings})(?=\s?(?:\d|[IVX]{{1,5}}\b))")
        case "after_number":
            return re.compile(rf"(?<=\d)(?:{spellings})(?!\w)|(?<=\d\s)(?:{spellings})(?!\w)")
        case "before_name":
            return re.compile(rf"{_START}(?<!\.)(?:{spellings})(?=\s[A-ZÀ-Ý])")
    return re.compile(rf"{_START}(?:{spellings})(?:(?<=[-/°º])|(?<=\.)(?=\d)|(?!\w))")


def _alternatives(names: Iterable[str]) -> str:
    """Return the names as a pattern by their first letters, the longest first; a blank in one may be missing."""
    by_first: dict[str, list[str]] = {}
    for name in sorted(names, key=len, reverse=True):
        by_first.setdefault(name[0], []).append(re.escape(name[1:]).replace(r"\ ", r"\s?"))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in by_first.items())
