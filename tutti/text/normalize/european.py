"""Figures in running text as plain words: numbers, dates, times, money, units, for the languages of tongue.py."""

import re
import unicodedata
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.cardinals import LIMIT, cardinal, digits, words
from tutti.text.normalize.locales import TONGUES, Tongue

# Atomic groups: a number is taken whole or not at all, so that a long one cannot make the search slow.
_NUMBER = r"(?>\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d{1,9})?|\d+(?:[.,]\d+)*)"
_ISO_DATE = re.compile(r"(?<![\d.,/-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d/-])")
_DATE = re.compile(r"(?<![\d.,/-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-]|[.,]\d)")
_TIME = re.compile(
    r"(?<![\d.,:])([01]?\d|2[0-4])(?::|[hH]\s?)([0-5]\d)(?::[0-5]\d)?(?:\s?(?:h|hs|hrs|बजे))?(?![\d:]|\w)"
)
_FRACTION = re.compile(r"(?<![\d/.,])(\d{1,4})/(\d{1,4})(?![\d/]|[.,]\d)")
_RANGE = re.compile(r"(?<=\d)\s?[-–—]\s?(?=\d)")
_PHONE = re.compile(r"(?<![\w.,])(?:\+?\d{1,4}(?:[ .-]\d{2,4}){2,5}|\d{3}-\d{4})(?![\w,]|[.-]\d)")
_VULGAR = re.compile(r"(?<=\d)[¼½¾⅓⅔]")


def normalize(spoken: AlignedText, code: str) -> AlignedText:
    """Every figure in words of the language; the words of one figure all point at it."""
    tongue = TONGUES[code]
    spoken = spoken.sub(_short(code), lambda match: tongue.short[match[0]])
    spoken = spoken.sub(_ISO_DATE, lambda match: _date(match[3], match[2], match[1], tongue))
    spoken = spoken.sub(_DATE, lambda match: _date(match[1], match[3], match[4], tongue))
    spoken = spoken.sub(_TIME, lambda match: _time(int(match[1]), int(match[2]), tongue))
    spoken = spoken.sub(_FRACTION, lambda match: _fraction(match[1], match[2], tongue))
    spoken = spoken.sub(_PHONE, lambda match: _phone(match[0], tongue))
    spoken = spoken.sub(_RANGE, f" {tongue.to} ")
    spoken = spoken.sub(_VULGAR, lambda match: " " + match[0])
    spoken = spoken.sub(_first_of_month(code), f"{tongue.first_of_month} ")
    spoken = spoken.sub(_figure(code), lambda match: _say(match, tongue))
    return spoken.sub(_left_over(code), lambda match: f" {_symbol(match[0], tongue)} ")


@cache
def _short(code: str) -> re.Pattern[str]:
    names = sorted(TONGUES[code].short, key=len, reverse=True)
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")(?!\w)")


@cache
def _first_of_month(code: str) -> re.Pattern[str]:
    if code in ("hi", "es"):
        return re.compile(r"(?!)")  # they say "one"
    names = "|".join(TONGUES[code].months)
    return re.compile(rf"(?<![\d.,])1(?:er|º|°)?\s(?=(?:de\s)?(?:{names})\b)", re.IGNORECASE)


@cache
def _figure(code: str) -> re.Pattern[str]:
    tongue = TONGUES[code]
    money = "|".join(map(re.escape, sorted(tongue.money, key=len, reverse=True)))
    units = "|".join(map(re.escape, sorted(tongue.units, key=len, reverse=True)))
    ordinal = {"fr": "ers?|res?|ères?|es?|èmes?|nde?s?", "hi": "वाँ|वां|वीं|वें"}.get(code, "[.]?[ºª°]|[oa](?=\\s)")
    return re.compile(
        rf"(?:(?P<pre>{money})\s?)?(?P<sign>(?<![\w)])[-−+])?(?P<number>{_NUMBER})"
        rf"(?:(?P<ordinal>{ordinal})(?![\w])|\s?(?P<post>{money})(?!\w)|\s?(?P<unit>{units})(?!\w))?"
        rf"(?P<next>\s(?=(?P<noun>[^\W\d_]+)))?"
    )


