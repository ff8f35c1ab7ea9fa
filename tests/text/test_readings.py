"""How a word may be said: what people choose from when they correct it."""

from pathlib import Path

import pytest

from tutti.text import vocab
from tutti.text.g2p import G2P
from tutti.text.g2p.readings import readings

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def g2p(home: Path) -> G2P:
    return G2P(home)


@pytest.mark.parametrize(
    ("word", "language", "expected"),
    [
        ("read", "en-us", {"ɹˈid", "ɹˈɛd"}),
        ("lead", "en-us", {"lˈid", "lˈɛd"}),
        ("record", "en-us", {"ɹˈɛkəɹd", "ɹəkˈɔɹd"}),
        ("tomato", "en-gb", {"təmˈɑːtQ", "təmˈATO"}),
        ("SQL", "en-us", {"sˈikwəl", "ˌɛskjˌuˈɛl"}),
    ],
)
def test_the_readings_of_the_dictionary_the_letters_and_the_other_accent_are_listed(
    g2p: G2P, word: str, language: str, expected: set[str]
) -> None:
    assert expected <= {reading.phonemes for reading in readings(g2p, word, language)}


@pytest.mark.parametrize("word", ["nginx", "the", "éé", "12", "§", "New York", "x" * 60])
def test_each_can_be_spoken_and_is_listed_once_the_present_one_first(g2p: G2P, word: str) -> None:
    found = readings(g2p, word, "en-us")
    assert len({reading.phonemes for reading in found}) == len(found)
    assert all(not vocab.split_known(reading.phonemes)[1] for reading in found)
    assert not found or found[0].source == "now" or word == "§"


def test_without_the_dictionaries_there_are_none(tmp_path: Path) -> None:
    assert readings(G2P(tmp_path), "nginx", "en-us") == []
