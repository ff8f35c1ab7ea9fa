"""Mandarin: words by jieba, pinyin by pypinyin, and pinyin in the symbols that Kokoro was trained on."""

import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from tutti.errors import MissingExtra, install_hint
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p.mixed import PronounceEnglish, pronounce_mixed

if TYPE_CHECKING:
    from jieba import Tokenizer  # type: ignore[import-untyped]

_SCRIPT = r"\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_INITIALS = (
    {"b": "p", "p": "pʰ", "m": "m", "f": "f", "d": "t", "t": "tʰ", "n": "n", "l": "l", "g": "k"}
    | {"k": "kʰ", "h": "x"}
    | {"j": "ʨ", "q": "ʨʰ", "x": "ɕ", "z": "ʦ", "c": "ʦʰ", "s": "s"}
    | {"zh": "\uab67", "ch": "\uab67ʰ", "sh": "ʂ", "r": "ɻ"}
)
# A hyphen marks the place of the tone arrow: behind the vowel, before a final nasal.
_FINALS = (
    {"a": "a-", "ai": "ai-", "an": "a-n", "ang": "a-ŋ", "ao": "au-"}
    | {"e": "ɤ-", "ei": "ei-", "en": "ə-n", "eng": "ə-ŋ"}
    | {"i": "i-", "ia": "ja-", "ian": "jɛ-n", "iang": "ja-ŋ", "iao": "jau-", "ie": "je-"}
    | {"in": "i-n", "ing": "i-ŋ", "iong": "jʊ-ŋ", "iou": "jou-"}
    | {"o": "wo-", "ong": "ʊ-ŋ", "ou": "ou-"}
    | {"u": "u-", "ua": "wa-", "uai": "wai-", "uan": "wa-n", "uang": "wa-ŋ", "uei": "wei-", "uen": "wə-n"}
    | {"ueng": "wə-ŋ", "uo": "wo-", "ü": "y-", "üan": "ɥɛ-n", "üe": "ɥe-", "ün": "y-n", "ê": "ɛ-"}
)
_RETROFLEX_OR_SIBILANT = frozenset({"zh", "ch", "sh", "r", "z", "c", "s"})  # "i" after these is another vowel
_SYLLABLES = {
    "er": "ɚ-",
    "o": "ɔ-",
    "io": "jɔ-",
    "ê": "ɛ-",
    "m": "m-",
    "n": "n-",
    "ng": "ŋ-",
    "hm": "hm-",
    "hng": "hŋ-",
}
_TONES = {"1": "→", "2": "↗", "3": "↓", "4": "↘", "5": ""}
_LOAD_LOCK = threading.Lock()


# Kokoro 1.1, as the front end with which it was trained writes the finals of pinyin.
_BOPOMOFO = dict(
    zip(
        str.split("b p m f d t n l g k h j q x zh ch sh r z c s"),
        "ㄅㄆㄇㄈㄉㄊㄋㄌㄍㄎㄏㄐㄑㄒㄓㄔㄕㄖㄗㄘㄙ",
        strict=True,
    )
)
_BOPOMOFO |= dict(
    zip(str.split("a o e ie ai ei ao ou an en ang eng er i u ü"), "ㄚㄛㄜㄝㄞㄟㄠㄡㄢㄣㄤㄥㄦㄧㄨㄩ", strict=True)
)
_BOPOMOFO |= dict(
    zip(
        str.split("üe ia ian iang iao in ing iong iou ong ua uai uan uang uei uen ueng uo üan ün"),
        "月压言阳要阴应用又中穵外万王为文瓮我元云",
        strict=True,
    )
)
_WORD_JOINT = "/"
_MEASURE_WORD = re.compile("(?<=[一二两三四五六七八九十几这那每])个")


def pronounce(
    aligned: AlignedText, ipa_overrides: Mapping[int, str], english: PronounceEnglish, *, in_bopomofo: bool = False
) -> Pronunciation:
    """Pronounce a sentence of plain Chinese words; Latin runs go to `english`. Kokoro 1.1 has it in bopomofo."""
    native = _han_in_bopomofo if in_bopomofo else _han
    return pronounce_mixed(aligned, ipa_overrides, english, _SCRIPT, native)


def _han_in_bopomofo(aligned: AlignedText) -> tuple[list[PhonemeWord], tuple[str, ...]]:
    words, dropped = _han(aligned, bopomofo)
    return [*(word._replace(after=_WORD_JOINT) for word in words[:-1]), *words[-1:]], dropped


@cache
def bopomofo(syllable: str) -> str:
    """Return a pinyin syllable such as "zhong1" in the symbols of Kokoro 1.1; "" for anything else."""
    from pypinyin.contrib.tone_convert import to_finals, to_initials

    letters, tone = syllable[:-1], syllable[-1:]
    initial, final = to_initials(letters, strict=True), to_finals(letters, strict=True, v_to_u=True)
    if tone not in _TONES or final not in _BOPOMOFO:
        return ""
    shape = _BOPOMOFO[final]
    if final == "i" and initial in _RETROFLEX_OR_SIBILANT:
        shape = "ㄭ" if initial in ("z", "c", "s") else "十"
    return _BOPOMOFO.get(initial, "") + shape + tone


