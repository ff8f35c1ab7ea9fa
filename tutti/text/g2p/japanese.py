"""Japanese: words and their readings by MeCab with UniDic, kana in the symbols that Kokoro was trained on."""

import re
import threading
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from tutti.errors import MissingExtra, install_hint
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p.kana import symbols, to_hiragana
from tutti.text.g2p.mixed import PronounceEnglish, pronounce_mixed

if TYPE_CHECKING:
    from fugashi import Tagger  # type: ignore[import-untyped]

_SCRIPT = r"\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_LOAD_LOCK = threading.Lock()
_TAGGER_LOCK = threading.Lock()  # MeCab is not thread-safe


def pronounce(aligned: AlignedText, ipa_overrides: Mapping[int, str], english: PronounceEnglish) -> Pronunciation:
    """Pronounce a sentence of plain Japanese words; Latin runs go to `english`."""
    return pronounce_mixed(aligned, ipa_overrides, english, _SCRIPT, _japanese)


# The common reading of words for which UniDic prefers a formal or literal one.
_COMMON_READINGS = (
    {"私": "ワタシ", "私達": "ワタシタチ", "日本": "ニホン", "日本語": "ニホンゴ", "日本人": "ニホンジン"}
    | {"明日": "アシタ"}
    | {"お母さん": "オカーサン", "お父さん": "オトーサン", "お兄さん": "オニーサン"}
    | {"お姉さん": "オネーサン"}
    | {"母さん": "カーサン", "父さん": "トーサン", "兄さん": "ニーサン", "姉さん": "ネーサン"}
    | {"お祖母さん": "オバーサン"}
    | {"お祖父さん": "オジーサン", "一昨日": "オトトイ", "明後日": "アサッテ", "何故": "ナゼ"}
    | {"何時": "ナンジ", "何人": "ナンニン", "十分": "ジューブン", "ハツカ": "ハツカ"}
)
# Words whose reading another word of the sentence decides: the word, the sentence, its reading, and the right one.
_SPICY = re.compile("カレー|料理|味|食|スープ|ラーメン|唐辛子|わさび|キムチ|麻婆|ソース|香辛料|飲")
_IN_CONTEXT = (
    (re.compile("辛"), _SPICY, "ツラ", "カラ"),
    (re.compile("米$"), re.compile("(?<![一-龥])米[のをがはとも、。]"), "ベー", "コメ"),
)
_MAX_TOKENS = 4  # MeCab tokens in one entry of the table


def _japanese(aligned: AlignedText) -> tuple[list[PhonemeWord], tuple[str, ...]]:
    words: list[PhonemeWord] = []
    dropped: list[str] = []
    for first, last, reading in _phrases(_tokens(aligned.text)):
        phonemes, unknown = symbols(to_hiragana(reading))
        dropped += unknown
        if phonemes:
            words.append(PhonemeWord(phonemes, aligned.source(first, last)))
    return words, tuple(dropped)


Token = tuple[str, str, str]  # surface, reading in katakana, part of speech


def _tokens(text: str) -> list[Token]:
    """Tag a text with MeCab; the longest match in _COMMON_READINGS replaces its reading."""
    with _TAGGER_LOCK:
        nodes = [(node.surface, node.feature.pron, node.pos) for node in _tagger()(text)]
    tokens: list[Token] = []
    at = 0
    while at < len(nodes):
        for n in range(min(_MAX_TOKENS, len(nodes) - at), 0, -1):
            surface = "".join(surface for surface, _, _ in nodes[at : at + n])
            if surface in _COMMON_READINGS:
                tokens.append((surface, _COMMON_READINGS[surface], nodes[at][2] if n == 1 else "名詞"))
                break
        else:
            n = 1
            surface, reading, pos = nodes[at]
            tokens.append((surface, reading or surface, pos))
        at += n
    return [(surface, _reading_in_context(surface, reading, text), pos) for surface, reading, pos in tokens]


def _reading_in_context(surface: str, reading: str, sentence: str) -> str:
    if surface[0] not in "辛米":
        return reading
    for word, others, usual, right in _IN_CONTEXT:
        if word.match(surface) and reading.startswith(usual) and others.search(sentence):
            return right + reading.removeprefix(usual)
    return reading


def _phrases(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Join tokens to words (stem and endings, prefix and suffix): start, end, reading."""
    words: list[tuple[int, int, str]] = []
    at, before = 0, ""
    for surface, reading, pos in tokens:
        end = at + len(surface)
        if words and _attaches(before, surface, pos):
            start, _, reading_so_far = words[-1]
            words[-1] = (start, end, reading_so_far + reading)
        else:
            words.append((at, end, reading))
        at, before = end, pos
    return words


def _attaches(before: str, surface: str, pos: str) -> bool:
    """Tell whether a token belongs to the word before it."""
    inflected = before.startswith(("動詞", "助動詞", "形容詞", "接尾辞"))
    return (
        pos.startswith("接尾辞")
        or before.startswith("接頭辞")
        or (pos.startswith("助動詞") and inflected and not surface.startswith(("です", "でし", "だろ", "らし", "よう")))
        or (pos.startswith("助詞,接続助詞") and surface in ("て", "で", "ば", "ちゃ", "たり") and inflected)
        or (pos.startswith("名詞") and before.startswith("名詞") and surface in "語人年月日時分円国県市区町村駅店")
    )


def _tagger() -> "Tagger":
    with _LOAD_LOCK:
        return _load_tagger()


@cache
def _load_tagger() -> "Tagger":
    try:
        import jaconv  # noqa: F401 (kana needs it)
        import unidic_lite  # type: ignore[import-untyped]  # noqa: F401 (the dictionary)
        from fugashi import Tagger
    except ImportError:
        raise MissingExtra(f"Japanese needs more packages: {install_hint('ja')}", param="language") from None
    return Tagger()
