"""`instructions` in plain words: what can be followed is, and a notice says what."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import tone_engine
from tests.server.harness import SHORT, RunningServer, serving
from tutti.server.instructions import MAX_INSTRUCTIONS, read_instructions
from tutti.voices import Voices

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def tones(voices: Voices) -> Iterator[RunningServer]:
    with serving(tone_engine(voices)) as running:
        yield running


def asked(server: RunningServer, **body: Any) -> tuple[dict[str, Any], list[str]]:
    """What the engine was asked for, and the notices of the answer."""
    response = server.speak(**body)
    assert response.status_code == 200, response.text
    return server.engine.requests[-1], json.loads(response.headers.get("x-notices", "[]"))


@pytest.mark.parametrize(
    ("instructions", "change"),
    [
        ("calm", {"emotion": "calm"}),
        ("Speak in a cheerful and positive tone.", {"emotion": "happy"}),
        ("slower", {"speed": 0.85}),
        ("Please talk very fast!", {"speed": 1.3}),
        ("whisper", {"emotion": "gentle"}),
        ("a deep, flat voice", {"pitch": -2.0, "pitch_range": 0.4}),
        ("Do not be slow. Sound excited, don\u2019t be angry", {"emotion": "excited"}),
    ],
)
def test_plain_words_change_the_speech_and_a_notice_names_them(
    server: RunningServer, instructions: str, change: dict[str, Any]
) -> None:
    plain, _ = asked(server)
    request, (notice,) = asked(server, instructions=instructions)
    names = ("emotion", "speed", "pitch", "pitch_range")
    changed = {name: request[name] for name in names if request[name] != plain[name]}
    assert changed == pytest.approx(change, rel=1e-6) if "emotion" not in change else changed == change
    assert notice.startswith("of the instructions, ")
    assert all(f"{name} " in notice for name in change)


def test_a_whisper_is_quiet(server: RunningServer) -> None:
    answers = [server.speak(response_format="pcm", **body) for body in ({}, {"instructions": "whisper"})]
    loud, quiet = (np.abs(np.frombuffer(answer.content, "<i2").astype(float)).max() for answer in answers)
    assert quiet == pytest.approx(0.6 * loud, rel=0.01)
    assert "volume 0.6" in answers[1].headers["x-notices"]


def test_own_options_go_before_instructions(server: RunningServer) -> None:
    request, _ = asked(server, instructions="calm and slower, with a deep voice", emotion="sad", speed=2, pitch=1)
    assert (request["emotion"], request["speed"], request["pitch"]) == ("sad", 1.7, -1)


@pytest.mark.parametrize("instructions", ["Talk like a pirate", "not too fast", "avoid sounding sad", ""])
def test_what_cannot_be_followed_is_ignored_and_named(server: RunningServer, instructions: str) -> None:
    response = server.speak(instructions=instructions)
    assert response.headers.get("x-ignored") == ("instructions" if instructions else None)
    assert "x-notices" not in response.headers
    assert "x-ignored" not in server.speak(instructions="calm").headers


def test_instructions_act_in_a_dialogue_and_in_captions(tones: RunningServer) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "/dev/dialogue": {"turns": [{"voice": "af_sky", "text": SHORT}]},
        "/dev/captioned_speech": {"input": SHORT},
    }
    for path, body in bodies.items():
        response = tones.post(path, {**body, "stream": False, "instructions": "calm"})
        assert "emotion calm" in response.headers["x-notices"]


@given(st.text(max_size=200))
def test_any_text_may_be_instructions(text: str) -> None:
    followed = read_instructions(text)
    assert followed is None or followed.words


def test_long_instructions_are_read_to_a_limit() -> None:
    assert read_instructions("x " * MAX_INSTRUCTIONS + "calm") is None
