"""`timestamps`: the times of words, phonemes and visemes, from the engine's own durations."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, serving

pytestmark = pytest.mark.server

ALL = ["word", "phoneme", "viseme"]


@pytest.fixture(scope="module")
def tones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server on the tone model behind the real engine."""
    with serving(tone_engine(silent_voices(tmp_path_factory.mktemp("tones")))) as server:
        yield server


def events(server: RunningServer, **body: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of all events with times, by the name of the list."""
    response = server.speak(stream_format="sse", response_format="pcm", **body)
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in response.text.split("\n\n"):
        event = json.loads(line.removeprefix("data: ")) if line else {}
        for name in ("words", "phonemes", "visemes"):
            rows.setdefault(name, []).extend(event.get(name, []))
    return {name: found for name, found in rows.items() if found}


def test_phonemes_spell_the_words_and_lie_within_them(tones: RunningServer) -> None:
    rows = events(tones, input=LONG, timestamps=ALL)
    phonemes = iter(rows["phonemes"])
    for word in rows["words"]:
        letters = [next(phonemes) for letter in word["word"] if letter.isalpha()]
        assert "".join(row["phoneme"] for row in letters) == word["word"].strip(".").lower().replace("g", "ɡ")
        assert (letters[0]["start"], letters[-1]["end"]) == (word["start"], word["end"])
        assert all(a["end"] == b["start"] for a, b in pairwise(letters))
    assert next(phonemes, None) is None
    assert rows["visemes"][0]["start"] == rows["words"][0]["start"]
    assert rows["visemes"][-1]["end"] == rows["words"][-1]["end"]
    assert {row["viseme"] for row in rows["visemes"]} >= {"sil", "DD", "PP", "I"}


@pytest.mark.parametrize("chosen", [["word"], ["phoneme"], ["viseme"], ["phoneme", "viseme"], []])
def test_only_the_chosen_times_are_sent(tones: RunningServer, chosen: list[str]) -> None:
    assert set(events(tones, input=SHORT, timestamps=chosen)) == {f"{name}s" for name in chosen}
    assert set(events(tones, input=SHORT, timestamps=chosen, word_timestamps=True)) >= {"words"}


def test_captions_have_them_too(tones: RunningServer) -> None:
    body = {"input": SHORT, "stream": False, "timestamps": ["phoneme", "viseme"]}
    whole = tones.post("/dev/captioned_speech", body).json()
    assert "".join(row["phoneme"] for row in whole["phonemes"]) == "deepwater"
    assert whole["visemes"][0]["viseme"] == "DD"
    assert len(whole["timestamps"]) == 2
    plain = tones.post("/dev/captioned_speech", {"input": SHORT, "stream": False}).json()
    assert plain.keys() == {"audio", "audio_format", "timestamps"}


def test_raw_audio_names_the_option_as_ignored(tones: RunningServer) -> None:
    assert tones.speak(timestamps=["phoneme"]).headers["x-ignored"] == "timestamps"
    assert tones.speak(timestamps=["colour"]).json()["error"]["param"] == "timestamps"
