"""Japanese: readings, particles, long vowels, and the kana table against the rows it is made of."""

import re
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.errors import MissingExtra
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, PhonemeWord, Pronunciation
from tutti.text.g2p import japanese, kana
from tutti.text.normalize import normalize
from tutti.text.vocab import SYMBOLS

KANA = "".join(chr(code) for code in range(0x3041, 0x3097)) + "ー"


def english(aligned: AlignedText, given: Mapping[int, str]) -> Pronunciation:
    return Pronunciation((PhonemeWord("ˈɛks", aligned.source()),))


def pronounce(text: str) -> Pronunciation:
    return japanese.pronounce(AlignedText.of(text), {}, english)


def phonemes_of(text: str) -> str:
    return Chunk(pronounce(text).words).phonemes


@pytest.mark.parametrize(
    ("written", "symbols"),
    [
        *[
            ("しゃしん", "ɕaɕiɴ"),
            ("きって", "kʲiʔte"),
            ("さんぽ", "sampo"),
            ("げんき", "ɡeŋkʲi"),
            ("しんぶん", "ɕimbɯɴ"),
            ("こんにちわ", "koɲɲiʨiβa"),
        ],
        *[
            ("ぱーてぃー", "paːtʲiː"),
            ("ふぁん", "ɸaɴ"),
            ("ちゅうがく", "ʨɨɯɡakɯ"),
            ("ゔぁいおりん", "vaioɾʲiɴ"),
            ("つづく", "ʦɨzɨkɯ"),
        ],
        *[("おんな", "onna"), ("ざっし", "ʣaʔɕi"), ("うぇぶ", "βebɯ"), ("とぅ", "tɯ"), ("ひゃく", "çakɯ")],
    ],
)
def test_kana_are_in_the_symbols_of_the_training_data(written: str, symbols: str) -> None:
    assert kana.symbols(written) == (symbols, ())


@given(st.text(alphabet=KANA, max_size=20))
def test_every_kana_has_known_symbols(text: str) -> None:
    sounds, lost = kana.symbols(text)
    assert set(sounds) <= SYMBOLS.keys()
    assert lost == ()
    assert bool(sounds) == bool(text)


def test_katakana_half_width_and_repeat_marks_become_hiragana() -> None:
    assert kana.to_hiragana("ガッコウ") == kana.to_hiragana("ｶﾞｯｺｳ") == "がっこう"
    assert (kana.to_hiragana("いすゞ"), kana.to_hiragana("こゝろ")) == ("いすず", "こころ")


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("私は学校へ行く。", "βataɕi βa ɡaʔkoː e ikɯ."),
        ("本を読みます。", "hoɴ o jomʲimasɨ."),
        ("お母さんと日本語", "okaːsaɴ to ɲihoŋɡo"),
        ("「東京」、大きい！", "“toːkʲoː”, oːkʲiː!"),
    ],
)
def test_particles_long_vowels_and_everyday_readings(text: str, phonemes: str) -> None:
    assert phonemes_of(text) == phonemes


@pytest.mark.parametrize(
    ("text", "kana_of"),
    [
        ("四月一日", "シガツツイタチ"),
        ("九月二十日", "クガツハツカ"),
        ("七月七日", "シチガツナノカ"),
        ("十四日と二十四日", "ジューヨッカトニジューヨッカ"),
        ("一日中", "イチニチジュー"),
        ("もう十分です", "モージューブンデス"),
        ("十分待つ", "ジュップンマツ"),
        ("辛いカレー", "カライカレー"),
        ("辛い思い出", "ツライオモイデ"),
        ("一人と二人", "ヒトリトフタリ"),
        ("六本と六本木", "ロッポントロッポンギ"),
        ("三軒と二羽", "サンゲントニワ"),
        ("2人前を1日1回", "ニニンマエオイチニチイッカイ"),
        ("一日中雨", "イチニチジューアメ"),
        ("港区1-2-3", "ミナトクイチノニノサン"),
        ("米を買う", "コメオカウ"),
        ("米政府", "ベーセーフ"),
    ],
)
def test_counters_in_kanji_and_words_with_two_readings(text: str, kana_of: str) -> None:
    plain = normalize(AlignedText.of(text), "ja").text
    assert one_nasal(phonemes_of(plain)) == one_nasal(kana.symbols(kana.to_hiragana(kana_of))[0])


def one_nasal(phonemes: str) -> str:
    """The nasal at the end of a syllable follows the next sound of its word only."""
    return re.sub("[ŋɴ]|[mɲ](?![aiɯeoɨjʲ])", "n", phonemes.replace(" ", ""))


def test_the_day_of_the_week_behind_a_date_is_its_day() -> None:
    assert "スイヨービ" in normalize(AlignedText.of("5月3日(水)"), "ja").text


def test_a_wave_is_spoken_between_two_amounts() -> None:
    for text in ("50%~60%", "2020年〜2024年", "9時～10時"):
        assert "から" in normalize(AlignedText.of(text), "ja").text


def test_a_verb_and_its_endings_are_one_word_with_one_source() -> None:
    text = "昨日、映画を見ました。"
    assert [text[slice(*word.source)] for word in pronounce(text).words] == ["昨日", "映画", "を", "見ました"]


def test_latin_runs_are_pronounced_as_english_with_their_sources() -> None:
    pronunciation = pronounce("私はPythonが好き")
    assert [word.source for word in pronunciation.words if word.phonemes == "ˈɛks"] == [(2, 8)]


@pytest.mark.parametrize(
    ("text", "expected_kana"),
    [
        *[
            ("3本", "さんぼん"),
            ("1本", "いっぽん"),
            ("6分", "ろっぷん"),
            ("4時", "よじ"),
            ("20日", "はつか"),
            ("2人", "ふたり"),
        ],
        *[
            ("300円", "さんびゃくえん"),
            ("8000", "はっせん"),
            ("10000", "いちまん"),
            ("100回", "ひゃっかい"),
            ("3階", "さんがい"),
        ],
        *[
            ("3.14", "さんてんいちよん"),
            ("14:30", "じゅーよじ さんじゅっぷん"),
            ("7月", "しちがつ"),
            ("24年", "にじゅーよねん"),
        ],
    ],
)
def test_numbers_change_with_their_counter(text: str, expected_kana: str) -> None:
    normal = normalize(AlignedText.of(text), "ja")
    assert kana.to_hiragana(normal.text) == expected_kana
    assert {(start, end) for start, end in zip(normal.starts, normal.ends, strict=True)} == {(0, len(text))}


@settings(deadline=None)
@given(st.text(alphabet="私は東京大学で日本語を勉強したカナｶﾞ々、。「」 ab★㐂ーっん", max_size=30))
def test_words_are_in_order_and_nothing_is_lost(text: str) -> None:
    pronunciation = pronounce(text)
    covered = [i for word in pronunciation.words for i in range(*word.source)]
    assert covered == sorted(set(covered))
    assert all(set(word.symbols) <= SYMBOLS.keys() and word.phonemes for word in pronunciation.words)
    for i, symbol in enumerate(text):
        assert i in covered or symbol in pronunciation.dropped or symbol in "、。「」 "


def test_four_threads_get_the_same_result() -> None:
    texts = ["私は東京大学で勉強しています。", "今日は良い天気ですね。", "電車が遅れたので、会議に間に合わなかった。"]
    expected = [phonemes_of(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(phonemes_of, texts * 40)) == expected * 40


@pytest.mark.parametrize("package", ["fugashi", "unidic_lite", "jaconv"])
def test_a_missing_extra_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install.*\[ja\]"):
        japanese._load_tagger.__wrapped__()
