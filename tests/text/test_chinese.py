"""Mandarin: pinyin in the model's symbols, words tied to their characters, silence on import."""

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.errors import MissingExtra
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Reading, Word
from tutti.text.g2p import chinese
from tutti.text.normalize import other
from tutti.text.vocab import SYMBOLS

HAN = "你好世界我在北京大学习中文老师是女的一不三绿略远儿了银行长得"


def english(spoken: AlignedText, given: Mapping[int, str]) -> Reading:
    return Reading((Word("ˈɛks", spoken.span()),))


def read(text: str) -> Reading:
    return chinese.read(AlignedText.of(text), {}, english)


def said(text: str) -> str:
    return Chunk(read(text).words).phonemes


@pytest.mark.parametrize(
    ("syllable", "symbols"),
    [
        *[("zhong1", "ꭧʊ→ŋ"), ("ren2", "ɻə↗n"), ("shi4", "ʂɨ↘"), ("si1", "sɨ→"), ("lv4", "ly↘"), ("jue2", "ʨɥe↗")],
        *[("xiong2", "ɕjʊ↗ŋ"), ("wo3", "wo↓"), ("yue4", "ɥe↘"), ("er2", "ɚ↗"), ("de5", "tɤ"), ("guang3", "kwa↓ŋ")],
        *[("qu4", "ʨʰy↘"), ("liu2", "ljou↗"), ("dui4", "twei↘"), ("chun1", "ꭧʰwə→n"), ("n2", "n↗"), ("bo1", "pwo→")],
    ],
)
def test_syllables_are_written_as_the_voices_learned_them(syllable: str, symbols: str) -> None:
    assert chinese.symbols(syllable) == symbols


def test_every_reading_of_every_common_character_has_symbols() -> None:
    from pypinyin.constants import PINYIN_DICT

    common = "".join(chr(code) for code in PINYIN_DICT if 0x4E00 <= code < 0x9FA6)[::7]
    unsaid = [symbol for symbol in common if not chinese.symbols(chinese.pinyin(symbol)[0])]
    assert len(unsaid) < len(common) / 1000
    assert all(set(chinese.symbols(chinese.pinyin(symbol)[0])) <= SYMBOLS.keys() for symbol in common)


def test_two_low_tones_in_a_word_bend_the_first() -> None:
    assert said("你好") == "ni↗xau↓"


def test_a_word_decides_how_its_character_sounds() -> None:
    assert said("银行").endswith("xa↗ŋ")
    assert said("行走").startswith("ɕi↗ŋ")


def test_marks_come_in_the_models_symbols() -> None:
    reading = read("他说：「好」，（对）！")
    assert "".join(word.symbols for word in reading.words) == "tʰa→ ʂwo→: “xau↓”, (twei↘)! "
    assert reading.dropped == ()


def test_latin_runs_go_to_english_with_their_place() -> None:
    reading = read("我爱Python，ＯＫ！")
    assert [word.span for word in reading.words] == [(0, 1), (1, 2), (2, 8), (9, 11)]
    assert [word.phonemes for word in reading.words[2:]] == ["ˈɛks", "ˈɛks"]


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=HAN + "，。！？「」（） ab㐂𠮷々★", max_size=30))
def test_words_keep_order_and_place_and_nothing_is_lost(text: str) -> None:
    reading = read(text)
    heard = [i for word in reading.words for i in range(*word.span)]
    assert heard == sorted(set(heard))
    assert all(set(word.symbols) <= SYMBOLS.keys() and word.phonemes for word in reading.words)
    for i, symbol in enumerate(text):
        assert i in heard or symbol in reading.dropped or symbol in "，。！？「」（） "


def test_four_threads_read_what_one_reads() -> None:
    texts = ["我在北京大学学习中文。", "今天天气很好，我们去公园。", "中华人民共和国", "她买了五本书"]
    alone = [said(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(said, texts * 25)) == alone * 25


def test_figures_are_read_after_normalising() -> None:
    normal = other.normalize(AlignedText.of("2024年1月5日"), "zh")
    reading = chinese.read(normal, {}, english)
    assert reading.dropped == ()
    assert sorted({i for word in reading.words for i in range(*word.span)}) == list(range(9))


def test_the_first_word_prints_and_warns_nothing() -> None:
    code = (
        "from tutti.text.g2p import chinese; from tutti.text.aligned_text import AlignedText;"
        "chinese.read(AlignedText.of('你好'), {}, lambda spoken, given: None)"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_a_missing_extra_names_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    for package, load in (("jieba", chinese._load_jieba), ("pypinyin", chinese._load_pypinyin)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtra, match=r'pip install "tutti-tts\[zh\]"'):
            load.__wrapped__()
