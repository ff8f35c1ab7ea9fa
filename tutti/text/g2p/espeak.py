"""Languages whose phonemes come from espeak-ng (an extra)."""

import ctypes
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby

from tutti.errors import MissingExtra, TuttiError, UnknownLanguage, install_hint
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p import russian
from tutti.text.g2p.align import align
from tutti.text.g2p.tokens import Piece, join_words, override_words, split_phonemes, to_kokoro_punctuation, tokenize
from tutti.text.language import find_language
from tutti.text.vocab import IDS, NEAREST, split_known

VOICES = {"es": "roa/es", "fr": "roa/fr", "hi": "inc/hi", "it": "roa/it", "pt-br": "roa/pt-BR"}
_OF_KOKORO = frozenset(VOICES.values())
VOICES |= {"de": "gmw/de", "sv": "gmq/sv", "pl": "zlw/pl", "ru": "zle/ru", "vi": "aav/vi", "ar": "sem/ar"}

# Kokoro writes a diphthong or an affricate as one symbol; espeak joins its letters with ^.
_TIED_SOUNDS = {"a^ɪ": "I", "a^ʊ": "W", "e^ɪ": "A", "ɔ^ɪ": "Y", "o^ʊ": "O", "ə^ʊ": "Q"}
_TIED_SOUNDS |= {"d^z": "ʣ", "d^ʒ": "ʤ", "t^s": "ʦ", "t^ʃ": "ʧ", "s^s": "S"}
# Diacritics that Kokoro was not trained on, and espeak's separators.
_NOT_IN_KOKORO = re.compile("[\u032a\u0329\u032f\u030a\u0325\u0361\u035c\u0320\u031f\u0306\u033a\u0339\u031c^|_~'-]")
# As the front end of the known Vietnamese checkpoint: tones of espeak, and onsets that the North says alike.
_VIETNAMESE = {"e-": "æ", "1": "→", "7": "→", "2": "↘", "3": "↗", "ɜ": "↗", "4": "↓", "5": "ʔ↗", "6": "ʔ↓", "ɗ": "d"}
_VIETNAMESE |= {"ʐ": "ʒ"}
_ONSETS = {"th": ("t", "θ"), "tr": ("ʧ", "ʈʂ"), "s": ("s", "ʂ"), "r": ("z", "ɹ")}
_ONSETS |= {f"g{letter}": ("z", "ʝ") for letter in "iìíỉĩị"}
# Arabic is written without short vowels, and espeak-ng guesses few of them; of numbers they are certain.
_VOWELS = re.compile("[\u064b-\u0652\u0670]")
_VOWELLED = {"ستة": "سِتتَة"} | {
    _VOWELS.sub("", word): word
    for word in str.split(
        "واحِد واحِدَة اِثنان اِثنَين اِثنَتان اِثنَتَين اِثنا اِثنَي اِثنَتا اِثنَتَي ثَلاثَة ثَلاث أَربَعَة "
        "أَربَع خَمسَة خَمس سِتّ سَبعَة سَبع ثَمانِيَة ثَماني تِسعَة تِسع عَشَرَة عَشَر أَحَد إِحدى عِشرون عِشرين "
        "ثَلاثون ثَلاثين أَربَعون أَربَعين خَمسون خَمسين سِتّون سِتّين سَبعون سَبعين ثَمانون ثَمانين تِسعون "
        "تِسعين مِئَة مِئَتان مِئَتَين أَلف أَلفًا أَلفان أَلفَين آلاف مِليون مِليونًا مِليونان مِليونَين مَلايين "
        "مِليار مِليارًا مِليارات الأَول الثالِث الرابِع الخامِس السادِس السابِع الثامِن التاسِع العاشِر العِشرون "
        "الثَلاثون الواحِدَة الثانِيَة الثالِثَة الرابِعَة الخامِسَة السادِسَة السابِعَة الثامِنَة التاسِعَة "
        "العاشِرَة الحادِيَة فاصِلَة نُقطَة زائِد ناقِص يُساوي نِصف رُبع دَقيقَة دَقائِق دَرَجَة دَرَجات "
        "بِالمِئَة"
    )
}
_SPELLING = str.maketrans({"g": "ɡ", "ɬ": "l", "ɦ": "h"})
_NEAREST = str.maketrans(NEAREST)  # for the languages of Kokoro, which has no others
_MAX_WORD = 64  # characters; longer words are split
_MAX_PHRASE = 300  # characters that are given to espeak together; more makes the alignment slow
# espeak-ng 1.52 overruns its own buffers on long initials ("a.a.a..."), on other scripts, and in Hindi on a hyphen or
# on two scripts in one word. It sees only what these let through, and no word beyond 64 letters.
_SAFE_MARKS = " '@&+=%$€£#°"
_UNSAFE = re.compile(rf"[^A-Za-z0-9À-ÖØ-öø-ɏ\u0300-\u036f{_SAFE_MARKS}-]")
_UNSAFE_HINDI = re.compile(rf"[^A-Za-z0-9\u0900-\u0963\u0966-\u096f{_SAFE_MARKS}]")
_UNSAFE_OF = {
    VOICES["ru"]: re.compile(rf"[^A-Za-z0-9\u0301\u0410-\u044f\u0401\u0451{_SAFE_MARKS}-]"),
    VOICES["ar"]: re.compile(rf"[^A-Za-z0-9\u0621-\u063a\u0641-\u0652\u0670{_SAFE_MARKS}]"),
    VOICES["vi"]: re.compile(rf"[^A-Za-z0-9À-ÖØ-öø-ɏ\u1ea0-\u1ef9{_SAFE_MARKS}-]"),
}
_SCRIPT_CHANGE_RU = re.compile(r"(?<=[A-Za-z])(?=[\u0400-\u045f])|(?<=[\u0400-\u045f])(?=[A-Za-z])")
_SCRIPT_CHANGE_AR = re.compile(r"(?<=[!-~])(?=[\u0621-\u0670])|(?<=[\u0621-\u0670])(?=[!-~])")
_SCRIPT_CHANGE = re.compile(r"(?<=[!-~€£°])(?=[\u0900-\u096f])|(?<=[\u0900-\u096f])(?=[!-~€£°])")
_NASAL_BEFORE_LIP = re.compile("ं(?=[पफबभम])")  # मुंबई: espeak drops the syllable behind a nasal vowel
_ACCENTED = re.compile(r"[À-ɏ]")
_LONG_WORD = re.compile(rf"\S{{{_MAX_WORD}}}")
_LANGUAGE_FLAG = re.compile(r"\([^()]*\)")


