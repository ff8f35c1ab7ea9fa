"""ElevenLabs' WebSockets: the audio of our own wire, with characters whose times are those of our words."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from elevenlabs import DialogueInput
from elevenlabs.client import ElevenLabs
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.fakes import RecordingModel, make_fake_engine
from tests.server.harness import RunningServer, assert_error, serving
from tests.wires import Message, WireClient, own_speech, run_wire, wire
from tutti.audio import find_format
from tutti.server.request import SpeechRequest
from tutti.server.wires.elevenlabs_socket import CharText, alignment_of
from tutti.server.wires.token_times import CharTime, Token
from tutti.speech import SpeechParams

pytestmark = pytest.mark.server

MULTI = "/v1/text-to-speech/af_heart/multi-stream-input?model_id=eleven_turbo_v2_5&output_format=pcm_24000"
AUTO = f"{MULTI}&auto_mode=true"
SINGLE = "/v1/text-to-speech/af_heart/stream-input?output_format=pcm_24000"
DIALOGUE = "/v1/text-to-dialogue/multi-stream-input?model_id=eleven_v3&output_format=pcm_24000"
PHRASES = ("The old bridge stands still.", "It runs deep.")


def is_final(event: Message) -> bool:
    return bool(event.get("isFinal") or event.get("is_final") or "error" in event)


def of_context(client: WireClient, context: str | None) -> list[Message]:
    return [event for event in client.events if event.get("contextId") == context]


def audio_of(client: WireClient, context: str | None) -> bytes:
    return b"".join(base64.b64decode(event.get("audio") or "") for event in of_context(client, context))


def words_of(client: WireClient, context: str | None) -> list[tuple[str, float]]:
    """Return words and the seconds at which they begin, by a clock that goes on by the length of each alignment."""
    words, word, start_ms, clock_ms = list[tuple[str, float]](), "", 0.0, 0.0
    for event in of_context(client, context):
        alignment = event.get("alignment")
        if not alignment:
            continue
        assert alignment == event["normalizedAlignment"]
        starts, durations = alignment["charStartTimesMs"], alignment["charDurationsMs"]
        for char, at_ms in zip(alignment["chars"], starts, strict=True):
            if char == " ":
                words += [(word, start_ms / 1000)] if word else []
                word = ""
            else:
                start_ms = start_ms if word else clock_ms + at_ms
                word += char
        clock_ms += starts[-1] + durations[-1]
    assert word == ""
    return words


async def open_context(client: WireClient, context: str, **settings: Any) -> None:
    await client.send(text=" ", voice_settings=settings, context_id=context)


async def say(client: WireClient, context: str, *phrases: str) -> None:
    """Send phrases and the end of a context as Pipecat does."""
    await open_context(client, context)
    for text in phrases:
        await client.send(text=text, context_id=context)
    await client.send(context_id=context, flush=True)
    await client.send(context_id=context, close_context=True)


@pytest.mark.parametrize("path", [AUTO, MULTI])
def test_audio_and_times_are_those_of_our_own_wire(server: RunningServer, path: str) -> None:
    async def test(client: WireClient) -> None:
        await say(client, "c", *(f"{text} " for text in PHRASES))
        assert (await client.until(is_final))["contextId"] == "c"
        pieces = [f"{text} " for text in PHRASES] if path == AUTO else ["".join(f"{text} " for text in PHRASES)]
        audio, words = await own_speech(server.socket_url, pieces)
        assert len(audio_of(client, "c")) == len(audio)
        assert path == MULTI or audio_of(client, "c") == audio
        times = words_of(client, "c")
        assert [word for word, _ in times] == " ".join(PHRASES).split()
        assert [start for _, start in times] == pytest.approx([word["start"] for word in words], abs=0.02)

    run_wire(server, path, test)


def test_every_alignment_spans_its_audio(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await say(client, "c", *PHRASES)
        await client.until(is_final)
        for event in client.events:
            if event.get("audio"):
                ms = event["alignment"]["charStartTimesMs"][-1] + event["alignment"]["charDurationsMs"][-1]
                assert ms == pytest.approx(len(base64.b64decode(event["audio"])) / 48, abs=1)

    run_wire(server, AUTO, test)


def test_phrases_without_a_space_between_them_are_not_joined(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await say(client, "c", *PHRASES)
        await client.until(is_final)
        audio, _ = await own_speech(server.socket_url, [f"{text} " for text in PHRASES])
        assert audio_of(client, "c") == audio

    run_wire(server, AUTO, test)


def held_then(server: RunningServer, model: RecordingModel, *messages: Message) -> WireClient:
    """Return what comes after messages that were handled before any audio was made."""
    clients = []

    async def test(client: WireClient) -> None:
        with model.gate.closed():
            await open_context(client, "c")
            for message in messages:
                await client.send(context_id="c", **message)
            await client.send(context_id="bad", text=5)
            await client.until(lambda event: "error" in event)
        if not any(event.get("isFinal") for event in client.events):
            await client.until(lambda event: event.get("isFinal"))
        clients.append(client)

    run_wire(server, AUTO, test)
    return clients[0]


def test_a_close_drops_what_was_not_flushed(server: RunningServer, model: RecordingModel) -> None:
    first, _ = asyncio.run(own_speech(server.socket_url, [f"{PHRASES[0]} "]))
    text, more, close = {"text": PHRASES[0]}, {"text": PHRASES[1]}, {"close_context": True}
    assert audio_of(held_then(server, model, text, close), "c") == b""
    assert audio_of(held_then(server, model, text, {"flush": True}, close), "c") == first
    assert audio_of(held_then(server, model, {**text, "flush": True}, close), "c") == first
    assert audio_of(held_then(server, model, text, {"text": "", "flush": True}, more, close), "c") == first
    assert audio_of(held_then(server, model, {"flush": True}, close), "c") == b""
    assert audio_of(held_then(server, model, close), "c") == b""


def test_contexts_are_parallel_and_a_keep_alive_speaks_nothing(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await client.send(text="")
        await client.send(text="", context_id="a")
        for context, text in (("a", PHRASES[0]), ("b", PHRASES[1])):
            await open_context(client, context)
            await client.send(text=text, context_id=context, flush=True)
        for context in "ab":
            await client.send(text="", context_id=context)
            await client.send(context_id=context, close_context=True)
            await client.send(context_id=context, close_context=True)
        for _ in "ab":
            await client.until(is_final)
        for context, text in (("a", PHRASES[0]), ("b", PHRASES[1])):
            assert audio_of(client, context) == (await own_speech(server.socket_url, [f"{text} "]))[0]
            assert sum(map(is_final, of_context(client, context))) == 1

    run_wire(server, AUTO, test)


def test_settings_apply_from_the_next_text_on(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await open_context(client, "c")
        await client.send(text=PHRASES[0], context_id="c", flush=True)
        await client.send(text=" ", voice_settings={"speed": 2}, context_id="c")
        await client.send(text=PHRASES[0], context_id="c", flush=True)
        await client.send(context_id="c", close_context=True)
        await client.until(is_final)
        usual, _ = await own_speech(server.socket_url, [f"{PHRASES[0]} "])
        fast, _ = await own_speech(server.socket_url, [f"{PHRASES[0]} "], speed=2)
        assert audio_of(client, "c") == usual + fast

    run_wire(server, AUTO, test)


@pytest.mark.parametrize("n_phrases", [0, 2])
def test_a_socket_closes_when_its_contexts_have_ended(server: RunningServer, n_phrases: int) -> None:
    async def test(client: WireClient) -> None:
        await open_context(client, "c")
        for text in PHRASES[:n_phrases]:
            await client.send(text=text, context_id="c", flush=True)
        await client.send(close_socket=True)
        with pytest.raises(ConnectionClosed) as closed:
            await client.until(lambda _: False)
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 1000
        assert bool(audio_of(client, "c")) == bool(n_phrases)
        assert client.events[-1]["isFinal"]

    run_wire(server, AUTO, test)


@pytest.mark.parametrize("chunks", [("The old br", "idge stands still. It ", "runs deep. "), ()])
def test_stream_input_ends_with_an_empty_text(server: RunningServer, chunks: tuple[str, ...]) -> None:
    async def test(client: WireClient) -> None:
        await client.send(text=" ", voice_settings={"stability": 0.5}, xi_api_key="any")
        for text in chunks:
            await client.send(text=text, try_trigger_generation=True)
        await client.send(text="")
        with pytest.raises(ConnectionClosed) as closed:
            await client.until(lambda _: False)
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 1000
        audio = (await own_speech(server.socket_url, ["".join(chunks)]))[0] if chunks else b""
        assert len(audio_of(client, None)) == len(audio)
        assert client.events[-1] == {"audio": None, "isFinal": True}
        assert [word for word, _ in words_of(client, None)] == "".join(chunks).split()

    run_wire(server, SINGLE, test)


def test_a_dialogue_has_the_voice_of_each_input(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await client.send(context_id="c", voices=["af_heart"])
        await client.send(context_id="keepalive", voices=["af_heart"])
        await client.send(context_id="c", keep_alive=True)
        inputs = [{"text": PHRASES[0], "voice_id": "af_heart"}, {"text": PHRASES[1], "voice_id": "am_adam"}]
        await client.send(context_id="c", inputs=[*inputs, inputs[0]])
        await client.send(context_id="c", close_context=True)
        assert (await client.until(is_final))["context_id"] == "c"
        first, second = [
            (await own_speech(server.socket_url, [f"{each['text']} "], voice=each["voice_id"]))[0] for each in inputs
        ]
        events = [event for event in client.events if event["context_id"] == "c"]
        assert b"".join(base64.b64decode(event.get("audio") or "") for event in events) == first + second + first
        chars = "".join("".join(event["alignment"]["chars"]) for event in events if event.get("alignment"))
        assert chars.split() == f"{PHRASES[0]} {PHRASES[1]} {PHRASES[0]}".split()

    run_wire(server, DIALOGUE, test)


@pytest.mark.parametrize(
    "message",
    [
        {"text": 5},
        {"text": "x" * 1_000_001},
        {"text": "a", "voice_settings": 5},
        {"text": "a", "voice_settings": {"speed": 90}},
        {"text": "a", "voice_settings": {"speed": "fast"}},
    ],
)
def test_an_error_ends_its_context_alone(server: RunningServer, message: Message) -> None:
    async def test(client: WireClient) -> None:
        await open_context(client, "other")
        await open_context(client, "bad")
        await client.send(text=PHRASES[0], context_id="other")
        await client.send(context_id="bad", **message)
        error = await client.until(lambda event: event.get("contextId") == "bad")
        assert error["error"]
        assert error["code"] == 1008
        await client.send(context_id="other", flush=True)
        await client.send(context_id="other", close_context=True)
        assert (await client.until(is_final))["contextId"] == "other"
        assert audio_of(client, "other")

    run_wire(server, AUTO, test)


@pytest.mark.parametrize(
    "inputs", [5, [5], [{"text": 5}], [{"text": "a", "voice_id": 5}], [{"text": "a", "voice_id": "x"}]]
)
def test_wrong_inputs_of_a_dialogue_are_errors(server: RunningServer, inputs: Any) -> None:
    async def test(client: WireClient) -> None:
        await client.send(context_id="c", inputs=inputs)
        assert (await client.until(is_final))["error"]

    run_wire(server, DIALOGUE, test)


def test_names_that_are_not_text_and_messages_that_are_no_objects(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        for sent in ('{"text": "a", "context_id": 5}', '{"text": "a", "context_id": "' + "x" * 999 + '"}', "[]", "{"):
            await client.socket.send(sent)
            error = await client.receive()
            assert error["error"] == "invalid_input"
            assert "contextId" not in error

    run_wire(server, AUTO, test)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (AUTO.replace("af_heart", "af_hart"), 400),
        (AUTO.replace("pcm_24000", "ogv_1"), 400),
        (f"{AUTO}&language_code=tlh", 400),
        (AUTO.replace("multi-stream-input", "stream-output"), 404),
    ],
)
def test_a_wrong_path_is_refused_with_the_error_body(server: RunningServer, path: str, status: int) -> None:
    async def test(_: WireClient) -> None: ...

    with pytest.raises(InvalidStatus) as refused:
        run_wire(server, path, test)
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["message"]


def test_a_key_may_come_in_the_first_message(tmp_path: Path) -> None:
    with serving(make_fake_engine(tmp_path), api_keys="right") as server:

        async def test(client: WireClient) -> None:
            await client.send(text=" ", xi_api_key="right")
            await client.send(text=PHRASES[0])
            await client.send(text="")
            await client.until(is_final)

        async def wrong(client: WireClient) -> None:
            await client.send(text=" ", xi_api_key="wrong")
            assert (await client.receive())["error"] == "invalid_api_key"
            with pytest.raises(ConnectionClosed) as closed:
                await client.receive()
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1008

        run_wire(server, SINGLE, test)
        run_wire(server, SINGLE, wrong)
        with pytest.raises(InvalidStatus) as refused:
            run_wire(server, f"{AUTO}&xi-api-key=wrong", test)
        assert refused.value.response.status_code == 401


@given(st.lists(st.tuples(st.text(min_size=1, max_size=1), st.floats(0, 3)), min_size=1, max_size=8), st.floats(0, 3))
def test_an_alignment_goes_from_its_start_to_its_end(chars: list[tuple[str, float]], start_s: float) -> None:
    timed = [CharTime(char, at) for char, at in sorted(chars, key=lambda each: each[1])]
    alignment = alignment_of(timed, start_s, start_s + 1)
    assert alignment["starts"][0] >= 0
    assert all(duration >= 0 for duration in alignment["durations"])
    assert alignment["starts"][-1] + alignment["durations"][-1] == pytest.approx(1000, abs=1)


def char_text(*, holds_start: bool) -> CharText:
    params = SpeechParams("af_heart")
    return CharText(SpeechRequest("", params, find_format("pcm")), holds_start=holds_start)


def test_silence_before_the_first_word_counts_in_its_alignment() -> None:
    text = char_text(holds_start=False)
    assert text.take(b"a", 0.2) == (b"a", None)
    text.know([Token("a", 0.3, 0.4, True)])
    assert text.take(b"b", 1.0) == (b"b", {"chars": ["a", " "], "starts": [300, 400], "durations": [100, 600]})
    held = char_text(holds_start=True)
    assert held.take(b"a", 0.2) == (b"", None)
    held.know([Token("a", 0.3, 0.4, True)])
    assert held.take(b"b", 1.0) == (b"ab", {"chars": ["a", " "], "starts": [300, 400], "durations": [100, 600]})
    assert held.take(b"c", 2.0) == (b"c", {"chars": [" "], "starts": [0], "durations": [1000]})


def test_audio_in_the_middle_of_a_token_waits_for_its_next_character() -> None:
    text = char_text(holds_start=False)
    text._chars = [CharTime("1", 0.1), CharTime("9", 1.2)]
    data, alignment = text.take(b"a", 0.5)
    assert (data, alignment and alignment["chars"]) == (b"a", ["1"])
    assert text.take(b"b", 1.0) == (b"", None)
    data, alignment = text.take(b"c", 1.5)
    assert (data, alignment) == (b"bc", {"chars": ["9"], "starts": [700], "durations": [300]})


def test_mp3_is_one_stream_of_each_context(server: RunningServer) -> None:
    async def test(client: WireClient) -> None:
        await say(client, "c", *PHRASES)
        await client.until(is_final)
        assert audio_of(client, "c")[:2] in (b"\xff\xf3", b"\xff\xfb")
        assert len(words_of(client, "c")) == 8

    run_wire(server, AUTO.replace("pcm_24000", "mp3_22050_32"), test)


def close_in(server: RunningServer, path: str, messages: list[Message], until: Callable[[], bool]) -> None:
    async def run(n_messages: int) -> None:
        async with wire(server.socket_url, path) as client:
            for message in messages[:n_messages]:
                await client.send(**message)

    for n_messages in range(len(messages) + 1):
        asyncio.run(run(n_messages))
    while not until():
        assert server.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", [AUTO, SINGLE, DIALOGUE])
def test_a_socket_that_closes_in_any_state_leaves_nothing(server: RunningServer, path: str) -> None:
    messages: list[Message] = [
        {"text": " ", "voice_settings": {}, "context_id": "c"},
        {"text": PHRASES[0] * 9, "context_id": "c", "inputs": [{"text": PHRASES[0] * 9}]},
        {"context_id": "c", "flush": True},
        {"text": PHRASES[0] * 9, "context_id": "d", "inputs": [{"text": PHRASES[0] * 9}]},
        {"context_id": "c", "close_context": True},
        {"close_socket": True},
    ]
    close_in(server, path, messages, lambda: server.app.state.service.lifecycle.n_active == 0)


def test_samples_of_all_contexts_are_their_own(server: RunningServer) -> None:
    """Each context hears its own voice: the tones of its letters."""

    async def test(client: WireClient) -> None:
        texts = {f"c{n}": f"{letter * 6} {letter * 4}. " for n, letter in enumerate("abdefhik")}
        for context, text in texts.items():
            await say(client, context, text)
        for _ in texts:
            await client.until(is_final)
        for context, text in texts.items():
            samples = np.frombuffer(audio_of(client, context), "<i2")
            own = np.frombuffer((await own_speech(server.socket_url, [text]))[0], "<i2")
            assert np.array_equal(samples, own)

    run_wire(server, AUTO, test)


def test_a_dialogue_over_http_has_the_voice_of_each_input(server: RunningServer) -> None:
    inputs = [{"text": text, "voice_id": voice} for text, voice in zip(PHRASES, ("af_heart", "am_adam"), strict=True)]
    with httpx.Client(timeout=60) as http:
        sdk = ElevenLabs(base_url=server.url, api_key="any", httpx_client=http)
        options: dict[str, Any] = {"inputs": [DialogueInput(**each) for each in inputs], "output_format": "pcm_24000"}
        whole = b"".join(sdk.text_to_dialogue.convert(**options))
        streamed = b"".join(sdk.text_to_dialogue.stream(**options))
    assert len(whole) == len(streamed) > 48_000
    response = server.post("/v1/text-to-dialogue", {"inputs": [{"text": "deep", "voice_id": "nobody"}]})
    assert_error(response, 400, "voice_not_found", "inputs")


def test_a_context_speaks_with_its_dictionaries(tmp_path: Path) -> None:
    async def test(client: WireClient) -> None:
        locators = [{"pronunciation_dictionary_id": "sea"}]
        await client.send(text=" ", voice_settings={}, context_id="c", pronunciation_dictionary_locators=locators)
        await client.send(text=PHRASES[0], context_id="c", flush=True)
        await client.send(context_id="c", close_context=True)
        await client.until(is_final)
        assert engine.requests[-1]["lexicon"] == {"bridge": "most"}
        for wrong in ([{"pronunciation_dictionary_id": "lake"}], "sea"):
            await client.send(text=" ", voice_settings={}, context_id="d", pronunciation_dictionary_locators=wrong)
            error = await client.until(lambda event: "error" in event)
            assert error["param"] == "pronunciation_dictionary_locators"

    engine = make_fake_engine(tmp_path)
    with serving(engine) as server:
        assert server.post("/v1/lexicons/sea", {"bridge": "most"}).status_code == 200
        run_wire(server, MULTI, test)
