"""ElevenLabs' Python SDK against a running server."""

import asyncio
from base64 import b64decode
from collections.abc import Iterator

import httpx
import httpx2
import numpy as np
import pytest
from elevenlabs import VoiceSettings
from elevenlabs.client import AsyncElevenLabs, ElevenLabs
from elevenlabs.core.api_error import ApiError

from tests.fakes import FakeEngine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, expected_samples, serving

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """The connections of the SDK, which does not close its own."""
    with httpx.Client(timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def sdk(server: RunningServer, http: httpx.Client) -> ElevenLabs:
    return ElevenLabs(base_url=server.url, api_key="anything", httpx_client=http)


@pytest.fixture
def keyed(fake_engine: FakeEngine) -> Iterator[RunningServer]:
    with serving(fake_engine, api_keys="the-right-key") as server:
        yield server


def pcm(server: RunningServer, text: str, **options: object) -> bytes:
    return np.rint(expected_samples(server, text, **options) * 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("text", [SHORT, LONG])
def test_the_sdk_gets_whole_and_streamed_speech(sdk: ElevenLabs, server: RunningServer, text: str) -> None:
    whole = b"".join(sdk.text_to_speech.convert("af_heart", text=text, output_format="pcm_24000"))
    streamed = b"".join(sdk.text_to_speech.stream("af_heart", text=text, output_format="pcm_24000"))
    assert whole == pcm(server, text, delivery="whole")
    assert streamed == pcm(server, text)


def test_the_first_bytes_of_a_stream_arrive_before_the_rest_is_made(sdk: ElevenLabs, server: RunningServer) -> None:
    server.engine.hold_from = 1
    try:
        pieces = sdk.text_to_speech.stream("af_heart", text=LONG, output_format="pcm_24000")
        first = next(pieces)
        assert first
        server.engine.release()
        assert first + b"".join(pieces) == pcm(server, LONG)
    finally:
        server.engine.reset()


def test_the_async_sdk_streams(server: RunningServer) -> None:
    async def listen() -> bytes:
        async with httpx.AsyncClient(timeout=60) as http:
            sdk = AsyncElevenLabs(base_url=server.url, api_key="anything", httpx_client=http)
            pieces = sdk.text_to_speech.stream("af_heart", text=LONG, output_format="pcm_24000")
            return b"".join([piece async for piece in pieces])

    assert asyncio.run(listen()) == pcm(server, LONG)


@pytest.mark.parametrize(
    ("output_format", "content_type"),
    [
        (None, "audio/mpeg"),
        ("mp3_22050_32", "audio/mpeg"),
        ("opus_48000_128", "audio/ogg"),
        ("wav_16000", "audio/wav"),
        ("pcm_8000", "audio/pcm;rate=8000;channels=1"),
        ("ulaw_8000", "audio/PCMU;rate=8000;channels=1"),
        ("alaw_8000", "audio/PCMA;rate=8000;channels=1"),
    ],
)
def test_output_formats(sdk: ElevenLabs, output_format: str | None, content_type: str) -> None:
    options = {"output_format": output_format} if output_format else {}
    with sdk.text_to_speech.with_raw_response.stream("af_heart", text=SHORT, **options) as response:
        assert response.headers["content-type"] == content_type
        assert b"".join(response.data)


def test_options_reach_the_engine_and_the_others_are_named(sdk: ElevenLabs, server: RunningServer) -> None:
    settings = VoiceSettings(stability=0.5, similarity_boost=0.75, speed=1.5)
    with sdk.text_to_speech.with_raw_response.convert(
        "bf_emma",
        text="deep options",
        model_id="eleven_multilingual_v2",
        voice_settings=settings,
        language_code="es",
        seed=7,
        previous_text="before",
        next_text="after",
    ) as response:
        assert response.headers["x-ignored"] == (
            "voice_settings.stability, voice_settings.similarity_boost, previous_text, next_text"
        )
    asked = server.engine.requests[-1]
    assert (asked["voice"], asked["speed"], asked["language"], asked["seed"]) == ("bf_emma", 1.5, "es", 7)


@pytest.mark.parametrize(
    ("voice_id", "code", "voice", "language"),
    [
        ("JBFqnCBsd6RMkjVDRZzb", "en", "bm_george", None),  # the voice of ElevenLabs' first example stays British
        ("21m00Tcm4TlvDq8ikWAM", None, "af_heart", None),
        ("nova", None, "af_nova", None),
        ("af_bella(2)+af_sky(1)", "en", "af_bella(2)+af_sky(1)", None),
        ("af_heart", "fr", "af_heart", "fr"),
    ],
)
def test_voices_and_languages(
    sdk: ElevenLabs, server: RunningServer, voice_id: str, code: str | None, voice: str, language: str | None
) -> None:
    options = {"language_code": code} if code else {}
    b"".join(sdk.text_to_speech.stream(voice_id, text=f"deep {voice_id}", **options))
    asked = server.engine.requests[-1]
    assert (asked["voice"], asked["language"]) == (voice, language)


def test_the_sdk_lists_the_voices(sdk: ElevenLabs) -> None:
    every, found = sdk.voices.get_all().voices, sdk.voices.search().voices
    assert len(every) == len(found) == 54
    assert every[0].voice_id == "af_heart" or "af_heart" in {voice.voice_id for voice in every}
    assert all(voice.name and voice.labels and voice.labels["gender"] for voice in every)


def test_the_key_of_the_sdk_is_checked(keyed: RunningServer, http: httpx.Client) -> None:
    right, wrong = (
        ElevenLabs(base_url=keyed.url, api_key=key, httpx_client=http) for key in ("the-right-key", "another")
    )
    assert b"".join(right.text_to_speech.convert("af_heart", text=SHORT))
    with pytest.raises(ApiError) as raised:
        b"".join(wrong.text_to_speech.convert("af_heart", text=SHORT))
    assert raised.value.status_code == 401


@pytest.mark.parametrize(
    ("voice_id", "query", "body", "code", "param"),
    [
        ("nobody", "", {}, "voice_not_found", "voice_id"),
        ("af_heart", "?output_format=mp4_44100", {}, "unknown_format", "output_format"),
        ("af_heart", "?output_format=mp3", {}, "unknown_format", "output_format"),
        ("af_heart", "?output_format=opus_44100_32", {}, "invalid_input", "output_format"),
        ("af_heart", "", {"language_code": "xx"}, "unknown_language", "language_code"),
        ("af_heart", "", {"voice_settings": {"speed": 9}}, "invalid_input", "voice_settings"),
        ("af_heart", "", {"text": " "}, "nothing_to_speak", "text"),
        ("af_heart", "", {"text": None}, "invalid_input", "text"),
    ],
)
@pytest.mark.parametrize("path", ["", "/stream"])
def test_an_error_names_the_field_of_this_route(
    server: RunningServer, path: str, voice_id: str, query: str, body: dict[str, object], code: str, param: str
) -> None:
    response = server.post(f"/v1/text-to-speech/{voice_id}{path}{query}", {"text": SHORT, **body})
    assert_error(response, 400, code, param)


def test_an_unknown_model_is_an_error(server: RunningServer) -> None:
    response: httpx2.Response = server.post("/v1/text-to-speech/af_heart", {"text": SHORT, "model_id": "gpt-9"})
    assert_error(response, 404, "model_not_found", "model_id")


def seconds(audio: bytes) -> float:
    return len(audio) / 48_000


def test_the_sdk_gets_the_times_of_characters(sdk: ElevenLabs, server: RunningServer) -> None:
    whole = sdk.text_to_speech.convert_with_timestamps("af_heart", text=LONG, output_format="pcm_24000")
    lines = list(sdk.text_to_speech.stream_with_timestamps("af_heart", text=LONG, output_format="pcm_24000"))
    assert b64decode(whole.audio_base_64) == pcm(server, LONG)
    assert b"".join(b64decode(line.audio_base_64) for line in lines) == pcm(server, LONG)
    alignments = [line.alignment for line in lines if line.alignment]
    for times in ([whole.alignment], alignments):
        chars = "".join(char for each in times if each for char in each.characters)
        starts = [start for each in times if each for start in each.character_start_times_seconds]
        ends = [end for each in times if each for end in each.character_end_times_seconds]
        assert chars == LONG
        assert starts == sorted(starts)
        assert ends[-1] == pytest.approx(seconds(pcm(server, LONG)), abs=0.01)


def test_the_sdk_reads_voices_models_and_the_user(sdk: ElevenLabs, server: RunningServer) -> None:
    assert sdk.voices.get("af_heart").voice_id == "af_heart"
    assert sdk.voices.get("21m00Tcm4TlvDq8ikWAM").voice_id == "af_heart"
    assert sdk.voices.settings.get("af_heart").speed == 1
    assert sdk.voices.settings.get_default().stability == 0.5
    assert "kokoro" in {model.model_id for model in sdk.models.list()}
    assert sdk.user.get().subscription.status == sdk.user.subscription.get().status == "active"
    assert_error(server.get("/v1/voices/af_hart"), 400, "voice_not_found", "voice_id")
    assert server.get("/v1/models").json()["object"] == "list"


PLS = (
    "<lexicon alphabet='ipa' xml:lang='en'><lexeme><grapheme>deep</grapheme><phoneme>deɪp</phoneme></lexeme></lexicon>"
)


def test_its_pronunciation_dictionaries_are_stored_lexicons(sdk: ElevenLabs, server: RunningServer) -> None:
    dictionaries = sdk.pronunciation_dictionaries
    made = dictionaries.create_from_rules(
        name="My Sea",
        rules=[
            {"type": "alias", "string_to_replace": "water", "alias": "voda"},
            {"type": "phoneme", "string_to_replace": "Deep", "phoneme": "D IY1 P", "alphabet": "cmu-arpabet"},
            {"type": "alias", "string_to_replace": "Bay", "alias": "bight", "case_sensitive": False},
            {"type": "alias", "string_to_replace": "C++", "alias": "see", "word_boundaries": False},
        ],
    )
    assert (made.id, made.name, made.version_rules_num) == ("my-sea", "My Sea", 4)
    entries = {"water": "voda", "Deep": "/dˈip/", "bay": "bight", r"/C\+\+/": "see"}
    assert server.get("/v1/lexicons/my-sea").json()["entries"] == entries
    assert [each.id for each in dictionaries.list().pronunciation_dictionaries] == ["my-sea"]
    assert dictionaries.get("my-sea").rules[1].phoneme == "dˈip"
    again = dictionaries.create_from_file(name="My Sea", file=("sea.pls", PLS.encode()), description="of the sea")
    assert (again.id, again.description) == ("my-sea-2", "of the sea")
    locators = [{"pronunciation_dictionary_id": id, "version_id": None} for id in ("my-sea-2", "my-sea")]
    for speak in (sdk.text_to_speech.convert, sdk.text_to_speech.stream):
        assert b"".join(speak("af_heart", text=SHORT, pronunciation_dictionary_locators=locators))
        assert server.engine.requests[-1]["lexicon"] == entries | {"deep": "/dAp/"}
    assert "deɪp" in b"".join(dictionaries.download("my-sea-2", again.version_id)).decode()


def test_the_rules_of_a_dictionary_are_changed(sdk: ElevenLabs, server: RunningServer) -> None:
    sdk.pronunciation_dictionaries.create_from_rules(name="lake", rules=[])
    rules = sdk.pronunciation_dictionaries.rules
    added = rules.add("lake", rules=[{"type": "alias", "string_to_replace": word, "alias": "x"} for word in ("a", "b")])
    assert added.version_rules_num == 2
    assert rules.remove("lake", rule_strings=["a"]).version_rules_num == 1
    set_rules = "/v1/pronunciation-dictionaries/lake/set-rules"
    body = {"rules": [{"type": "alias", "string_to_replace": "c", "alias": "see"}]}
    newest = server.post(set_rules, body).json()["version_id"]
    assert server.get("/v1/lexicons/lake").json()["entries"] == {"c": "see"}
    locator = {"pronunciation_dictionary_id": "lake", "version_id": newest}
    path, field = "/v1/text-to-speech/af_heart", "pronunciation_dictionary_locators"
    assert server.post(path, {"text": SHORT, field: [locator]}).status_code == 200
    old = {**locator, "version_id": added.version_id}
    assert_error(server.post(path, {"text": SHORT, field: [old]}), 404, "lexicon_not_found", field)
    unknown = {"pronunciation_dictionary_id": "pond"}
    assert_error(server.post(path, {"text": SHORT, field: [unknown]}), 404, "lexicon_not_found", field)
    assert_error(server.get("/v1/pronunciation-dictionaries/lake/old/download"), 404, "lexicon_not_found", "version_id")


def test_a_wrong_dictionary_is_refused_with_the_field(server: RunningServer) -> None:
    path = "/v1/pronunciation-dictionaries"

    def add(**rule: object) -> httpx2.Response:
        return server.post(f"{path}/add-from-rules", {"name": "x", "rules": [{"string_to_replace": "a", **rule}]})

    assert_error(add(type="alias"), 400, "invalid_input", "rules")
    assert_error(add(type="phoneme", phoneme="§"), 400, "invalid_input", "rules")
    assert_error(add(type="phoneme", phoneme="QQ", alphabet="cmu-arpabet"), 400, "invalid_input", "rules")
    assert_error(add(type="phoneme", phoneme="a", alphabet="sampa"), 400, "invalid_input", "rules")
    file = {"file": ("a.pls", b"<a/>")}
    send = server.clients[0].post
    assert_error(send(f"{path}/add-from-file", data={"name": "x"}, files=file), 400, "invalid_input", "file")
    assert_error(send(f"{path}/add-from-file", data={}, files=file), 400, "invalid_input", "name")
    assert_error(send(f"{path}/add-from-file", data={"name": "x"}), 415, "unsupported_media_type")
    assert_error(server.get(f"{path}?page_size=0"), 400, "invalid_input", "page_size")