class Espeak:
    """The espeak-ng library. It keeps its voice and text in globals, so calls are serialised."""

    def __init__(self, library_path: str, data_path: str) -> None:
        self._lib = ctypes.CDLL(library_path)
        self._lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._lib.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.c_int]
        self._lock = threading.Lock()
        self._voice = ""
        synchronous, do_not_exit = 2, 0x8000
        if self._lib.espeak_Initialize(synchronous, 0, data_path.encode(), do_not_exit) <= 0:
            raise TuttiError(
                "espeak-ng could not read its own data; install it again: pip install --force-reinstall espeakng-loader"
            )

    def ipa(self, texts: Sequence[str], voice: str) -> list[str]:
        """Return each text as IPA, words separated by spaces, tied letters joined by ^."""
        with self._lock:
            if voice != self._voice:
                self._voice = ""
                if (status := self._lib.espeak_SetVoiceByName(voice.encode())) != 0:
                    raise TuttiError(f"espeak-ng refused the voice {voice!r} (status {status})")
                self._voice = voice
            return [self._to_ipa(sanitize(text, voice)) for text in texts]

    def _to_ipa(self, text: str) -> str:
        utf8, ipa_tied = 1, 0x02 | 0x80 | ord("^") << 8
        rest = ctypes.c_char_p(_LONG_WORD.sub(r"\g<0> ", text).encode())
        clauses: list[str] = []
        while rest.value:
            clauses.append((self._lib.espeak_TextToPhonemes(ctypes.byref(rest), utf8, ipa_tied) or b"").decode())
        return _LANGUAGE_FLAG.sub("", " ".join(clauses))


_LOAD_LOCK = threading.Lock()


def sanitize(text: str, voice: str) -> str:
    """Replace by spaces what espeak cannot take."""
    if voice == VOICES["ru"]:
        text = _SCRIPT_CHANGE_RU.sub(" ", text)
    if voice == VOICES["ar"]:
        text = _SCRIPT_CHANGE_AR.sub(" ", text)
    if voice != VOICES["hi"]:
        return _UNSAFE_OF.get(voice, _UNSAFE).sub(" ", text)
    text = _NASAL_BEFORE_LIP.sub("म्", text)
    text = _ACCENTED.sub(lambda letter: unicodedata.normalize("NFD", letter[0])[0], text)
    return _SCRIPT_CHANGE.sub(" ", _UNSAFE_HINDI.sub(" ", text))


def engine() -> Espeak:
    """Return the library, loaded once."""
    with _LOAD_LOCK:
        return _load()


@cache
def _load() -> Espeak:
    try:
        import espeakng_loader  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra(f"this language needs espeak-ng: {install_hint('espeak')}", param="language") from None
    return Espeak(espeakng_loader.get_library_path(), espeakng_loader.get_data_path())


def pronounce(aligned: AlignedText, code: str, ipa_overrides: Mapping[int, str]) -> Pronunciation:
    """Pronounce a sentence of plain words; words between punctuation go together, for liaison and stress."""
    voice = _voice(code)
    _check_installed(code)
    output: list[Piece] = []
    dropped: list[str] = []
    for is_phrase, group in groupby(tokenize(aligned), key=lambda piece: piece[0] in ("word", "space")):
        if is_phrase:
            output.append(" ")
            for phrase in _phrases(token for kind, token in group if kind == "word"):
                words, unknown_symbols = _pronounce_phrase(phrase, voice)
                output += words
                dropped += unknown_symbols
            continue
        for kind, token in group:
            if kind == "punctuation":
                output.append(to_kokoro_punctuation(token.text))
            else:
                words, unknown_symbols = override_words(token, ipa_overrides)
                output += words
                dropped += unknown_symbols
    return join_words(output, dropped)


