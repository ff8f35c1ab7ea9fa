"""Japanese: words and their readings by MeCab with UniDic, kana in the symbols that Kokoro was taught."""

import threading
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from tutti.errors import MissingExtra
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading, Word
from tutti.text.g2p.kana import hiragana, symbols
from tutti.text.g2p.mixed import English, read_mixed

if TYPE_CHECKING:
    from fugashi import Tagger  # type: ignore[import-untyped]

_SCRIPT = r"\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_LOADING = threading.Lock()
_TAGGING = threading.Lock()  # one MeCab lattice, one caller at a time


def read(spoken: AlignedText, given: Mapping[int, str], english: English) -> Reading:
    """A sentence of plain Japanese words; Latin runs are read by `english`."""
    return read_mixed(spoken, given, english, _SCRIPT, _japanese)


# What people say where UniDic's first choice is the formal or the literal reading.
_EVERYDAY = (
    {"私": "ワタシ", "私達": "ワタシタチ", "日本": "ニホン", "日本語": "ニホンゴ", "日本人": "ニホンジン"}
    | {"明日": "アシタ"}
    | {"お母さん": "オカーサン", "お父さん": "オトーサン", "お兄さん": "オニーサン"}
    | {"お姉さん": "オネーサン"}
    | {"母さん": "カーサン", "父さん": "トーサン", "兄さん": "ニーサン", "姉さん": "ネーサン"}
    | {"お祖母さん": "オバーサン"}
    | {"お祖父さん": "オジーサン", "一昨日": "オトトイ", "明後日": "アサッテ", "何故": "ナゼ"}
    | {"何時": "ナンジ", "何人": "ナンニン"}
)
_LONGEST = 4  # tokens in one entry of the table


def _japanese(spoken: AlignedText) -> tuple[list[Word], tuple[str, ...]]:
    words: list[Word] = []
    lost: list[str] = []
    for first, last, reading in _phrases(_tokens(spoken.text)):
        sounds, unread = symbols(hiragana(reading))
        lost += unread
        if sounds:
            words.append(Word(sounds, spoken.span(first, last)))
    return words, tuple(lost)


Token = tuple[str, str, str]  # surface, reading in katakana, part of speech


def _tokens(text: str) -> list[Token]:
    with _TAGGING:
        found = [(node.surface, node.feature.pron, node.pos) for node in _tagger()(text)]
    tokens: list[Token] = []
    at = 0
    while at < len(found):
        for n in range(min(_LONGEST, len(found) - at), 0, -1):
            surface = "".join(surface for surface, _, _ in found[at : at + n])
            if surface in _EVERYDAY:
                tokens.append((surface, _EVERYDAY[surface], found[at][2] if n == 1 else "名詞"))
                break
        else:
            n = 1
            surface, reading, pos = found[at]
            tokens.append((surface, reading or surface, pos))
        at += n
    return tokens


def _phrases(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Words as they are said in one go (stem and endings, prefix and suffix): start, end, reading."""
    words: list[tuple[int, int, str]] = []
    at, before = 0, ""
    for surface, reading, pos in tokens:
        end = at + len(surface)
        if words and _leans(before, surface, pos):
            start, _, said = words[-1]
            words[-1] = (start, end, said + reading)
        else:
            words.append((at, end, reading))
        at, before = end, pos
    return words


def _leans(before: str, surface: str, pos: str) -> bool:
    """Whether a token is said as part of the one before it."""
    inflected = before.startswith(("動詞", "助動詞", "形容詞", "接尾辞"))
    return (
        pos.startswith("接尾辞")
        or before.startswith("接頭辞")
        or (pos.startswith("助動詞") and inflected and not surface.startswith(("です", "でし", "だろ", "らし", "よう")))
        or (pos.startswith("助詞,接続助詞") and surface in ("て", "で", "ば", "ちゃ", "たり") and inflected)
        or (pos.startswith("名詞") and before.startswith("名詞") and surface in "語人年月日時分円国県市区町村駅店")
    )


def _tagger() -> "Tagger":
    with _LOADING:
        return _load_tagger()


@cache
def _load_tagger() -> "Tagger":
    try:
        import jaconv  # noqa: F401 (kana needs it)
        import unidic_lite  # type: ignore[import-untyped]  # noqa: F401 (the dictionary)
        from fugashi import Tagger
    except ImportError:
        raise MissingExtra('Japanese needs more packages: pip install "tutti-tts[ja]"', param="language") from None
    return Tagger()
