"""What cannot be spoken, and options of the text: named in every kind of answer, and obeyed."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI
from websockets.asyncio.client import connect

from tests.fakes import tone_engine
from tests.server.harness import RunningServer, serving
from tutti.voices import Voices

pytestmark = [pytest.mark.server, pytest.mark.process]

TEXT = "你好世界。 deep 😀 water. It runs deep under the old bridge tonight. Привет!"
CODE = "Use this:\n\n```python\nhidden\n```\n\nThen go."


@pytest.fixture(scope="module")
def tones(voices: Voices) -> Iterator[RunningServer]:
    with serving(tone_engine(voices)) as server:
        yield server


def assert_named(unspoken: list[str], notices: list[str]) -> None:
    assert unspoken == ["😀"]
    assert any("Chinese" in notice and "zf_xiaobei" in notice for notice in notices)


def test_a_whole_answer_names_it_in_headers(tones: RunningServer) -> None:
    headers = tones.speak(input=TEXT, stream=False, response_format="pcm").headers
    notices = json.loads(headers["x-notices"])
    assert_named(json.loads(headers["x-unspoken"]), notices)
    assert headers["x-unspoken-count"] == "1"
    assert any("Russian" in notice for notice in notices)  # the last sentence: nothing is spoken after it


def test_a_stream_names_what_its_first_audio_shows(tones: RunningServer) -> None:
    headers = tones.speak(input=TEXT, response_format="pcm").headers
    assert_named(json.loads(headers["x-unspoken"]), json.loads(headers["x-notices"]))


def test_plain_text_has_no_such_header(tones: RunningServer) -> None:
    headers = tones.speak(input="deep water", response_format="pcm").headers
    assert not [name for name in headers if name.startswith(("x-unspoken", "x-notices"))]


def events(tones: RunningServer, path: str, **body: Any) -> list[dict[str, Any]]:
    lines = tones.post(path, {"input": TEXT, "response_format": "pcm", **body}).text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line]


def test_events_name_it(tones: RunningServer) -> None:
    named = [event for event in events(tones, "/v1/audio/speech", stream_format="sse") if "notice" in event["type"]]
    assert {event["type"] for event in named} == {"speech.audio.notice"}
    unspoken = [symbol for event in named for symbol in event.get("unspoken", [])]
    assert_named(unspoken, [notice for event in named for notice in event.get("notices", [])])
    assert "Russian" in named[-1]["notices"][0]


def test_captions_name_it(tones: RunningServer) -> None:
    lines = events(tones, "/dev/captioned_speech")
    assert_named(lines[0]["unspoken"], lines[0]["notices"])
    whole = tones.post("/dev/captioned_speech", {"input": TEXT, "stream": False}).json()
    assert_named(whole["unspoken"], whole["notices"])


def test_a_websocket_names_it(tones: RunningServer) -> None:
    async def run() -> list[dict[str, Any]]:
        host, port = tones.host_port
        named: list[dict[str, Any]] = []
        async with connect(f"ws://{host}:{port}/v1/audio/speech/stream") as socket:
            await socket.send(json.dumps({"type": "input.text", "text": TEXT}))
            await socket.send(json.dumps({"type": "input.done"}))
            async for message in socket:
                event = json.loads(message) if isinstance(message, str) else {}
                if event.get("type") == "audio.notice":
                    named.append(event)
                elif event.get("type") in ("session.done", "error"):
                    return named
        return named

    named = asyncio.run(run())
    unspoken = [symbol for event in named for symbol in event.get("unspoken", [])]
    assert_named(unspoken, [notice for event in named for notice in event.get("notices", [])])


def test_openais_websocket_names_it(tones: RunningServer) -> None:
    """OpenAI's own library hands on an event that it does not know."""

    async def run() -> list[Any]:
        base = tones.url + "/v1"
        client = AsyncOpenAI(base_url=base, api_key="any", websocket_base_url=base.replace("http", "ws"))
        events: list[Any] = []
        async with client, client.realtime.connect(model="gpt-realtime") as connection:
            content = [{"type": "input_text", "text": TEXT}]
            item: Any = {"type": "message", "role": "user", "content": content}
            await connection.response.create(response={"input": [item]})
            while not events or events[-1].type != "response.done":
                events.append(await connection.recv())
        return events

    events = asyncio.run(run())
    assert events[-1].response.status == "completed"
    response_id = events[-1].response.id
    named = [event.to_dict() for event in events if event.type == "response.output_audio.notice"]
    assert {event["response_id"] for event in named} == {response_id}
    unspoken = [symbol for event in named for symbol in event.get("unspoken", [])]
    notices = [notice for event in named for notice in event.get("notices", [])]
    assert_named(unspoken, notices)
    assert any("Russian" in notice for notice in notices)  # the last sentence: nothing is spoken after it


def test_a_job_names_it_in_its_notes(tones: RunningServer) -> None:
    ssml = f"<speak>deep 😀 water. <mark name='x'/> {TEXT}</speak>"
    id = tones.post("/v1/jobs", {"text": ssml, "format": "wav"}).json()["id"]
    with tones.client().stream("GET", f"/v1/jobs/{id}/events") as response:
        *_, last = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: "))
    notes = last["job"]["notes"]
    assert "2 symbols could not be spoken: 😀 ×2" in notes
    assert "<mark> has no effect" in notes
    assert any("Chinese" in note for note in notes)
    assert any("Russian" in note for note in notes)


