"""Mandarin: pinyin in the model's symbols, sources of words, no output on import."""

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.errors import MissingExtra
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, PhonemeWord, Pronunciation
from tutti.text.g2p import chinese
from tutti.text.normalize import normalize
from tutti.text.vocab import SYMBOLS

HAN = "你好世界我在北京大学习中文老师是女的一不三绿略远儿了银行长得"


def english(aligned: AlignedText, given: Mapping[int, str]) -> Pronunciation:
    return Pronunciation((PhonemeWord("ˈɛks", aligned.source()),))


def pronounce(text: str) -> Pronunciation:
    return chinese.pronounce(AlignedText.of(text), {}, english)


def phonemes_of(text: str) -> str:
    return Chunk(pronounce(text).words).phonemes


@pytest.mark.parametrize(
    ("syllable", "symbols"),
    [
        *[("zhong1", "ꭧʊ→ŋ"), ("ren2", "ɻə↗n"), ("shi4", "ʂɨ↘"), ("si1", "sɨ→"), ("lv4", "ly↘"), ("jue2", "ʨɥe↗")],
        *[("xiong2", "ɕjʊ↗ŋ"), ("wo3", "wo↓"), ("yue4", "ɥe↘"), ("er2", "ɚ↗"), ("de5", "tɤ"), ("guang3", "kwa↓ŋ")],
        *[("qu4", "ʨʰy↘"), ("liu2", "ljou↗"), ("dui4", "twei↘"), ("chun1", "ꭧʰwə→n"), ("n2", "n↗"), ("bo1", "pwo→")],
    ],
)
def test_syllables_are_in_the_symbols_of_the_training_data(syllable: str, symbols: str) -> None:
    assert chinese.symbols(syllable) == symbols


def test_nearly_every_common_character_has_symbols() -> None:
    from pypinyin.constants import PINYIN_DICT

    common = "".join(chr(code) for code in PINYIN_DICT if 0x4E00 <= code < 0x9FA6)[::7]
    unsaid = [symbol for symbol in common if not chinese.symbols(chinese.pinyin(symbol)[0])]
    assert len(unsaid) < len(common) / 1000
    assert all(set(chinese.symbols(chinese.pinyin(symbol)[0])) <= SYMBOLS.keys() for symbol in common)


def test_the_first_of_two_third_tones_changes() -> None:
    assert phonemes_of("你好") == "ni↗xau↓"


def test_a_character_is_pronounced_by_its_word() -> None:
    assert phonemes_of("银行").endswith("xa↗ŋ")
    assert phonemes_of("行走").startswith("ɕi↗ŋ")


@pytest.mark.parametrize(
    ("text", "pinyin"),
    [
        ("这条河很长", "zhe4 tiao2 he2 hen3 chang2"),
        ("孩子长大了", "hai2 zi5 zhang3 da4 le5"),
        ("他还钱", "ta1 huan2 qian2"),
        ("他还没来", "ta1 hai2 mei2 lai2"),
        ("等一下", "deng3 yi2 xia4"),
        ("不去", "bu2 qu4"),
        ("不来", "bu4 lai2"),
        ("他得走", "ta1 dei3 zou3"),
        ("他得到", "ta1 de2 dao4"),
        ("去银行", "qu4 yin2 hang2"),
        ("重新", "chong2 xin1"),
    ],
)
def test_the_words_beside_a_character_decide_its_sound(text: str, pinyin: str) -> None:
    assert "".join(phonemes_of(text).split()) == "".join(map(chinese.symbols, pinyin.split()))


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("第2次", "第二次"),
        ("80年代", "八十年代"),
        ("1998-2004年", "一九九八到二零零四年"),
        ("9:00-18:00", "九点到十八点"),
        ("400-123-4567", "四零零，幺二三，四五六七"),
        ("邮编100084", "邮编一零零零八四"),
        ("路易XIV", "路易十四"),
        ("$1.5亿", "一点五亿美元"),
        ("90后", "九零后"),
        ("301室，拨打110", "三零幺室，拨打一一零"),
        ("50元/人", "五十元每人"),
        ("2000本", "两千本"),
        ("访问www.example.cn。", "访问W W W 点 example 点 C N。"),
    ],
)
def test_figures_and_addresses_are_written_in_words(text: str, spelled: str) -> None:
    assert normalize(AlignedText.of(text), "zh").text == spelled


def test_a_colon_between_two_words_is_a_pause_and_not_lost() -> None:
    assert pronounce("电话:零").dropped == ()


def test_punctuation_is_in_the_models_symbols() -> None:
    pronunciation = pronounce("他说：「好」，（对）！")
    assert "".join(word.symbols for word in pronunciation.words) == "tʰa→ ʂwo→: “xau↓”, (twei↘)! "
    assert pronunciation.dropped == ()


def test_latin_runs_are_pronounced_as_english_with_their_sources() -> None:
    pronunciation = pronounce("我爱Python，ＯＫ！")
    assert [word.source for word in pronunciation.words] == [(0, 1), (1, 2), (2, 8), (9, 11)]
    assert [word.phonemes for word in pronunciation.words[2:]] == ["ˈɛks", "ˈɛks"]


@settings(deadline=None)
@given(st.text(alphabet=HAN + "，。！？「」（） ab㐂𠮷々★", max_size=30))
def test_words_are_in_order_and_nothing_is_lost(text: str) -> None:
    pronunciation = pronounce(text)
    covered = [i for word in pronunciation.words for i in range(*word.source)]
    assert covered == sorted(set(covered))
    assert all(set(word.symbols) <= SYMBOLS.keys() and word.phonemes for word in pronunciation.words)
    for i, symbol in enumerate(text):
        assert i in covered or symbol in pronunciation.dropped or symbol in "，。！？「」（） "


def test_four_threads_get_the_same_result() -> None:
    texts = ["我在北京大学学习中文。", "今天天气很好，我们去公园。", "中华人民共和国", "她买了五本书"]
    expected = [phonemes_of(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(phonemes_of, texts * 25)) == expected * 25


def test_figures_are_pronounced_after_normalisation() -> None:
    normal = normalize(AlignedText.of("2024年1月5日"), "zh")
    pronunciation = chinese.pronounce(normal, {}, english)
    assert pronunciation.dropped == ()
    assert sorted({i for word in pronunciation.words for i in range(*word.source)}) == list(range(9))


@pytest.mark.process
def test_the_first_word_causes_no_output_and_no_warning() -> None:
    code = (
        "from tutti.text.g2p import chinese; from tutti.text.aligned_text import AlignedText;"
        "chinese.pronounce(AlignedText.of('你好'), {}, lambda aligned, ipa_overrides: None)"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for package, load in (("jieba", chinese._load_jieba), ("pypinyin", chinese._load_pypinyin)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtra, match=r"pip install.*\[zh\]"):
            load.__wrapped__()


def test_kokoro_1_1_has_bopomofo_with_tones_as_digits_and_joints_between_words() -> None:
    pronunciation = chinese.pronounce(AlignedText.of("你好，中国知识。"), {}, english, in_bopomofo=True)
    assert "".join(word.symbols for word in pronunciation.words).strip() == "ㄋㄧ2ㄏㄠ3, ㄓ中1ㄍ我2/ㄓ十1ㄕ十2."
