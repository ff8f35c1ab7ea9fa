"""A pronouncer for tests of the pool: spells words, counts sentences, and does what its words tell it."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading, Word


@dataclass(frozen=True, slots=True)
class Reciter:
    folder: Path

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Reading:
        words, at = [], 0
        for written in spoken.text.split():
            start = spoken.text.index(written, at)
            at = start + len(written)
            words.append(Word(f"{code[0]}{written.strip('.').lower()}", spoken.span(start, at), after=". "))
        with (self.folder / "sentences").open("a") as sentences:
            sentences.write(spoken.text + "\n")
        if "die" in spoken.text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "stumble" in spoken.text:
            raise KeyError("stumbled")
        return Reading(tuple(words))

    def n_sentences(self) -> int:
        path = self.folder / "sentences"
        return len(path.read_text().splitlines()) if path.exists() else 0
