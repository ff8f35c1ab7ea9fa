"""Text normalisation: write numbers, dates, money, symbols and abbreviations as plain words."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.options import ALL_ON, Normalization

_DANDA = re.compile(r"\s*[।॥]+")  # the full stop of Hindi


def normalize(aligned: AlignedText, code: str, options: Normalization = ALL_ON) -> AlignedText:
    """Spell the sentence out in the language with that code. No digit is left; applying it twice changes nothing."""
    if not options.normalize:
        return aligned
    match code:
        case "en-us" | "en-gb":
            from tutti.text.normalize import english

            return english.normalize(aligned, code, options)
        case "zh":
            from tutti.text.normalize import chinese

            return chinese.normalize(aligned)
        case "ja":
            from tutti.text.normalize import japanese

            return japanese.normalize(aligned)
        case _:
            from tutti.text.normalize import european

            return european.normalize(aligned.sub(_DANDA, ".") if code == "hi" else aligned, code)