def _say(match: re.Match[str], tongue: Tongue) -> str:
    """The figure in words, kept apart from letters that touch it ("H2O")."""
    before, behind = (
        match.string[max(0, match.start() - 1) : match.start()],
        match.string[match.end() : match.end() + 1],
    )
    words = _words(match, tongue)
    return (" " if before.isalnum() else "") + words + (" " if behind.isalnum() and not words.endswith(" ") else "")


def _words(match: re.Match[str], tongue: Tongue) -> str:
    text = re.sub(r"\s", "", match["number"])
    sign = {"-": f"{tongue.minus} ", "−": f"{tongue.minus} ", "+": f"{tongue.plus} "}.get(match["sign"] or "", "")
    tail = match["next"] or ""
    if match["ordinal"] and text.isdecimal() and len(text) < 7:
        return _ordinal(int(text), match["ordinal"], tongue) + tail
    if symbol := match["pre"] or match["post"]:
        return sign + _money(text, symbol, tongue) + tail
    if unit := match["unit"]:
        one, many = tongue.units[unit]
        number = _number(text, tongue, feminine=unit in tongue.feminine_units, counts=True)
        return f"{sign}{number} {one if text == '1' else many}{tail}"
    noun = match["noun"] or ""
    is_year = text.isdecimal() and 1000 <= int(text[:5]) <= 2100
    counts = len(noun) > 2 and not is_year and noun.lower() not in _NO_NOUNS
    return sign + _number(text, tongue, feminine=_is_feminine(noun.lower(), tongue.code), counts=counts) + tail


_NO_NOUNS = frozenset(words("para hasta cada contra entre por con que según las los dans pour avec della alla sono"))
_FRENCH_FEMININE = frozenset(
    words(
        "heure minute seconde année semaine journée nuit fois femme fille voiture maison page personne livre tonne "
        "tasse chose question ville rue table pomme"
    )
)


def _is_feminine(noun: str, code: str) -> bool:
    """A guess from the ending; French shows none, so its common counted nouns are listed."""
    if code == "fr":
        return noun.removesuffix("s") in _FRENCH_FEMININE or noun == "fois"
    return noun.endswith(("a", "as", "ción", "ciones", "ção", "ções", "zione", "zioni", "dad", "dades", "mulheres"))


def _number(text: str, tongue: Tongue, *, feminine: bool = False, counts: bool = False) -> str:
    """A figure with its separators; `counts` when a noun follows ("un gato", not "uno gato")."""
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", text) and tongue.code != "hi":
        text = text.replace(".", "")
    elif re.fullmatch(r"\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?|\d{1,3},\d{3}\.\d+|\d{1,3},000", text) or (
        tongue.code == "hi" and re.fullmatch(r"\d{1,3}(?:,\d{2,3})+(?:\.\d+)?", text)
    ):
        text = text.replace(",", "")
    parts = re.split(r"[.,]", text)
    if len(parts) > 2:
        return f" {tongue.point if tongue.code == 'hi' else _DOT[tongue.code]} ".join(
            _whole(part, tongue) for part in parts
        )
    if len(parts) == 2:
        return f"{_whole(parts[0], tongue)} {tongue.point} {_decimals(parts[1], tongue)}"
    words = _whole(text, tongue, feminine=feminine and counts)
    if counts and tongue.code in ("es", "it"):  # "un gato", "veintiún gatos"
        words = re.sub(r"\buno$", "un", words.replace("veintiuno", "veintiún"))
    return words


_DOT = {"es": "punto", "fr": "point", "it": "punto", "pt-br": "ponto"}


def _whole(text: str, tongue: Tongue, *, feminine: bool = False) -> str:
    if len(text) > 15 or (len(text) > 1 and text[0] == "0") or int(text) >= LIMIT:
        return digits(text, tongue.code)
    return cardinal(int(text), tongue.code, feminine=feminine)


def _decimals(text: str, tongue: Tongue) -> str:
    if tongue.code == "hi" or len(text) > 3 or (len(text) > 1 and text[0] == "0"):
        return digits(text, tongue.code)
    return cardinal(int(text), tongue.code)


