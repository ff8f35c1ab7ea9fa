"""Names and modern words that the dictionaries lack or guess: a small table of our own beside them."""

import re
from importlib import resources

from tutti.text.g2p import phonology as sounds
from tutti.text.g2p.lexicon import Entry

_STRESS = f"[{sounds.PRIMARY}{sounds.SECONDARY}]?"
_VOWEL = "[AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻᵊ]"
_R = re.compile(rf"(?P<vowel>[ɜəɑɔɪɛʊi])ɹ(?!{_STRESS}{_VOWEL})")
_R_HEARD = re.compile(r"[ɜɑɔ](?=ɹ)")
_SILENT_R = {"ɜ": "ɜː", "ə": "ə", "ɑ": "ɑː", "ɔ": "ɔː", "ɪ": "ɪə", "ɛ": "ɛː", "ʊ": "ʊə", "i": "ɪə"}
_HAPPY = re.compile(rf"(?P<mark>[ˈˌ])?i(?P<before>$|{_STRESS}{_VOWEL})?")
_OPEN = re.compile(r"[ɑɔ](?!ː)")
_SYLLABLE = re.compile(_VOWEL)
_LETTERS = re.compile(r"[aeiouy]+")
_ABBREVIATION = 4  # letters
_SAME = str.maketrans({"T": "t", "O": "Q", "æ": "a", "ᵻ": "ɪ", "u": "uː"})


class Names:
    """The table of one accent; British sounds are derived when they are asked for."""

    def __init__(self, british: bool) -> None:
        self._british = british
        self._firm, self._usual = _read()

    def firm(self, word: str) -> Entry | None:
        """The entry that stands above every dictionary, spelled exactly so."""
        return self._entry(word, self._firm.get(word))

    def get(self, word: str) -> Entry | None:
        """The entry for a word in any case; a few capitals spell an abbreviation (CAO), not a name (Cao)."""
        spelling, listed = self._usual.get(word.lower(), ("", None))
        if len(word) <= _ABBREVIATION and word.isupper() and spelling.istitle():
            return None
        return self._entry(word, listed)

    def _entry(self, word: str, listed: str | None) -> Entry | None:
        if listed is None:
            return None
        us, _, gb = listed.partition("\t")
        return Entry(True, {"DEFAULT": (gb or british(word, us)) if self._british else us})


def british(word: str, us: str) -> str:
    """American sounds as a British reader has them: r only before vowels, "o" and "a" apart, long vowels marked."""
    vowels = [match.start() for match in _SYLLABLE.finditer(us)]
    groups = _LETTERS.findall(word.lower())
    aligned = (
        groups if len(groups) == len(vowels) else ["o" if {*"oa"} & {*word.lower()} == {"o"} else "a"] * len(vowels)
    )
    spelled = dict(zip(vowels, aligned, strict=True))

    def open_vowel(match: re.Match[str]) -> str:
        if us[match.end() : match.end() + 1] == "ɹ":
            return match[0]
        return "ɒ" if spelled[match.start()] == "o" else f"{match[0]}ː"

    sound = _OPEN.sub(open_vowel, us).translate(_SAME)
    sound = _R.sub(lambda match: _SILENT_R[match["vowel"]], sound)
    return _HAPPY.sub(_happy, _R_HEARD.sub(r"\g<0>ː", sound))


def _happy(match: re.Match[str]) -> str:
    """The last sound of "happy" is short, and so is any weak i before a vowel."""
    mark, before = match["mark"] or "", match["before"]
    if mark or before is None:
        return f"{mark}iː{before or ''}"
    return f"ɪ{before}" if before else "i"


def _read() -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    firm: dict[str, str] = {}
    usual: dict[str, tuple[str, str]] = {}
    text = resources.files("tutti.text.g2p").joinpath("data/names.tsv").read_text("utf-8")
    for line in text.splitlines():
        word, _, listed = line.partition("\t")
        if word.startswith("!"):
            firm[word[1:]] = listed
        elif listed:
            usual[word.lower()] = word, listed
    return firm, usual
