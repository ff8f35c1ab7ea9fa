import re
from importlib import resources
from pathlib import Path

import pytest

from tutti.text import vocab
from tutti.text.aligned_text import AlignedText
from tutti.text.g2p.english import English
from tutti.text.g2p.lexicon import Lexicon, build
from tutti.text.g2p.neural import Letters
from tutti.text.g2p.overrides import Names, british

LINES = resources.files("tutti.text.g2p").joinpath("data/names.tsv").read_text("utf-8").splitlines()
ROWS = [line.split("\t") for line in LINES[1:]]
US, GB = Names(british=False), Names(british=True)


def reader(gold: dict[str, str], silver: dict[str, str]) -> English:
    return English(Lexicon(build(gold, silver)), Letters("en-us"), "en-us")


def said(english: English, text: str) -> str:
    return " ".join(word.phonemes for word in english.read(AlignedText.of(text)).words)


def test_the_table_is_sorted_and_names_each_word_once() -> None:
    assert LINES[0].startswith("# ")
    keys = [row[0].lstrip("!").lower() for row in ROWS]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("names", [US, GB])
def test_every_word_has_kokoros_sounds_and_one_main_stress_before_a_vowel(names: Names) -> None:
    for word, *_ in ROWS:
        entry = names.firm(word[1:]) if word.startswith("!") else names.get(word)
        assert entry is not None
        sound = entry.by_tag["DEFAULT"]
        assert vocab.known(sound) == (sound, ()), word
        assert sound.count("ˈ") == 1, word
        assert not re.search("[ˈˌ](?![AIOQWYaiuæɑɒɔəɛɜɪʊʌ])", sound), word


def test_british_sounds_keep_no_american_ones() -> None:
    for word, *_ in ROWS:
        entry = GB.get(word) or GB.firm(word[1:])
        assert entry is not None
        assert set(entry.by_tag["DEFAULT"]).isdisjoint("OæTᵻ"), word
        assert not re.search(r"ɹ[bdfhklmnpstvzʃʧʤ]|ɹ$", entry.by_tag["DEFAULT"]), word


@pytest.mark.parametrize(
    ("word", "us", "gb"),
    [
        ("config", "kˈɑnfɪɡ", "kˈɒnfɪɡ"),
        ("Zhang", "ʤˈɑŋ", "ʤˈɑːŋ"),
        ("Mozart", "mˈOtsɑɹt", "mˈQtsɑːt"),
        ("Lopez", "lˈOpɛz", "lˈQpɛz"),
        ("Spotify", "spˈɑTəfˌI", "spˈɒtəfˌI"),
        ("Daimler", "dˈImləɹ", "dˈImlə"),
        ("Mitsubishi", "mˌɪtsubˈiʃi", "mˌɪtsuːbˈiːʃi"),
        ("Ciaran", "kˈɪɹən", "kˈɪɹən"),
    ],
)
def test_british_follows_from_american(word: str, us: str, gb: str) -> None:
    assert british(word, us) == gb


def test_gold_wins_over_our_names_and_these_over_silver() -> None:
    assert said(reader({"Siobhan": "ɡˈOld"}, {}), "Siobhan") == "ɡˈOld"
    assert said(reader({}, {"Siobhan": "sˈɪlvəɹ"}), "Siobhan") == "ʃəvˈɔn"


def test_a_firm_name_wins_in_its_own_spelling_only() -> None:
    english = reader({"xi": "zˈI"}, {})
    assert (said(english, "Xi"), said(english, "xi")) == ("ʃˈi", "zˈI")


def test_a_few_capitals_are_letters_unless_the_name_is_written_so() -> None:
    assert (US.get("CAO"), GB.get("VU")) == (None, None)
    assert all(US.get(word) for word in ("YAML", "SUDO", "SIOBHAN"))


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("Siobhan's", "ʃəvˈɔnz"),
        ("siobhan", "ʃəvˈɔn"),
        ("Kubernetes'", "kˌubəɹnˈATiz"),
        ("Nguyens", "wˈɪnz"),
        ("José", "hOzˈA"),
        ("PostgreSQL", "pˌOstɡɹˌɛskjuˈɛl"),
        ("GitHub's", "ɡˈɪthˌʌbz"),
        ("YAML", "jˈæmᵊl"),
        ("the CU", "ðə sˌijˈu"),
    ],
)
def test_names_bend_and_are_whole_words(small_home: Path, text: str, phonemes: str) -> None:
    assert said(English.load(small_home, "en-us"), text) == phonemes
