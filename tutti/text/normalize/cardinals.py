"""Whole numbers in words, one function for each language of locales/."""

import re
from collections.abc import Callable

from tutti.text.normalize.plurals import form


def words(text: str) -> list[str]:
    """Split a line into words."""
    return text.split()


LIMIT = 10**15  # larger numbers are spoken digit by digit

_ES = words(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
)
_ES_TENS = words("treinta cuarenta cincuenta sesenta setenta ochenta noventa")
_ES_HUNDREDS = words(
    "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
)
_FR = words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
    "dix-sept dix-huit dix-neuf"
)
_FR_TENS = words("vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")
_IT = words(
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove"
)
_IT_TENS = words("venti trenta quaranta cinquanta sessanta settanta ottanta novanta")
_PT = words(
    "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze dezesseis dezessete "
    "dezoito dezenove"
)
_PT_TENS = words("vinte trinta quarenta cinquenta sessenta setenta oitenta noventa")
_PT_HUNDREDS = words("cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos")
_DE = words(
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
)
_DE_TENS = words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_SV = words(
    "noll ett två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton"
)
_SV_TENS = words("tjugo trettio fyrtio femtio sextio sjuttio åttio nittio")
_PL = words(
    "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście czternaście "
    "piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście"
)
_PL_TENS = words(
    "dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt"
)
_PL_HUNDREDS = words("sto dwieście trzysta czterysta pięćset sześćset siedemset osiemset dziewięćset")
_PL_SCALES = (
    (10**12, words("bilion biliony bilionów")),
    (10**9, words("miliard miliardy miliardów")),
    (10**6, words("milion miliony milionów")),
    (1000, words("tysiąc tysiące tysięcy")),
)
_RU = words(
    "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"
)
_RU_TENS = words("двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто")
_RU_HUNDREDS = words("сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот")
_RU_SCALES = (
    (10**12, words("триллион триллиона триллионов")),
    (10**9, words("миллиард миллиарда миллиардов")),
    (10**6, words("миллион миллиона миллионов")),
    (1000, words("тысяча тысячи тысяч")),
)
_AR = words("صفر واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة")
_AR_TENS = words("عشرون ثلاثون أربعون خمسون ستون سبعون ثمانون تسعون")
_AR_HUNDREDS = ("مئة", "مئتان", *(f"{count} مئة" for count in words("ثلاث أربع خمس ست سبع ثماني تسع")))
_AR_SCALES = (
    (10**9, words("مليار مليارات مليارًا مليار ملياران")),
    (10**6, words("مليون ملايين مليونًا مليون مليونان")),
    (1000, words("ألف آلاف ألفًا ألف ألفان")),
)
_VI = words("không một hai ba bốn năm sáu bảy tám chín")
_HI = words(
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस "
    "बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस "
    "चालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास "
    "पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ साठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर "
    "सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर सतहत्तर अठहत्तर उन्यासी "
    "अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी "
    "नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
)


def cardinal(n: int, code: str, *, feminine: bool = False) -> str:
    """Return a number below LIMIT in words; feminine if the language has it ("doscientas", "duas", "una")."""
    text = _CARDINALS[code](n)
    for masculine, other in _FEMININE.get(code, ()) if feminine else ():
        text = re.sub(masculine, other, text)
    return text


def digits(text: str, code: str) -> str:
    """Return the digits one by one."""
    return " ".join(_CARDINALS[code](int(digit)) for digit in text)


