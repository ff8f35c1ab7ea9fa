"""Plain words for every language but English."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize import chinese, japanese
from tutti.text.normalize import european as figures

_DANDA = re.compile(r"\s*[।॥]+")


def normalize(spoken: AlignedText, code: str) -> AlignedText:
    """Figures and signs as words of the language, ties kept; no digit is left. Saying it twice changes nothing."""
    match code:
        case "zh":
            return chinese.normalize(spoken)
        case "ja":
            return japanese.normalize(spoken)
        case "hi":
            return figures.normalize(spoken.sub(_DANDA, "."), code)
        case _:
            return figures.normalize(spoken, code)
