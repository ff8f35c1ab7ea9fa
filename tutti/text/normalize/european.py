"""Normalisation for the languages of locales.py: numbers, dates, times, money and units in words."""

import re
import unicodedata
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.cardinals import LIMIT, cardinal, digits, words
from tutti.text.normalize.locales import LOCALES, Locale

# An atomic group: a number matches completely or not at all, so that a long one takes linear time.
_NUMBER = r"(?>\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d{1,9})?|\d+(?:[.,]\d+)*)"
_ISO_DATE = re.compile(r"(?<![\d.,/-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d/-])")
_DATE = re.compile(r"(?<![\d.,/-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-]|[.,]\d)")
_TIME = re.compile(
    r"(?<![\d.,:])([01]?\d|2[0-4])(?::|[hH]\s?)([0-5]\d)(?::[0-5]\d)?(?:\s?(?:h|hs|hrs|बजे))?(?![\d:]|\w)"
)
_FRACTION = re.compile(r"(?<![\d/.,])(\d{1,4})/(\d{1,4})(?![\d/]|[.,]\d)")
_RANGE = re.compile(r"(?<=\d)\s?[-–—]\s?(?=\d)")
_PHONE = re.compile(r"(?<![\w.,])(?:\+?\d{1,4}(?:[ .-]\d{2,4}){2,5}|\d{3}-\d{4})(?![\w,]|[.-]\d)")
_FRACTION_SIGN = re.compile(r"(?<=\d)[¼½¾⅓⅔]")


def normalize(aligned: AlignedText, code: str) -> AlignedText:
    """Write every figure in words, each with the source of the figure."""
    locale = LOCALES[code]
    aligned = aligned.sub(_abbreviation(code), lambda match: locale.abbreviations[match[0]])
    aligned = aligned.sub(_ISO_DATE, lambda match: _date(match[3], match[2], match[1], locale))
    aligned = aligned.sub(_DATE, lambda match: _date(match[1], match[3], match[4], locale))
    aligned = aligned.sub(_TIME, lambda match: _time(int(match[1]), int(match[2]), locale))
    aligned = aligned.sub(_FRACTION, lambda match: _fraction(match[1], match[2], locale))
    aligned = aligned.sub(_PHONE, lambda match: _phone(match[0], locale))
    aligned = aligned.sub(_RANGE, f" {locale.range_joint} ")
    aligned = aligned.sub(_FRACTION_SIGN, lambda match: " " + match[0])
    aligned = aligned.sub(_first_of_month(code), f"{locale.first_of_month} ")
    aligned = aligned.sub(_figure(code), lambda match: _expand_figure(match, locale))
    return aligned.sub(_remaining(code), lambda match: f" {_symbol(match[0], locale)} ")


@cache
def _abbreviation(code: str) -> re.Pattern[str]:
    names = sorted(LOCALES[code].abbreviations, key=len, reverse=True)
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")(?!\w)")


@cache
def _first_of_month(code: str) -> re.Pattern[str]:
    if code in ("hi", "es"):
        return re.compile(r"(?!)")  # these say "one"
    names = "|".join(LOCALES[code].months)
    return re.compile(rf"(?<![\d.,])1(?:er|º|°)?\s(?=(?:de\s)?(?:{names})\b)", re.IGNORECASE)


@cache
def _figure(code: str) -> re.Pattern[str]:
    locale = LOCALES[code]
    money = "|".join(map(re.escape, sorted(locale.money, key=len, reverse=True)))
    units = "|".join(map(re.escape, sorted(locale.units, key=len, reverse=True)))
    ordinal = {"fr": "ers?|res?|ères?|es?|èmes?|nde?s?", "hi": "वाँ|वां|वीं|वें"}.get(code, "[.]?[ºª°]|[oa](?=\\s)")
    return re.compile(
        rf"(?:(?P<pre>{money})\s?)?(?P<sign>(?<![\w)])[-−+])?(?P<number>{_NUMBER})"
        rf"(?:(?P<ordinal>{ordinal})(?![\w])|\s?(?P<post>{money})(?!\w)|\s?(?P<unit>{units})(?!\w))?"
        rf"(?P<next>\s(?=(?P<noun>[^\W\d_]+)))?"
    )


