import json
from pathlib import Path

import pytest

NAMES = {
    "A": "ˈA", "B": "bˈi", "C": "sˈi", "E": "ˈi", "L": "ˈɛl", "M": "ˈɛm", "P": "pˈi", "R": "ˈɑɹ", "S": "ˈɛs",
    "U": "jˈu",
}  # fmt: skip
WORDS = {"the": "ði", "to": "tu", "an": "æn", "a": "A", "am": "æm", "and": "ænd", "of": "ʌv", "is": "ɪz", "it": "ɪt"}
WORDS |= {
    "dog": "dˈɔɡ",
    "apple": "ˈæpᵊl",
    "cat": "kˈæt",
    "walk": "wˈɔk",
    "wait": "wˈAt",
    "want": "wˈɑnt",
    "box": "bˈɑks",
}
WORDS |= {"cafe": "kæfˈA", "well": "wˈɛl", "known": "nˈOn", "phone": "fˈOn", "stop": "stˈɑp", "music": "mjˈuzɪk"}
WORDS |= {"lead": "lˈid", "pipe": "pˈIp", "guitar": "ɡətˈɑɹ", "he": "hi", "you": "ju", "books": "bˈʊks", "day": "dˈA"}
WORDS |= {
    "alpha": "ˈælfə",
    "two": "tˈu",
    "ten": "tˈɛn",
    "percent": "pəɹsˈɛnt",
    "NASA": "nˈæsə",
    "every": "ˈɛvəɹi",
    "me": "mˌi",
}
TAGGED = {
    "read": {"DEFAULT": "ɹˈid", "VBD": "ɹˈɛd", "VBN": "ɹˈɛd"},
    "record": {"DEFAULT": "ɹˈɛkəɹd", "VERB": "ɹəkˈɔɹd"},
    "live": {"DEFAULT": "lˈIv", "VERB": "lˈɪv"},
    "used": {"DEFAULT": "jˈuzd", "VBD": "jˈust"},
    "bass": {"DEFAULT": "bˈæs", "ADJ": "bˈAs"},
    "have": {"DEFAULT": "hæv", "None": "hˈæv"},
    "that": {"DEFAULT": "ðæt", "DT": "ðˈæt"},
    "US": {"DEFAULT": "ˌʌs", "NOUN": None},
}


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder whose dictionaries hold a few words, the same for both accents."""
    home = tmp_path_factory.mktemp("home")
    (home / "lexicon").mkdir()
    for accent in ("us", "gb"):
        (home / "lexicon" / f"{accent}_gold.json").write_text(json.dumps({**NAMES, **WORDS, **TAGGED}))
        (home / "lexicon" / f"{accent}_silver.json").write_text(json.dumps({"zebu": "zˈibu"}))
    return home
