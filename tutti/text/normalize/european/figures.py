"""Numbers, ordinals, money and units, and the symbols that are left."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.cardinals import LIMIT, cardinal, digits
from tutti.text.normalize.locales import find_locale
from tutti.text.normalize.locales.locale import Locale
from tutti.text.normalize.ordinals import oblique, ordinal_with
from tutti.text.normalize.plurals import form, many

# An atomic group: a number matches completely or not at all, so that a long one takes linear time.
_NUMBER = r"(?>\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d{1,9})?|\d+(?:[.,]\d+)*)"
_POWER = re.compile("(?<=\\d)[⁰¹²³⁴-⁹]+")
_AROUND_THE_CLOCK = re.compile(r"(?<=\d)[hj]/(?=\d)")  # 24h/24, 7j/7
_SLASH_OF_FIGURES = re.compile(r"(?<=\d)/(?=\d)")
_BY = re.compile(r"(?<=\d)\s?[x*]\s?(?=\d)")
_SHORT_YEAR = re.compile(r"(?<!\w)'(?=\d\d\b)")
_FRACTION_SIGN = re.compile(r"(?<=\d)[¼½¾⅓⅔]")
_SLASH = re.compile(r"\s?/+\s?")  # y/o
_CONTEXT = 40  # characters on each side of an ordinal that may decide its ending
_VOWELS = "aeiouéèêAEIOUÉ"


def expand_fractions(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write fractions in words."""
    if "/" in aligned.text:
        if locale.code == "fr":
            aligned = aligned.sub(
                _AROUND_THE_CLOCK, lambda match: " heures sur " if match[0][0] == "h" else " jours sur "
            )
        aligned = aligned.sub(_fraction_rule(locale.code), lambda match: _fraction(match, locale))
        aligned = aligned.sub(_SLASH_OF_FIGURES, f" {locale.signs['/']} ")
    if "x" in aligned.text or "*" in aligned.text:
        aligned = aligned.sub(_BY, f" {locale.symbols['×']} ")
    if "'" in aligned.text:
        aligned = aligned.sub(_SHORT_YEAR, "")
    if aligned.text.isascii():
        return aligned
    aligned = aligned.sub(_POWER, lambda match: "^" + "".join(str(unicodedata.digit(sign)) for sign in match[0]))
    return aligned.sub(_FRACTION_SIGN, lambda match: " " + match[0])


