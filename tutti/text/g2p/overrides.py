"""Names and modern words that the dictionaries lack or have wrong: a small table beside them."""

import re
from importlib import resources

from tutti.text.g2p import phonology
from tutti.text.g2p.lexicon import DictionaryEntry

_STRESS = f"[{phonology.PRIMARY}{phonology.SECONDARY}]?"
_VOWEL = "[AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻᵊ]"
_R_NOT_BEFORE_VOWEL = re.compile(rf"(?P<vowel>[ɜəɑɔɪɛʊi])ɹ(?!{_STRESS}{_VOWEL})")
_VOWEL_BEFORE_R = re.compile(r"[ɜɑɔ](?=ɹ)")
_VOWEL_FOR_R = {"ɜ": "ɜː", "ə": "ə", "ɑ": "ɑː", "ɔ": "ɔː", "ɪ": "ɪə", "ɛ": "ɛː", "ʊ": "ʊə", "i": "ɪə"}
_I_SOUND = re.compile(rf"(?P<mark>[ˈˌ])?i(?P<before>$|{_STRESS}{_VOWEL})?")
_OPEN_VOWEL = re.compile(r"[ɑɔ](?!ː)")
_VOWELS = re.compile(_VOWEL)
_VOWEL_LETTERS = re.compile(r"[aeiouy]+")
_MAX_ABBREVIATION = 4  # letters
_BRITISH_SYMBOLS = str.maketrans({"T": "t", "O": "Q", "æ": "a", "ᵻ": "ɪ", "u": "uː"})


class Overrides:
    """The table of one accent; British phonemes are derived from American ones on demand."""

    def __init__(self, british: bool) -> None:
        self._british = british
        self._priority, self._others = _load()

    def priority(self, word: str) -> DictionaryEntry | None:
        """Return the entry with exactly this spelling that outranks every dictionary."""
        return self._entry(word, self._priority.get(word))

    def get(self, word: str) -> DictionaryEntry | None:
        """Return the entry for a word in any case; short words in capitals are abbreviations (CAO), not names (Cao)."""
        spelling, listed = self._others.get(word.lower(), ("", None))
        if len(word) <= _MAX_ABBREVIATION and word.isupper() and spelling.istitle():
            return None
        return self._entry(word, listed)

    def _entry(self, word: str, listed: str | None) -> DictionaryEntry | None:
        if listed is None:
            return None
        us, _, gb = listed.partition("\t")
        return DictionaryEntry(True, {"DEFAULT": (gb or to_british(word, us)) if self._british else us})


def to_british(word: str, us: str) -> str:
    """Derive British phonemes: r only before vowels, "o" and "a" distinct, long vowels marked."""
    vowels = [match.start() for match in _VOWELS.finditer(us)]
    groups = _VOWEL_LETTERS.findall(word.lower())
    aligned = (
        groups if len(groups) == len(vowels) else ["o" if {*"oa"} & {*word.lower()} == {"o"} else "a"] * len(vowels)
    )
    letters_of = dict(zip(vowels, aligned, strict=True))

    def open_vowel(match: re.Match[str]) -> str:
        if us[match.end() : match.end() + 1] == "ɹ":
            return match[0]
        return "ɒ" if letters_of[match.start()] == "o" else f"{match[0]}ː"

    sound = _OPEN_VOWEL.sub(open_vowel, us).translate(_BRITISH_SYMBOLS)
    sound = _R_NOT_BEFORE_VOWEL.sub(lambda match: _VOWEL_FOR_R[match["vowel"]], sound)
    return _I_SOUND.sub(_shorten_i, _VOWEL_BEFORE_R.sub(r"\g<0>ː", sound))


def _shorten_i(match: re.Match[str]) -> str:
    """Shorten the last i ("happy") and an unstressed i before a vowel; lengthen the others."""
    mark, before = match["mark"] or "", match["before"]
    if mark or before is None:
        return f"{mark}iː{before or ''}"
    return f"ɪ{before}" if before else "i"


def _load() -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    priority: dict[str, str] = {}
    others: dict[str, tuple[str, str]] = {}
    text = resources.files("tutti.text.g2p").joinpath("data/names.tsv").read_text("utf-8")
    for line in text.splitlines():
        word, _, listed = line.partition("\t")
        if word.startswith("!"):
            priority[word[1:]] = listed
        elif listed:
            others[word.lower()] = word, listed
    return priority, others
