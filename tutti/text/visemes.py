"""Phonemes as IPA, and the shape of the mouth for each: the fifteen visemes that avatars use."""

from collections.abc import Iterable

from tutti.speech import PhonemeTime, WordTime

# Kokoro's symbols that are not IPA.
IPA = {
    **{"A": "eɪ", "I": "aɪ", "O": "oʊ", "Q": "əʊ", "W": "aʊ", "Y": "ɔɪ", "T": "ɾ", "S": "ʃ", "ᵊ": "ə", "ᵻ": "ɪ"},
    **{"ʤ": "dʒ", "ʧ": "tʃ", "ʣ": "dz", "ʦ": "ts", "ʥ": "dʑ", "ʨ": "tɕ"},
}

SILENCE = "sil"
# Of Kokoro's symbols; a diphthong has two. The names are those of Oculus, which most avatars know.
VISEMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("pbm", ("PP",)),
    **dict.fromkeys("fvɸβʋᵝ", ("FF",)),
    **dict.fromkeys("θð", ("TH",)),
    **dict.fromkeys("tdʈɖɾɽT", ("DD",)),
    **dict.fromkeys("kɡŋqxɣχcɟʔɴɰ", ("kk",)),
    **dict.fromkeys("ʧʤʃʒʂɕʨʥS", ("CH",)),
    **dict.fromkeys("szʣʦçʝ\uab67", ("SS",)),
    **dict.fromkeys("nlɲɳʎ", ("nn",)),
    **dict.fromkeys("ɹrɻʁ", ("RR",)),
    **dict.fromkeys("aɑæɐʌh", ("aa",)),
    **dict.fromkeys("eɛəɜɚᵊøœ", ("E",)),
    **dict.fromkeys("iɪɨyjᵻɥ", ("I",)),
    **dict.fromkeys("oɔɒɤ", ("O",)),
    **dict.fromkeys("uʊwɯ", ("U",)),
    **{"A": ("E", "I"), "I": ("aa", "I"), "O": ("O", "U"), "Q": ("E", "U"), "W": ("aa", "U"), "Y": ("O", "I")},
}


def ipa(phoneme: str) -> str:
    return "".join(IPA.get(symbol, symbol) for symbol in phoneme)


def visemes(words: Iterable[WordTime]) -> list[PhonemeTime]:
    """Return the mouth's shapes in order, without a gap: equal neighbours are one, and silence lies between words."""
    shapes: list[PhonemeTime] = []

    def add(name: str, start_s: float, end_s: float) -> None:
        if shapes and shapes[-1].phoneme == name:
            start_s = shapes.pop().start_s
        shapes.append(PhonemeTime(name, start_s, end_s))

    for sound in (sound for word in words for sound in word.phonemes):
        if shapes and sound.start_s > shapes[-1].end_s:
            add(SILENCE, shapes[-1].end_s, sound.start_s)
        names = VISEMES.get(sound.phoneme[0], (SILENCE,))
        step_s = (sound.end_s - sound.start_s) / len(names)
        for n, name in enumerate(names):
            is_last = n == len(names) - 1
            add(name, sound.start_s + n * step_s, sound.end_s if is_last else sound.start_s + (n + 1) * step_s)
    return shapes
