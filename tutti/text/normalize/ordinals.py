"""Ordinals in words with an ending, in languages whose ordinals have one for each gender and case."""

import re
from collections.abc import Callable

from tutti.text.normalize.cardinals import cardinal
from tutti.text.normalize.plurals import form


def ordinal_with(n: int, ending: str, code: str) -> str:
    """Return an ordinal; the ending is one of those in the tables of the language."""
    return _ORDINALS[code](n, ending)


def _german(n: int, ending: str) -> str:
    words = cardinal(n, "de")
    for irregular, stem in (("eins", "erst"), ("drei", "dritt"), ("sieben", "siebt"), ("acht", "acht")):
        if words.endswith(irregular) and n % 100 < 13:
            return words.removesuffix(irregular) + stem + ending
    return words + ("t" if 0 < n % 100 < 20 else "st") + ending


_SV = str.split(
    "nollte första andra tredje fjärde femte sjätte sjunde åttonde nionde tionde elfte tolfte trettonde fjortonde "
    "femtonde sextonde sjuttonde artonde nittonde"
)


def _swedish(n: int, _ending: str) -> str:
    tens, ones = n - n % 100 + n % 100 // 10 * 10, n % 10
    if n % 100 < 20 and n % 100:
        return (cardinal(n - n % 100, "sv") if n > 99 else "") + _SV[n % 100]
    if ones:
        return cardinal(tens, "sv") + _SV[ones]
    return _SV[0] if n == 0 else cardinal(n, "sv") + ("de" if n % 100 == 0 else "nde")


# After Nagórko, Zarys gramatyki polskiej: tens and ones are both ordinals.
_PL = str.split(
    "zerow pierwsz drug trzec czwart piąt szóst siódm ósm dziewiąt dziesiąt jedenast dwunast trzynast czternast "
    "piętnast szesnast siedemnast osiemnast dziewiętnast"
)
_PL_TENS = str.split(
    "dwudziest trzydziest czterdziest pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt"
)
_PL_HUNDREDS = str.split("setn dwusetn trzechsetn czterechsetn pięćsetn sześćsetn siedemsetn osiemsetn dziewięćsetn")


def _polish(n: int, ending: str) -> str:
    small = n % 100
    if small == 0 and n:
        hundreds = n % 1000 // 100
        rest, stem = (n - n % 1000, _PL_HUNDREDS[hundreds - 1]) if hundreds else (0, _polish_thousands(n // 1000))
        return (cardinal(rest, "pl") + " " if rest else "") + stem + ending
    parts = [cardinal(n - small, "pl")] if n > small else []
    if small < 20:
        return " ".join([*parts, _polish_ending(_PL[small], ending)])
    parts.append(_polish_ending(_PL_TENS[small // 10 - 2], ending))
    return " ".join([*parts, *([_polish_ending(_PL[small % 10], ending)] if small % 10 else [])])


def _polish_thousands(n: int) -> str:
    return {1: "tysięczn", 2: "dwutysięczn"}.get(n, cardinal(n, "pl").replace(" ", "") + "tysięczn")


def _polish_ending(stem: str, ending: str) -> str:
    if stem == "trzec":
        return stem + ("i" if ending == "y" else "ich" if ending == "ych" else "im" if ending == "ym" else "i" + ending)
    if stem == "drug":
        soft = {"y": "i", "ego": "iego", "emu": "iemu", "ym": "im", "ej": "iej", "e": "ie", "ych": "ich"}
        return stem + soft.get(ending, ending)
    return stem + ending


# After the Russian Grammar of 1980 (Shvedova): only the last word is an ordinal.
_RU = str.split(
    "нулев перв втор трет четвёрт пят шест седьм восьм девят десят одиннадцат двенадцат тринадцат четырнадцат "
    "пятнадцат шестнадцат семнадцат восемнадцат девятнадцат"
)
_RU_TENS = str.split("двадцат тридцат сороков пятидесят шестидесят семидесят восьмидесят девяност")
_RU_HUNDREDS = str.split("сот двухсот трёхсот четырёхсот пятисот шестисот семисот восьмисот девятисот")
_RU_STRESSED = frozenset(("нулев", "втор", "шест", "седьм", "восьм", "сороков"))
_RU_THIRD = {"ый": "ий", "ого": "ьего", "ому": "ьему", "ым": "ьим", "ом": "ьем", "ая": "ья", "ой": "ьей", "ую": "ью"}
_RU_THIRD |= {"ое": "ье", "ые": "ьи", "ых": "ьих"}


def _russian(n: int, ending: str) -> str:
    small = n % 100
    if n and n % 1000 == 0:
        thousands = n // 1000
        stem = {1: "тысячн", 2: "двухтысячн", 3: "трёхтысячн"}.get(thousands)
        return (stem or cardinal(thousands, "ru").replace(" ", "") + "тысячн") + ending
    if small == 0 and n:
        last, stem = n % 1000, _RU_HUNDREDS[n % 1000 // 100 - 1]
    elif small < 20:
        last, stem = small, _RU[small]
    elif small % 10:
        last, stem = small % 10, _RU[small % 10]
    else:
        last, stem = small, _RU_TENS[small // 10 - 2]
    before = f"{cardinal(n - last, 'ru')} " if n > last else ""
    if stem == "трет":
        return before + stem + _RU_THIRD[ending]
    return before + stem + ("ой" if ending == "ый" and stem in _RU_STRESSED else ending)


_AR = str.split("الأول الثاني الثالث الرابع الخامس السادس السابع الثامن التاسع العاشر")
_AR_MINUTES = str.split("دقيقة دقائق دقيقة دقيقة دقيقتان")


def oblique(words: str) -> str:
    """Return an Arabic number in the case behind prepositions."""
    return re.sub(r"(?<=\w\w)(?:ون|ان)\b", lambda end: "ين", re.sub(r"\b(و?)(اثن|اثنت)ا (?=عشر)", r"\1\2ي ", words))


def _arabic(n: int, ending: str) -> str:
    """Return a day ("ال", with a month behind it "من"), an hour ("ة"), minutes with their noun, or a year ("ين")."""
    if ending == "ين":
        return oblique(cardinal(n, "ar"))
    if ending == "دقيقة":
        name = form(_AR_MINUTES, str(n), "ar")
        return name if n < 3 else oblique(f"{cardinal(n, 'ar', feminine=True)} {name}")
    if ending == "ة":
        return oblique(_arabic_ordinal(n or 12, "ة"))
    return _arabic_ordinal(n, "") + (" من" if ending == "من" else "")


def _arabic_ordinal(n: int, feminine: str) -> str:
    if n > 99 or n < 1:
        return cardinal(n, "ar")
    tens, ones = divmod(n, 10)
    if n == 1 and feminine:
        return "الواحدة"
    if n < 11:
        return _AR[n - 1] + feminine
    first = ("الحادي" if ones == 1 else _AR[ones - 1]) + feminine if ones else ""
    if tens == 1:
        return f"{first} عشر{feminine}"
    return (f"{first} و" if first else "") + "ال" + cardinal(10 * tens, "ar")


_ORDINALS: dict[str, Callable[[int, str], str]] = {
    "de": _german, "sv": _swedish, "pl": _polish, "ru": _russian, "ar": _arabic,
}  # fmt: skip
