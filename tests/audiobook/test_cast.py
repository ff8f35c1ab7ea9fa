"""The cast of a book: turns and quotes of its speakers have their voices, and no other word changes."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audiobook.cast import mark_speakers, parse_cast, read_cast
from tutti.errors import InvalidInput, UnknownVoice
from tutti.speech import SpeechParams
from tutti.voices import OFFICIAL

NAMES = ("Anna", "Old Ben")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Anna: Hello.\nOld Ben: Hi.", "[voice:Anna]Hello.[/voice]\n[voice:Old Ben]Hi.[/voice]"),
        ("**ANNA:** One\ntwo.\n\nThree.", "[voice:Anna]One\ntwo.[/voice]\n\nThree."),
        ("Enter Anna.\n**Anna**: Hello.", "Enter Anna.\n[voice:Anna]Hello.[/voice]"),
        ("“Come in,” said Anna.", "[voice:Anna]“Come in,”[/voice] said Anna."),
        ('"Why?" Old Ben quietly asked.', '[voice:Old Ben]"Why?"[/voice] Old Ben quietly asked.'),
        ("Anna said to him, “Go.”", "Anna said to him, [voice:Anna]“Go.”[/voice]"),
        ("“In,” said Anna. “Now.”", "[voice:Anna]“In,”[/voice] said Anna. [voice:Anna]“Now.”[/voice]"),
        (
            "“In,” said Anna. “No,” said Old Ben. “So.”",
            "[voice:Anna]“In,”[/voice] said Anna. [voice:Old Ben]“No,”[/voice] said Old Ben. “So.”",
        ),
    ],
)
def test_turns_and_quotes_of_a_speaker_are_marked(text: str, marked: str) -> None:
    assert mark_speakers(text, NAMES) == marked


@pytest.mark.parametrize(
    "text",
    [
        "The time: Anna came at 7:30. Joanna: no speaker.",
        "“Come in,” said Carl.",
        "Anna saw the “old” bridge.",
        "[voice:af_sky]“Come in,” said Anna.",
        "<speak>Anna: Hello.</speak>",
        "Anna:",
    ],
)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert mark_speakers(text, NAMES) == text


PIECES = [
    "Anna: ",
    "Old Ben: ",
    "Anna",
    " said Anna",
    "Old Ben asked",
    "“",
    "”",
    '"',
    " ",
    ", ",
    ". ",
    "\n",
    "\n\n",
    "so",
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_word_is_lost_but_the_names_before_turns(text: str) -> None:
    marked = mark_speakers(text, NAMES)
    plain = re.sub(r"\[/?voice[^\]]*\]", "", marked)
    assert plain.count("so") == text.count("so")
    assert marked.count("[voice:") == marked.count("[/voice]")
    lost = len(re.findall(r"\w+", text)) - len(re.findall(r"\w+", plain))
    assert lost <= 2 * len(re.findall(r"(?:Anna|Old Ben): ", text))


def test_a_cast_is_read_from_toml_and_json(tmp_path: Path) -> None:
    toml, json = tmp_path / "cast.toml", tmp_path / "cast.json"
    toml.write_text('Anna = "af_heart"\n"Old Ben" = {voice = "am_puck", rate = 0.9}\n')
    json.write_text('{"Anna": "af_heart", "Old Ben": {"voice": "am_puck", "rate": 0.9}}')
    cast = read_cast(toml, OFFICIAL)
    assert cast == read_cast(json, OFFICIAL)
    params = cast.params(SpeechParams("af_sky"))
    assert (params.voice_names, params.voice_rates) == ({"anna": "af_heart", "old ben": "am_puck"}, {"old ben": 0.9})


@pytest.mark.parametrize(
    "table",
    [[], {}, {"Anna": 7}, {"Anna": {"rate": 1}}, {"Anna": {"voice": "af_sky", "rate": 9}}, {"A[b": "af_sky"},
     {"Anna": {"voice": "af_sky", "pace": 1}}, {str(n): "af_sky" for n in range(101)}],
)  # fmt: skip
def test_a_wrong_cast_is_refused_and_named(table: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_cast(table, OFFICIAL)
    assert error.value.param == "cast"


def test_an_unknown_voice_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownVoice) as error:
        parse_cast({"Anna": "af_hart"}, OFFICIAL)
    assert error.value.param == "cast"
    (tmp_path / "cast.json").write_text("Anna")
    for name in ("cast.json", "none.toml"):
        with pytest.raises(InvalidInput, match=r"cast\.json|none\.toml"):
            read_cast(tmp_path / name, OFFICIAL)
