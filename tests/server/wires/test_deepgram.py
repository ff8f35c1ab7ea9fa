"""Deepgram's wires: binary audio of one text after the other, and a report after the last audio of each."""

import asyncio
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.fakes import RecordingModel
from tests.server.harness import RunningServer, assert_error
from tests.wires import WireClient, own_speech, run_wire, wire

pytestmark = pytest.mark.server

QUERY = "?encoding=linear16&model=aura-2-andromeda-en&sample_rate=24000&mip_opt_out=False"
V1, V2 = f"/v1/speak{QUERY}", f"/v2/speak{QUERY}"
PHRASES = ("The old bridge stands still. ", "It runs deep. ")


async def speak(client: WireClient, *pieces: str) -> None:
    for piece in pieces:
        await client.send(type="Speak", text=piece)
    await client.send(type="Flush")


async def until(client: WireClient, *types: str) -> dict[str, Any]:
    return await client.until(lambda event: event["type"] in types)


async def until_closed(client: WireClient) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        await client.until(lambda _: False)
    assert closed.value.rcvd
    return closed.value.rcvd.code


def test_each_flush_is_reported_after_its_audio(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        assert (await client.receive())["type"] == "Metadata"
        first, second = [(await own_speech(server.socket_url, [text]))[0] for text in PHRASES]
        await speak(client, "The old br", "idge stands still. ")
        assert (await until(client, "Flushed"))["sequence_id"] == 0
        assert client.audio == first
        await speak(client, PHRASES[1])
        await speak(client)
        assert [(await until(client, "Flushed"))["sequence_id"] for _ in range(2)] == [1, 2]
        assert client.audio == first + second

    run_wire(server, V1, test)


def test_an_empty_flush_and_a_close_end_a_socket(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await client.send(type="Flush")
        await client.send(type="Close")
        assert await until_closed(client) == 1000
        assert [event["type"] for event in client.events] == ["Metadata", "Flushed"]

    run_wire(server, V1, test)


def test_a_close_speaks_what_is_there(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await client.send(type="Speak", text=PHRASES[0])
        await client.send(type="Close")
        assert await until_closed(client) == 1000
        assert client.audio == (await own_speech(server.socket_url, PHRASES[:1]))[0]

    run_wire(server, V1, test)


def test_no_old_audio_follows_a_clear(server: RunningServer, model: RecordingModel) -> None:
    async def test(client: WireClient) -> None:
        await client.send(type="Clear")
        assert (await until(client, "Cleared"))["sequence_id"] == 0
        with model.gate.closed():
            await speak(client, PHRASES[0] * 9)
            await client.send(type="Clear")
            assert (await until(client, "Cleared"))["sequence_id"] == 1
        client.audio = b""
        await speak(client, PHRASES[1])
        await until(client, "Flushed")
        assert client.audio == (await own_speech(server.socket_url, PHRASES[1:]))[0]

    run_wire(server, V1, test)


def test_turns_of_flux_have_ids_and_lengths(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        assert (await client.receive())["type"] == "Connected"
        await speak(client, *PHRASES)
        started = await until(client, "SpeechStarted")
        ended = await until(client, "SpeechMetadata")
        assert ended["audio_duration_ms"] == pytest.approx(len(client.audio) / 48, abs=1)
        assert ended["input_character_count"] == len("".join(PHRASES))
        assert started["speech_id"] == ended["speech_id"] == (await until(client, "Flushed"))["speech_id"]
        await client.send(type="Configure", speed=1.5)
        assert (await until(client, "ConfigureSuccess"))["applied"] == {"speed": 1.5}
        await client.send(type="Configure", speed=99)
        assert (await until(client, "ConfigureFailure"))["field"] == "speed"
        slow = len(client.audio)
        await speak(client, *PHRASES)
        await until(client, "Flushed")
        assert len(client.audio) - slow < slow
        await client.send(type="Close")
        assert await until_closed(client) == 1000
        assert client.events[-1]["type"] == "SessionMetadata"
        assert client.events[-1]["total_input_character_count"] == 2 * len("".join(PHRASES))

    run_wire(server, V2, test)


def test_flux_is_interrupted(server: RunningServer, model: RecordingModel) -> None:
    async def test(client: WireClient) -> None:
        await client.send(type="Interrupt", playback_offset={"type": "time_ms", "value": 10})
        assert (await until(client, "Warning"))["code"] == "NO_ACTIVE_SPEECH"
        with model.gate.closed():
            await speak(client, PHRASES[0] * 9)
            await client.send(type="Interrupt")
            assert (await until(client, "SpeechInterrupted"))["audio_played_ms"] == 0
        assert client.audio == b""

    run_wire(server, V2, test)


@pytest.mark.parametrize("path", [V1, V2])
def test_after_an_invalid_message_the_next_is_handled(server: RunningServer, path: str) -> None:
    async def test(client: WireClient) -> None:
        for sent in ('{"type": "Speak", "text": 5}', '{"type": "Shout"}', "[]", "{", '{"type": {}}'):
            await client.socket.send(sent)
            assert (await until(client, "Error"))["code"] == "invalid_input"
        await client.send(type="Speak", text="x" * 1_000_001)
        assert (await until(client, "Error"))["code"] == "too_large"
        await speak(client, PHRASES[0])
        await until(client, "Flushed")
        assert client.audio

    run_wire(server, path, test)


@pytest.mark.parametrize(
    "query", ["?encoding=mp3", "?encoding=linear16&sample_rate=5", "?sample_rate=x", "?speed=99", "?model=af_hart"]
)
def test_a_wrong_query_is_refused_with_the_error_body(server: RunningServer, query: str) -> None:
    async def test(_: WireClient) -> None: ...

    for path in ("/v1/speak", "/v2/speak"):
        with pytest.raises(InvalidStatus) as refused:
            run_wire(server, path + query, test)
        assert refused.value.response.status_code == 400


@pytest.mark.parametrize("path", [V1, V2])
def test_a_socket_that_closes_in_any_state_leaves_nothing(server: RunningServer, path: str) -> None:
    messages = [("Speak", PHRASES[0] * 9), ("Flush", ""), ("Speak", PHRASES[0] * 9), ("Clear", ""), ("Close", "")]

    async def session(n_messages: int) -> None:
        async with wire(server.socket_url, path) as client:
            for kind, text in messages[:n_messages]:
                await client.send(type=kind, text=text)

    for n_messages in range(6):
        asyncio.run(session(n_messages))
    while server.app.state.service.lifecycle.n_active:
        assert server.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("query", "content_type"),
    [
        ("", "audio/mpeg"),
        ("?encoding=linear16", "audio/wav"),
        ("?encoding=linear16&container=none&sample_rate=16000", "audio/pcm;rate=16000;channels=1"),
        ("?encoding=mulaw&container=none", "audio/PCMU;rate=8000;channels=1"),
        ("?encoding=opus&container=ogg&bit_rate=12000", "audio/ogg"),
        ("?encoding=flac&model=aura-2-celeste-es", "audio/flac"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/speak", "/v2/speak"])
def test_answers_over_http(server: RunningServer, path: str, query: str, content_type: str) -> None:
    response: httpx2.Response = server.post(path + query, {"text": PHRASES[0]})
    assert response.status_code == 200
    assert response.headers["content-type"] == content_type
    assert len(response.content) > 1000


@pytest.mark.parametrize(
    ("query", "text", "code", "param"),
    [
        ("?encoding=ogv", "deep", "unknown_format", "encoding"),
        ("?model=af_hart", "deep", "voice_not_found", "model"),
        ("?speed=fast", "deep", "invalid_input", "speed"),
        ("", " ", "nothing_to_speak", "text"),
        ("", 5, "invalid_input", "text"),
    ],
)
def test_errors_name_the_field(server: RunningServer, query: str, text: object, code: str, param: str) -> None:
    assert_error(server.post(f"/v1/speak{query}", {"text": text}), 400, code, param)
