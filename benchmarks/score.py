"""Word and phoneme errors of speech against the right readings."""

import itertools
import re
from calendar import month_name
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jiwer
from whisper_normalizer.english import EnglishTextNormalizer

# Spellings that a recogniser may write for the same sounds. Both sides are normalised, so neither gains.
SPELLINGS = [
    (re.compile(pattern, re.IGNORECASE), new)
    for pattern, new in (
        (r"https?://", " "),
        (r"(?<!\b[a-z] )\b([ap])\.? ?m\b\.?", r"\1m"),  # p.m., P M, pm; not r p m
        (r"(\d{1,2}):00\b", r"\1"),
        (r"(\d):(\d\d)", r"\1\2"),
        (r"(\d)\.(\d\d) ?(?=[ap]m\b)", r"\1\2 "),
        (r"(\d) ?[-–] ?(?=\d)", r"\1 "),
        (r"(?<=\d),(?=\d{3}\b)", ""),
        (r"\b0(?=\d)", "0 "),  # the normaliser takes figures for quantities and drops leading zeros
        (r"(?<=\w)\.(?=[a-z]{2,}\b)", " dot "),
        (r"@", " at "),
        (r"(?<=[a-z])/(?=[a-z])", " slash "),
        (r"&", " and "),
        (r"#(?=\d)", " number "),
        (r"#", " hashtag "),
        (r"%", " percent"),
        (r"° ?F\b", " degrees fahrenheit"),
        (r"° ?C\b", " degrees celsius"),
        (r"°", " degrees "),
        (r"(?<=\d) ?km/h\b|(?<=\d) ?kph\b", " kilometers per hour"),
        (r"(?<=\d) ?mph\b", " miles per hour"),
        (r"(?<=\d) ?ghz\b", " gigahertz"),
        (r"(?<=\d) ?mbps\b", " megabits per second"),
        (r"\bmetre(s?)\b", r"meter\1"),
        (r"(kilo|centi|milli)metre", r"\1meter"),
        (r"(milli)?litre", r"\1liter"),
        (r"\bvs\b\.?", "versus"),
        (r"\betc\b\.?|\bet cetera\b", "etcetera"),
        (r"\bst\b\.? (?=[A-Z])", "saint "),
        (r"\bok\b", "okay"),
        (r"\bany time\b", "anytime"),
        (r"\bctrl\b", "control"),
        (r"\bcapitol\b", "capital"),
        (r"\bworld war ii\b", "world war two"),
        (r"(?<=[A-Z])'s\b", "s"),  # PDF's
    )
]

MAGNITUDES = (("trillion", "0" * 12), ("billion", "0" * 9), ("million", "0" * 6), ("thousand", "0" * 3))
CLOCK = re.compile(r"\b(\d{1,2})\.([0-5]\d)\b")
RANGE = re.compile(r"(?<=\d) ?[-–] ?(?=\d)")
DAY = re.compile(rf"\b({'|'.join(month_name[1:]).lower()}) ((?:\d )*\d) (?:st|nd|rd|th)\b")
_LETTERS = re.compile(r"\b(?:[A-Z] )+[A-Z]s?\b")


@cache
def _normalizer() -> EnglishTextNormalizer:
    return EnglishTextNormalizer()


def words(text: str) -> str:
    """The words of a text in one spelling; numbers digit by digit, since the grouping of digits is inaudible."""
    for pattern, new in SPELLINGS:
        text = pattern.sub(new, text)
    # Letters spelled one by one and as one word sound the same, and the normaliser takes a lone O for a zero.
    text = _LETTERS.sub(lambda match: match[0].replace(" ", ""), text)
    text = _normalizer()(text)
    text = re.sub(r"([$€£¥])([\d.]+)( (?:million|billion|trillion))?", r"\2\3 \1", text)
    for name, zeros in MAGNITUDES:  # one wrong "million" is one wrong word, not six wrong digits
        text = re.sub(rf"(?<=\d){zeros}\b", f" {name}", text)
    text = re.sub(r"(?<=\d)\.(?=\d)", " point ", text)
    text = re.sub(r"(\d)(st|nd|rd|th)\b", r"\1 \2", text)
    text = re.sub(r"(?<=\d)(?=[a-z\d])|(?<=[a-z])(?=\d)", " ", text)  # "14b", "1984"
    text = DAY.sub(r"\1 \2", text)  # "March 14th" is written "March 14"
    text = re.sub(r"\b(?:[a-z] )+[a-z]\b", lambda match: match[0].replace(" ", ""), text)  # d.c.
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Errors:
    """Wrong, missing and extra symbols, and how many there should have been."""

    wrong: int = 0
    total: int = 0

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(self.wrong + other.wrong, self.total + other.total)

    @property
    def percent(self) -> float:
        return 100 * self.wrong / self.total if self.total else 0.0


def _fewest(errors: Iterable[Errors]) -> Errors:
    return min(errors, key=lambda e: e.percent)


def word_errors(readings: Iterable[str], transcript: str) -> Errors:
    """Errors against the nearest of the right readings."""
    # "six forty five" is written 6.45 as often as 6:45, and "ten to fourteen" 10-14.
    spellings = {words(transcript), words(CLOCK.sub(r"\1:\2", transcript)), words(RANGE.sub(" to ", transcript))}
    return _fewest(_count(jiwer.process_words(words(reading), text)) for reading in readings for text in spellings)


# Broad transcription: no stress, length, spaces or punctuation; flaps and reduced vowels as their plain sounds.
BROAD = str.maketrans({**dict.fromkeys('ˈˌː ;:,.!?—…"()“”', ""), "T": "t", "ɾ": "t", "ᵊ": "ə", "ɐ": "ə", "ᵻ": "ɪ"})


def broad(phonemes: str) -> str:
    return phonemes.translate(BROAD)


def phoneme_errors(references: Iterable[str], phonemes: str) -> Errors:
    """Errors against the nearest of the right pronunciations, broadly."""
    actual = broad(phonemes)
    return _fewest(_count(jiwer.process_characters(broad(reference), actual)) for reference in references)


def _count(output: jiwer.WordOutput | jiwer.CharacterOutput) -> Errors:
    missed = output.substitutions + output.deletions
    return Errors(missed + output.insertions, output.hits + missed)


# -- the English test set ----------------------------------------------------------------------------------------------


DATA = Path(__file__).parent / "data" / "english.tsv"
CHOICE = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Sentence:
    category: str
    text: str
    readings: tuple[str, ...]  # every right reading, in words
    phonemes: tuple[str, ...]  # American, one for each reading


def expand(spoken: str) -> tuple[str, ...]:
    """Every reading of "I ate {two|a pair of} pears"."""
    parts = CHOICE.split(spoken)
    choices = [part.split("|") if odd else [part] for part, odd in zip(parts, itertools.cycle((False, True)))]
    return tuple("".join(chosen) for chosen in itertools.product(*choices))


def sentences(path: Path = DATA) -> list[Sentence]:
    """The test set in its own order, categories together."""
    _, *lines = path.read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return [
        Sentence(category, text, expand(spoken), tuple(phonemes.split(" | ")))
        for category, text, spoken, phonemes in rows
    ]


def spread(items: list[Sentence], n: int | None) -> list[Sentence]:
    """About n sentences, taken evenly from all categories."""
    if n is None or n >= len(items):
        return items
    return [items[i * len(items) // n] for i in range(n)]
