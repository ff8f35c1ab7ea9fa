"""`timestamps`: the times of words, phonemes and visemes, from the engine's own durations."""

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from websockets.asyncio.client import connect

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
    rows = events(tones, input=f"{LONG} {SHORT} {SHORT}", timestamps=ALL)  # the last sentences are one chunk
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


Event = dict[str, Any]


def talk(server: RunningServer, path: str, messages: list[Event], last: str) -> list[Event]:
    """Send messages over a WebSocket, and return the events up to the last one."""

    async def run() -> list[Event]:
        host, port = server.host_port
        received: list[Event] = []
        async with connect(f"ws://{host}:{port}{path}") as socket:
            for message in messages:
                await socket.send(json.dumps(message))
            async for data in socket:
                if isinstance(data, str):
                    received.append(json.loads(data))
                    if received[-1]["type"] in (last, "error"):
                        break
        return received

    return asyncio.run(run())


def lists(received: list[Event], prefix: str) -> dict[str, list[Event]]:
    """The rows of all events with times, by the name of the list, as in `events`."""
    rows: dict[str, list[Event]] = {}
    for event in received:
        name = event["type"].removeprefix(prefix)
        if name in ("words", "phonemes", "visemes"):
            rows.setdefault(name, []).extend(event[name])
    return rows


def live(server: RunningServer, **config: Any) -> dict[str, list[Event]]:
    messages = [{"type": "session.config", **config}, {"type": "input.text", "text": LONG}, {"type": "input.done"}]
    return lists(talk(server, "/v1/audio/speech/stream", messages, "session.done"), "audio.")


def test_a_websocket_sends_the_times_of_events(tones: RunningServer) -> None:
    rows = live(tones, timestamps=ALL)
    places = [(word.pop("from"), word.pop("to")) for word in rows["words"]]
    assert [LONG[a:b] for a, b in places] == [word["word"] for word in rows["words"]]
    assert rows == events(tones, input=LONG, timestamps=ALL)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {"words"}),
        ({"word_timestamps": False}, set()),
        ({"timestamps": []}, set()),
        ({"timestamps": ["viseme"]}, {"visemes"}),
        ({"timestamps": ["phoneme"], "word_timestamps": True}, {"phonemes", "words"}),
    ],
)
def test_a_websocket_sends_words_unless_others_are_chosen(
    tones: RunningServer, config: dict[str, Any], expected: set[str]
) -> None:
    assert set(live(tones, **config)) == expected


def test_openais_websocket_sends_them_if_asked(tones: RunningServer) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": LONG}]}

    def realtime(**output: Any) -> dict[str, list[Event]]:
        response = {"input": [item], "audio": {"output": output}}
        received = talk(tones, "/v1/realtime", [{"type": "response.create", "response": response}], "response.done")
        return lists(received, "response.output_audio.")

    assert realtime() == {}
    assert realtime(timestamps=ALL) == events(tones, input=LONG, timestamps=ALL)


def test_raw_audio_names_the_option_as_ignored(tones: RunningServer) -> None:
    assert tones.speak(timestamps=["phoneme"]).headers["x-ignored"] == "timestamps"
    assert tones.speak(timestamps=["colour"]).json()["error"]["param"] == "timestamps"
