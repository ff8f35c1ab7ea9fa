"""Endings: words that the dictionary lists in another form.

Longer joints (un-, -ness, two words in one) are left to the network that reads letters: on words it had never seen it
was right more often than rules for prefixes, suffixes and compounds (phoneme errors 10.7 % against 13.5 %).
"""

import re
from collections.abc import Callable

from tutti.text.g2p import phonology as sounds

Known = Callable[[str], str | None]  # the sound of a listed word

_CONTRACTIONS = {
    "'ll": ("əl", "əl"),
    "'ve": ("əv", "əv"),
    "'d": ("əd", "əd"),
    "'re": ("əɹ", "ə"),
    "n't": ("ᵊnt", "ᵊnt"),
}
_DOUBLED = re.compile(r"([bcdgklmnprstvxz])\1$|ck$")
# In front of a hyphen; "re" alone is a note of the scale.
PREFIXES = {
    "re": ("ɹˌi", "ɹˌiː"),
    "pre": ("pɹˌi", "pɹˌiː"),
    "de": ("dˌi", "dˌiː"),
    "co": ("kˌO", "kˌQ"),
    "non": ("nˌɑn", "nˌɒn"),
    "un": ("ˌʌn", "ˌʌn"),
}
WEAK = {"a": "ɐ", "an": "ɐn", "the": "ðə"}  # inside a hyphened compound


def inflected(word: str, known: Known, british: bool) -> str | None:
    """-s, -'s, -ed, -ing and contractions of a listed word."""
    for ending, sound in _CONTRACTIONS.items():
        if word.endswith(ending) and (stem := known(word[: -len(ending)])):
            return stem + sound[british]
    if word.endswith(("s'", "'")) and (stem := known(word[:-1])):
        return stem
    if len(word) > 2 and word.endswith("s"):
        return _plural(word, known, british)
    if len(word) > 3 and word.endswith("d"):
        return _past(word, known, british)
    if len(word) > 4 and word.endswith("ing"):
        return _gerund(word, known, british)
    return None


def _plural(word: str, known: Known, british: bool) -> str | None:
    stem = None
    if word.endswith("'s"):
        stem = known(word[:-2])
    elif not word.endswith("ss"):
        stem = known(word[:-1])
        if not stem and len(word) > 4 and word.endswith("es"):
            stem = known(word[:-3] + "y") if word.endswith("ies") else known(word[:-2])
    return sounds.plural(stem, british) if stem else None


def _past(word: str, known: Known, british: bool) -> str | None:
    stem = None if word.endswith("dd") else known(word[:-1])
    if not stem and len(word) > 4 and word.endswith("ed") and not word.endswith("eed"):
        stem = known(word[:-2]) or (known(word[:-3] + "y") if word.endswith("ied") else None)
        if not stem and _DOUBLED.search(word[:-2]):
            stem = known(word[:-3])
    return sounds.past(stem, british) if stem else None


def _gerund(word: str, known: Known, british: bool) -> str | None:
    base = word[:-3]
    stem = (known(base) if len(word) > 5 else None) or known(base + "e")
    if not stem and len(word) > 5 and _DOUBLED.search(base):
        stem = known(base[:-1])
    return sounds.gerund(sounds.with_stress(stem, sounds.SECONDARY), british) if stem else None