def _han(
    aligned: AlignedText, symbols_of: Callable[[str], str] | None = None
) -> tuple[list[PhonemeWord], tuple[str, ...]]:
    words: list[PhonemeWord] = []
    dropped: list[str] = []
    parts = list(_segment(aligned))
    syllables = _in_context(aligned.text, [syllable for word in parts for syllable in pinyin(word.text)])
    if symbols_of:  # the front end of Kokoro 1.1 has this measure word without a tone
        for match in _MEASURE_WORD.finditer(aligned.text):
            syllables[match.start()] = "ge5"
    for word in parts:
        phonemes = ""
        of_word, syllables = syllables[: len(word)], syllables[len(word) :]
        for symbol, syllable in zip(word.text, of_word, strict=True):
            if syllable_phonemes := (symbols_of or symbols)(syllable):
                phonemes += syllable_phonemes
            else:
                dropped.append(symbol)
        if phonemes:
            words.append(PhonemeWord(phonemes, word.source()))
    return words, tuple(dropped)


# Readings that words beside a character decide, after Xiandai Hanyu Cidian.
_READINGS = (
    (re.compile("还(?=[钱书款债账贷清给]|[我你他她它](?:们)?的?(?:钱|书|债|款|东西)|了(?:钱|书|款|债))"), "huan2"),
    (
        re.compile(
            "(?<=[我你他她它们人都也就总还])得(?=[马赶先再去要走回把做看想等学好多加上写买付花用吃睡说问找早跟向给在让有])"
        ),
        "dei3",
    ),
    (re.compile("(?<=[很太更最不多真挺较越])长(?![大高])|(?<=[发腿路河线绳])长(?=[，。！？的了得]|$)"), "chang2"),
)


_ONE = re.compile(
    "(?<![第零一二三四五六七八九十百千万亿点])一(?=[下个样定次种位块件切些会半直般起刻旁边句条张本只座家天])"
)


def _in_context(text: str, syllables: list[str]) -> list[str]:
    """Return the syllables of a sentence with the readings that words beside them decide, and the tones of 不, 一."""
    for pattern, reading in _READINGS:
        for match in pattern.finditer(text):
            syllables[match.start()] = reading
    for at, (symbol, following) in enumerate(zip(text, [*syllables[1:], ""], strict=True)):
        if symbol == "不" and syllables[at] == "bu4" and following.endswith("4"):
            syllables[at] = "bu2"
    for match in _ONE.finditer(text):
        if syllables[match.start()] == "yi1":
            syllables[match.start()] = "yi2" if syllables[match.start() + 1][-1:] in ("4", "5") else "yi4"
    return syllables


def pinyin(word: str) -> list[str]:
    """Return one syllable with its tone digit for each character; "" for an unknown character."""
    return _pypinyin()(word)


@cache
def symbols(syllable: str) -> str:
    """Return a pinyin syllable such as "zhong1" in Kokoro's symbols; "" for anything else."""
    from pypinyin.contrib.tone_convert import to_finals, to_initials

    letters, tone = syllable[:-1], _TONES.get(syllable[-1:])
    if tone is None:
        return ""
    if letters in _SYLLABLES:
        return _SYLLABLES[letters].replace("-", tone)
    initial, final = to_initials(letters, strict=True), to_finals(letters, strict=True, v_to_u=True)
    shape = "ɨ-" if final == "i" and initial in _RETROFLEX_OR_SIBILANT else _FINALS.get(final, "")
    return _INITIALS.get(initial, "") + shape.replace("-", tone) if shape else ""


def _segment(aligned: AlignedText) -> Iterator[AlignedText]:
    at = 0
    for word in _jieba().cut(aligned.text):
        yield aligned[at : at + len(word)]
        at += len(word)


def _jieba() -> "Tokenizer":
    with _LOAD_LOCK:
        return _load_jieba()


def _pypinyin() -> Callable[[str], list[str]]:
    with _LOAD_LOCK:
        return _load_pypinyin()


@cache
def _load_jieba() -> "Tokenizer":
    """Load jieba with its dictionary, without its log output and its cache file in a shared folder."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise _missing() from None
    logging.getLogger("jieba").setLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


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
            tone_sandhi=True,  # third-tone sandhi; the voices do it by themselves too, so it changes nothing
            errors=lambda unknown: [""] * len(unknown),  # type: ignore[arg-type, return-value]  # a list works
        )

    return read_word


def _missing() -> MissingExtra:
    return MissingExtra(f"Chinese needs more packages: {install_hint('zh')}", param="language")
