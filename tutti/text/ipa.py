"""Pronunciations as others write them, in Kokoro's symbols: IPA of dictionaries and cloud services, CMU's ARPAbet."""

import re
from unicodedata import combining, normalize

from tutti.errors import InvalidInput

# Kokoro writes a diphthong or an affricate as one symbol, and two sounds with other letters than IPA.
_TO_IPA = {
    **{"A": "eɪ", "I": "aɪ", "O": "oʊ", "Q": "əʊ", "W": "aʊ", "Y": "ɔɪ", "T": "ɾ"},
    **{"ʧ": "t͡ʃ", "ʤ": "d͡ʒ", "ʦ": "t͡s", "ʣ": "d͡z", "ʨ": "t͡ɕ"},
}
_FROM_IPA = {ipa: symbol for symbol, ipa in _TO_IPA.items() if symbol != "T"}
_FROM_IPA |= {"tʃ": "ʧ", "dʒ": "ʤ", "ɝ": "ɜɹ", "ɚ": "əɹ", "ɫ": "l", "'": "ˈ", "g": "ɡ"}
_IPA_SOUND = re.compile("|".join(sorted(map(re.escape, _FROM_IPA), key=len, reverse=True)))
_KOKORO_SYMBOL = re.compile("|".join(_TO_IPA))
_SYLLABLE_MARK = re.compile(r"[.‿|/\[\]]")  # a full stop would be a pause
_TIE = "\u0361"
_TIES = str.maketrans({"\u035c": _TIE, "\u200d": None})
_NASAL = "\u0303"

# The vowels of ARPAbet take a digit for their stress; CMU's dictionary says which sounds these are.
_ARPABET = {
    **{"AA": "ɑ", "AE": "æ", "AH": "ʌ", "AO": "ɔ", "AW": "W", "AY": "I", "EH": "ɛ", "ER": "ɜɹ", "EY": "A", "IH": "ɪ"},
    **{"IY": "i", "OW": "O", "OY": "Y", "UH": "ʊ", "UW": "u", "B": "b", "CH": "ʧ", "D": "d", "DH": "ð", "F": "f"},
    **{"G": "ɡ", "HH": "h", "JH": "ʤ", "K": "k", "L": "l", "M": "m", "N": "n", "NG": "ŋ", "P": "p", "R": "ɹ"},
    **{"S": "s", "SH": "ʃ", "T": "t", "TH": "θ", "V": "v", "W": "w", "Y": "j", "Z": "z", "ZH": "ʒ"},
}
_UNSTRESSED = {"AH": "ə", "ER": "əɹ"}
_ARPABET_SOUND = re.compile(r"([A-Z]{1,2})([012]?)")
ALPHABETS = ("ipa", "cmu-arpabet")


def pronunciation(written: str, alphabet: str, *, english: bool = True) -> str:
    """Return an entry of a lexicon, `/həlˈO/`, for a pronunciation in the alphabet of this name."""
    name = alphabet.lower().removeprefix("x-")
    if name == "ipa":
        return f"/{from_ipa(written, english=english)}/"
    if name in ("cmu-arpabet", "cmu", "arpabet"):
        return f"/{from_arpabet(written)}/"
    raise InvalidInput(f"unknown alphabet {alphabet[:40]!r}; write {' or '.join(ALPHABETS)}", param="alphabet")


def from_ipa(written: str, *, english: bool = True) -> str:
    """Return IPA in Kokoro's symbols. What Kokoro has no symbol for stays, so that an error can name it."""
    text = normalize("NFC", written.strip()).translate(_TIES)
    text = _IPA_SOUND.sub(lambda sound: _FROM_IPA[sound[0]], _SYLLABLE_MARK.sub("", text))
    text = "".join(char for char in normalize("NFD", text) if char == _NASAL or not combining(char) or char == "\u0327")
    text = normalize("NFC", text) if "\u0327" in text else text
    return text.replace("r", "ɹ") if english else text


def to_ipa(symbols: str) -> str:
    """Return Kokoro's symbols as IPA that other programs read."""
    return _KOKORO_SYMBOL.sub(lambda symbol: _TO_IPA[symbol[0]], symbols)


def from_arpabet(written: str) -> str:
    """Return `HH AH0 L OW1` in Kokoro's symbols; raise InvalidInput for a sound that it does not have."""
    return "".join(map(_arpabet_sound, written.upper().split()))


def _arpabet_sound(written: str) -> str:
    match = _ARPABET_SOUND.fullmatch(written)
    if match is None or match[1] not in _ARPABET:
        raise InvalidInput(f"{written[:20]!r} is no sound of cmu-arpabet; write such as HH AH0 L OW1", param="phoneme")
    name, stress = match[1], match[2]
    if stress == "0":
        return _UNSTRESSED.get(name, _ARPABET[name])
    return {"1": "ˈ", "2": "ˌ"}.get(stress, "") + _ARPABET[name]
