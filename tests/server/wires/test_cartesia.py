"""Cartesia's wire: the audio and times of our own, in its messages."""

import asyncio
import base64
import json
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.fakes import RecordingModel
from tests.server.harness import RunningServer, assert_error
from tests.wires import Message, WireClient, own_speech, run_wire, wire

pytestmark = pytest.mark.server

PATH = "/tts/websocket?cartesia_version=2025-04-16"
PHRASES = ("The old bridge stands still.", "It runs deep.")
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}
FIELDS: Message = {"model_id": "sonic-3", "language": "en", "output_format": RAW}
FIELDS |= {"voice": {"mode": "id", "id": "af_heart"}, "add_timestamps": True}


async def say(client: WireClient, context: str, *phrases: str, **options: Any) -> None:
    """Send phrases as LiveKit does, and the end of the context."""
    fields = {**FIELDS, "context_id": context, "max_buffer_delay_ms": 0, **options}
    for text in phrases:
        await client.send(**fields, transcript=text, **{"continue": True})
    await client.send(**fields, transcript=" ", **{"continue": False})


def audio_of(client: WireClient, context: str) -> bytes:
    return b"".join(
        base64.b64decode(event["data"])
        for event in client.events
        if event["type"] == "chunk" and event["context_id"] == context
    )


def words_of(client: WireClient, context: str) -> list[tuple[str, float, float]]:
    lists = [e["word_timestamps"] for e in client.events if e["type"] == "timestamps" and e["context_id"] == context]
    return [row for each in lists for row in zip(each["words"], each["start"], each["end"], strict=True)]


def is_done(event: Message) -> bool:
    return event["type"] in ("done", "error")


def test_audio_and_times_are_those_of_our_own_wire(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await say(client, "c", *PHRASES)
        assert await client.until(is_done) == {"context_id": "c", "type": "done", "done": True, "status_code": 200}
        audio, words = await own_speech(server.socket_url, [f"{text} " for text in PHRASES])
        assert audio_of(client, "c") == audio
        assert words_of(client, "c") == [(word["word"], word["start"], word["end"]) for word in words]
        assert [word for word, _, _ in words_of(client, "c")] == " ".join(PHRASES).split()
        assert all(event["context_id"] == "c" and event["status_code"] in (200, 206) for event in client.events)

    run_wire(server, PATH, test)


def test_contexts_are_parallel_and_their_names_can_be_used_again(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        for context, text in (("a", PHRASES[0]), ("b", PHRASES[1])):
            await say(client, context, text)
        await say(client, "a", PHRASES[1])
        for _ in range(3):
            await client.until(is_done)
        first, second = [(await own_speech(server.socket_url, [f"{text} "]))[0] for text in PHRASES]
        assert audio_of(client, "a") == first + second
        assert audio_of(client, "b") == second

    run_wire(server, PATH, test)


def test_a_cancelled_context_sends_nothing_more_and_others_go_on(server: RunningServer, model: RecordingModel) -> None:
    async def test(client: WireClient) -> None:
        with model.gate.closed():
            await say(client, "a", PHRASES[0] * 9)
            await client.send(context_id="a", cancel=True)
            await client.send(context_id="nobody", cancel=True)
            await client.send(context_id="bad", transcript=5)  # its error comes when all before it was handled
            await client.until(lambda event: event["context_id"] == "bad")
        await say(client, "b", PHRASES[1])
        await client.until(lambda event: event["context_id"] == "b" and is_done(event))
        await say(client, "a", PHRASES[1])
        await client.until(is_done)
        assert audio_of(client, "a") == audio_of(client, "b")

    run_wire(server, PATH, test)


def test_a_flush_is_reported_after_its_audio_and_time_goes_on(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        for text in PHRASES:
            await client.send(**FIELDS, context_id="c", transcript=text, flush=True, **{"continue": True})
        await client.send(**FIELDS, context_id="c", transcript="", flush=True, **{"continue": True})
        await client.send(context_id="c", transcript="", **{"continue": False})
        await client.until(is_done)
        kinds = [event["type"] for event in client.events if event["type"] != "timestamps"]
        assert [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before] == [
            *("chunk", "flush_done", "chunk", "flush_done", "done")
        ]
        assert [event["flush_id"] for event in client.events if event["type"] == "flush_done"] == [1, 2, 3]
        first, _ = await own_speech(server.socket_url, PHRASES[:1])
        (word, start, _) = words_of(client, "c")[5]
        assert word == "It"
        assert start >= len(first) / 48_000

    run_wire(server, PATH, test)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"transcript": 5}, "invalid_input"),
        ({"voice": {"mode": "id", "id": "af_hart"}}, "voice_not_found"),
        ({"voice": 5}, "invalid_input"),
        ({"output_format": {"container": "raw", "encoding": "pcm_s24"}}, "unknown_format"),
        ({"output_format": {**RAW, "sample_rate": 5}}, "invalid_input"),
        ({"output_format": 5}, "invalid_input"),
        ({"generation_config": {"speed": 90}}, "invalid_input"),
        ({"language": "tlh"}, "unknown_language"),
        ({"transcript": "x" * 1_000_001}, "too_large"),
    ],
)
def test_an_error_ends_its_context_alone(server: RunningServer, change: Message, code: str) -> None:
    async def test(client: WireClient) -> None:
        await client.send(**FIELDS, context_id="other", transcript=PHRASES[0], **{"continue": True})
        await client.send(**{**FIELDS, "context_id": "bad", "transcript": "deep", **change})
        error = await client.until(lambda event: event["context_id"] == "bad")
        assert (error["type"], error["done"], error["error_code"]) == ("error", True, code)
        assert error["message"]
        await client.send(context_id="other", transcript="", **{"continue": False})
        assert (await client.until(is_done))["context_id"] == "other"
        assert audio_of(client, "other")

    run_wire(server, PATH, test)


