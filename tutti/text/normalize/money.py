"""Amounts of money."""

import re

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize import attributive
from tutti.text.normalize.numbers import NUMBER, cardinal, number
from tutti.text.normalize.regions import Region

# sign or code: singular, plural (of CLDR), and both of the hundredth
_CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopek", "kopeks"),
    "₺": ("lira", "lira", "kurush", "kurush"),
    "₪": ("shekel", "shekels", "agora", "agorot"),
    "₿": ("bitcoin", "bitcoins", "", ""),
    "₫": ("dong", "dong", "", ""),
    "₦": ("naira", "naira", "kobo", "kobo"),
    "円": ("yen", "yen", "sen", "sen"),
    "₴": ("hryvnia", "hryvnia", "kopiyka", "kopiykas"),
    "zł": ("zloty", "zlotys", "grosz", "groszy"),
    "Kč": ("koruna", "korunas", "haler", "halers"),
    "kr": ("krona", "kronor", "ore", "ore"),
    "R": ("rand", "rand", "cent", "cents"),
    "AED": ("UAE dirham", "UAE dirhams", "fils", "fils"),
    "SAR": ("Saudi riyal", "Saudi riyals", "halala", "halalas"),
    "SEK": ("Swedish krona", "Swedish kronor", "ore", "ore"),
    "NOK": ("Norwegian krone", "Norwegian kroner", "ore", "ore"),
    "DKK": ("Danish krone", "Danish kroner", "ore", "ore"),
    "MXN": ("Mexican peso", "Mexican pesos", "centavo", "centavos"),
    "THB": ("Thai baht", "Thai baht", "satang", "satang"),
    "IDR": ("Indonesian rupiah", "Indonesian rupiah", "", ""),
    "MYR": ("Malaysian ringgit", "Malaysian ringgit", "sen", "sen"),
    "HUF": ("Hungarian forint", "Hungarian forints", "", ""),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"),
    "CNY": ("yuan", "yuan", "fen", "fen"),
}
_PREFIXES = {
    "US": "US", "USD": "US", "A": "Australian", "AU": "Australian", "AUD": "Australian", "C": "Canadian",
    "CA": "Canadian", "CAD": "Canadian", "NZ": "New Zealand", "HK": "Hong Kong", "S": "Singapore", "R": "",
}  # fmt: skip
_CODES = {
    "USD": "US$", "AUD": "AU$", "CAD": "CA$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "RUB": "₽",
    "CHF": "CHF", "CNY": "CNY", "RMB": "CNY", "KRW": "₩", "BTC": "₿", "Rs.": "₹", "Rs": "₹", "BRL": "R$", "NZD": "NZ$",
    "HKD": "HK$", "SGD": "S$", "PLN": "zł", "CZK": "Kč", "ZAR": "R", "UAH": "₴", "ILS": "₪", "NGN": "₦",
    "VND": "₫", "AED": "AED", "SAR": "SAR", "SEK": "SEK", "NOK": "NOK", "DKK": "DKK", "MXN": "MXN", "THB": "THB",
    "IDR": "IDR", "MYR": "MYR", "HUF": "HUF",
}  # fmt: skip
_MAGNITUDES = {
    "k": "thousand", "m": "million", "mn": "million", "mm": "million", "b": "billion", "bn": "billion",
    "t": "trillion", "tn": "trillion", "cr": "crore", "l": "lakh", "lac": "lakh",
}  # fmt: skip

