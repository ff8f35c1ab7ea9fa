"""Words that no dictionary lists, put together from parts that it does."""

import re
from collections.abc import Callable

from tutti.text.g2p import sounds

Known = Callable[[str], str | None]  # the sound of a listed word

_CONTRACTIONS = {
    "'ll": ("əl", "əl"),
    "'ve": ("əv", "əv"),
    "'d": ("əd", "əd"),
    "'re": ("əɹ", "ə"),
    "n't": ("ᵊnt", "ᵊnt"),
}
_DOUBLED = re.compile(r"([bcdgklmnprstvxz])\1$|ck$")
_PREFIXES = {
    "un": ("ˌʌn", "ˌʌn"),
    "re": ("ɹˌi", "ɹˌiː"),
    "non": ("nˌɑn", "nˌɒn"),
    "pre": ("pɹˌi", "pɹˌiː"),
    "de": ("dˌi", "dˌiː"),
    "mis": ("mˌɪs", "mˌɪs"),
    "over": ("ˌOvəɹ", "ˌQvə"),
    "under": ("ˌʌndəɹ", "ˌʌndə"),
    "multi": ("mˌʌlti", "mˌʌlti"),
    "micro": ("mˌIkɹO", "mˌIkɹQ"),
    "super": ("sˌupəɹ", "sˌuːpə"),
    "hyper": ("hˌIpəɹ", "hˌIpə"),
    "inter": ("ˌɪntəɹ", "ˌɪntə"),
    "anti": ("ˌænti", "ˌanti"),
    "sub": ("sˌʌb", "sˌʌb"),
    "auto": ("ˌɔɾO", "ˌɔːtQ"),
    "cyber": ("sˌIbəɹ", "sˌIbə"),
    "meta": ("mˌɛɾə", "mˌɛtə"),
    "co": ("kˌO", "kˌQ"),
}
_SUFFIXES = {
    "ly": ("li", "li"),
    "ness": ("nəs", "nəs"),
    "less": ("ləs", "ləs"),
    "ful": ("fᵊl", "fᵊl"),
    "ment": ("mənt", "mənt"),
    "ship": ("ʃˌɪp", "ʃɪp"),
    "hood": ("hˌʊd", "hˌʊd"),
    "able": ("əbᵊl", "əbᵊl"),
    "ish": ("ɪʃ", "ɪʃ"),
    "er": ("əɹ", "ə"),
    "ers": ("əɹz", "əz"),
}


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


def derived(word: str, known: Known, british: bool) -> str | None:
    """A listed word with a prefix, a suffix, or a second listed word joined to it."""
    for prefix, sound in _PREFIXES.items():
        rest = word[len(prefix) :]
        if word.startswith(prefix) and len(rest) > 3:
            stem = known(rest) or inflected(rest, known, british)
            if stem and sounds.PRIMARY in stem:
                return sound[british] + stem
    for suffix, sound in _SUFFIXES.items():
        base = word[: -len(suffix)]
        if word.endswith(suffix) and len(base) > 2:
            stem = known(base)
            if not stem and suffix in ("ly", "ness") and base.endswith("i"):
                stem = known(base[:-1] + "y")
            if not stem and suffix in ("able", "er", "ers", "ish"):
                stem = known(base + "e") or (known(base[:-1]) if _DOUBLED.search(base) else None)
            if stem:
                vowel = sound[british][0] in sounds.VOWELS
                return (sounds.flapped(stem) if vowel and not british else stem) + sound[british]
    return compound(word, known)


def compound(word: str, known: Known) -> str | None:
    """Two listed words of at least three letters each written as one; the first one is stressed."""
    for cut in sorted(range(3, len(word) - 2), key=lambda cut: abs(2 * cut - len(word))):
        if cut < 4 and len(word) - cut < 4:
            continue
        first = known(word[:cut])
        second = known(word[cut:]) if first and sounds.PRIMARY in first else None
        if first and second and sounds.PRIMARY in second:
            return first + sounds.demoted(second)
    return None
