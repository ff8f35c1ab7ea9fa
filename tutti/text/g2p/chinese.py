"""Mandarin: words by jieba, pinyin by pypinyin, and pinyin in the symbols that Kokoro's Chinese voices were taught."""

import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from tutti.errors import MissingExtra
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading, Word
from tutti.text.g2p.mixed import English, read_mixed

if TYPE_CHECKING:
    from jieba import Tokenizer  # type: ignore[import-untyped]

_SCRIPT = r"\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_INITIALS = (
    {"b": "p", "p": "pʰ", "m": "m", "f": "f", "d": "t", "t": "tʰ", "n": "n", "l": "l", "g": "k"}
    | {"k": "kʰ", "h": "x"}
    | {"j": "ʨ", "q": "ʨʰ", "x": "ɕ", "z": "ʦ", "c": "ʦʰ", "s": "s"}
    | {"zh": "\uab67", "ch": "\uab67ʰ", "sh": "ʂ", "r": "ɻ"}
)
# A hyphen marks where the tone arrow stands: behind the vowel, before a closing nasal.
_FINALS = (
    {"a": "a-", "ai": "ai-", "an": "a-n", "ang": "a-ŋ", "ao": "au-"}
    | {"e": "ɤ-", "ei": "ei-", "en": "ə-n", "eng": "ə-ŋ"}
    | {"i": "i-", "ia": "ja-", "ian": "jɛ-n", "iang": "ja-ŋ", "iao": "jau-", "ie": "je-"}
    | {"in": "i-n", "ing": "i-ŋ", "iong": "jʊ-ŋ", "iou": "jou-"}
    | {"o": "wo-", "ong": "ʊ-ŋ", "ou": "ou-"}
    | {"u": "u-", "ua": "wa-", "uai": "wai-", "uan": "wa-n", "uang": "wa-ŋ", "uei": "wei-", "uen": "wə-n"}
    | {"ueng": "wə-ŋ", "uo": "wo-", "ü": "y-", "üan": "ɥɛ-n", "üe": "ɥe-", "ün": "y-n", "ê": "ɛ-"}
)
_BUZZED = frozenset({"zh", "ch", "sh", "r", "z", "c", "s"})  # their i is no i
_WHOLE = {"er": "ɚ-", "o": "ɔ-", "io": "jɔ-", "ê": "ɛ-", "m": "m-", "n": "n-", "ng": "ŋ-", "hm": "hm-", "hng": "hŋ-"}
_TONES = {"1": "→", "2": "↗", "3": "↓", "4": "↘", "5": ""}
_LOADING = threading.Lock()


def read(spoken: AlignedText, given: Mapping[int, str], english: English) -> Reading:
    """A sentence of plain Chinese words; Latin runs are read by `english`."""
    return read_mixed(spoken, given, english, _SCRIPT, _han)


def _han(spoken: AlignedText) -> tuple[list[Word], tuple[str, ...]]:
    words: list[Word] = []
    lost: list[str] = []
    for word in _cut(spoken):
        sounds = ""
        for symbol, syllable in zip(word.text, pinyin(word.text), strict=True):
            if said := symbols(syllable):
                sounds += said
            else:
                lost.append(symbol)
        if sounds:
            words.append(Word(sounds, word.span()))
    return words, tuple(lost)


def pinyin(word: str) -> list[str]:
    """One syllable with its tone digit for each character; "" for a character without a reading."""
    return _pypinyin()(word)


@cache
def symbols(syllable: str) -> str:
    """A pinyin syllable such as "zhong1" in Kokoro's symbols; "" when it is none."""
    from pypinyin.contrib.tone_convert import to_finals, to_initials

    letters, tone = syllable[:-1], _TONES.get(syllable[-1:])
    if tone is None:
        return ""
    if letters in _WHOLE:
        return _WHOLE[letters].replace("-", tone)
    initial, final = to_initials(letters, strict=True), to_finals(letters, strict=True, v_to_u=True)
    shape = "ɨ-" if final == "i" and initial in _BUZZED else _FINALS.get(final, "")
    return _INITIALS.get(initial, "") + shape.replace("-", tone) if shape else ""


def _cut(spoken: AlignedText) -> Iterator[AlignedText]:
    at = 0
    for word in _jieba().cut(spoken.text):
        yield spoken[at : at + len(word)]
        at += len(word)


def _jieba() -> "Tokenizer":
    with _LOADING:
        return _load_jieba()


def _pypinyin() -> Callable[[str], list[str]]:
    with _LOADING:
        return _load_pypinyin()


@cache
def _load_jieba() -> "Tokenizer":
    """jieba with its own dictionary, silent, and without the cache file that it would leave in a shared folder."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise _missing() from None
    logging.getLogger("jieba").setLevel(logging.WARNING)
    cutter = jieba.Tokenizer()
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return cutter


@cache
def _load_pypinyin() -> Callable[[str], list[str]]:
    try:
        from pypinyin import Style, lazy_pinyin
    except ImportError:
        raise _missing() from None

    def read_word(word: str) -> list[str]:
        return lazy_pinyin(
            word,
            style=Style.TONE3,
            neutral_tone_with_five=True,
            tone_sandhi=True,  # the voices bend low tones by themselves; writing it down does no harm to their pitch
            errors=lambda unread: [""] * len(unread),  # type: ignore[arg-type, return-value]  # a list is welcome
        )

    return read_word


def _missing() -> MissingExtra:
    return MissingExtra('Chinese needs more packages: pip install "tutti-tts[zh]"', param="language")