_SIGNS_OF_ONE = "£€¥₹₩₽₺₪₿₫₦₴"
_SIGN = rf"(?:(?:US|AU|CA|NZ|HK|[ACSR])?\$|[{_SIGNS_OF_ONE}])"
_CODE = rf"(?:{'|'.join(map(re.escape, _CODES))})"
_LAKHS = r"\s?(?:[Cc]r|L|[Ll]ac)\b(?:\.(?=\s[a-z]))?"
_SCALE = (
    r"(?:\s?(?:thousand|million|billion|trillion|crore|lakh)|[kKmMbBtT]|\s?(?:[mb]n|tn|bn|MM)\b|\s[mM](?=[.,;:!?)\s]|$)"
    rf"|(?<=\d)\s?[kKM](?=[€£$])|{_LAKHS})"
)
_BEHIND = r"[£€₽¢₹₴円]|zł|Kč|\bkr\b(?:\.(?=\s[a-z]))?"  # written behind the amount in most of Europe
_ANY_CURRENCY = re.compile(rf"[${_SIGNS_OF_ONE}¢円]|\b{_CODE}(?!\w)|zł|Kč|\dkr\b|\skr\b")
_RANGE = re.compile(
    rf"(?P<sign>{_SIGN})\s?(?P<a>{NUMBER})(?P<scale>{_SCALE}\b)?\s?(?:-|to)\s?{_SIGN}?(?P<b>{NUMBER})(?P<scale2>{_SCALE}\b)?(?![\w-])(?!\.\d)"
)
_AMOUNT = re.compile(
    rf"(?P<minus>(?<!\w)-\s?)?(?<![A-Za-z])(?P<sign>{_SIGN}|\b{_CODE}(?=\s?\d))\s?(?P<minus2>-)?(?P<n>\d{{1,6}},\d\d(?![\d,.])|{NUMBER})(?P<scale>{_SCALE}(?![A-Za-z]))?(?:s\b)?"
    r"(?P<joined>-(?=[A-Za-z]))?(?P<per>\s?/\s?(?=[A-Za-z]))?"
)
_SIGN_BEHIND = re.compile(
    rf"(?<![\w.,])(?P<n>\d{{1,6}},\d\d(?![\d,.])|{NUMBER})(?P<scale>{_SCALE})?\s?(?P<sign>{_BEHIND}|\$(?!\d)|(?!Rs){_CODE}\b)(?P<joined>-(?=[A-Za-z]))?(?P<per>\s?/\s?(?=[A-Za-z]))?"
)
_SIGN_NAMES = {
    "$": "dollars", "£": "pounds", "€": "euros", "¥": "yen", "₹": "rupees", "₩": "won", "₺": "lira", "₪": "shekels",
    "₫": "dong", "₦": "naira", "¢": "cents", "₿": "bitcoin", "₽": "rubles", "₴": "hryvnia",
}  # fmt: skip
_VARIABLE = re.compile(r"(?<![\w$])\$\{?(?=[A-Za-z_]{2})")  # $HOME
_LONE_SIGN = re.compile(f"[{''.join(_SIGN_NAMES)}]")
_PENCE = re.compile(r"(?<![\w.,])(?P<n>\d{1,3})p\b")


def expand(aligned: AlignedText, region: Region) -> AlignedText:
    """Spell out amounts: "$5.20" is "five dollars and twenty cents"."""

    def expand_amount(match: re.Match[str]) -> Replacement:
        minus = "minus " if match.groupdict().get("minus") or match.groupdict().get("minus2") else ""
        article = re.search(r"\b[Aa]n?\s$", match.string[max(0, match.start() - 3) : match.start()])
        adjective = bool(match["joined"] or article) or (not match["per"] and attributive.is_attributive(match))
        words = _amount_words(match["sign"], match["n"], match["scale"], adjective, region)
        return minus + words + ("-" if match["joined"] else "") + (" per " if match["per"] else "")

    def expand_range(match: re.Match[str]) -> Replacement:
        scale = _scale(match["scale2"])
        low = number(match["a"], region) + (_scale(match["scale"]) if match["scale"] else "")
        return f"{low} to {number(match['b'], region)}{scale} {_unit(match['sign'])[1]}"

    if region.british:
        aligned = aligned.sub(
            _PENCE, lambda match: f"{cardinal(int(match['n']), region)} {'penny' if match['n'] == '1' else 'pence'}"
        )
    if not _ANY_CURRENCY.search(aligned.text):
        return aligned
    aligned = aligned.sub(_RANGE, expand_range).sub(_AMOUNT, expand_amount).sub(_SIGN_BEHIND, expand_amount)
    aligned = aligned.sub(_VARIABLE, "dollar ")
    return aligned.sub(_LONE_SIGN, lambda match: f" {_SIGN_NAMES[match[0]]} ")


def _unit(sign: str) -> tuple[str, str, str, str]:
    if sign == "¢":
        return ("cent", "cents", "", "")
    sign = _CODES.get(sign, sign.removesuffix("."))
    if not sign.endswith("$"):
        return _CURRENCIES[sign]
    if sign == "R$":
        return ("real", "reais", "centavo", "centavos")
    singular, plural, cent, cents = _CURRENCIES["$"]
    prefix = _PREFIXES.get(sign[:-1], "")
    return (f"{prefix} {singular}".strip(), f"{prefix} {plural}".strip(), cent, cents)


def _scale(text: str | None) -> str:
    name = (text or "").strip().rstrip(".")
    return f" {_MAGNITUDES.get(name.lower(), name)}" if name else ""


def _amount_words(sign: str, amount: str, scale: str | None, adjective: bool, region: Region) -> str:
    singular, plural, cent, cents = _unit(sign)
    if re.fullmatch(r"\d+,\d\d", amount):
        amount = amount.replace(",", ".")  # the continental decimal comma
    whole, _, rest = amount.replace(",", "").partition(".")
    if scale or len(rest) not in (0, 2) or not cent:
        name = singular if adjective or (amount == "1" and not scale) else plural
        return f"{number(amount, region)}{_scale(scale)} {name}"
    n, hundredths = int(whole or 0), int(rest or 0)
    main = f"{number(whole or '0', region)} {singular if n == 1 or adjective else plural}"
    small = f"{cardinal(hundredths)} {cent if hundredths == 1 or adjective else cents}"
    if not hundredths:
        return main
    return f"{main} and {small}" if n else small