@pytest.mark.parametrize(("name", "voice"), [("en-US-GuyNeural", "am_michael"), ("Joanna", "af_heart")])
def test_a_voice_of_another_service_is_replaced_and_named(tones: RunningServer, name: str, voice: str) -> None:
    notice = f"voice {name} is not one of Kokoro's; {voice} speaks instead"
    body = {"input": "deep water", "response_format": "pcm", "stream": False}
    plain, replaced = (tones.speak(**body, voice=spoken) for spoken in (voice, name))
    assert replaced.content == plain.content
    assert (replaced.headers["x-voice-used"], json.loads(replaced.headers["x-notices"])) == (voice, [notice])
    assert "x-notices" not in plain.headers
    assert "x-notices" not in tones.speak(**body, voice=voice).headers  # nor from the cache
    ssml = f"<speak>deep <voice name='{name}'>water</voice></speak>"
    inside = tones.speak(**{**body, "input": ssml})
    assert json.loads(inside.headers["x-notices"]) == [notice]
    assert inside.content == tones.speak(**{**body, "input": ssml.replace(name, voice)}).content


def test_a_job_names_the_voice_that_speaks_instead(tones: RunningServer) -> None:
    job = tones.post("/v1/jobs", {"text": "deep water", "format": "wav", "voice": "Joanna"}).json()
    assert job["voice"] == "af_heart"
    assert job["notes"] == ["voice Joanna is not one of Kokoro's; af_heart speaks instead"]


def test_names_of_the_operator_come_before_those_of_other_services(voices: Voices) -> None:
    with serving(tone_engine(voices), voice_names="joanna=bf_emma") as server:
        for text, voice in (("deep", "Joanna"), ("<speak><voice name='Joanna'>deep</voice></speak>", "af_heart")):
            answer = server.speak(input=text, voice=voice, response_format="pcm", stream=False)
            assert "x-notices" not in answer.headers
            assert (
                answer.content
                == server.speak(input="deep", voice="bf_emma", response_format="pcm", stream=False).content
            )


def test_an_unknown_voice_of_another_service_names_the_nearest(tones: RunningServer) -> None:
    assert "af_heart" in tones.speak(voice="en-US-SomebodyNeural").json()["error"]["message"]
    assert "no voice for de-DE" in tones.speak(voice="de-DE-KatjaNeural").json()["error"]["message"]
    ssml = "<speak><voice name='de-DE-KatjaNeural'>deep</voice></speak>"
    refused = tones.speak(input=ssml)
    assert refused.status_code == 400
    assert "no voice for de-DE" in refused.json()["error"]["message"]


def test_skipped_code_is_named(tones: RunningServer) -> None:
    for option, named in (("skip", True), ("announce", False)):
        headers = tones.speak(input=CODE * 2, code_blocks=option, stream=False, response_format="pcm").headers
        assert ("code were skipped" in headers.get("x-notices", "")) is named
        assert headers.get("x-notices", "").count("skipped") == named


def test_nothing_but_another_script_names_a_voice_for_it(tones: RunningServer) -> None:
    response = tones.speak(input="你好世界😀")
    assert response.status_code == 400
    assert "zf_xiaobei" in response.json()["error"]["message"]


def words(tones: RunningServer, **body: Any) -> list[str]:
    answer = tones.post("/dev/captioned_speech", {"stream": False, "response_format": "pcm", **body})
    assert answer.status_code == 200, answer.text
    return [word["word"].strip(":.") for word in answer.json()["timestamps"]]


def test_code_blocks_are_an_option_of_the_request(tones: RunningServer) -> None:
    assert "hidden" in words(tones, input=CODE, code_blocks="read")
    assert words(tones, input=CODE, code_blocks="skip") == ["Use", "this", "Then", "go"]
    assert words(tones, input=CODE) == ["Use", "this", "[python code]", "Then", "go"]
    assert tones.speak(input=CODE, code_blocks="sing").status_code == 400


@pytest.mark.parametrize(
    ("options", "same_as"),
    [({}, "ten kilograms"), ({"unit_normalization": None}, "ten kilograms"), ({"unit_normalization": False}, "ten kg")],
)
def test_normalization_options_are_obeyed(tones: RunningServer, options: dict[str, bool], same_as: str) -> None:
    answer = tones.speak(input="10 kg", normalization_options=options, response_format="pcm", stream=False)
    assert "x-ignored" not in answer.headers
    assert answer.content == tones.speak(input=same_as, response_format="pcm", stream=False).content


def test_unknown_normalization_options_are_named(tones: RunningServer) -> None:
    answer = tones.speak(normalization_options={"normalize": True, "tone_normalization": True, "x y": True})
    names = "normalization_options.tone_normalization, normalization_options.x y"
    assert answer.headers["x-ignored"] == names


def test_the_language_may_be_detected(tones: RunningServer) -> None:
    assert tones.speak(input="This is deep water.", language="auto").status_code == 200
    refused = tones.speak(language="de")
    assert refused.status_code == 400
    assert "kokoro does not speak German" in refused.json()["error"]["message"]
