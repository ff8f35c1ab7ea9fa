"""docs/speaking.md is true: what it shows can be read, and its tables are those of the code."""

import json
import re
from pathlib import Path

import pytest

from tests.fakes import Spelling
from tutti.model.prosody import EMOTIONS, LIMITS
from tutti.settings import Settings
from tutti.text import chunks
from tutti.text.ssml import BREAKS_S, KNOWN, PITCHES, RATES, is_ssml
from tutti.text.user_lexicon import UserLexicon, parsed

PAGE = (Path(__file__).parent.parent / "docs/speaking.md").read_text(encoding="utf-8")


def shown(kind: str) -> str:
    (block,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def test_its_marks_are_marks() -> None:
    made = list(chunks(shown("text"), "en-us", Spelling().pronounce))
    manners = {(chunk.manner.voice, chunk.manner.rate, chunk.manner.pitch) for chunk in made}
    assert len(manners) == 4
    assert "[" not in "".join(chunk.phonemes for chunk in made)


def test_its_ssml_is_read() -> None:
    assert is_ssml(shown("xml"))
    made = list(chunks(shown("xml"), "en-us", Spelling().pronounce))
    assert "hˈɑɹt" in made[0].phonemes
    assert all(f"`{name}`" in PAGE for name in KNOWN)
    for values in (RATES, PITCHES, BREAKS_S):
        assert all(name in PAGE for name in values if name != "default")


def test_its_lexicon_is_one() -> None:
    assert len(UserLexicon.of(parsed(shown("tsv"), "tsv")).patterns) == 1


def test_its_emotions_are_those_there_are() -> None:
    rows = re.findall(r"\| `(\w+)` \| ([\d.]+) \| ([-\d.]+) \| ([\d.]+) \| ([-\d.]+) \|", PAGE)
    table = {
        name: (preset.speed, preset.prosody.pitch, preset.prosody.pitch_range, preset.prosody.energy)
        for name, preset in EMOTIONS.items()
    }
    assert {name: tuple(map(float, values)) for name, *values in rows} == table


@pytest.mark.parametrize("name", LIMITS)
def test_its_limits_are_true(name: str) -> None:
    low, high = LIMITS[name]
    assert f"| `{name}` | {low:g} to {high:g}" in PAGE


def test_its_request_and_setting_are_real() -> None:
    (body,) = re.findall(r"-d '(.*?)'", PAGE)
    assert json.loads(body)["emotion"] in EMOTIONS
    assert {name.lower() for name in re.findall(r"TUTTI_([A-Z_]+)", PAGE)} <= set(Settings.model_fields)
