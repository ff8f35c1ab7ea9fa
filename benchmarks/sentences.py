"""The English test set: typical texts, their right readings and their phonemes."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

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
