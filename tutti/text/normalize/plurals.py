"""The form of a noun that a number asks for, by the plural rules of CLDR."""

import re
from collections.abc import Sequence

_ONE, _FEW, _MANY, _OTHER, _TWO = range(5)


def form(names: Sequence[str], figure: str, code: str) -> str:
    """Return one of the forms of a noun: one and other, or one, few, many, of a fraction and two."""
    return names[min(_category(figure, code), len(names) - 1)]


def many(names: Sequence[str]) -> str:
    """Return the form behind millions."""
    return names[min(_MANY, len(names) - 1)]


def _category(figure: str, code: str) -> int:
    if code not in ("pl", "ru", "ar"):
        return _ONE if figure == "1" else _FEW
    if not re.fullmatch(r"\d+|\d{1,3}(?:[. ]\d{3})+", figure):
        return _OTHER
    n = int(re.sub(r"\D", "", figure)[-12:])
    if code == "ar":
        return _arabic(n)
    if n == 1 or (code == "ru" and n % 10 == 1 and n % 100 != 11):
        return _ONE
    return _FEW if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else _MANY


def _arabic(n: int) -> int:
    if n in (1, 2):
        return _ONE if n == 1 else _TWO
    return _FEW if 3 <= n % 100 <= 10 else _MANY if n % 100 > 10 else _OTHER
