"""POST /v1/audio/speech: the bodies that clients send, all formats, whole and streamed, to the last sample."""

import asyncio
import json
from base64 import b64decode
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.audio.decoding import decode
from tests.fakes import FakeEngine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, expected_samples, serving
from tutti.audio import FORMATS
from tutti.errors import UnknownVoice
from tutti.server.aliases import OPENAI_VOICES
from tutti.server.encoding import FAST_FORMATS
from tutti.speech import SAMPLE_RATE, Samples

pytestmark = pytest.mark.server

LOSSLESS = ("wav", "pcm", "flac")
# Samples at 24 kHz that a decoder may return besides the speech: encoder delay, and the padding of the last frame.
EXTRA = {"mp3": 1105 + 1.1 * 576, "aac": 1024 + 1.1 * 1024, "opus": 0, "mulaw": 1.5, "alaw": 1.5}


def decode_answer(format: str, response: httpx2.Response) -> tuple[Samples, int]:
    assert response.status_code == 200, response.text
    return decode(format, response.content)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"model": "kokoro", "voice": "af_heart", "response_format": "mp3", "speed": 1.0},
        {"model": "tts-1", "voice": {"id": "af_heart"}, "response_format": "wav"},
        {"model": "gpt-4o-mini-tts-2025-12-15", "voice": "coral", "instructions": None},
        {"model": "tts-1-hd-1106", "voice": None, "speed": None, "stream_format": None, "response_format": None},
        {"lang_code": "a", "backend": "cuda", "use_gpu": True, "optimize_for_latency": True, "no_such_key": [1]},
        {"normalization_options": {"normalize": True}, "volume_multiplier": 1.0, "return_download_link": False},
        {"stream": False, "seed": 7, "style": "am_puck", "language": "en-gb"},
    ],
)
def test_every_body_that_clients_send_is_spoken(server: RunningServer, body: dict[str, Any]) -> None:
    response = server.speak(**body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == FORMATS[body.get("response_format") or "mp3"].media_type
    assert len(response.content) > 100


@pytest.mark.parametrize("stream", [None, True, False])
@pytest.mark.parametrize("text", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_every_sample(server: RunningServer, format: str, text: str, stream: bool | None) -> None:
    response = server.speak(input=text, response_format=format, stream=stream)
    expected = expected_samples(server, text, delivery="whole" if stream is False else "live")
    decoded, rate = decode_answer(format, response)
    assert response.headers["content-type"] == FORMATS[format].content_type(FORMATS[format].default_rate)
    if format in LOSSLESS:
        assert np.array_equal(np.rint(decoded * 32768), np.rint(expected * 32767))
    else:
        assert -1.5 <= len(decoded) * SAMPLE_RATE / rate - len(expected) <= EXTRA[format]
        # The end is not silent: the tail of the last word, before the pad of one token.
        tail = decoded[-round(0.2 * rate) : -round(0.08 * rate)]
        assert np.abs(tail).max() > 0.2
    is_known = stream is False or text is SHORT
    has_length = stream is False or (text is SHORT and format in FAST_FORMATS)  # others are sent while they are encoded
    assert ("content-length" in response.headers) == has_length
    assert ("transfer-encoding" in response.headers) == (not has_length)
    if is_known:
        assert float(response.headers["x-audio-duration"]) == pytest.approx(len(expected) / SAMPLE_RATE, abs=1e-3)


@pytest.mark.parametrize(("text", "stream"), [(SHORT, None), (LONG, False), (LONG, None)])
def test_a_wav_header_has_the_size_if_known(server: RunningServer, text: str, stream: bool | None) -> None:
    data = server.speak(input=text, response_format="wav", stream=stream).content
    n_bytes = int.from_bytes(data[40:44], "little")
    assert n_bytes == (0xFFFFFFFF if text is LONG and stream is None else len(data) - 44)
    assert data.count(b"RIFF") == 1


def test_a_streamed_mp3_is_bare_frames(server: RunningServer) -> None:
    data = server.speak(input=LONG, response_format="mp3").content
    assert data[0] == 0xFF
    assert data[1] & 0xE0 == 0xE0
    assert b"Xing" not in data
    assert b"ID3" not in data


@pytest.mark.parametrize(("text", "stream"), [(SHORT, None), (LONG, False), (LONG, None)])
def test_a_flac_header_has_its_length_if_known(server: RunningServer, text: str, stream: bool | None) -> None:
    data = server.speak(input=text, response_format="flac", stream=stream).content
    n_samples = int.from_bytes(data[18:26], "big") & (1 << 36) - 1
    expected = expected_samples(server, text, delivery="whole" if stream is False else "live")
    assert n_samples == (0 if text is LONG and stream is None else len(expected))


def test_marks_and_ssml_are_spoken(server: RunningServer) -> None:
    marked = server.speak(input="deep [pause:1.5s] [water](/wˈɔtɚ/)", response_format="pcm").content
    document = '<speak>deep <break time="1500ms"/> <phoneme ph="wˈɔtɚ">water</phoneme></speak>'
    assert server.speak(input=document, response_format="pcm").content == marked
    assert b"\0" * 3 * 24_000 in marked
    assert_error(server.speak(input="<speak>deep"), 400, "invalid_input", "input")
    assert_error(server.speak(input="deep [rate:99] water"), 400, "invalid_input", "input")


def test_blends_and_lang_code_reach_the_engine(server: RunningServer) -> None:
    server.engine.requests.clear()
    for blend in ("af_bella-af_sky", "af_bella(2)+af_sky(1)", "coral+am_adam"):
        assert server.speak(voice=blend, lang_code="b").status_code == 200
    requests = [(request["voice"], request["language"]) for request in server.engine.requests]
    assert requests == [("af_bella-af_sky", "b"), ("af_bella(2)+af_sky(1)", "b"), ("af_bella+am_adam", "b")]


def test_a_sample_rate_is_applied(server: RunningServer) -> None:
    response = server.speak(response_format="pcm", sample_rate=16_000)
    assert response.headers["content-type"] == "audio/pcm;rate=16000;channels=1"
    assert len(response.content) == 2 * len(expected_samples(server, SHORT)) * 16_000 // SAMPLE_RATE


def test_speed_style_language_and_volume_are_applied(server: RunningServer) -> None:
    slow, fast = (len(server.speak(response_format="pcm", speed=speed).content) for speed in (0.5, 2))
    assert slow == 4 * fast
    soft, loud = (
        np.abs(np.frombuffer(server.speak(response_format="pcm", volume_multiplier=by).content, "<i2")).max()
        for by in (0.5, 1.5)
    )
    assert loud == pytest.approx(3 * soft, rel=0.01)
    server.engine.requests.clear()
    server.speak(style="nova", language="en-gb", seed=3, voice="af_bella(2) + alloy")
    (request,) = server.engine.requests
    assert (request["voice"], request["style"], request["seed"]) == ("af_bella(2)+af_alloy", "af_nova", 3)
    assert request["language"] == "en-gb"


@pytest.mark.parametrize(("name", "voice"), OPENAI_VOICES.items())
def test_the_thirteen_voices_of_openai_work(server: RunningServer, name: str, voice: str) -> None:
    assert len(OPENAI_VOICES) == 13
    response = server.speak(voice=name)
    assert response.status_code == 200
    assert response.headers["x-voice-used"] == voice
    men = {"echo", "fable", "onyx", "ash", "ballad", "cedar", "verse"}
    assert (voice[1] == "m") == (name in men)


def test_a_configured_alias_is_a_voice(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, voice_names="Duo=af_sky(3)+am_echo, alloy=bf_emma") as server:
        assert server.speak(voice="duo").headers["x-voice-used"] == "af_sky(3)+am_echo"
        assert server.speak(voice="alloy").headers["x-voice-used"] == "bf_emma"


def test_the_default_voice_may_be_an_alias_and_must_exist(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, voice="alloy") as server:
        assert server.speak().headers["x-voice-used"] == "af_alloy"
        assert server.get("/v1/audio/voices").json()["default_voice"] == "af_alloy"
    with pytest.raises(UnknownVoice, match="af_hart"), serving(fake_engine, voice="af_hart"):
        pass


def test_a_model_name_selects_its_checkpoint_and_an_alias_the_first(server: RunningServer) -> None:
    server.engine.requests.clear()
    for name in ("kokoro-int8", "tts-1", "kokoro", None):
        server.speak(model=name)
    assert [request["model"] for request in server.engine.requests] == ["kokoro-int8", "kokoro", "kokoro", None]


def test_the_accept_header_does_not_select_the_format(server: RunningServer) -> None:
    response = server.post("/v1/audio/speech", {"input": SHORT}, headers={"accept": "text/event-stream"})
    assert response.headers["content-type"] == "audio/mpeg"


def test_the_headers_describe_the_audio(server: RunningServer) -> None:
    response = server.post(
        "/v1/audio/speech", {"input": LONG, "instructions": "x"}, headers={"x-request-id": "abc-1.2"}
    )
    headers = response.headers
    assert headers["x-request-id"] == headers["x-stream-id"] == "abc-1.2"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    *steps, encode = headers["server-timing"].split(", ")
    assert steps == ["g2p;dur=1.0", "queue;dur=2.0", "acoustic;dur=3.0", "vocoder;dur=4.0"]
    assert float(encode.removeprefix("encode;dur=")) > 0
    assert headers["x-batching-enabled"] == "true"
    assert headers["x-batch-size"] == "3"
    assert headers["x-streaming-mode"]
    assert int(headers["x-bypass-chunks"]) >= 0
    assert headers["x-ignored"] == "instructions"


def test_prosody_and_pronunciations_reach_the_engine(server: RunningServer) -> None:
    options = {"pitch": 2, "pitch_range": 0, "energy": -1.5, "emotion": "calm", "lexicon": {"deep": "/dip/"}}
    assert "x-ignored" not in server.speak(**options).headers
    assert server.post("/tts", {"text": SHORT, **options}).status_code == 200
    assert server.speak(**dict.fromkeys(options)).status_code == 200
    *requests, without = server.engine.requests[-3:]
    assert all(request.items() >= options.items() for request in requests)
    neutral = {"pitch": 0, "pitch_range": 1, "energy": 0, "emotion": None, "lexicon": {}}
    assert without.items() >= neutral.items()
    assert_error(server.speak(pitch="high"), 400, "invalid_input", "pitch")
    assert_error(server.speak(lexicon={"a": 1}), 400, "invalid_input", "lexicon")


@pytest.mark.parametrize("unsafe", ["x" * 65, "a b", "a\tb", "ü", "a;b"])
def test_an_unsafe_request_id_is_replaced(server: RunningServer, unsafe: str) -> None:
    request_id = server.get("/healthz", headers={"x-request-id": unsafe.encode()}).headers["x-request-id"]
    assert len(request_id) == 32
    assert request_id.isalnum()


def events(response: httpx2.Response) -> list[dict[str, Any]]:
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = response.text.strip().split("\n\n")
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    assert all(len(block) < 64 << 10 for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


@pytest.mark.parametrize("format", ["pcm", "mp3", "flac"])
def test_events_carry_the_same_audio_and_end_with_done(server: RunningServer, format: str) -> None:
    received = events(server.speak(input=LONG, response_format=format, stream_format="sse"))
    raw = server.speak(input=LONG, response_format=format).content
    assert b"".join(b64decode(event["audio"]) for event in received[:-1]) == raw
    assert {event["type"] for event in received[:-1]} == {"speech.audio.delta"}
    assert received[-1]["type"] == "speech.audio.done"
    usage = received[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


def test_events_have_the_times_of_words(server: RunningServer) -> None:
    received = events(server.speak(input=LONG, response_format="pcm", stream_format="sse", word_timestamps=True))
    words = [word for event in received if event["type"] == "speech.audio.words" for word in event["words"]]
    assert [word["word"] for word in words] == LONG.split()
    n_samples = sum(len(b64decode(event["audio"])) // 2 for event in received if event["type"] == "speech.audio.delta")
    clock = 0.0
    for word in words:
        assert clock <= word["start"] < word["end"] <= n_samples / SAMPLE_RATE
        clock = word["end"]


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"input": ""}, 400, "nothing_to_speak", "input"),
        ({"input": "😀"}, 400, "nothing_to_speak", "input"),
        ({"input": None}, 400, "invalid_input", "input"),
        ({"input": 5}, 400, "invalid_input", "input"),
        ({"voice": "af_hart"}, 400, "voice_not_found", "voice"),
        ({"voice": {"name": "x"}}, 400, "invalid_input", "voice"),
        ({"voice": "af_heart\r\nX-Evil: 1"}, 400, "voice_not_found", "voice"),
        ({"response_format": "ogg4"}, 400, "unknown_format", "response_format"),
        ({"speed": 9}, 400, "invalid_input", "speed"),
        ({"speed": "fast"}, 400, "invalid_input", "speed"),
        ({"sample_rate": 12345}, 400, "invalid_input", "sample_rate"),
        ({"model": "whisper-1"}, 404, "model_not_found", "model"),
        ({"language": "klingon"}, 400, "unknown_language", "language"),
        ({"stream_format": "xml"}, 400, "invalid_input", "stream_format"),
        ({"input": "[pause:99s] deep"}, 400, "invalid_input", "input"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"stream": False}, {"stream_format": "sse"}], ids=["raw", "whole", "sse"])
def test_an_invalid_field_is_named(
    server: RunningServer, body: dict[str, Any], status: int, code: str, param: str, more: dict[str, Any]
) -> None:
    assert_error(server.speak(**{**more, **body}), status, code, param)


def test_a_similar_voice_is_suggested(server: RunningServer) -> None:
    assert "did you mean af_heart" in server.speak(voice="af_hart").json()["error"]["message"]


def test_64_concurrent_requests_get_their_own_audio(server: RunningServer) -> None:
    words = ["deep", "water", "runs", "still", "under", "old", "stone", "bridge"]
    texts = [" ".join(words[(i + j * (1 + i % 7)) % 8] for j in range(3 + i % 11)) for i in range(64)]

    async def send_all() -> list[bytes]:
        async with httpx2.AsyncClient(base_url=server.url, timeout=120) as client:

            async def send(i: int) -> bytes:
                body = {"input": texts[i], "response_format": "pcm", "stream": i % 2 == 0, "speed": 1 + i % 3 / 2}
                response = await client.post("/v1/audio/speech", json=body)
                assert response.status_code == 200
                return response.content

            return await asyncio.gather(*(send(i) for i in range(64)))

    for i, answer in enumerate(asyncio.run(send_all())):
        samples = np.rint(expected_samples(server, texts[i], speed=1 + i % 3 / 2) * 32767).astype("<i2")
        assert answer == samples.tobytes()
