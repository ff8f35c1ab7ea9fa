"""Grapheme to phoneme: one door for every language that Kokoro speaks."""

import threading
from collections.abc import Mapping
from pathlib import Path

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading
from tutti.text.g2p.english import English
from tutti.text.language import language


class G2P:
    """Says how plain words sound. `home` is the cache folder that holds `lexicon/`; callable from any thread."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._english: dict[str, English] = {}
        self._loading = threading.Lock()

    def __reduce__(self) -> tuple[type["G2P"], tuple[Path]]:
        return G2P, (self.home,)  # another process maps the same files instead of receiving them

    def english(self, code: str) -> English:
        """American or British English, loaded on first use."""
        with self._loading:
            if code not in self._english:
                self._english[code] = English.load(self.home, code)
            return self._english[code]

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Reading:
        """A sentence of plain words as Kokoro's symbols, every word tied to the original text.

        `given` holds the listener's own IPA by the place in the original text where its mark begins.
        """
        match language(code).code:
            case "en-us" | "en-gb" as accent:
                return self.english(accent).read(spoken, given)
            case "zh":
                from tutti.text.g2p import chinese

                return chinese.read(spoken, given, self._latin)
            case "ja":
                from tutti.text.g2p import japanese

                return japanese.read(spoken, given, self._latin)
            case other:
                from tutti.text.g2p import espeak

                return espeak.read(spoken, other, given)

    def _latin(self, spoken: AlignedText, given: Mapping[int, str]) -> Reading:
        """Latin words inside another script; the dictionary is loaded only if there are any."""
        return self.english("en-us").read(spoken, given)
