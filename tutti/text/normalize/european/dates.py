"""Dates, times of day and ranges."""

import re
from functools import cache

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize.cardinals import cardinal
from tutti.text.normalize.european.figures import ending_at, ending_of, ordinal, year
from tutti.text.normalize.locales import find_locale
from tutti.text.normalize.locales.locale import Locale

_TWO_SEPARATORS = re.compile(r"\d[/.-]\d\d?[/.-]\d")
_MONTH_OR_DAY = re.compile(r"\d\s(?:de\s)?[a-zéû]{3,5}[. ]|\b[^\W\d_]{2,4}\.")
_ISO_DATE = re.compile(r"(?<![\d.,/-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d/-])")
_DATE = re.compile(r"(?<![\d.,/-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-]|[.,]\d)")
_DAY_MONTH = re.compile(r"(?<![\d.,/-])(?:(0?[1-9]|[12]\d|3[01])/(0[1-9])|([012]\d|3[01])/(1[0-2]))(?![\d/]|[.,]\d)")
_DOTTED_DAY = re.compile(r"(?<![\d.,])(0?[1-9]|[12]\d|3[01])\.\s?(0?[1-9]|1[0-2])\.(?![\d.])")
_TIME_RANGE = re.compile(r"(?<=[:hH]\d\d)\s?[-–—]\s?(?=\d{1,2}\s?[:hH])")
_RANGE = re.compile(r"(?<=\d)\s?[-–—]\s?(?=\d)")


def expand(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write dates and times of day in words."""
    aligned = aligned.sub(_TIME_RANGE, f" {locale.range_joint} ")
    if _TWO_SEPARATORS.search(aligned.text):
        aligned = aligned.sub(_ISO_DATE, lambda match: _date(match, match[3], match[2], match[1], locale))
        aligned = aligned.sub(_DATE, lambda match: _date(match, match[1], match[3], match[4], locale))
    if locale.dotted_days:
        aligned = aligned.sub(_DOTTED_DAY, lambda match: _day_month(match, locale))
    aligned = aligned.sub(_time_rule(locale.code), lambda match: _time_of(match, locale))
    if locale.before_time and "." in aligned.text:
        aligned = aligned.sub(_dotted_time(locale.code), lambda match: {"time": _time(match, locale)})
    if "/" in aligned.text:
        aligned = aligned.sub(_DAY_MONTH, lambda match: _day_month(match, locale))
    if locale.short_months and _MONTH_OR_DAY.search(aligned.text):
        aligned = aligned.sub(_short_month(locale.code), lambda match: _full_month(match, locale))
    if locale.first_of_month and "1" in aligned.text:
        aligned = aligned.sub(_first_of_month(locale.code), f"{locale.first_of_month} ")
    return aligned


def expand_ranges(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write the hyphen between two numbers in words."""
    return aligned.sub(_RANGE, f" {locale.range_joint} ")


@cache
def _time_rule(code: str) -> re.Pattern[str]:
    marks = find_locale(code).hour_marks
    return re.compile(
        r"(?<![\d.,:])(?P<h>[01]?\d|2[0-4])(?::|\s?[hH]\s?)(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?:min\b)?(?!\s?min)"
        rf"(?:\s?(?:{marks}))?(?![\d:]|\w)"
    )


@cache
def _dotted_time(code: str) -> re.Pattern[str]:
    marks = find_locale(code).hour_marks
    return re.compile(
        rf"\b(?:{find_locale(code).before_time})\s(?P<time>(?P<h>[01]?\d|2[0-4])\.(?P<m>[0-5]\d)(?:\s?(?:{marks}))?)"
        r"(?![\d%€]|[.,]\d)"
    )


@cache
def _short_month(code: str) -> re.Pattern[str]:
    locale = find_locale(code)
    months = "|".join(f"({month})" for month in locale.short_months)
    days = "|".join(locale.days)
    return re.compile(
        rf"(?:(?<=\d\s)|(?<=\d\.\s))(?:de\s)?(?P<month>{months})\b(?:\.|(?=\s\d{{4}}))|\b(?P<day>(?i:{days}))\.(?=,?\s\d)"
    )


@cache
def _first_of_month(code: str) -> re.Pattern[str]:
    names = "|".join(find_locale(code).months)
    return re.compile(rf"(?<![\d.,])1(?:er|[ºo°])?\s(?=(?:de\s)?(?:{names})\b)", re.IGNORECASE)


def _full_month(match: re.Match[str], locale: Locale) -> Replacement:
    if match["day"]:
        return locale.days[match["day"].lower()]
    n = next(n for n, short in enumerate(locale.short_months) if re.fullmatch(short, match["month"]))
    stop = "" if match.string[match.end() :].strip() or match[0][-1] != "." else "."
    return match[0][: match.start("month") - match.start()] + locale.months[n] + stop


def _date(match: re.Match[str], day: str, month: str, year_figure: str, locale: Locale) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    n_year = int(year_figure) + (0 if len(year_figure) == 4 else 2000 if int(year_figure) < 50 else 1900)
    name = locale.months[int(month) - 1]
    return locale.date.format(day=_day(day, match, locale), month=name, year=_year(n_year, locale))


def _year(n: int, locale: Locale) -> str:
    return ordinal(n, locale.year_ending, locale) if locale.year_ending else year(n, locale)


def _day_month(match: re.Match[str], locale: Locale) -> str:
    day, month = [figure for figure in match.groups() if figure]
    return locale.day_month.format(day=_day(day, match, locale), month=locale.months[int(month) - 1])


def _day(day: str, match: re.Match[str], locale: Locale) -> str:
    if locale.days_are_ordinal:
        return ordinal(int(day), locale.day_ending or ending_of(match, locale), locale)
    return locale.first_of_month if int(day) == 1 and locale.first_of_month else cardinal(int(day), locale.code)


def _time_of(match: re.Match[str], locale: Locale) -> str:
    words = _time(match, locale)
    if not match["s"] or match["s"] == "00":
        return words
    n, names = int(match["s"]), locale.units["s"]
    return f"{words} {locale.joint} {cardinal(n, locale.code, feminine='s' in locale.feminine_units)} {names[n != 1]}"


def _time(match: re.Match[str], locale: Locale) -> str:
    hour, minute = match["h"], match["m"]
    hour_words = cardinal(int(hour), locale.code, feminine=locale.hours_are_feminine)
    if locale.hour_endings:
        ending = ending_at(match.string, match.start("h"), match.end(), locale.hour_endings)
        hour_words = ordinal(int(hour), ending, locale)
    if locale.one[0]:
        hour_words = re.sub(rf"{locale.one[0]}$", locale.one[1], hour_words)
    layout = locale.time if int(minute) else locale.full_hour
    zero = locale.short_minute if minute[0] == "0" else ""
    words = zero + cardinal(int(minute), locale.code)
    if locale.minute_ending:
        words = ordinal(int(minute), locale.minute_ending, locale)
    words = layout.format(hour=hour_words, minute=words)
    return words.replace("une heures", "une heure").replace("uma horas", "uma hora")
