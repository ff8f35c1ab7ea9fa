"""The examples of docs/speaking.md work, and its tables are those of the code."""

import json
import re
from pathlib import Path

import pytest

from tests.fakes import Spelling, word_styles
from tutti.model.prosody import EMOTIONS, LIMITS
from tutti.settings import Settings
from tutti.text import chunks
from tutti.text.marks import BREAKS_S
from tutti.text.options import CODE_BLOCKS, DEFAULT_PAUSES, MAX_PAUSES, NORMALIZATIONS
from tutti.text.ssml import ELEMENTS, SPOKEN, UNSPOKEN, is_ssml
from tutti.text.ssml_values import PITCHES, RATES, VOLUMES
from tutti.text.user_lexicon import UserLexicon, parse_entries

PAGE = (Path(__file__).parent.parent / "docs/speaking.md").read_text(encoding="utf-8")


def code_block(kind: str) -> str:
    (block,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def test_the_example_with_marks_works() -> None:
    result = list(chunks(code_block("text"), "en-us", Spelling().pronounce))
    styles = {(style.voice, style.rate, style.pitch, style.emphasis) for _, style in word_styles(result)}
    assert len(styles) == 5
    assert "[" not in "".join(chunk.phonemes for chunk in result)


def test_the_ssml_example_works_and_all_elements_are_listed() -> None:
    assert is_ssml(code_block("xml"))
    result = list(chunks(code_block("xml"), "en-us", Spelling().pronounce))
    assert "hˈɑɹt" in result[0].phonemes
    assert all(f"`{name}`" in PAGE for name in (*ELEMENTS, *SPOKEN, *UNSPOKEN))
    for values in (RATES, PITCHES, VOLUMES, BREAKS_S):
        assert all(name in PAGE for name in values if name != "default")


def test_all_options_of_the_text_are_listed() -> None:
    assert all(f"`{name}`" in PAGE for name in (*CODE_BLOCKS, *NORMALIZATIONS))


def test_the_lexicon_example_works() -> None:
    assert len(UserLexicon.of(parse_entries(code_block("tsv"), "tsv")).patterns) == 1


def test_the_table_of_emotions_is_that_of_the_code() -> None:
    rows = re.findall(r"\| `(\w+)` \| ([\d.]+) \| ([-\d.]+) \| ([\d.]+) \| ([-\d.]+) \|", PAGE)
    table = {
        name: (preset.speed, preset.prosody.pitch, preset.prosody.pitch_range, preset.prosody.energy)
        for name, preset in EMOTIONS.items()
    }
    assert {name: tuple(map(float, values)) for name, *values in rows} == table


def test_the_table_of_pauses_is_that_of_the_code() -> None:
    rows = re.findall(r"\| `(\w+)` \| 0 to (\d+)[^|]* \| (\d+) \|", PAGE)
    assert {name: int(most) for name, most, _ in rows} == MAX_PAUSES._asdict()
    assert {name: int(default) for name, _, default in rows} == DEFAULT_PAUSES._asdict()


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_are_those_of_the_code(name: str) -> None:
    low, high = LIMITS[name]
    assert f"| `{name}` | {low:g} to {high:g}" in PAGE


def test_the_request_and_the_setting_exist() -> None:
    (body,) = re.findall(r"-d '(.*?)'", PAGE)
    assert json.loads(body)["emotion"] in EMOTIONS
    assert {name.lower() for name in re.findall(r"TUTTI_([A-Z_]+)", PAGE)} <= set(Settings.model_fields)
