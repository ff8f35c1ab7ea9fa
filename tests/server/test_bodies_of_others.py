"""Bodies and names as clients of other servers send them: Kokoro-FastAPI, LocalAI, speaches, LibreChat."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import make_fake_engine, tone_engine
from tests.server.harness import SHORT, RunningServer, assert_error, serving
from tutti.voices import NAMES, Voices

pytestmark = pytest.mark.server

SPEAKING = [
    ("/v1/audio/speech", "input"),
    ("/dev/captioned_speech", "input"),
    ("/dev/generate_from_phonemes", "phonemes"),
    ("/tts", "text"),
    ("/tts/stream", "text"),
]


@pytest.fixture(scope="module")
def any_model(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder), any_model=True) as running:
        yield running


@pytest.fixture(scope="module")
def tones(voices: Voices) -> Iterator[RunningServer]:
    """The real engine, which reads marks, with tones."""
    with serving(tone_engine(voices)) as running:
        yield running


def spoken(server: RunningServer, path: str, **body: Any) -> dict[str, Any]:
    """Post a body that must be spoken, and return what the engine was asked for."""
    response = server.post(path, body)
    assert response.status_code == 200, response.text
    return server.engine.requests[-1]


# -- voices --------------------------------------------------------------------------------------------------------


def test_the_name_of_every_listed_voice_is_its_id(server: RunningServer) -> None:
    voices = server.get("/v1/audio/voices").json()["voices"]
    assert [(voice["id"], voice["name"]) for voice in voices] == [(name, name) for name in NAMES]
    assert voices[0]["label"] == "Heart (American English, female)"


@pytest.mark.parametrize(("path", "field"), SPEAKING)
def test_the_label_of_a_voice_is_accepted_as_its_name(server: RunningServer, path: str, field: str) -> None:
    asked = spoken(server, path, **{field: "dip", "voice": " emma (British English, Female) "})
    assert asked["voice"] == "bf_emma"


def test_every_label_stands_for_its_voice(server: RunningServer) -> None:
    for voice in server.get("/v1/audio/voices").json()["voices"]:
        assert server.post("/tts", {"text": "dip", "voice": voice["label"]}).headers["x-voice-used"] == voice["id"]


@pytest.mark.parametrize(("path", "field"), SPEAKING)
def test_a_list_of_voices_is_their_blend(server: RunningServer, path: str, field: str) -> None:
    asked = spoken(server, path, **{field: "dip", "voice": ["af_bella", "af_sky(2)"]})
    assert asked["voice"] == "af_bella+af_sky(2)"
    assert_error(server.post(path, {field: "dip", "voice": ["af_bella", "nobody"]}), 400, "voice_not_found", "voice")
    assert_error(server.post(path, {field: "dip", "voice": ["af_sky"] * 101}), 400, "invalid_input", "voice")


def test_a_voice_that_is_no_blend_is_named_whole(server: RunningServer) -> None:
    error = assert_error(server.speak(voice="en_US-ryan-low"), 400, "voice_not_found", "voice")
    assert "'en_US-ryan-low'" in error["message"]
    error = assert_error(server.speak(voice="af_bella+en_US"), 400, "voice_not_found", "voice")
    assert "'en_US'" in error["message"]


# -- /tts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/tts", "/tts/stream"])
def test_tts_takes_speaker_and_settings(server: RunningServer, path: str) -> None:
    asked = spoken(server, path, text=SHORT, speaker="am_adam", settings={"speed": 2})
    assert (asked["voice"], asked["speed"]) == ("am_adam", 2)
    asked = spoken(server, path, text=SHORT, speaker="default", settings={"speed": 1.0})
    assert (asked["voice"], asked["speed"]) == ("af_heart", 1)


def test_tts_takes_input_for_text(server: RunningServer) -> None:
    assert spoken(server, "/tts", input="as LocalAI names it", model="kokoro")["text"] == "as LocalAI names it"
    assert_error(server.post("/tts", {"model": "kokoro"}), 400, "invalid_input", "text")


def test_of_two_names_for_one_option_the_second_is_ignored_and_named(server: RunningServer) -> None:
    body = {"text": "a", "input": "b", "voice": "am_adam", "speaker": "af_sky", "speed": 2, "settings": {"speed": 3}}
    response = server.post("/tts", body)
    asked = server.engine.requests[-1]
    assert (asked["text"], asked["voice"], asked["speed"]) == ("a", "am_adam", 2)
    assert sorted(response.headers["x-ignored"].split(", ")) == ["input", "settings.speed", "speaker"]


def test_a_speed_out_of_range_is_refused_in_settings_too(server: RunningServer) -> None:
    assert_error(server.post("/tts", {"text": SHORT, "settings": {"speed": 99}}), 400, "invalid_input", "settings")


# -- voice tags ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "field"), [pair for pair in SPEAKING if pair[1] != "phonemes"])
def test_without_voice_tags_brackets_in_a_text_are_text(tones: RunningServer, path: str, field: str) -> None:
    text = "Array index [voice:nope] is out of range. [rate:fast] [pause:long] Deep."
    assert tones.post(path, {field: text}).status_code == 400
    allowed = {field: "a [voice:nope] b", "allow_voice_tags": True}
    assert_error(tones.post(path, allowed), 400, "voice_not_found", "voice")
    response = tones.post(path, {field: text, "allow_voice_tags": False})
    assert response.status_code == 200, response.text
    assert "x-ignored" not in response.headers


def test_without_voice_tags_they_are_read_and_the_words_keep_their_places(tones: RunningServer) -> None:
    body = {"input": "Deep [voice:af_sky] water [pause:1.5s] runs.", "allow_voice_tags": False, "stream": False}
    rows = tones.post("/dev/captioned_speech", body).json()["timestamps"]
    said = [row["word"] for row in rows]
    assert said[0] == "Deep"
    assert "voice" in "".join(said)
    assert said[-2:] == ["water", "runs."] or said[-2:] == ["water", "runs"]
    water, runs = rows[-2:]
    assert runs["start_time"] - water["end_time"] >= 1.5  # a pause needs no permission


# -- models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["speaches-ai/Kokoro-82M-v1.0-ONNX", "speaches-ai/Kokoro-82M-v1.0-ONNX-int8", "hexgrad/Kokoro-82M"]
)
def test_names_of_kokoro_on_other_servers_are_known(server: RunningServer, name: str) -> None:
    assert server.speak(model=name).status_code == 200
    assert server.get(f"/v1/models/{name}").json()["id"] == name


@pytest.mark.parametrize("name", ["anything can go here", "chatterbox", "../../etc/passwd", "x" * 400])
@pytest.mark.parametrize(("path", "field"), [("/v1/audio/speech", "input"), ("/tts", "text")])
def test_with_any_model_every_name_stands_for_the_default(
    server: RunningServer, any_model: RunningServer, path: str, field: str, name: str
) -> None:
    assert server.post(path, {field: SHORT, "model": name}).status_code in (400, 404)
    response = any_model.post(path, {field: SHORT, "model": name})
    assert response.status_code == 200, response.text
    assert any_model.engine.requests[-1]["model"] == "kokoro"


def test_with_any_model_the_lists_stay_as_they_are_and_all_routes_agree(
    server: RunningServer, any_model: RunningServer
) -> None:
    assert any_model.get("/v1/models").json() == server.get("/v1/models").json()
    body = {"text": SHORT, "model_id": "chatterbox"}
    assert_error(server.post("/v1/text-to-speech/af_heart", body), 404, "model_not_found", "model_id")
    assert any_model.post("/v1/text-to-speech/af_heart", body).status_code == 200
    assert any_model.speak(model="kokoro-int8").status_code == 200
    assert any_model.engine.requests[-1]["model"] == "kokoro-int8"  # a name of its own still counts


@pytest.mark.parametrize(("path", "field"), [("/v1/audio/speech", "input"), ("/tts", "text")])
def test_with_any_model_a_voice_sent_as_the_model_speaks(any_model: RunningServer, path: str, field: str) -> None:
    assert spoken(any_model, path, **{field: SHORT, "model": "bm_george"})["voice"] == "bm_george"
    assert spoken(any_model, path, **{field: SHORT, "model": "bm_george", "voice": "af_sky"})["voice"] == "af_sky"


# -- downloads -----------------------------------------------------------------------------------------------------


def test_a_download_path_stands_behind_v1_as_in_kokoro_fastapi(server: RunningServer) -> None:
    response = server.speak(return_download_link=True)
    path = response.headers["x-download-path"]
    assert path.startswith("/download/")
    for url in (f"/v1{path}", path):
        assert server.get(url).content == response.content
        head = server.clients[0].head(url)
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) == len(response.content)
    assert server.clients[0].head("/v1/download/none.mp3").status_code == 404


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("my%20book.mp3", "my_book.mp3"),
        ("chapter-1.v2", "chapter-1.mp3"),
        ("../../etc/passwd", "etc_passwd.mp3"),
        ("%C3%A4%22%0D%0A", "speech.mp3"),
        ("x" * 300, "x" * 100 + ".mp3"),
        ("", "speech.mp3"),
    ],
)
def test_a_download_is_stored_under_the_name_that_the_client_gives(
    server: RunningServer, name: str, shown: str
) -> None:
    path = server.speak(return_download_link=True).headers["x-download-path"]
    answer = server.get(f"/v1{path}?name={name}")
    assert answer.headers["content-disposition"] == f'attachment; filename="{shown}"'


def test_what_a_download_cannot_be_is_named(server: RunningServer) -> None:
    assert (
        server.speak(download_format="wav", return_timing=True).headers["x-ignored"] == "download_format, return_timing"
    )
    asked = {"return_download_link": True, "download_format": "mp3"}
    assert server.speak(**asked, stream_format="sse").headers["x-ignored"] == "return_download_link, download_format"
    assert_error(server.speak(**asked | {"download_format": "ogg"}), 400, "unknown_format", "download_format")
    assert_error(
        server.speak(**asked | {"download_format": "opus"}, sample_rate=44_100), 400, "invalid_input", "sample_rate"
    )


# -- errors --------------------------------------------------------------------------------------------------------


def test_detail_is_an_object_with_the_message_as_in_kokoro_fastapi(server: RunningServer) -> None:
    for response in (server.speak(voice="nobody"), server.speak(speed="fast"), server.get("/nowhere")):
        body = response.json()
        error = body["error"]
        assert body["detail"] == {"error": error["code"], "message": error["message"], "type": error["type"]}