def _money(text: str, symbol: str, tongue: Tongue) -> str:
    (one, many), (small, smalls) = tongue.money[symbol]
    cents = re.fullmatch(r"(\d+|\d{1,3}(?:[.,]\d{2,3})+)[.,](\d{2})", text)
    whole = cents[1] if cents else text
    said = (
        _number(whole, tongue, feminine=symbol in tongue.feminine_units, counts=True)
        + f" {one if whole == '1' else many}"
    )
    if not cents or cents[2] == "00":
        return said
    rest = f"{_number(str(int(cents[2])), tongue, counts=True)} {small if cents[2] == '01' else smalls}"
    return f"{said} {tongue.joined} {rest}".replace("  ", " ")


def _date(day: str, month: str, year: str, tongue: Tongue) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    n_year = int(year) + (2000 if len(year) == 2 else 0)
    said = tongue.first_of_month if int(day) == 1 and tongue.code != "es" else cardinal(int(day), tongue.code)
    month_name = tongue.months[int(month) - 1]
    return tongue.date.format(day=said, month=month_name, year=cardinal(n_year, tongue.code))


def _time(hour: int, minute: int, tongue: Tongue) -> str:
    said = cardinal(hour, tongue.code, feminine=tongue.hours_are_feminine)
    words = (tongue.time if minute else tongue.full_hour).format(hour=said, minute=cardinal(minute, tongue.code))
    return words.replace("une heures", "une heure").replace("uma horas", "uma hora")


def _fraction(top: str, bottom: str, tongue: Tongue) -> str:
    if named := tongue.fractions.get(f"{top}/{bottom}"):
        return named
    return f"{_whole(top, tongue)} {tongue.over} {_whole(bottom, tongue)}"


def _phone(text: str, tongue: Tongue) -> str | None:
    groups = re.findall(r"\d+", text)
    if not text.startswith("+") and "-" not in text and all(len(group) == 3 for group in groups[1:]):
        return None  # a grouped number
    return (f"{tongue.plus} " if text[0] == "+" else "") + ", ".join(digits(group, tongue.code) for group in groups)


def _ordinal(n: int, ending: str, tongue: Tongue) -> str:
    feminine = ending.endswith(("ª", "a", "re", "res", "nde", "ndes", "वीं"))
    if not 1 <= n <= len(tongue.ordinals):
        if tongue.code == "fr":
            stem = re.sub(r"(?<=cin)q$", "qu", re.sub(r"(?<=neu)f$", "v", cardinal(n, "fr").removesuffix("s")))
            return stem.removesuffix("e") + "ième"
        return cardinal(n, tongue.code, feminine=feminine) + ("वाँ" if tongue.code == "hi" else "")
    word = tongue.ordinals[n - 1]
    if not feminine:
        return word
    if tongue.code == "fr":
        return "première" if n == 1 else word
    return re.sub(r"[oा]$", "ी" if tongue.code == "hi" else "a", word)


@cache
def _left_over(code: str) -> re.Pattern[str]:
    symbols = "".join(TONGUES[code].symbols) + "".join(sign for sign in TONGUES[code].money if len(sign) == 1)
    return re.compile(rf"[{re.escape(symbols)}%+\d¹²³⁰-⁹₀-₉¼½¾⅓⅔]")


def _symbol(symbol: str, tongue: Tongue) -> str:
    if symbol in tongue.symbols:
        return tongue.symbols[symbol]
    if symbol in tongue.money:
        return tongue.money[symbol][0][1]
    if symbol in "%+":
        return tongue.units["%"][0] if symbol == "%" else tongue.plus
    value = unicodedata.numeric(symbol, -1.0)
    if value in (0.25, 0.5, 0.75) or (value > 0 and value != int(value)):
        return tongue.fractions.get(
            {0.25: "1/4", 0.5: "1/2", 0.75: "3/4"}.get(value, "1/3" if value < 0.5 else "2/3"), ""
        )
    return cardinal(int(value), tongue.code) if value >= 0 else symbol
