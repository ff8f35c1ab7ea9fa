import re
from importlib import resources
from pathlib import Path

import pytest

from tutti.text import vocab
from tutti.text.aligned_text import AlignedText
from tutti.text.g2p.english import English
from tutti.text.g2p.lexicon import Lexicon, build_table
from tutti.text.g2p.neural import NeuralG2P
from tutti.text.g2p.overrides import Overrides, to_british

LINES = resources.files("tutti.text.g2p").joinpath("data/names.tsv").read_text("utf-8").splitlines()
ROWS = [line.split("\t") for line in LINES[1:]]
US, GB = Overrides(british=False), Overrides(british=True)


def english_with(gold: dict[str, str], silver: dict[str, str]) -> English:
    return English(Lexicon(build_table(gold, silver)), NeuralG2P("en-us"), "en-us")


def phonemes_of(english: English, text: str) -> str:
    return " ".join(word.phonemes for word in english.pronounce(AlignedText.of(text)).words)


def test_the_table_is_sorted_and_names_each_word_once() -> None:
    assert LINES[0].startswith("# ")
    keys = [row[0].lstrip("!").lower() for row in ROWS]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("names", [US, GB])
def test_every_word_has_known_symbols_and_one_primary_stress_before_a_vowel(names: Overrides) -> None:
    for word, *_ in ROWS:
        entry = names.priority(word[1:]) if word.startswith("!") else names.get(word)
        assert entry is not None
        sound = entry.by_tag["DEFAULT"]
        assert vocab.split_known(sound) == (sound, ()), word
        assert sound.count("ˈ") == 1, word
        assert not re.search("[ˈˌ](?![AIOQWYaiuæɑɒɔəɛɜɪʊʌ])", sound), word


def test_british_entries_have_no_american_sounds() -> None:
    for word, *_ in ROWS:
        entry = GB.get(word) or GB.priority(word[1:])
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
def test_british_phonemes_are_derived_from_american_ones(word: str, us: str, gb: str) -> None:
    assert to_british(word, us) == gb


def test_gold_wins_over_overrides_and_these_over_silver() -> None:
    assert phonemes_of(english_with({"Siobhan": "ɡˈOld"}, {}), "Siobhan") == "ɡˈOld"
    assert phonemes_of(english_with({}, {"Siobhan": "sˈɪlvəɹ"}), "Siobhan") == "ʃəvˈɔn"


def test_a_priority_override_applies_to_its_exact_spelling_only() -> None:
    english = english_with({"xi": "zˈI"}, {})
    assert (phonemes_of(english, "Xi"), phonemes_of(english, "xi")) == ("ʃˈi", "zˈI")


def test_short_capitals_are_spelled_out_unless_the_override_is_in_capitals() -> None:
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
def test_overrides_apply_to_inflected_and_whole_words(small_home: Path, text: str, phonemes: str) -> None:
    assert phonemes_of(English.load(small_home, "en-us"), text) == phonemes