def expand(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write every number with its currency, unit or ending in words."""
    if locale.glued:
        aligned = aligned.sub(_glued(locale.code), lambda match: cardinal(int(match["n"]), locale.code) + match["end"])
    return aligned.sub(_figure(locale.code), lambda match: _expand_figure(match, locale))


def expand_symbols(aligned: AlignedText, locale: Locale) -> AlignedText:
    """Write the symbols and digits that are left in words."""
    aligned = aligned.sub(_remaining(locale.code), lambda match: f" {_symbol(match[0], locale)} ")
    return aligned.sub(_SLASH, " ") if "/" in aligned.text else aligned


def year(n: int, locale: Locale) -> str:
    """Return a year in words; some languages count the centuries before 2000 in hundreds."""
    if not locale.century or not 1100 <= n < locale.century_until:
        return cardinal(n, locale.code)
    hundreds, rest = divmod(n, 100)
    return f"{cardinal(hundreds, locale.code)}{locale.century}{cardinal(rest, locale.code) if rest else ''}".strip()


def ordinal(n: int, mark: str, locale: Locale) -> str:
    """Return an ordinal in words, in the gender and the form of what is written behind its figure."""
    mark = mark.strip(".")
    feminine = mark.endswith(locale.feminine_marks)
    word = _masculine_ordinal(n, locale)
    match locale.code:
        case "fr":
            if n == 1:
                return "première" if feminine else "premier"
            return ("seconde" if feminine else "second") if n == 2 and mark.startswith("n") else word
        case "hi":
            return _hindi_ordinal(word, mark, feminine)
    if locale.ordinal_endings:
        return ordinal_with(n, mark, locale.code)
    if mark == "er":
        return re.sub(r"(primer|tercer)o$", r"\1", word)
    return re.sub(r"o\b", "a", word) if feminine else word


def _masculine_ordinal(n: int, locale: Locale) -> str:
    if 1 <= n <= len(locale.ordinals):
        return locale.ordinals[n - 1]
    words = cardinal(n, locale.code)
    match locale.code:
        case "fr":
            stem = re.sub(r"(?<=cin)q$", "qu", re.sub(r"(?<=neu)f$", "v", re.sub(r"(?<=[tn])s$", "", words)))
            return stem.removesuffix("e") + "ième"
        case "it":
            return (words.replace("é", "e") if words.endswith(("tré", "sei")) else words[:-1]) + "esimo"
        case "hi":
            return words + "वाँ"
    tens, ones = divmod(n, 10)
    if not locale.tens_ordinals or not 0 < tens <= len(locale.tens_ordinals):
        return words
    return locale.tens_ordinals[tens - 1] + (f" {locale.ordinals[ones - 1]}" if ones else "")


def _hindi_ordinal(word: str, mark: str, feminine: bool) -> str:
    if mark == "वें":
        return re.sub(r"(?:वाँ|ा)$", lambda ending: "वें" if ending[0] == "वाँ" else "े", word)
    return re.sub(r"ाँ$", "ीं", re.sub(r"ा$", "ी", word)) if feminine else word


@cache
def _figure(code: str) -> re.Pattern[str]:
    locale = find_locale(code)
    money, scale = _alternatives(locale.money), _alternatives(locale.scales)
    units = "|".join(
        re.escape(unit) + (r"(?=[.,;:)]|\s?$|\sd[ei]\b)" if unit == "ha" else "")  # also a form of "to have"
        for unit in sorted(locale.units, key=len, reverse=True)
    )
    starts = re.escape("".join({sign[0] for sign in locale.money}))
    return re.compile(
        rf"(?=[\d+±−{starts}-])(?:(?P<pre>(?<!\w)(?:{money}))\s?)?(?P<sign>(?<![\w)])-|[+±]\s?|−)?(?P<number>{_NUMBER})"
        rf"(?:(?P<ordinal>{locale.ordinal_marks})(?![\w])"
        rf"|\s?(?P<unit>{units})(?P<power>[²³]|(?<=m)[23])?(?![\w'²³])(?:/(?P<per_unit>[^\W\d_°]{{1,9}}[²³]?)(?!\w))?"
        rf"|(?:\s?(?P<scale>{scale})(?!\w)|\s?(?P<letter>[kM])(?=\s?(?:{money})))?"
        rf"(?:\s?(?P<post>{money})(?!\w))?(?:(?<=\S)/\s?(?P<per>(?:[^\W\d_]|[\u0900-\u0963]){{2,12}})(?!\w))?)"
        rf"(?P<next>\s(?=(?P<noun>[^\W\d_]+)))?"
    )


@cache
def _oblique_rule(code: str) -> re.Pattern[str]:
    return re.compile(rf"{find_locale(code).oblique_after}\s$")


@cache
def _glued(code: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\d.,])(?P<n>\d{{1,6}})-?(?P<end>{find_locale(code).glued})")


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


def _expand_figure(match: re.Match[str], locale: Locale) -> str:
    """Return the figure in words, separated from letters that touch it ("H2O")."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    words = _figure_words(match, locale)
    if locale.oblique_after and _oblique_rule(locale.code).search(match.string[: match.start()][-_CONTEXT:]):
        words = oblique(words)
    return (" " if before.isalnum() else "") + words + (" " if after.isalnum() and not words.endswith(" ") else "")


def _figure_words(match: re.Match[str], locale: Locale) -> str:
    text = re.sub(r"\s", "", match["number"])
    signs = {"-": locale.minus, "−": locale.minus, "+": locale.plus, "±": locale.plus_minus}
    sign = f"{signs[match['sign'].strip()]} " if match["sign"] else ""
    tail = match["next"] or ""
    if match["ordinal"] is not None and text.isdecimal() and len(text) < 7:
        mark = match["ordinal"]
        if locale.ordinal_endings:
            return ordinal(int(text), ending_of(match, locale), locale) + tail
        if locale.code == "es" and mark[-1] in "º°" and len(match["noun"] or "") > 3:
            mark = mark if is_feminine(match["noun"].lower(), locale) else "er"  # tercer piso
        return ordinal(int(text), mark, locale) + tail
    money = match["post"] if match["pre"] in (None, "$") else None
    if money := money or match["pre"]:
        return sign + _money(text, money, match, locale) + _per(match["per"], locale) + tail
    if match["unit"]:
        return sign + _measure(text, match, locale) + tail
    if match["scale"]:
        name = match["scale"]
        if not any(name in forms for forms in locale.scales.values()):
            name = form(locale.scales[name], text, locale.code)
        return f"{sign}{_number(text, locale, counts=True)} {name}{_per(match['per'], locale)}{tail}"
    noun = (match["noun"] or "").lower()
    is_year = text.isdecimal() and 1100 <= int(text[:5]) <= 2100
    if is_year and locale.century:
        return sign + year(int(text), locale) + _per(match["per"], locale) + tail
    counts = len(noun) > 2 and not is_year and noun not in locale.no_nouns
    feminine = counts and is_feminine(noun, locale)
    words = _number(text, locale, feminine=feminine, counts=counts)
    if counts and locale.count_forms and text.isdecimal():
        words = _counting(words, noun, locale)
    return sign + words + _per(match["per"], locale) + tail


def _counting(words: str, noun: str, locale: Locale) -> str:
    """Return a number as its noun asks for."""
    for nouns, number, other in locale.count_forms:
        if re.search(nouns, noun) and re.search(number, words):
            return re.sub(number, other, words)
    return words


def ending_of(match: re.Match[str], locale: Locale) -> str:
    """Return the ending of an ordinal by the words around it."""
    end = match.end("number") if "number" in match.re.groupindex else match.end()
    return ending_at(match.string, match.start(), end, locale.ordinal_endings)


def ending_at(text: str, start: int, end: int, rules: Sequence[tuple[str, str]]) -> str:
    """Return the ending of the first rule that is found around this part of a text."""
    around = f"{text[max(0, start - _CONTEXT) : start]}\0{text[end : end + _CONTEXT]}"
    return next(ending for rule, ending in rules if re.search(rule, around))


def is_feminine(noun: str, locale: Locale) -> bool:
    """Guess the gender from the ending, but for the nouns that are listed."""
    if noun in locale.masculine_nouns:
        return False
    return (
        noun in locale.feminine_nouns
        or noun.removesuffix("s") in locale.feminine_nouns
        or (bool(locale.feminine_endings) and noun.endswith(locale.feminine_endings))
    )


def _number(text: str, locale: Locale, *, feminine: bool = False, counts: bool = False) -> str:
    """Return a figure with separators in words; `counts` if a noun follows ("un gato", not "uno gato")."""
    english = locale.code in ("hi", "ar")  # their commas part thousands
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", text) and not english:
        text = text.replace(".", "")
    elif re.fullmatch(r"\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?|\d{1,3},\d{3}\.\d+|\d{1,3},000", text) or (
        english and re.fullmatch(r"\d{1,3}(?:,\d{2,3})+(?:\.\d+)?", text)
    ):
        text = text.replace(",", "")
    parts = re.split(r"[.,]", text)
    if len(parts) > 2:
        return f" {locale.dot} ".join(_whole(part, locale) for part in parts)
    if len(parts) == 2:
        if locale.decimal_parts and len(parts[1]) < len(locale.decimal_parts):
            return _decimal_parts(parts[0], parts[1], locale)
        point = locale.dot if "." in text and not english else locale.point
        return f"{_whole(parts[0], locale)} {point} {_decimals(parts[1], locale)}"
    words = _whole(text, locale, feminine=feminine and counts)
    if counts and locale.one[0] and not feminine:  # "ein Hund"
        words = re.sub(rf"{locale.one[0]}$", locale.one[1], words)
    if counts and locale.code in ("es", "it"):  # "un gato", "veintiún gatos"
        words = re.sub(r"\buno$", "un", words.replace("veintiuno", "veintiún"))
    return words


def _whole(text: str, locale: Locale, *, feminine: bool = False) -> str:
    if len(text) > 15 or (len(text) > 1 and text[0] == "0") or int(text) >= LIMIT:
        return digits(text, locale.code)
    return cardinal(int(text), locale.code, feminine=feminine)


def _decimals(text: str, locale: Locale) -> str:
    if locale.code == "hi" or locale.decimals_by_digit or len(text) > 3 or (len(text) > 1 and text[0] == "0"):
        return digits(text, locale.code)
    return cardinal(int(text), locale.code)


def _decimal_parts(whole: str, decimals: str, locale: Locale) -> str:
    """Return "two wholes, five tenths"."""
    pairs = ((whole, locale.decimal_parts[0]), (decimals, locale.decimal_parts[len(decimals)]))
    return " ".join(
        f"{cardinal(int(n), locale.code, feminine=True)} {names[int(n) % 10 != 1 or int(n) % 100 == 11]}"
        for n, names in pairs
    )


def _money(text: str, sign: str, match: re.Match[str], locale: Locale) -> str:
    names, small = locale.money[sign]
    feminine = sign in locale.feminine_units
    if scale := match["scale"] or match["letter"]:
        if scale not in locale.scales:
            return f"{_number(text, locale, counts=True)} mil {many(names)}"
        name = form(locale.scales[scale], text, locale.code)
        return f"{_number(text, locale, counts=True)} {_of_money(name, many(names), locale)}"
    cents = re.fullmatch(r"(\d+|\d{1,3}(?:[.,]\d{2,3})+)[.,](\d{2})", text)
    whole = re.sub("[.,]", "", cents[1]) if cents else text
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+", whole):  # $1,500: nobody writes thousandths of money
        whole = whole.replace(",", "")
    words = _number(whole, locale, feminine=feminine, counts=True)
    name = form(names, whole, locale.code)
    words = _of_money(words, name, locale) if locale.of_money else _count(words, name, whole, locale)
    if not cents or cents[2] == "00":
        return words
    n_cents = str(int(cents[2]))
    rest_feminine = f"{sign} 1/100" in locale.feminine_units
    rest = f"{_number(n_cents, locale, feminine=rest_feminine, counts=True)} {form(small, n_cents, locale.code)}"
    if whole == "0":
        return rest
    return f"{words} {locale.money_joint} {rest}".replace("  ", " ")


_MILLIONS = re.compile(r"(?:ill(?:ón|ones|ions?|iards?)|ili(?:one|oni|ard[oi])|lh(?:ão|ões))$")


def _of_money(words: str, name: str, locale: Locale) -> str:
    """Join a number and its money: "un millón de euros", "un million d'euros"."""
    if not locale.of_money or not _MILLIONS.search(words):
        return f"{words} {name}"
    if locale.of_money.endswith("'"):
        return f"{words} d'{name}" if name[0] in _VOWELS else f"{words} de {name}"
    return f"{words} {locale.of_money} {name}"


def _measure(text: str, match: re.Match[str], locale: Locale) -> str:
    unit, power = match["unit"], match["power"]
    words = form(locale.units[unit], text, locale.code)
    if power:
        words = f"{words} {form(locale.cubed if power in '³3' else locale.squared, text, locale.code)}"
        if locale.code == "hi":
            words = f"{(locale.cubed if power in '³3' else locale.squared)[0]} {locale.units[unit][0]}"
    number = _number(text, locale, feminine=unit in locale.feminine_units, counts=unit not in "%‰")
    return f"{_count(number, words, text, locale)}{_per(match['per_unit'], locale)}"


def _count(number: str, name: str, figure: str, locale: Locale) -> str:
    """Return a number and its noun; Arabic says "metre one" and a dual."""
    if locale.code == "ar" and figure in ("1", "2"):
        return name if figure == "2" else f"{name} {number}"
    return f"{number} {name}"


def _per(unit: str | None, locale: Locale) -> str:
    """Return what stands behind a slash: "por hora", "al mese"."""
    if not unit:
        return ""
    base, power = (unit[:-1], unit[-1]) if unit[-1] in "²³" else (unit, "")
    name = locale.units[base][0] if base in locale.units else base
    name += f" {(locale.cubed if power == '³' else locale.squared)[0]}" if power else ""
    if locale.per == "al" and name[0] in _VOWELS:
        return f" all'{name}"
    return f" {locale.per} {name}"


@cache
def _fraction_rule(code: str) -> re.Pattern[str]:
    units = _alternatives(unit for unit in find_locale(code).units if unit.isalpha())
    return re.compile(
        r"(?<![\d/.,])(?:(?P<whole>\d{1,4})\s)?(?P<top>\d{1,4})/(?P<bottom>\d{1,4})(?![\d/]|[.,]\d)"
        rf"(?:\s?(?P<unit>{units})(?![\w'²³/])|\s(?=(?P<noun>[^\W\d_]{{3,}})))?"
    )


def _fraction(match: re.Match[str], locale: Locale) -> str:
    unit, noun = match["unit"], match["noun"]
    feminine = unit in locale.feminine_units if unit else is_feminine((noun or "").lower(), locale)
    words = _fraction_words(match["top"], match["bottom"], locale, feminine=feminine, alone=not (unit or noun))
    if match["whole"]:
        words = f"{_whole(match['whole'], locale)} {locale.joint} {words.split()[-1] if match['top'] == '1' else words}"
    if unit:
        is_half = (match["top"], match["bottom"]) == ("1", "2")
        name = locale.units[unit][0]
        if is_half or locale.code == "hi":
            return f"{words} {name}"
        if locale.code == "fr" and name[0] in _VOWELS + "h":
            return f"{words} d'{name}"
        return f"{words} {'di' if locale.code == 'it' else 'de'} {name}"
    return words + (" " if noun else "")


def _fraction_words(top: str, bottom: str, locale: Locale, *, feminine: bool, alone: bool) -> str:
    if (top, bottom) == ("1", "2") and not alone:
        return locale.half[feminine]
    if words := locale.fractions.get(f"{top}/{bottom}"):
        return words
    if locale.code in ("es", "fr", "it", "pt-br") and 0 < int(top) < int(bottom) and 4 < int(bottom) <= 10:
        name = ordinal(int(bottom), "", locale)
        plural = name[:-1] + "i" if locale.code == "it" else name + "s"
        return f"{_number(top, locale, counts=True)} {name if top == '1' else plural}"
    joint = locale.signs["/"] if len(bottom) == 4 else locale.fraction_joint
    return f"{_whole(top, locale)} {joint} {_whole(bottom, locale)}"


@cache
def _remaining(code: str) -> re.Pattern[str]:
    locale = find_locale(code)
    symbols = "".join(locale.symbols) + "".join(sign for sign in locale.money if len(sign) == 1 and not sign.isalpha())
    return re.compile(rf"[{re.escape(symbols)}%+±\d¹²³⁰-⁹₀-₉¼½¾⅓⅔]")


def _symbol(symbol: str, locale: Locale) -> str:
    if symbol in locale.symbols:
        return locale.symbols[symbol]
    if symbol in locale.money:
        return many(locale.money[symbol][0])
    if name := {"%": locale.units["%"][0], "+": locale.plus, "±": locale.plus_minus}.get(symbol):
        return name
    value = unicodedata.numeric(symbol, -1.0)
    if value in (0.25, 0.5, 0.75) or (value > 0 and value != int(value)):
        return locale.fractions.get(
            {0.25: "1/4", 0.5: "1/2", 0.75: "3/4"}.get(value, "1/3" if value < 0.5 else "2/3"), ""
        )
    return cardinal(int(value), locale.code) if value >= 0 else symbol
