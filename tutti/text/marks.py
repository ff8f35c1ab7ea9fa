"""Marks that a caller writes into the text: a pause of a given length, the phonemes of a word."""

import math
import re
from dataclasses import dataclass, field
from unicodedata import normalize

from tutti.errors import InvalidInput
from tutti.text.clean import OBJECT
from tutti.text.spoken import Spoken

LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Passage:
    """Text up to the next pause, the phonemes given for its OBJECTs, and the pause.

    Whatever else a mark may one day set for a stretch of text (a voice, a rate) is one more field here.
    """

    spoken: Spoken
    given: dict[int, str] = field(default_factory=dict)  # where the mark starts in the original: its IPA
    pause_s: float = 0.0


def parse(spoken: Spoken) -> list[Passage]:
    """The passages between `[pause:1.5s]` marks, each `[word](/ipa/)` turned into one OBJECT."""
    passages: list[Passage] = []
    done = 0
    for match in _PAUSE.finditer(spoken.text):
        passages.append(_passage(spoken[done : match.start()], _seconds(match)))
        done = match.end()
    rest = spoken[done:]
    if rest.text.strip():
        passages.append(_passage(rest, 0.0))
    return passages


_PAUSE = re.compile(r"\[pause:([^\[\]\n]{0,40})\]", re.IGNORECASE)
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(ms|s)\s*", re.IGNORECASE | re.ASCII)
_GIVEN = re.compile(r"\[[^\[\]\n]{1,200}\]\(/([^/()\n]{1,200})/\)")


def _passage(spoken: Spoken, pause_s: float) -> Passage:
    given: dict[int, str] = {}

    def one_object(match: re.Match[str]) -> str:
        start, _ = spoken.span(*match.span())
        given[start] = _symbols(match[1])
        return OBJECT

    return Passage(spoken.sub(_GIVEN, one_object), given, pause_s)


def _seconds(mark: re.Match[str]) -> float:
    length = _LENGTH.fullmatch(mark[1])
    pause_s = float(length[1]) / (1000 if length[2].lower() == "ms" else 1) if length else math.nan
    if not 0 < pause_s <= LONGEST_PAUSE_S:
        raise InvalidInput(
            f"{mark[0]} is no pause: write a length above 0 and up to {LONGEST_PAUSE_S:.0f} seconds, "
            "such as [pause:1.5s] or [pause:300ms]",
            param="input",
        )
    return pause_s


def _symbols(ipa: str) -> str:
    """IPA with its tildes on their own, as Kokoro spells nasal vowels; ç is one symbol there."""
    return "".join(char if char == "ç" else normalize("NFD", char) for char in ipa.strip())


def bare(written: str) -> str:
    """What a reader sees of a stretch of text: `[word](/ipa/)` is word."""
    mark = _GIVEN.fullmatch(written)
    return written[1 : written.index("]")] if mark else written
