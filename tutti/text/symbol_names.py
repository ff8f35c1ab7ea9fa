"""Emoji and emoticons, and their names in English."""

import re
from unicodedata import name

# Emoticons that stand alone, with the names that Unicode's annotations give to their emoji.
_EMOTICONS = {
    "smiling face": ":) :-) =) (: (-: :] :-] ^_^ ^-^ ^^ ^.^ n_n",
    "grinning face": ":D :-D =D xD XD x-D X-D",
    "winking face": ";) ;-) ;D ;-D",
    "frowning face": ":( :-( =( ): )-: :[ :-[ :c",
    "crying face": ":'( :'-( T_T ;_; T.T",
    "face with tongue": ":P :-P :p :-p =P ;P ;-P",
    "surprised face": ":O :-O :o :-o o_O O_o O_O o_o",
    "confused face": ":/ :-/ :\\ :-\\ :S :-S",
    "neutral face": ":| :-| -_- -.-",
    "kissing face": ":* :-* ;* ;-*",
    "face with sunglasses": "8-) B-)",
    "heart": "<3 ♡",
    "broken heart": "</3",
    "shrug": "¯\\_(ツ)_/¯",
    "hands up": "\\o/",
}
_NAMES = {emoticon: words for words, row in _EMOTICONS.items() for emoticon in row.split()}
_ANY = "|".join(map(re.escape, sorted(_NAMES, key=len, reverse=True)))
# Beside a word: alone among other signs it may be anything.
EMOTICON = re.compile(rf"(?:(?<=[^\W_] )|(?<=[^\W_][.!?,…] ))(?:{_ANY})(?=[\s.,!?…]|$)|(?<!\S)(?:{_ANY})(?=[ ][^\W_])")
_REGIONAL_A = 0x1F1E6
_MODIFIERS = re.compile("[\u200d\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")


def symbol_name(symbol: str) -> str:
    """Return the name of an emoji or emoticon in English words; "" if it has none."""
    if symbol in _NAMES:
        return _NAMES[symbol]
    if "\u20e3" in symbol:
        return f"keycap {symbol[0]}"
    if 0 <= ord(symbol[0]) - _REGIONAL_A < 26:
        return "flag " + " ".join(chr(ord("A") + ord(letter) - _REGIONAL_A) for letter in symbol)
    parts = [name(part, "").lower() for part in _MODIFIERS.sub("", symbol)]
    return " and ".join(part.replace("-", " ") for part in dict.fromkeys(parts) if part)
