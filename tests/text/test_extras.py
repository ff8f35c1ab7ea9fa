"""A language says which extra it lacks, and the extra exists."""

import tomllib
from pathlib import Path

import pytest

from tutti.text.g2p import extras
from tutti.text.g2p.extras import missing_extra
from tutti.text.language import LANGUAGES

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_a_language_without_its_packages_names_an_extra_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda module: None)
    missing = {language.code: missing_extra(language.code) for language in LANGUAGES}
    assert {code for code, extra in missing.items() if extra is None} == {"en-us", "en-gb"}
    assert (missing["zh"], missing["ja"], missing["fr"]) == ("zh", "ja", "espeak")
    assert set(missing.values()) - {None} <= set(EXTRAS)


def test_one_missing_package_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda module: None if module == "jaconv" else object())
    assert missing_extra("ja") == "ja"
    assert missing_extra("zh") is None
