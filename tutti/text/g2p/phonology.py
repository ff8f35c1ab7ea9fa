"""English phonemes as Kokoro writes them: stress, endings and flaps."""

PRIMARY, SECONDARY = "ˈ", "ˌ"
VOWELS = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ")  # ɐ stays out: Kokoro learned "tə ɐ", as if "a" opened with a consonant
CONSONANTS = frozenset("bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ")
_LONG = frozenset("AIOQWYʤʧ")  # two sounds in one symbol
_BEFORE_FLAP = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
_VOICELESS = frozenset("ptkfθ")
_SIBILANTS = frozenset("szʃʒʧʤ")


def stressed(phonemes: str) -> bool:
    return PRIMARY in phonemes or SECONDARY in phonemes


def with_stress(phonemes: str, mark: str) -> str:
    """An unstressed word with a mark before its first vowel."""
    if not stressed(phonemes):
        for i, symbol in enumerate(phonemes):
            if symbol in VOWELS:
                return phonemes[:i] + mark + phonemes[i:]
    return phonemes


def emphasised(phonemes: str) -> str:
    """As a word in capitals is said: with a primary stress, whatever it had."""
    if PRIMARY in phonemes:
        return phonemes
    if SECONDARY in phonemes:
        return phonemes.replace(SECONDARY, PRIMARY)
    return with_stress(phonemes, PRIMARY)


def demoted(phonemes: str) -> str:
    """The lighter half of a compound: its primary stress becomes secondary."""
    if PRIMARY not in phonemes:
        return phonemes
    return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)


def weight(phonemes: str) -> int:
    return sum(2 if symbol in _LONG else 1 for symbol in phonemes)


def joined(parts: list[str]) -> str:
    """One compound word: at most about half of its parts keep a primary stress, the heaviest ones."""
    parts = [part for part in parts if part]
    n = len(parts)
    if sum(PRIMARY in part for part in parts) > (n + 1) // 2:
        light = sorted(range(n), key=lambda i: (PRIMARY in parts[i], weight(parts[i]), i))[: n // 2]
        parts = [demoted(part) if i in light else part for i, part in enumerate(parts)]
    return "".join(parts)


def spelled(names: list[str]) -> str:
    """Letter names said as one word: the last one carries the stress."""
    *first, last = names
    quiet = [demoted(with_stress(name, SECONDARY)) for name in first]
    return "".join(quiet) + emphasised(last)


def plural(stem: str, british: bool) -> str:
    """-s, -es and 's."""
    if stem[-1] in _VOICELESS:
        return stem + "s"
    if stem[-1] in _SIBILANTS:
        return stem + ("ɪz" if british else "ᵻz")
    return stem + "z"


def past(stem: str, british: bool) -> str:
    """-ed."""
    if stem[-1] in "pkfθʃsʧ":
        return stem + "t"
    if stem[-1] == "d":
        return stem + ("ɪd" if british else "ᵻd")
    if stem[-1] != "t":
        return stem + "d"
    if british:
        return stem + "ɪd"
    return flapped(stem) + "ᵻd"


def gerund(stem: str, british: bool) -> str:
    """-ing. A British r that was silent at the end of the word is heard again."""
    if british:
        return stem + ("ɹɪŋ" if stem[-1] in "əː" and stem[-2:] not in ("iː", "uː") else "ɪŋ")
    return flapped(stem) + "ɪŋ"


def flapped(stem: str) -> str:
    """A final American t as it sounds before a vowel ending."""
    return stem[:-1] + "ɾ" if len(stem) > 1 and stem[-1] == "t" and stem[-2] in _BEFORE_FLAP else stem


def as_written(phonemes: str) -> str:
    """In Kokoro's symbols: T for the flap, t for the glottal stop."""
    return phonemes.replace("ɾ", "T").replace("ʔ", "t")
