"""The stress of Russian words, which is not written: by silero-stress, if it is installed, or as marked in the text."""

import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from threading import Lock

from tutti.text.aligned_text import AlignedText

STRESS = "\u0301"  # after the stressed vowel; to espeak-ng it only hides the word from its list
_LETTER = re.compile(f"[аеёиоуыэюя]{STRESS}?")
_VOWEL = re.compile("ˈ?[aɑʌɐəoɵeɛiɪuyɨæ]")
_STRESSED, _UNSTRESSED = dict(zip("аоеяэ", "ɑoeɑɛ", strict=True)), dict(zip("аоеяэ", "ʌʌiii", strict=True))
_PLUS = re.compile(r"\+(.)")  # what silero-stress writes before a stressed vowel
_LOCK = Lock()


def marked(tokens: list[AlignedText]) -> list[AlignedText]:
    """Mark the stress of the words of a phrase, where it is known and the text has no mark."""
    words = [token.text for token in tokens]
    accent = accentor()
    if accent is None or not words:
        return tokens
    with _LOCK:
        said = accent(" ".join(words).replace(STRESS, "")).split(" ")
    if len(said) != len(words):
        return tokens
    return [
        token if STRESS in token.text or "+" in token.text else _token(_PLUS.sub(rf"\1{STRESS}", word), token)
        for token, word in zip(tokens, said, strict=True)
    ]


@cache
def accentor() -> Callable[[str], str] | None:
    """Return what marks the stress of a sentence; none without the extra."""
    if find_spec("silero_stress") is None:
        return None
    import torch

    threads = torch.get_num_threads()
    from silero_stress import load_accentor

    torch.set_num_threads(threads)  # the import has set one, also for our networks
    load: Callable[[], Callable[[str], str]] = load_accentor
    return load()


def _token(text: str, original: AlignedText) -> AlignedText:
    start, end = original.source()
    return AlignedText(text, (start,) * len(text), (end,) * len(text))


def with_stress(word: str, phonemes: str) -> str:
    """Move the stress of a marked word to the vowel whose letter is marked, and reduce the one that had it."""
    letters = _LETTER.findall(word.lower())
    vowels = list(_VOWEL.finditer(phonemes))
    if STRESS not in word or len(vowels) != len(letters) or len(letters) < 2:
        return phonemes  # if it is written with another number of vowels, espeak's stays
    for vowel, letter in reversed(list(zip(vowels, letters, strict=True))):
        sound = vowel[0].removeprefix("ˈ")
        if STRESS in letter:
            sound = "ˈ" + _STRESSED.get(letter[0], sound)
        elif vowel[0] != sound:
            sound = _UNSTRESSED.get(letter[0], sound)
        phonemes = phonemes[: vowel.start()] + sound + phonemes[vowel.end() :]
    return phonemes
