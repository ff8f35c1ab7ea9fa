"""Text normalisation: write numbers, dates, money, symbols and abbreviations as plain words."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.options import ALL_ON, Normalization

_VOWEL_SIGN = re.compile("[\u064b-\u0652]")
_ARABIC = re.compile("[\u0621-\u064a]{2}")
NO_VOWELS = (
    "Arabic without vowel signs: espeak-ng guesses the short vowels, and many are wrong; write them, or let a "
    "diacritizer do it before"
)
_DANDA = re.compile(r"\s*[।॥]+")  # the full stop of Hindi


def guesses(text: str, code: str) -> tuple[str, ...]:
    """Return for each kind of guess the first reading of a sentence that is one, in a few words, or ""."""
    if code == "ar":
        return (NO_VOWELS if _ARABIC.search(text) and not _VOWEL_SIGN.search(text) else "",)
    if not code.startswith("en-"):
        return ()
    from tutti.text.normalize import english

    return english.guesses(text, code)


def normalize(aligned: AlignedText, code: str, options: Normalization = ALL_ON) -> AlignedText:
    """Spell the sentence out in the language with that code. No digit is left; applying it twice changes nothing."""
    if not options.normalize:
        return aligned
    if code.startswith("en-"):
        from tutti.text.normalize import english

        return english.normalize(aligned, code, options)
    match code:
        case "zh" | "zh-1.1":
            from tutti.text.normalize import chinese

            return chinese.normalize(aligned)
        case "ja":
            from tutti.text.normalize import japanese

            return japanese.normalize(aligned)
        case _:
            from tutti.text.normalize import european

            return european.normalize(aligned.sub(_DANDA, ".") if code == "hi" else aligned, code, options)
