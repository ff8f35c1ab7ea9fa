"""Addresses of the web, names of files and handles, sign by sign in the words of the language."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.address_words import spell
from tutti.text.normalize.cardinals import cardinal, digits
from tutti.text.normalize.locales.locale import Locale
from tutti.text.normalize.web import expand_addresses
from tutti.text.options import ALL_ON, Normalization

# One class of characters at the start, which the regular expression looks for fast.
_LIKE_ADDRESS = re.compile(
    r"[@#\\/.?lL](?:(?<=[@#\\])|(?<=//)|(?<=/)(?<!\w/)[A-Za-z_.]|(?<=\?)[A-Za-z_]\w*=|(?<=[lL])(?i:ocalhost)"
    r"|(?<=\.)(?:(?<=\w\.)[A-Za-z]{2}|(?<=[wW]{3}\.)|7[zZ]|[mM][pP][34]|(?<=\d\.)\d{1,3}\.\d{1,3}\.\d))"
)
_HANDLE = re.compile(r"(?<![\w.@])@[A-Za-z_]\w{1,63}")
_HASHTAG = re.compile(r"(?<![\w&#])#(?=[^\W\d_])")
_GROUPED = re.compile(r"\d{1,3}(?:\.\d{3})+|\d{1,2}\.\d{1,2}\.\d{2,4}")  # no address, but a number or a date


def expand(aligned: AlignedText, locale: Locale, options: Normalization = ALL_ON) -> AlignedText:
    """Spell addresses, handles and hashtags."""
    if not _LIKE_ADDRESS.search(aligned.text):
        return aligned
    aligned = expand_addresses(aligned, lambda address: _spell(address, locale), options)
    if "@" in aligned.text:
        aligned = aligned.sub(_HANDLE, lambda match: _spell(match[0], locale))
    return aligned.sub(_HASHTAG, f"{locale.signs['#']} ") if "#" in aligned.text else aligned


def spell_letters(letters: str, locale: Locale) -> str:
    """Return the names of Latin letters; letters themselves where the locale has no names for them."""
    if not locale.letters or not letters.isascii():
        return letters
    return " ".join(locale.letters[ord(letter) - ord("a")] for letter in letters.lower())


def _spell(address: str, locale: Locale) -> str | None:
    if _GROUPED.fullmatch(address):
        return None
    return spell(address, locale.signs, lambda piece: spell_letters(piece, locale), lambda n: _number(n, locale))


def _number(figure: str, locale: Locale) -> str:
    short = len(figure) < 5 and (figure[0] != "0" or figure == "0")
    return cardinal(int(figure), locale.code) if short else digits(figure, locale.code)
