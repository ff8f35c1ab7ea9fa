"""Addresses of the web, names of files and handles, sign by sign in the words of the language."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.cardinals import cardinal, digits
from tutti.text.normalize.locales.locale import Locale
from tutti.text.normalize.web import expand_addresses, pieces
from tutti.text.options import ALL_ON, Normalization

_LIKE_ADDRESS = re.compile(
    r"[@#]|//|\\|www\.|\w\.[A-Za-z]{2}|(?<!\w)[~.]*/[A-Za-z_.]|\?[A-Za-z_]\w*=|localhost|\d\.\d{1,3}\.\d{1,3}\.\d"
    r"|\.7z|\.mp[34]",
    re.IGNORECASE,
)
_HANDLE = re.compile(r"(?<![\w.@])@[A-Za-z_]\w{1,63}")
_HASHTAG = re.compile(r"(?<![\w&#])#(?=[^\W\d_])")
_GROUPED = re.compile(r"\d{1,3}(?:\.\d{3})+|\d{1,2}\.\d{1,2}\.\d{2,4}")  # no address, but a number or a date
_SPELLED = re.compile(r"[A-Za-z]{1,2}|[^\W\d_aeiouyAEIOUY\u0080-\uffff]{3,5}")
_SIGNS_LEFT_OUT = frozenset("!(),;'[]|^*$")


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
    return " ".join(word for word in (_piece(piece, locale) for piece in pieces(address)) if word)


def _piece(piece: str, locale: Locale) -> str:
    if piece.isdecimal():
        short = len(piece) < 5 and (piece[0] != "0" or piece == "0")
        return cardinal(int(piece), locale.code) if short else digits(piece, locale.code)
    if piece.lower() in locale.signs:
        return locale.signs[piece.lower()]
    if piece in _SIGNS_LEFT_OUT:
        return ""
    return spell_letters(piece, locale) if _SPELLED.fullmatch(piece) else piece
