import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import WeightsUnavailable
from tutti.text.g2p.lexicon import Lexicon, build

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
def test_every_word_is_found_and_no_other(listed: dict[str, str], other: str) -> None:
    lexicon = Lexicon(build(listed, {}))
    assert len(lexicon) == len(listed)
    for word, sound in listed.items():
        found = lexicon.find(word)
        assert found is not None
        assert found.by_tag == {"DEFAULT": sound}
    assert (lexicon.find(other) is not None) == (other in listed)


def test_gold_wins_over_silver() -> None:
    entry = Lexicon(build(GOLD, SILVER)).find("table")
    assert entry is not None
    assert entry.gold
    assert entry.by_tag["DEFAULT"] == "tˈAbᵊl"


@pytest.mark.parametrize(("written", "sound"), [("Table", "tˈAbᵊl"), ("boston", "bˈɔstən"), ("Polish", "pˈOlɪʃ")])
def test_a_capital_is_no_other_word_unless_the_dictionary_says_so(written: str, sound: str) -> None:
    entry = Lexicon(build(GOLD, SILVER)).get(written)
    assert entry is not None
    assert entry.by_tag["DEFAULT"] == sound


def test_a_tag_chooses_the_sound() -> None:
    lexicon = Lexicon(build(GOLD, SILVER))
    live, be = lexicon.find("live"), lexicon.find("be")
    assert live is not None
    assert be is not None
    assert (live.say("VBP", alone=False), live.say("JJ", alone=False)) == ("lˈɪv", "lˈIv")
    assert (be.say("VB", alone=True), be.say("VB", alone=False)) == ("bˈi", "bi")


def test_the_table_is_made_once_and_then_enough_by_itself(folder: Path) -> None:
    Lexicon.load(folder, "us")
    for source in (folder / "lexicon").glob("*.json"):
        source.unlink()
    assert Lexicon.load(folder, "us").find("zebu") is not None


def test_other_json_makes_another_table(folder: Path) -> None:
    Lexicon.load(folder, "us")
    write(folder, {"zebra": "zˈibɹə"}, {})
    assert Lexicon.load(folder, "us").find("zebra") is not None


def test_newer_json_makes_another_table(folder: Path) -> None:
    Lexicon.load(folder, "us")
    made = (folder / "lexicon" / "us.bin").stat().st_mtime_ns
    changed = {**GOLD, "table": "tˈAbᵊd"}
    write(folder, changed, SILVER)
    os.utime(folder / "lexicon" / "us_gold.json", ns=(made + 10**9, made + 10**9))
    entry = Lexicon.load(folder, "us").find("table")
    assert entry is not None
    assert entry.by_tag["DEFAULT"] == "tˈAbᵊd"


@pytest.mark.parametrize("damage", [b"", b"OTHERFMT" + b"\0" * 64, None])
def test_a_damaged_table_is_made_again(folder: Path, damage: bytes | None) -> None:
    Lexicon.load(folder, "us")
    compact = folder / "lexicon" / "us.bin"
    compact.write_bytes(compact.read_bytes()[:-90] if damage is None else damage)
    assert Lexicon.load(folder, "us").find("zebu") is not None


def test_a_missing_dictionary_names_its_cure(tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="tutti pull"):
        Lexicon.load(tmp_path, "us")
