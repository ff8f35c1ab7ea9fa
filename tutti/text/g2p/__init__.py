"""Grapheme to phoneme conversion for every language that Kokoro speaks."""

import threading
from collections.abc import Mapping
from pathlib import Path

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p.english import English
from tutti.text.language import find_language


class G2P:
    """Pronounces plain words. `home` is the cache folder that holds `lexicon/`; callable from any thread."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._english: dict[str, English] = {}
        self._loading = threading.Lock()

    def __reduce__(self) -> tuple[type["G2P"], tuple[Path]]:
        return G2P, (self.home,)  # another process maps the same files instead of unpickling them

    def english(self, code: str) -> English:
        """Return American or British English, loaded on first use."""
        with self._loading:
            if code not in self._english:
                self._english[code] = English.load(self.home, code)
            return self._english[code]

    def pronounce(self, aligned: AlignedText, code: str, ipa_overrides: Mapping[int, str] = {}) -> Pronunciation:
        """Return a sentence of plain words in Kokoro's symbols, every word with its source.

        `ipa_overrides` holds the IPA that the caller gave, by the source offset of its PLACEHOLDER.
        """
        language = find_language(code)
        match language.accent or language.code:
            case "en-us" | "en-gb" as accent:
                return self.english(accent).pronounce(aligned, ipa_overrides)
            case "zh" | "zh-1.1" as form:
                from tutti.text.g2p import chinese

                return chinese.pronounce(aligned, ipa_overrides, self._latin, in_bopomofo=form == "zh-1.1")
            case "ja":
                from tutti.text.g2p import japanese

                return japanese.pronounce(aligned, ipa_overrides, self._latin)
            case other:
                from tutti.text.g2p import espeak

                return espeak.pronounce(aligned, other, ipa_overrides)

    def _latin(self, aligned: AlignedText, ipa_overrides: Mapping[int, str]) -> Pronunciation:
        """Pronounce Latin words inside another script; the dictionary is loaded only if there are any."""
        return self.english("en-us").pronounce(aligned, ipa_overrides)