def _check_installed(code: str) -> None:
    """Raise MissingExtra with the name of the language."""
    try:
        engine()
    except MissingExtra as missing:
        raise MissingExtra(
            missing.message.replace("this language", find_language(code).name), param="language"
        ) from None


def _phrases(tokens: Iterable[AlignedText]) -> Iterator[list[AlignedText]]:
    """Yield words in groups of at most _MAX_PHRASE characters."""
    phrase: list[AlignedText] = []
    n_left = _MAX_PHRASE
    for token in tokens:
        for at in range(0, len(token), _MAX_WORD):
            piece = token[at : at + _MAX_WORD]
            if phrase and n_left < len(piece):
                yield phrase
                phrase, n_left = [], _MAX_PHRASE
            phrase.append(piece)
            n_left -= len(piece)
    if phrase:
        yield phrase


def _pronounce_phrase(tokens: list[AlignedText], voice: str) -> tuple[list[PhonemeWord], tuple[str, ...]]:
    """Return the words of a phrase with their sources, and the characters that espeak does not pronounce."""
    unknown_symbols = [symbol for token in tokens for symbol in token.text if _is_removed(symbol, voice)]
    tokens = [token for token in tokens if sanitize(token.text, voice).strip()]
    if voice == VOICES["ru"]:
        tokens = russian.marked(tokens)
    (ipa,) = engine().ipa([" ".join(_readable(token.text, voice) for token in tokens)], voice)
    groups = _symbols(ipa, voice).split()
    alone: list[str] = [""] * len(tokens)
    if len(groups) != len(tokens):
        alone = [
            _symbols(ipa, voice) for ipa in engine().ipa([_readable(token.text, voice) for token in tokens], voice)
        ]
        silent = [token for token, phonemes in zip(tokens, alone, strict=True) if not phonemes]
        unknown_symbols += [symbol for token in silent for symbol in token.text if not _is_removed(symbol, voice)]
        tokens = [token for token, phonemes in zip(tokens, alone, strict=True) if phonemes]
        alone = [phonemes for phonemes in alone if phonemes]
        if 2 * len(groups) < len(alone):  # espeak skips words ("a a a a" in French): take them one by one
            groups = [group for phonemes in alone for group in phonemes.split()]
        if not alone:
            return [], tuple(unknown_symbols)
    words: list[PhonemeWord] = []
    for group, (first, last) in zip(groups, align(alone, groups), strict=True):
        phonemes, unknown = split_known(_as_written(tokens[first].text, group, voice), IDS)
        unknown_symbols += unknown
        source = tokens[first].source()[0], tokens[last - 1].source()[1]
        words += split_phonemes(phonemes, source)
    return words, tuple(unknown_symbols)


@lru_cache(maxsize=4096)
def _is_removed(symbol: str, voice: str) -> bool:
    """Tell whether a character is kept from espeak and is more than a separator inside a word."""
    return symbol not in ".:·-'" and not sanitize(symbol, voice).strip()


def _symbols(ipa: str, voice: str) -> str:
    """Convert espeak's IPA to Kokoro's symbols; in languages of other checkpoints also to those beyond."""
    for tied, symbol in _TIED_SOUNDS.items():
        ipa = ipa.replace(tied, symbol)
    if voice == VOICES["vi"]:
        for tone, symbol in _VIETNAMESE.items():
            ipa = ipa.replace(tone, symbol)
    symbols = _NOT_IN_KOKORO.sub("", ipa).translate(_SPELLING).strip()
    return symbols.translate(_NEAREST) if voice in _OF_KOKORO else symbols


def _readable(word: str, voice: str) -> str:
    """Return a word as espeak reads it best: Arabic numbers with their vowels."""
    if voice != VOICES["ar"]:
        return word.replace(russian.STRESS, "") if voice == VOICES["ru"] else word
    plain = word.replace("\u064b", "")
    joined = _VOWELLED.get(plain[1:]) if plain.startswith("و") else None  # and
    return _VOWELLED.get(plain) or (f"وَ{joined}" if joined else word)


def _as_written(word: str, phonemes: str, voice: str) -> str:
    """Return the phonemes of a word with what its spelling says and espeak leaves out."""
    if voice == VOICES["vi"]:
        sounds = next((sounds for onset, sounds in _ONSETS.items() if word.lower().startswith(onset)), ("", ""))
        return phonemes.replace(*sounds, 1)
    if voice == VOICES["ru"]:
        return russian.with_stress(word, phonemes)
    return phonemes


def _voice(code: str) -> str:
    if code not in VOICES:
        raise UnknownLanguage(f"espeak-ng is not used for {code!r}; known: {', '.join(VOICES)}", param="language")
    return VOICES[code]