def _spanish(n: int) -> str:
    if n < 30:
        return _ES[n]
    if n < 100:
        return _ES_TENS[n // 10 - 3] + (f" y {_ES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return "cien" if n == 100 else _ES_HUNDREDS[n // 100 - 1] + _rest(n % 100, _spanish)
    if n < 10**6:
        return ("" if n < 2000 else _shorten_one(_spanish(n // 1000)) + " ") + "mil" + _rest(n % 1000, _spanish)
    unit, singular, plural = (10**12, "billón", "billones") if n >= 10**12 else (10**6, "millón", "millones")
    return f"{_shorten_one(_spanish(n // unit))} {singular if n // unit == 1 else plural}" + _rest(n % unit, _spanish)


def _shorten_one(text: str) -> str:
    return re.sub(r"veintiuno$", "veintiún", re.sub(r"\buno$", "un", text))


def _rest(n: int, cardinal_of: Callable[[int], str], separator: str = " ") -> str:
    return separator + cardinal_of(n) if n else ""


def _french(n: int) -> str:
    if n < 20:
        return _FR[n]
    if n < 100:
        tens, ones = divmod(n, 10)
        if tens in (7, 9):
            tens, ones = tens - 1, ones + 10
        stem = _FR_TENS[tens - 2]
        if ones == 0:
            return "quatre-vingts" if tens == 8 else stem
        return f"{stem} et {_FR[ones]}" if ones in (1, 11) and tens < 8 else f"{stem}-{_FR[ones]}"
    if n < 1000:
        count, rest = divmod(n, 100)
        return (
            ("" if count == 1 else _FR[count] + " ")
            + ("cents" if count > 1 and not rest else "cent")
            + _rest(rest, _french)
        )
    if n < 10**6:
        thousands = "" if n < 2000 else re.sub(r"(cent|vingt)s$", r"\1", _french(n // 1000)) + " "
        return thousands + "mille" + _rest(n % 1000, _french)
    unit, name = next((u, w) for u, w in ((10**12, "billion"), (10**9, "milliard"), (10**6, "million")) if n >= u)
    return f"{_french(n // unit)} {name}{'s' if n // unit > 1 else ''}" + _rest(n % unit, _french)


def _italian(n: int) -> str:
    text = _italian_joined(n)
    return text[:-3] + "tré" if n > 10 and text.endswith("tre") else text


def _italian_joined(n: int) -> str:
    if n < 20:
        return _IT[n]
    if n < 100:
        stem, ones = _IT_TENS[n // 10 - 2], n % 10
        return (stem[:-1] if ones in (1, 8) else stem) + (_IT[ones] if ones else "")
    if n < 1000:
        stem = ("" if n < 200 else _IT[n // 100]) + "cento"
        return (stem[:-1] if n % 100 == 8 or 80 <= n % 100 < 90 else stem) + _rest(n % 100, _italian_joined, "")
    if n < 10**6:
        return ("mille" if n < 2000 else _italian_joined(n // 1000) + "mila") + _rest(n % 1000, _italian_joined, "")
    scales = ((10**12, "bilione", "bilioni"), (10**9, "miliardo", "miliardi"), (10**6, "milione", "milioni"))
    unit, singular, plural = next(scale for scale in scales if n >= scale[0])
    return (f"un {singular}" if n // unit == 1 else f"{_italian(n // unit)} {plural}") + _rest(n % unit, _italian)


def _portuguese(n: int) -> str:
    if n < 20:
        return _PT[n]
    if n < 100:
        return _PT_TENS[n // 10 - 2] + _rest(n % 10, _portuguese, " e ")
    if n < 1000:
        return "cem" if n == 100 else _PT_HUNDREDS[n // 100 - 1] + _rest(n % 100, _portuguese, " e ")
    if n < 10**6:
        rest = n % 1000
        separator = " e " if rest < 100 or rest % 100 == 0 else " "
        return ("" if n < 2000 else _portuguese(n // 1000) + " ") + "mil" + _rest(rest, _portuguese, separator)
    scales = ((10**12, "trilhão", "trilhões"), (10**9, "bilhão", "bilhões"), (10**6, "milhão", "milhões"))
    unit, singular, plural = next(scale for scale in scales if n >= scale[0])
    rest = n % unit
    separator = " e " if rest < 100 or rest % 100 == 0 else " "
    return f"{_portuguese(n // unit)} {singular if n // unit == 1 else plural}" + _rest(rest, _portuguese, separator)


def _hindi(n: int) -> str:
    if n < 100:
        return _HI[n]
    scales = ((10**9, "अरब"), (10**7, "करोड़"), (10**5, "लाख"), (1000, "हज़ार"), (100, "सौ"))
    unit, name = next(scale for scale in scales if n >= scale[0])
    return f"{_hindi(n // unit)} {name}" + _rest(n % unit, _hindi)


def _german(n: int) -> str:
    """Return a number as Duden has it: hundert and tausend need no one before them."""
    if n < 20:
        return _DE[n]
    if n < 100:
        tens, ones = divmod(n, 10)
        return (_german_part(ones) + "und" if ones else "") + _DE_TENS[tens - 2]
    if n < 10**6:
        unit, name = (1000, "tausend") if n >= 1000 else (100, "hundert")
        return (_german_part(n // unit) if n >= 2 * unit else "") + name + _rest(n % unit, _german_rest, "")
    scales = ((10**12, "Billion", "en"), (10**9, "Milliarde", "n"), (10**6, "Million", "en"))
    unit, name, plural = next(scale for scale in scales if n >= scale[0])
    count = n // unit
    return (f"eine {name}" if count == 1 else f"{_german(count)} {name}{plural}") + _rest(n % unit, _german)


def _german_part(n: int) -> str:
    return re.sub("eins$", "ein", _german(n))


def _german_rest(n: int) -> str:
    return _german(n) if n < 100 else ("ein" if n < 200 else "") + _german(n)


def _swedish(n: int) -> str:
    if n < 20:
        return _SV[n]
    if n < 100:
        return _SV_TENS[n // 10 - 2] + _rest(n % 10, _swedish, "")
    if n < 1000:
        return ("" if n < 200 else _SV[n // 100]) + "hundra" + _rest(n % 100, _swedish, "")
    if n < 10**6:
        return ("" if n < 2000 else _swedish(n // 1000)) + "tusen" + _rest(n % 1000, _swedish)
    scales = ((10**12, "biljon"), (10**9, "miljard"), (10**6, "miljon"))
    unit, name = next(scale for scale in scales if n >= scale[0])
    count = n // unit
    return (f"en {name}" if count == 1 else f"{_swedish(count)} {name}er") + _rest(n % unit, _swedish)


def _polish(n: int) -> str:
    if n < 20:
        return _PL[n]
    if n < 100:
        return _PL_TENS[n // 10 - 2] + _rest(n % 10, _polish)
    if n < 1000:
        return _PL_HUNDREDS[n // 100 - 1] + _rest(n % 100, _polish)
    unit, names = next(scale for scale in _PL_SCALES if n >= scale[0])
    count, name = n // unit, form(names, str(n // unit), "pl")
    return (name if count == 1 else f"{_polish(count)} {name}") + _rest(n % unit, _polish)


def _russian(n: int) -> str:
    if n < 20:
        return _RU[n]
    if n < 100:
        return _RU_TENS[n // 10 - 2] + _rest(n % 10, _russian)
    if n < 1000:
        return _RU_HUNDREDS[n // 100 - 1] + _rest(n % 100, _russian)
    unit, names = next(scale for scale in _RU_SCALES if n >= scale[0])
    count = n // unit
    words = cardinal(count, "ru", feminine=unit == 1000) if count > 1 or unit > 1000 else ""
    return f"{words} {form(names, str(count), 'ru')}".strip() + _rest(n % unit, _russian)


def _vietnamese(n: int) -> str:
    """Return a number with linh before lone ones, and không trăm where a group of three has no hundreds."""
    if n < 20:
        return _VI[n] if n < 10 else "mười" + (f" {_vietnamese_ones(n % 10)}" if n > 10 else "")
    if n < 100:
        ones = "mốt" if n % 10 == 1 else _vietnamese_ones(n % 10)
        return f"{_VI[n // 10]} mươi" + (f" {ones}" if n % 10 else "")
    if n < 1000:
        rest = n % 100
        return f"{_VI[n // 100]} trăm" + (f" linh {_VI[rest]}" if 0 < rest < 10 else _rest(rest, _vietnamese))
    unit, name = next(scale for scale in ((10**9, "tỷ"), (10**6, "triệu"), (1000, "nghìn")) if n >= scale[0])
    rest = n % unit
    hundreds = "" if rest == 0 or rest >= 100 else " không trăm" + (" linh" if rest < 10 else "")
    return f"{_vietnamese(n // unit)} {name}{hundreds}" + _rest(rest, _vietnamese)


def _vietnamese_ones(n: int) -> str:
    return "lăm" if n == 5 else _VI[n]


def _arabic(n: int) -> str:
    """Return a number as it stands before a masculine noun."""
    if n < 20:
        tens = {11: "أحد عشر", 12: "اثنا عشر"}
        return _AR[n] if n < 11 else tens.get(n, f"{_AR[n % 10]} عشر")
    if n < 100:
        return (f"{_AR[n % 10]} و" if n % 10 else "") + _AR_TENS[n // 10 - 2]
    if n < 1000:
        return _AR_HUNDREDS[n // 100 - 1] + _rest(n % 100, _arabic, " و")
    unit, names = next(scale for scale in _AR_SCALES if n >= scale[0])
    count, name = n // unit, form(names, str(n // unit), "ar")
    return (name if count < 3 else f"{_arabic(count)} {name}") + _rest(n % unit, _arabic, " و")


_CARDINALS = {"es": _spanish, "fr": _french, "it": _italian, "pt-br": _portuguese, "hi": _hindi, "de": _german}
_CARDINALS |= {"sv": _swedish, "pl": _polish, "ru": _russian, "vi": _vietnamese, "ar": _arabic}
_FEMININE = {
    "ar": (
        (r"\b(و?)ثمانية(?= عشر$|$| و\w+ون$)", r"\1ثماني"),
        (r"\b(و?)(ثلاث|أربع|خمس|ست|سبع|تسع|عشر)ة(?= عشر$|$| و\w+ون$)", r"\1\2"),
        (r"\b(ثلاث|أربع|خمس|ست|سبع|ثماني|تسع) عشر$", r"\1 عشرة"),
        (r"\b(و?)(واحد)(?=$| و\w+ون$)", r"\1\2ة"),
        (r"\b(و?)اثنان(?=$| و\w+ون$)", r"\1اثنتان"),
        (r"\b(و?)أحد عشر$", r"\1إحدى عشرة"),
        (r"\b(و?)اثنا عشر$", r"\1اثنتا عشرة"),
    ),
    "sv": ((r"ett$", "en"),),
    "pl": ((r"^jeden$", "jedna"), (r"\bdwa$", "dwie")),
    "ru": ((r"\bодин$", "одна"), (r"\bдва$", "две")),
    "de": ((r"(?<!und)eins?$", "eine"),),
    "es": ((r"uno$", "una"), (r"(cient|quinient)os\b(?! mill| bill)", r"\1as")),
    "fr": ((r"\bun$", "une"),),
    "it": ((r"^uno$", "una"),),
    "pt-br": ((r"\bum$", "uma"), (r"\bdois\b(?= mil\b|$)", "duas"), (r"(ent|inhent)os\b(?! m| b| t)", r"\1as")),
}
