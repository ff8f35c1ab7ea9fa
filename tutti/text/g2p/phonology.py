"""English phonology in Kokoro's symbols: stress, endings and flaps."""

PRIMARY, SECONDARY = "ˈ", "ˌ"
VOWELS = frozenset(
    "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ"
)  # without ɐ: in Kokoro's training data "to a" is "tə ɐ", as before a consonant
CONSONANTS = frozenset("bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ")
_LONG = frozenset("AIOQWYʤʧ")  # two sounds in one symbol
_BEFORE_FLAP = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
_VOICELESS = frozenset("ptkfθ")
_SIBILANTS = frozenset("szʃʒʧʤ")


def is_stressed(phonemes: str) -> bool:
    return PRIMARY in phonemes or SECONDARY in phonemes


def with_stress(phonemes: str, mark: str) -> str:
    """Put a stress mark before the first vowel of an unstressed word."""
    if not is_stressed(phonemes):
        for i, symbol in enumerate(phonemes):
            if symbol in VOWELS:
                return phonemes[:i] + mark + phonemes[i:]
    return phonemes


def emphasise(phonemes: str) -> str:
    """Give a word a primary stress, as if it were in capitals."""
    if PRIMARY in phonemes:
        return phonemes
    if SECONDARY in phonemes:
        return phonemes.replace(SECONDARY, PRIMARY)
    return with_stress(phonemes, PRIMARY)


def demote(phonemes: str) -> str:
    """Turn a primary stress into a secondary one, for the lighter half of a compound."""
    if PRIMARY not in phonemes:
        return phonemes
    return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)


def weight(phonemes: str) -> int:
    return sum(2 if symbol in _LONG else 1 for symbol in phonemes)


def join_compound(parts: list[str]) -> str:
    """Join the parts of a compound; at most half of them, the heaviest ones, keep a primary stress."""
    parts = [part for part in parts if part]
    n = len(parts)
    if sum(PRIMARY in part for part in parts) > (n + 1) // 2:
        light = sorted(range(n), key=lambda i: (PRIMARY in parts[i], weight(parts[i]), i))[: n // 2]
        parts = [demote(part) if i in light else part for i, part in enumerate(parts)]
    return "".join(parts)


def join_letters(names: list[str]) -> str:
    """Join letter names to one word with the stress on the last one."""
    *first, last = names
    unstressed = [demote(with_stress(name, SECONDARY)) for name in first]
    return "".join(unstressed) + emphasise(last)


def add_plural(stem: str, british: bool) -> str:
    """Append -s, -es or 's."""
    if stem[-1] in _VOICELESS:
        return stem + "s"
    if stem[-1] in _SIBILANTS:
        return stem + ("ɪz" if british else "ᵻz")
    return stem + "z"


def add_past(stem: str, british: bool) -> str:
    """Append -ed."""
    if stem[-1] in "pkfθʃsʧ":
        return stem + "t"
    if stem[-1] == "d":
        return stem + ("ɪd" if british else "ᵻd")
    if stem[-1] != "t":
        return stem + "d"
    if british:
        return stem + "ɪd"
    return flap(stem) + "ᵻd"


def add_gerund(stem: str, british: bool) -> str:
    """Append -ing; a British r that was silent at the end of the word is pronounced again."""
    if british:
        return stem + ("ɹɪŋ" if stem[-1] in "əː" and stem[-2:] not in ("iː", "uː") else "ɪŋ")
    return flap(stem) + "ɪŋ"


def flap(stem: str) -> str:
    """Turn a final t into a flap, as in American English before a vowel."""
    return stem[:-1] + "ɾ" if len(stem) > 1 and stem[-1] == "t" and stem[-2] in _BEFORE_FLAP else stem


def to_kokoro(phonemes: str) -> str:
    """Write the flap as T and the glottal stop as t."""
    return phonemes.replace("ɾ", "T").replace("ʔ", "t")