def _expand_figure(match: re.Match[str], locale: Locale) -> str:
    """Return the figure in words, separated from letters that touch it ("H2O")."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    words = _figure_words(match, locale)
    return (" " if before.isalnum() else "") + words + (" " if after.isalnum() and not words.endswith(" ") else "")


def _figure_words(match: re.Match[str], locale: Locale) -> str:
    text = re.sub(r"\s", "", match["number"])
    sign = {"-": f"{locale.minus} ", "−": f"{locale.minus} ", "+": f"{locale.plus} "}.get(match["sign"] or "", "")
    tail = match["next"] or ""
    if match["ordinal"] and text.isdecimal() and len(text) < 7:
        return _ordinal(int(text), match["ordinal"], locale) + tail
    if symbol := match["pre"] or match["post"]:
        return sign + _money(text, symbol, locale) + tail
    if unit := match["unit"]:
        singular, plural = locale.units[unit]
        number = _number(text, locale, feminine=unit in locale.feminine_units, counts=True)
        return f"{sign}{number} {singular if text == '1' else plural}{tail}"
    noun = match["noun"] or ""
    is_year = text.isdecimal() and 1000 <= int(text[:5]) <= 2100
    counts = len(noun) > 2 and not is_year and noun.lower() not in _NO_NOUNS
    return sign + _number(text, locale, feminine=_is_feminine(noun.lower(), locale.code), counts=counts) + tail


_NO_NOUNS = frozenset(words("para hasta cada contra entre por con que según las los dans pour avec della alla sono"))
_FRENCH_FEMININE = frozenset(
    words(
        "heure minute seconde année semaine journée nuit fois femme fille voiture maison page personne livre tonne "
        "tasse chose question ville rue table pomme"
    )
)


def _is_feminine(noun: str, code: str) -> bool:
    """Guess the gender from the ending; for French, which has no such ending, common nouns are listed."""
    if code == "fr":
        return noun.removesuffix("s") in _FRENCH_FEMININE or noun == "fois"
    return noun.endswith(("a", "as", "ción", "ciones", "ção", "ções", "zione", "zioni", "dad", "dades", "mulheres"))


def _number(text: str, locale: Locale, *, feminine: bool = False, counts: bool = False) -> str:
    """Return a figure with separators in words; `counts` if a noun follows ("un gato", not "uno gato")."""
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", text) and locale.code != "hi":
        text = text.replace(".", "")
    elif re.fullmatch(r"\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?|\d{1,3},\d{3}\.\d+|\d{1,3},000", text) or (
        locale.code == "hi" and re.fullmatch(r"\d{1,3}(?:,\d{2,3})+(?:\.\d+)?", text)
    ):
        text = text.replace(",", "")
    parts = re.split(r"[.,]", text)
    if len(parts) > 2:
        return f" {locale.point if locale.code == 'hi' else _DOT[locale.code]} ".join(
            _whole(part, locale) for part in parts
        )
    if len(parts) == 2:
        return f"{_whole(parts[0], locale)} {locale.point} {_decimals(parts[1], locale)}"
    words = _whole(text, locale, feminine=feminine and counts)
    if counts and locale.code in ("es", "it"):  # "un gato", "veintiún gatos"
        words = re.sub(r"\buno$", "un", words.replace("veintiuno", "veintiún"))
    return words


_DOT = {"es": "punto", "fr": "point", "it": "punto", "pt-br": "ponto"}


def _whole(text: str, locale: Locale, *, feminine: bool = False) -> str:
    if len(text) > 15 or (len(text) > 1 and text[0] == "0") or int(text) >= LIMIT:
        return digits(text, locale.code)
    return cardinal(int(text), locale.code, feminine=feminine)


def _decimals(text: str, locale: Locale) -> str:
    if locale.code == "hi" or len(text) > 3 or (len(text) > 1 and text[0] == "0"):
        return digits(text, locale.code)
    return cardinal(int(text), locale.code)


def _money(text: str, symbol: str, locale: Locale) -> str:
    (singular, plural), (small, smalls) = locale.money[symbol]
    cents = re.fullmatch(r"(\d+|\d{1,3}(?:[.,]\d{2,3})+)[.,](\d{2})", text)
    whole = cents[1] if cents else text
    words = (
        _number(whole, locale, feminine=symbol in locale.feminine_units, counts=True)
        + f" {singular if whole == '1' else plural}"
    )
    if not cents or cents[2] == "00":
        return words
    rest = f"{_number(str(int(cents[2])), locale, counts=True)} {small if cents[2] == '01' else smalls}"
    return f"{words} {locale.money_joint} {rest}".replace("  ", " ")


def _date(day: str, month: str, year: str, locale: Locale) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    n_year = int(year) + (2000 if len(year) == 2 else 0)
    day_words = locale.first_of_month if int(day) == 1 and locale.code != "es" else cardinal(int(day), locale.code)
    month_name = locale.months[int(month) - 1]
    return locale.date.format(day=day_words, month=month_name, year=cardinal(n_year, locale.code))


def _time(hour: int, minute: int, locale: Locale) -> str:
    hour_words = cardinal(hour, locale.code, feminine=locale.hours_are_feminine)
    words = (locale.time if minute else locale.full_hour).format(hour=hour_words, minute=cardinal(minute, locale.code))
    return words.replace("une heures", "une heure").replace("uma horas", "uma hora")


def _fraction(top: str, bottom: str, locale: Locale) -> str:
    if words := locale.fractions.get(f"{top}/{bottom}"):
        return words
    return f"{_whole(top, locale)} {locale.fraction_joint} {_whole(bottom, locale)}"


def _phone(text: str, locale: Locale) -> str | None:
    groups = re.findall(r"\d+", text)
    if not text.startswith("+") and "-" not in text and all(len(group) == 3 for group in groups[1:]):
        return None  # a grouped number
    return (f"{locale.plus} " if text[0] == "+" else "") + ", ".join(digits(group, locale.code) for group in groups)


def _ordinal(n: int, ending: str, locale: Locale) -> str:
    feminine = ending.endswith(("ª", "a", "re", "res", "nde", "ndes", "वीं"))
    if not 1 <= n <= len(locale.ordinals):
        if locale.code == "fr":
            stem = re.sub(r"(?<=cin)q$", "qu", re.sub(r"(?<=neu)f$", "v", cardinal(n, "fr").removesuffix("s")))
            return stem.removesuffix("e") + "ième"
        return cardinal(n, locale.code, feminine=feminine) + ("वाँ" if locale.code == "hi" else "")
    word = locale.ordinals[n - 1]
    if not feminine:
        return word
    if locale.code == "fr":
        return "première" if n == 1 else word
    return re.sub(r"[oा]$", "ी" if locale.code == "hi" else "a", word)


@cache
def _remaining(code: str) -> re.Pattern[str]:
    symbols = "".join(LOCALES[code].symbols) + "".join(sign for sign in LOCALES[code].money if len(sign) == 1)
    return re.compile(rf"[{re.escape(symbols)}%+\d¹²³⁰-⁹₀-₉¼½¾⅓⅔]")


def _symbol(symbol: str, locale: Locale) -> str:
    if symbol in locale.symbols:
        return locale.symbols[symbol]
    if symbol in locale.money:
        return locale.money[symbol][0][1]
    if symbol in "%+":
        return locale.units["%"][0] if symbol == "%" else locale.plus
    value = unicodedata.numeric(symbol, -1.0)
    if value in (0.25, 0.5, 0.75) or (value > 0 and value != int(value)):
        return locale.fractions.get(
            {0.25: "1/4", 0.5: "1/2", 0.75: "3/4"}.get(value, "1/3" if value < 0.5 else "2/3"), ""
        )
    return cardinal(int(value), locale.code) if value >= 0 else symbol