def test_a_thousand_contexts_are_errors_of_those_that_are_too_many(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        for n in range(1000):
            await client.send(**FIELDS, context_id=str(n), transcript="", **{"continue": True})
        await client.until(lambda event: event["context_id"] == "999")
        assert {event["error_code"] for event in client.events} == {"queue_full"}
        assert len(client.events) == 1000 - 16
        await client.send(context_id="3", transcript=PHRASES[0], **{"continue": False})
        await client.until(is_done)
        assert audio_of(client, "3")

    run_wire(server, PATH, test)


def test_phoneme_times(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await say(client, "c", PHRASES[0], add_phoneme_timestamps=True)
        await client.until(is_done)
        lists = [event["phoneme_timestamps"] for event in client.events if event["type"] == "phoneme_timestamps"]
        starts = [start for each in lists for start in each["start"]]
        assert len(starts) > 10
        assert starts == sorted(starts)

    run_wire(server, PATH, test)


def raw(server: RunningServer, **options: Any) -> httpx2.Response:
    return server.post("/tts/bytes", {**FIELDS, "transcript": PHRASES[0], **options})


def test_bytes_are_raw_audio_of_any_encoding_and_rate(server: RunningServer) -> None:
    samples = np.frombuffer(raw(server).content, "<i2")
    assert len(samples) > 24_000
    floats = np.frombuffer(raw(server, output_format={**RAW, "encoding": "pcm_f32le"}).content, "<f4")
    assert np.array_equal(np.round(floats * 32767).astype("<i2"), samples)
    upsampled = raw(server, output_format={**RAW, "encoding": "pcm_f32le", "sample_rate": 44100}).content
    assert len(upsampled) == pytest.approx(4 * len(samples) * 44_100 / 24_000, rel=0.01)
    mulaw = raw(server, output_format={**RAW, "encoding": "pcm_mulaw", "sample_rate": 8000})
    assert len(mulaw.content) == pytest.approx(len(samples) / 3, rel=0.01)
    wav = raw(server, output_format={"container": "wav", "encoding": "pcm_s16le", "sample_rate": 24000})
    assert wav.content[:4] == b"RIFF"
    floating = raw(server, output_format={"container": "wav", "encoding": "pcm_f32le", "sample_rate": 24000}).content
    assert floating[:4] + floating[8:16] == b"RIFFWAVEfmt "
    assert floating[44:] == floats.tobytes()
    mp3 = raw(server, output_format={"container": "mp3", "sample_rate": 44100, "bit_rate": 128000})
    assert mp3.headers["content-type"] == "audio/mpeg"


def test_events_have_the_messages_of_a_socket(server: RunningServer) -> None:
    body = {**FIELDS, "transcript": PHRASES[0]}
    lines = server.post("/tts/sse", body).text.split("\n\n")
    events = [json.loads(line.partition("data: ")[2]) for line in lines if line]
    assert {line.partition("\n")[0] for line in lines if line} == {"event: chunk", "event: timestamps", "event: done"}
    assert b"".join(base64.b64decode(event.get("data", "")) for event in events) == raw(server).content
    words = [word for event in events for word in event.get("word_timestamps", {}).get("words", [])]
    assert words == PHRASES[0].split()


@pytest.mark.parametrize(
    ("options", "code", "param"),
    [
        ({"transcript": " "}, "nothing_to_speak", "transcript"),
        ({"voice": "af_hart"}, "voice_not_found", "voice"),
        ({"output_format": {"container": "ogv"}}, "unknown_format", "output_format"),
        ({"output_format": {"container": "wav", "encoding": "pcm_mulaw"}}, "unknown_format", "output_format"),
    ],
)
@pytest.mark.parametrize("path", ["/tts/bytes", "/tts/sse"])
def test_errors_name_the_field(server: RunningServer, path: str, options: Message, code: str, param: str) -> None:
    assert_error(server.post(path, {**FIELDS, "transcript": PHRASES[0], **options}), 400, code, param)


def test_every_voice_is_listed(server: RunningServer) -> None:
    voices = server.get("/voices").json()["data"]
    assert len(voices) == 54
    assert server.get(f"/voices?starting_after={voices[9]['id']}&limit=5").json() == {
        **{"data": voices[10:15], "has_more": True, "next_page": None}
    }
    assert server.get(f"/voices?starting_after={voices[-1]['id']}").json()["data"] == []
    assert server.get(f"/voices/{voices[0]['id']}").json() == voices[0]
    assert_error(server.get("/voices/nobody"), 400, "voice_not_found", "id")


def test_ids_of_cartesia_stand_for_the_default_voice(server: RunningServer) -> None:
    default = raw(server).content
    assert raw(server, voice={"mode": "id", "id": "a0e99841-438c-4a64-b679-ae501e7d6091"}).content == default
    assert raw(server, voice={"mode": "embedding", "embedding": [0.1]}).content == default


def test_a_socket_that_closes_in_any_state_leaves_nothing(server: RunningServer, model: RecordingModel) -> None:
    async def session(n_messages: int) -> None:
        async def test(client: WireClient) -> None:
            messages: list[Message] = [
                {**FIELDS, "context_id": "a", "transcript": PHRASES[0], "continue": True},
                {**FIELDS, "context_id": "a", "transcript": PHRASES[1] * 9, "continue": True, "flush": True},
                {"context_id": "a", "transcript": "", "continue": False},
                {**FIELDS, "context_id": "b", "transcript": PHRASES[1] * 9, "continue": False},
                {"context_id": "b", "cancel": True},
            ]
            for message in messages[:n_messages]:
                await client.send(**message)

        async with wire(server.socket_url, PATH) as client:
            await test(client)

    for n_messages in range(6):
        asyncio.run(session(n_messages))
    while server.app.state.service.lifecycle.n_active:
        assert server.get("/healthz").status_code == 200
