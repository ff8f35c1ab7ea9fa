"""How a word may be said, for people who choose: what the dictionary has, its letters, a guess, another accent."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tutti.errors import MissingExtra, WeightsUnavailable
from tutti.text.aligned_text import AlignedText
from tutti.text.g2p import G2P, homographs
from tutti.text.g2p.english import English
from tutti.text.language import find_language

_TAGS = {"NOUN": "as a noun", "VERB": "as a verb", "ADJ": "as an adjective", "ADV": "as an adverb"}
_TAGS |= {"VBD": "in the past", "VBN": "in the past", "VBP": "as a verb", "DT": "as an article", "None": "at the end"}
_ACCENTS = {"en-us": "American", "en-gb": "British"}
_STRESS = re.compile("[ˈˌ]")


class Reading(NamedTuple):
    """A pronunciation in Kokoro's symbols, and where it comes from."""

    phonemes: str
    source: str


def readings(g2p: G2P, word: str, code: str) -> list[Reading]:
    """Return the pronunciations of a word in this language, each once; the first is how it is said alone."""
    unique: dict[str, Reading] = {}
    for reading in _all_readings(g2p, word, code):
        if _STRESS.sub("", reading.phonemes):
            unique.setdefault(reading.phonemes, reading)
    return list(unique.values())


def _all_readings(g2p: G2P, word: str, code: str) -> Iterator[Reading]:
    language = find_language(code)
    accent = language.accent or language.code
    yield Reading(_said(g2p, word, accent), "now")
    others = ("en-gb", "en-us") if accent == "en-gb" else ("en-us", "en-gb")
    for each in others:
        label = "" if each == accent else _ACCENTS[each] if accent in _ACCENTS else f"{_ACCENTS[each]} English"
        try:
            english = g2p.english(each)
        except WeightsUnavailable:
            continue
        for sound, why in _english(english, word, is_accent=each == accent):
            yield Reading(sound, ", ".join(filter(None, (label, why))))


def _said(g2p: G2P, word: str, code: str) -> str:
    try:
        pronounced = g2p.pronounce(AlignedText.of(word), code)
    except (WeightsUnavailable, MissingExtra):
        return ""
    return " ".join(each.phonemes for each in pronounced.words)


def _english(english: English, word: str, *, is_accent: bool) -> Iterator[tuple[str, str]]:
    """Yield sounds of a word and what they are: readings of the dictionary, of its context, its letters, a guess."""
    sounds = english.listed(word)
    for tag in sorted(sounds, key=lambda tag: tag not in ("DEFAULT", "VBD")):  # before an adjective that sounds alike
        yield sounds[tag], _TAGS.get(tag, "in the dictionary")
    for rule in homographs.RULES.get(word.lower(), ()):
        yield rule.gb if english.british else rule.us, "in another context"
    if is_accent or not sounds:
        yield english.guessed(word), "as it is spelled"
    if is_accent:
        yield english.spelled(word), "by its letters"
