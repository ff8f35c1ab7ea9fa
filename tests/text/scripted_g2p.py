"""A fake G2P for tests of the front end: spells words, counts sentences; "die" and "stumble" in a text fail.

While its folder has a file "broken", every text fails.
"""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation


@dataclass(frozen=True, slots=True)
class ScriptedG2P:
    folder: Path

    def pronounce(self, aligned: AlignedText, code: str, ipa_overrides: Mapping[int, str] = {}) -> Pronunciation:
        words, at = [], 0
        for written in aligned.text.split():
            start = aligned.text.index(written, at)
            at = start + len(written)
            words.append(PhonemeWord(f"{code[0]}{written.strip('.').lower()}", aligned.source(start, at), after=". "))
        with (self.folder / "sentences").open("a") as sentences:
            sentences.write(aligned.text + "\n")
        if "die" in aligned.text or (self.folder / "broken").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        if "stumble" in aligned.text:
            raise KeyError("stumbled")
        return Pronunciation(tuple(words))

    def n_sentences(self) -> int:
        path = self.folder / "sentences"
        return len(path.read_text().splitlines()) if path.exists() else 0
