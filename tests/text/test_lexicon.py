import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import WeightsUnavailable
from tutti.text.g2p.lexicon import Lexicon, build_table

GOLD = {"table": "tˈAbᵊl", "Boston": "bˈɔstən", "live": {"DEFAULT": "lˈIv", "VERB": "lˈɪv"}, "polish": "pˈɑlɪʃ"}
GOLD |= {"Polish": "pˈOlɪʃ", "be": {"DEFAULT": "bi", "None": "bˈi"}, "US": {"DEFAULT": "ˌʌs", "NOUN": None}}
SILVER = {"table": "wrong", "zebu": "zˈibu", "polisher": "pˈɑlɪʃəɹ"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, GOLD, SILVER)
    return tmp_path


def write(home: Path, gold: object, silver: object) -> None:
    (home / "lexicon").mkdir(exist_ok=True)
    (home / "lexicon" / "us_gold.json").write_text(json.dumps(gold))
    (home / "lexicon" / "us_silver.json").write_text(json.dumps(silver))


words = st.text(st.characters(codec="utf-8", exclude_characters="\t=\n"), min_size=1, max_size=12)


@given(st.dictionaries(words, st.text("abɹˈɪ", min_size=1), max_size=40), words)
def test_exactly_the_listed_words_are_found(listed: dict[str, str], other: str) -> None:
    lexicon = Lexicon(build_table(listed, {}))
    assert len(lexicon) == len(listed)
    for word, sound in listed.items():
        entry = lexicon.find(word)
        assert entry is not None
        assert entry.by_tag == {"DEFAULT": sound}
    assert (lexicon.find(other) is not None) == (other in listed)


def test_gold_wins_over_silver() -> None:
    entry = Lexicon(build_table(GOLD, SILVER)).find("table")
    assert entry is not None
    assert entry.gold
    assert entry.by_tag["DEFAULT"] == "tˈAbᵊl"


@pytest.mark.parametrize(("written", "sound"), [("Table", "tˈAbᵊl"), ("boston", "bˈɔstən"), ("Polish", "pˈOlɪʃ")])
def test_case_is_ignored_unless_the_dictionary_has_both_spellings(written: str, sound: str) -> None:
    entry = Lexicon(build_table(GOLD, SILVER)).get(written)
    assert entry is not None
    assert entry.by_tag["DEFAULT"] == sound


def test_a_tag_selects_the_phonemes() -> None:
    lexicon = Lexicon(build_table(GOLD, SILVER))
    live, be = lexicon.find("live"), lexicon.find("be")
    assert live is not None
    assert be is not None
    assert (live.phonemes("VBP", alone=False), live.phonemes("JJ", alone=False)) == ("lˈɪv", "lˈIv")
    assert (be.phonemes("VB", alone=True), be.phonemes("VB", alone=False)) == ("bˈi", "bi")


def test_the_table_works_without_the_json_files(folder: Path) -> None:
    Lexicon.load(folder, "us")
    for source in (folder / "lexicon").glob("*.json"):
        source.unlink()
    assert Lexicon.load(folder, "us").find("zebu") is not None


def test_other_json_rebuilds_the_table(folder: Path) -> None:
    Lexicon.load(folder, "us")
    write(folder, {"zebra": "zˈibɹə"}, {})
    assert Lexicon.load(folder, "us").find("zebra") is not None


def test_newer_json_rebuilds_the_table(folder: Path) -> None:
    Lexicon.load(folder, "us")
    built_ns = (folder / "lexicon" / "us.bin").stat().st_mtime_ns
    changed = {**GOLD, "table": "tˈAbᵊd"}
    write(folder, changed, SILVER)
    os.utime(folder / "lexicon" / "us_gold.json", ns=(built_ns + 10**9, built_ns + 10**9))
    entry = Lexicon.load(folder, "us").find("table")
    assert entry is not None
    assert entry.by_tag["DEFAULT"] == "tˈAbᵊd"


@pytest.mark.parametrize("damage", [b"", b"OTHERFMT" + b"\0" * 64, None])
def test_a_damaged_table_is_rebuilt(folder: Path, damage: bytes | None) -> None:
    Lexicon.load(folder, "us")
    compact = folder / "lexicon" / "us.bin"
    compact.write_bytes(compact.read_bytes()[:-90] if damage is None else damage)
    assert Lexicon.load(folder, "us").find("zebu") is not None


def test_a_missing_dictionary_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="tutti pull"):
        Lexicon.load(tmp_path, "us")
