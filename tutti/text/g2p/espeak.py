"""Spanish, French, Hindi, Italian, Portuguese and unknown English words, by espeak-ng (an extra)."""

import ctypes
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import groupby

from tutti.errors import MissingExtra, TuttiError, UnknownLanguage
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading, Word
from tutti.text.g2p.align import align
from tutti.text.g2p.tokens import Piece, given_words, join, marks, pieces, words_of
from tutti.text.vocab import known

VOICES = {"en-us": "gmw/en-US", "en-gb": "gmw/en", "es": "roa/es", "fr": "roa/fr", "hi": "inc/hi"} | {
    "it": "roa/it",
    "pt-br": "roa/pt-BR",
}

# Kokoro writes a glide or an affricate as one symbol; espeak ties its letters with ^.
_TIED = {"a^ɪ": "I", "a^ʊ": "W", "e^ɪ": "A", "ɔ^ɪ": "Y", "o^ʊ": "O", "ə^ʊ": "Q"} | {
    "d^z": "ʣ",
    "d^ʒ": "ʤ",
    "t^s": "ʦ",
    "t^ʃ": "ʧ",
    "s^s": "S",
}
# Finer detail than Kokoro was taught; left out, nothing said is lost. Tone digits and word joints of espeak go too.
_UNTAUGHT = re.compile("[\u032a\u0329\u032f\u030a\u0325\u0361\u035c\u0320\u031f\u0306\u033a\u0339\u031c^|_~'-]")
_NEAR = str.maketrans({"g": "ɡ", "ɭ": "l", "ɫ": "l", "ɬ": "l", "ʐ": "ʒ", "ʑ": "ʒ", "ɦ": "h", "ħ": "h", "ʕ": "ʔ"})
_WORD = 64  # letters that are said as one word at most
_BREATH = 300  # letters that are said together at most
# espeak-ng 1.52 overruns its own buffers on long initials ("a.a.a..."), on other scripts, and in Hindi on a hyphen or
# on two scripts in one word. It sees only what these let through, and no word beyond 64 letters.
_SAFE_MARKS = " '@&+=%$€£#°"
_UNSAFE = re.compile(rf"[^A-Za-z0-9À-ÖØ-öø-ɏ\u0300-\u036f{_SAFE_MARKS}-]")
_UNSAFE_HINDI = re.compile(rf"[^A-Za-z0-9\u0900-\u0963\u0966-\u096f{_SAFE_MARKS}]")
_TWO_SCRIPTS = re.compile(r"(?<=[!-~€£°])(?=[\u0900-\u096f])|(?<=[\u0900-\u096f])(?=[!-~€£°])")
_ACCENTED = re.compile(r"[À-ɏ]")
_LONG = re.compile(rf"\S{{{_WORD}}}")
_LANGUAGE_FLAG = re.compile(r"\([^()]*\)")

# English as Kokoro's lexicons write it: (espeak, Kokoro), longest first.
_ENGLISH = (
    *(("ʔˌn\u0329", "ʔn"), ("ʔn\u0329", "ʔn"), ("a^ɪ", "I"), ("a^ʊ", "W"), ("d^ʒ", "ʤ"), ("e^ɪ", "A"), ("t^ʃ", "ʧ")),
    *(("ɔ^ɪ", "Y"), ("ə^l", "ᵊl"), ("ʲo", "jo"), ("ʲə", "jə"), ("ʲ", ""), ("ɚ", "əɹ"), ("r", "ɹ"), ("x", "k")),
    *(("ç", "k"), ("ɐ", "ə"), ("ɬ", "l"), ("\u0303", "")),
)
_AMERICAN = (("o^ʊ", "O"), ("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ː", ""))
_BRITISH = (("e^ə", "ɛː"), ("iə", "ɪə"), ("ə^ʊ", "Q"))


class Espeak:
    """The one espeak-ng library of this process. It keeps its voice and its text in globals: one caller at a time."""

    def __init__(self, library_path: str, data_path: str) -> None:
        self._lib = ctypes.CDLL(library_path)
        self._lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._lib.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.c_int]
        self._lock = threading.Lock()
        self._voice = ""
        synchronous, do_not_exit = 2, 0x8000
        if self._lib.espeak_Initialize(synchronous, 0, data_path.encode(), do_not_exit) <= 0:
            raise TuttiError(
                "espeak-ng could not read its own data; "
                'install it again: pip install --force-reinstall "tutti-tts[espeak]"'
            )

    def ipa(self, texts: Sequence[str], voice: str) -> list[str]:
        """Each text as IPA, words apart by spaces, tied letters joined by ^."""
        with self._lock:
            if voice != self._voice:
                self._voice = ""
                if (status := self._lib.espeak_SetVoiceByName(voice.encode())) != 0:
                    raise TuttiError(f"espeak-ng refused the voice {voice!r} (status {status})")
                self._voice = voice
            return [self._one(safe(text, voice)) for text in texts]

    def _one(self, text: str) -> str:
        utf8, ipa_tied = 1, 0x02 | 0x80 | ord("^") << 8
        rest = ctypes.c_char_p(_LONG.sub(r"\g<0> ", text).encode())
        clauses: list[str] = []
        while rest.value:
            clauses.append((self._lib.espeak_TextToPhonemes(ctypes.byref(rest), utf8, ipa_tied) or b"").decode())
        return _LANGUAGE_FLAG.sub("", " ".join(clauses))


