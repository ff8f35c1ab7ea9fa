"""An address of the web, sign by sign in the words that a language has for signs, letters and numbers."""

import re
from collections.abc import Callable, Mapping

from tutti.text.normalize.web import pieces

# Among Chinese characters, where an address ends with the first of them.
ADDRESS = re.compile(
    r"https?://[!-~]*[A-Za-z0-9/]|[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"
    r"|(?<![A-Za-z0-9.-])(?:www\.)?(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,6}(?:com|org|net|edu|gov|info|io|ai|co|app|dev|tv|jp|cn"
    r"|tw|hk|kr|pdf|docx?|xlsx?|pptx?|txt|zip|jpe?g|png|mp[34]|html?)(?![A-Za-z0-9])(?:/(?:[!-~]*[A-Za-z0-9/])?)?",
    re.IGNORECASE,
)
_SPELLED = re.compile(r"[A-Za-z]{1,2}|[^\W\d_aeiouyAEIOUY\u0080-\uffff]{3,5}")
_SILENT = frozenset("!(),;'[]|^*$")


def spell(address: str, signs: Mapping[str, str], letters: Callable[[str], str], number: Callable[[str], str]) -> str:
    """Return the address with its signs by name; short pieces and those without a vowel are spelled."""

    def word(piece: str) -> str:
        if piece.isdecimal():
            return number(piece)
        if piece.lower() in signs:
            return signs[piece.lower()]
        if piece in _SILENT:
            return ""
        return letters(piece) if _SPELLED.fullmatch(piece) else piece

    return " ".join(filter(None, map(word, pieces(address))))


def capitals(piece: str) -> str:
    """Return letters that an English voice spells: "W W W"."""
    return " ".join(piece.upper())