_LOADING = threading.Lock()


def safe(text: str, voice: str) -> str:
    """What espeak may see of a text; the rest becomes spaces."""
    if voice != VOICES["hi"]:
        return _UNSAFE.sub(" ", text)
    text = _ACCENTED.sub(lambda letter: unicodedata.normalize("NFD", letter[0])[0], text)
    return _TWO_SCRIPTS.sub(" ", _UNSAFE_HINDI.sub(" ", text))


def available() -> bool:
    """Whether the extra is installed."""
    return find_spec("espeakng_loader") is not None


def engine() -> Espeak:
    """The library, loaded once."""
    with _LOADING:
        return _load()


@cache
def _load() -> Espeak:
    try:
        import espeakng_loader  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra('this language needs espeak-ng: pip install "tutti-tts[espeak]"', param="language") from None
    return Espeak(espeakng_loader.get_library_path(), espeakng_loader.get_data_path())


def word(text: str, code: str) -> str:
    """An English word that no lexicon knows, in Kokoro's English symbols; empty when espeak has no sound for it."""
    (ipa,) = engine().ipa([text], _voice(code))
    for theirs, ours in _ENGLISH:
        ipa = ipa.replace(theirs, ours)
    ipa = re.sub(r"(\S)\u0329", r"ᵊ\1", ipa)
    for theirs, ours in _BRITISH if code == "en-gb" else _AMERICAN:
        ipa = ipa.replace(theirs, ours)
    # After the glides are gone, a plain e or o is what other dialects write for A and ɔ.
    ipa = ipa.replace("e", "A").replace("o", "ɔ").replace("ɾ", "T").replace("ʔ", "t")
    return known(_UNTAUGHT.sub("", ipa).strip())[0]


def read(spoken: AlignedText, code: str, given: Mapping[int, str]) -> Reading:
    """A sentence of plain words; words between two marks are said together, so that liaison and stress are right."""
    voice = _voice(code)
    line: list[Piece] = []
    dropped: list[str] = []
    for is_phrase, group in groupby(pieces(spoken), key=lambda piece: piece[0] in ("word", "space")):
        if is_phrase:
            line.append(" ")
            for phrase in _breaths(stretch for kind, stretch in group if kind == "word"):
                words, lost = _phrase(phrase, voice)
                line += words
                dropped += lost
            continue
        for kind, stretch in group:
            if kind == "marks":
                line.append(marks(stretch.text))
            else:
                words, lost = given_words(stretch, given)
                line += words
                dropped += lost
    return join(line, dropped)


def _breaths(stretches: Iterable[AlignedText]) -> Iterator[list[AlignedText]]:
    """Words in groups of at most _BREATH letters, so that the alignment of a text without marks stays quick."""
    phrase: list[AlignedText] = []
    room = _BREATH
    for stretch in stretches:
        for at in range(0, len(stretch), _WORD):
            piece = stretch[at : at + _WORD]
            if phrase and room < len(piece):
                yield phrase
                phrase, room = [], _BREATH
            phrase.append(piece)
            room -= len(piece)
    if phrase:
        yield phrase


def _phrase(stretches: list[AlignedText], voice: str) -> tuple[list[Word], tuple[str, ...]]:
    """Words said in one breath, each tied to what it reads, and the characters that espeak passes over."""
    lost = [symbol for stretch in stretches for symbol in stretch.text if _is_unsaid(symbol, voice)]
    stretches = [stretch for stretch in stretches if safe(stretch.text, voice).strip()]
    (ipa,) = engine().ipa([" ".join(stretch.text for stretch in stretches)], voice)
    groups = _symbols(ipa).split()
    alone: list[str] = [""] * len(stretches)
    if len(groups) != len(stretches):
        alone = [_symbols(ipa) for ipa in engine().ipa([stretch.text for stretch in stretches], voice)]
        silent = [stretch for stretch, sounds in zip(stretches, alone, strict=True) if not sounds]
        lost += [symbol for stretch in silent for symbol in stretch.text if not _is_unsaid(symbol, voice)]
        stretches = [stretch for stretch, sounds in zip(stretches, alone, strict=True) if sounds]
        alone = [sounds for sounds in alone if sounds]
        if 2 * len(groups) < len(alone):  # espeak swallows words ("a a a a" in French): say them one by one
            groups = [sounds for one in alone for sounds in one.split()]
        if not alone:
            return [], tuple(lost)
    words: list[Word] = []
    for group, (first, last) in zip(groups, align(alone, groups), strict=True):
        said, unknown = known(group)
        lost += unknown
        span = stretches[first].span()[0], stretches[last - 1].span()[1]
        words += words_of(said, span)
    return words, tuple(lost)


@lru_cache(maxsize=4096)
def _is_unsaid(symbol: str, voice: str) -> bool:
    """Whether a character is kept from espeak and is more than a joint inside a word."""
    return symbol not in ".:·-'" and not safe(symbol, voice).strip()


def _symbols(ipa: str) -> str:
    """espeak's IPA in Kokoro's symbols, for every language but English."""
    for tied, one in _TIED.items():
        ipa = ipa.replace(tied, one)
    return _UNTAUGHT.sub("", ipa).translate(_NEAR).strip()


def _voice(code: str) -> str:
    if code not in VOICES:
        raise UnknownLanguage(f"espeak-ng does not read {code!r} here; known: {', '.join(VOICES)}", param="language")
    return VOICES[code]
