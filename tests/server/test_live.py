"""WS /v1/audio/speech/stream with the `websockets` library: audio while the text arrives, immediate cancellation."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.fakes import RecordingModel, Running, running, tone_engine
from tests.server.harness import RunningServer, serving
from tutti.audio import FORMATS
from tutti.server.routes.live import LiveSession
from tutti.server.routes.realtime import RealtimeSession
from tutti.speech import Samples
from tutti.voices import Voices

pytestmark = pytest.mark.server

FIRST, SECOND = "The old bridge stands still. ", "It runs deep under the water tonight. "


@pytest.fixture
def model() -> RecordingModel:
    return RecordingModel()


@pytest.fixture
def server(voices: Voices, model: RecordingModel) -> Iterator[RunningServer]:
    with serving(tone_engine(voices, lambda: model)) as server:
        yield server


@pytest.fixture(scope="module")
def engine(voices: Voices) -> Iterator[Running]:
    with running(tone_engine(voices)) as engine:
        yield engine


def pcm(samples: Samples) -> bytes:
    return (np.clip(np.round(samples * 32767), -32768, 32767)).astype("<i2").tobytes()


class Client:
    """A client that collects the audio of each context."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self.audio: dict[str | None, bytearray] = {}
        self._current: str | None = None

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def until(self, *types: str) -> dict[str, Any]:
        while True:
            received = await self.socket.recv()
            if isinstance(received, bytes):
                self.audio.setdefault(self._current, bytearray()).extend(received)
                continue
            event: dict[str, Any] = json.loads(received)
            self.events.append(event)
            if event["type"] in ("audio.start", "audio.next"):
                self._current = event["context"]
            if event["type"] in types:
                return event

    async def until_audio(self) -> bytes:
        while not isinstance(received := await self.socket.recv(), bytes):
            self.events.append(json.loads(received))
        return received

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


@asynccontextmanager
async def client(server: RunningServer, path: str = "/v1/audio/speech/stream", **options: Any) -> AsyncIterator[Client]:
    host, port = server.host_port
    async with connect(f"ws://{host}:{port}{path}", **options) as socket:
        yield Client(socket)


def run_session(server: RunningServer, test: Callable[[Client], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with client(server, **options) as connected:
            await test(connected)

    asyncio.run(run())


def test_the_first_sentence_is_spoken_before_the_second_arrives(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        for piece in ("The old br", "idge stands", " still. It"):
            await client.send("input.text", text=piece)
        await client.send("input.text", text=" ")
        first = await client.until_audio()  # no more text was sent
        for piece in ("runs deep under ", "the water tonight. "):
            await client.send("input.text", text=piece)
        await client.send("input.done")
        await client.until("session.done")
        audio = first + client.audio[None]
        assert audio == pcm(engine.speak(FIRST).samples) + pcm(engine.speak(SECOND).samples)
        first_type, *of_words, done, last = client.types
        assert (first_type, {*of_words}, done, last) == ("audio.start", {"audio.words"}, "audio.done", "session.done")
        assert client.events[0] == {"type": "audio.start", "context": None, "format": "pcm", "sample_rate": 24000}
        words = [word for event in client.events[1:-2] for word in event["words"]]
        text = FIRST + SECOND
        assert [word["word"] for word in words] == text.split()
        assert [text[word["from"] : word["to"]] for word in words] == text.split()
        starts = [word["start"] for word in words]
        assert starts == sorted(starts)
        assert client.events[-2]["duration"] == pytest.approx(len(audio) / 48_000, abs=0.01)

    run_session(server, test)


def test_texts_of_a_context_are_sequential_and_contexts_parallel(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        for context, text in (("a", FIRST), ("b", SECOND), ("a", SECOND)):
            await client.send("input.text", text=text, context=context)
            await client.send("input.done", context=context)
        await client.until("session.done")
        first, second = (pcm(engine.speak(text).samples) for text in (FIRST, SECOND))
        assert client.audio == {"a": first + second, "b": second}
        assert client.types.count("audio.done") == 3

    run_session(server, test)


def test_a_cancel_drops_what_was_not_yet_spoken(server: RunningServer, model: RecordingModel, engine: Running) -> None:
    async def test(client: Client) -> None:
        model.gate.close(n_permits=1)
        await client.send("input.text", text=(FIRST + SECOND) * 40)
        await client.until_audio()
        n_before = len(model.vocoder_calls)
        await client.send("input.cancel")
        done = await client.until("audio.done")
        assert done["cancelled"]
        assert (await client.until("session.done"))["type"] == "session.done"
        model.gate.open()
        # The next text is spoken as usual, and only the running batch was still computed.
        await client.send("input.text", text=FIRST)
        await client.send("input.done")
        await client.until_audio()
        assert len(model.vocoder_calls) <= n_before + 2
        await client.until("session.done")
        assert not client.events[-2]["cancelled"]

    run_session(server, test)


def test_a_cancel_is_confirmed_before_its_context_is_used_again(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        await client.send("input.text", text=FIRST * 20, context="a")
        await client.until("audio.start")
        await client.send("input.cancel", context="a")
        await client.send("input.text", text=SECOND, context="a")
        await client.send("input.done", context="a")
        assert (await client.until("audio.done", "session.done"))["cancelled"]
        client.audio.clear()
        await client.until("audio.done")
        assert client.audio["a"] == pcm(engine.speak(SECOND).samples)

    run_session(server, test)


def test_a_disconnect_cancels_the_speech(server: RunningServer, model: RecordingModel) -> None:
    async def test(client: Client) -> None:
        model.gate.close(n_permits=1)
        await client.send("input.text", text=(FIRST + SECOND) * 40)
        await client.until_audio()

    run_session(server, test)
    while server.app.state.service.lifecycle.n_active:
        assert server.get("/healthz").status_code == 200
    n_before = len(model.vocoder_calls)
    model.gate.permit(100)
    assert server.speak(response_format="pcm").status_code == 200
    assert len(model.vocoder_calls) <= n_before + 2


def test_a_client_that_does_not_read_stops_the_synthesis(server: RunningServer, model: RecordingModel) -> None:
    async def test(client: Client) -> None:
        text = (FIRST + SECOND) * 200
        await client.send("input.text", text=text)
        await client.send("input.done")
        await client.until_audio()
        n_before = -1
        while n_before != len(model.vocoder_calls):  # no more is made while the client does not read
            n_before = len(model.vocoder_calls)
            await asyncio.sleep(0.2)
        await client.until("session.done")
        assert len(model.vocoder_calls) > 2 * n_before

    run_session(server, test, max_queue=1)


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "pcm"])
def test_every_format_is_a_complete_file(server: RunningServer, format: str) -> None:
    async def test(client: Client) -> None:
        await client.send("session.config", response_format=format)
        await client.send("input.text", text=FIRST + SECOND)
        await client.send("input.done")
        await client.until("session.done")
        assert client.events[0]["format"] == format
        whole = server.speak(input=FIRST + SECOND, response_format=format, stream=True).content
        assert client.audio[None][:4] == whole[:4]
        assert len(client.audio[None]) == pytest.approx(len(whole), rel=0.25)

    run_session(server, test)


def test_a_flush_speaks_what_has_arrived(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        await client.send("input.text", text="deep water")
        await client.send("input.flush")
        assert pcm(engine.speak("deep water").samples).startswith(await client.until_audio())
        await client.send("input.done")
        await client.until("session.done")

    run_session(server, test)


def test_a_pause_in_the_text_speaks_what_has_arrived(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        await client.send("session.config", flush_after_ms=50)
        await client.send("input.text", text="deep water.")
        assert pcm(engine.speak("deep water.").samples).startswith(await client.until_audio())

    run_session(server, test)


@pytest.mark.parametrize(
    ("sent", "code", "param"),
    [
        ({"type": "input.txt"}, "invalid_input", "type"),
        ({"type": "input.text"}, "invalid_input", "text"),
        ({"type": "input.text", "text": "a", "context": 5}, "invalid_input", "context"),
        ({"type": "session.config", "voice": "af_hart"}, "voice_not_found", "voice"),
        ({"type": "session.config", "response_format": "ogv"}, "unknown_format", "response_format"),
        ({"type": "session.config", "speed": 9}, "invalid_input", "speed"),
        ({"type": "session.config", "language": "tlh"}, "unknown_language", "language"),
        ({"type": "session.config", "model": "whale"}, "model_not_found", "model"),
        ({"type": "input.text", "text": "x" * 1_000_001}, "too_large", "text"),
        ([], "invalid_input", None),
    ],
)  # fmt: skip
def test_after_an_invalid_message_the_next_is_handled(server: RunningServer, sent: Any, code: str, param: str) -> None:
    async def test(client: Client) -> None:
        for message in (json.dumps(sent), "{not json", b"binary"):
            await client.socket.send(message)
        errors = [(await client.until("error"))["error"] for _ in range(3)]
        assert [error["code"] for error in errors] == [code, "invalid_input", "invalid_input"]
        assert errors[0]["param"] == param
        await client.send("input.text", text=FIRST)
        await client.send("input.done")
        await client.until("session.done")
        assert client.audio[None]

    run_session(server, test)


def test_every_text_ends_once_also_one_without_words(server: RunningServer) -> None:
    async def test(client: Client) -> None:
        await client.send("input.text", text=" … ", context="a")
        await client.send("input.done", context="a")
        await client.until("session.done")
        assert client.types == ["error", "session.done"]
        assert client.events[0]["error"]["code"] == "nothing_to_speak"
        assert client.events[0]["context"] == "a"
        await client.send("input.done")
        await client.until("session.done")  # nothing was open

    run_session(server, test)


def test_a_websocket_has_the_same_keys_limits_and_origins(voices: Voices) -> None:
    async def refused(server: RunningServer, **options: Any) -> InvalidStatus:
        with pytest.raises(InvalidStatus) as caught:
            async with client(server, **options):
                pass
        return caught.value

    async def run(server: RunningServer) -> None:
        for wrong in ({}, {"Authorization": "Bearer wrong"}):
            error = await refused(server, additional_headers=wrong)
            assert error.response.status_code == 401
            assert json.loads(error.response.body)["error"]["code"] == "invalid_api_key"
        headers = {"Authorization": "Bearer right", "X-Request-ID": "mine"}
        error = await refused(server, additional_headers={**headers, "Origin": "https://elsewhere.example"})
        assert error.response.status_code == 403
        async with client(server, additional_headers=headers) as known:
            assert known.socket.response
            assert known.socket.response.headers["x-request-id"] == "mine"
            await known.send("input.text", text=FIRST)
            await known.send("input.done")
            await known.until("session.done")
            for text in (FIRST, FIRST):
                await known.send("input.text", text=text, context="b")
                await known.send("input.done", context="b")
            assert (await known.until("error"))["error"]["code"] == "rate_limited"
        async with client(server, subprotocols=["realtime", "openai-insecure-api-key.right"]) as known:
            assert known.socket.subprotocol == "realtime"  # the key does not come back
        async with client(server, additional_headers=headers) as known:
            with pytest.raises(ConnectionClosed):  # noqa: PT012 - the server may close at either
                await known.send("input.text", text="x" * (1 << 23))
                await known.until("session.done")

    with serving(tone_engine(voices), api_keys="right", rate_requests=2) as server:
        asyncio.run(run(server))
        metrics = server.get("/metrics").text
        assert (
            'tutti_http_answers_total{method="WS",outcome="done",route="/v1/audio/speech/stream",status="101"}'
            in metrics
        )


def test_draining_finishes_active_texts_and_refuses_new_ones(voices: Voices, model: RecordingModel) -> None:
    async def run(server: RunningServer) -> None:
        model.gate.close(n_permits=0)
        async with client(server) as active:
            await active.send("input.text", text=FIRST, context="a")
            await active.send("input.done", context="a")
            lifecycle = server.app.state.service.lifecycle
            while lifecycle.n_active == 0:
                await asyncio.sleep(0)
            assert server.engine.batchers  # the engine itself
            server.app.state.service.lifecycle.draining = True
            await active.send("input.text", text=SECOND, context="b")
            assert (await active.until("error"))["error"]["code"] == "draining"
            with pytest.raises(InvalidStatus) as caught:
                async with client(server):
                    pass
            assert caught.value.response.status_code == 503
            model.gate.permit(10)
            await active.until("session.done")
            assert active.audio["a"]
        assert lifecycle.n_active == 0

    with serving(tone_engine(voices, lambda: model)) as server:
        asyncio.run(run(server))


def test_a_shutdown_closes_idle_websockets(voices: Voices) -> None:
    async def run(server: RunningServer) -> None:
        async with client(server) as idle:
            server.uvicorn.should_exit = True
            with pytest.raises(ConnectionClosed) as closed:
                await idle.until("session.done")
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1012

    with serving(tone_engine(voices)) as server:
        asyncio.run(run(server))


def test_an_idle_websocket_is_closed_but_not_one_that_speaks(voices: Voices) -> None:
    async def run(server: RunningServer) -> None:
        async with client(server) as idle:
            with pytest.raises(ConnectionClosed) as closed:
                await idle.until("session.done")
            assert closed.value.rcvd
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1000, "idle")
        async with client(server) as active:
            for _ in range(4):  # each well within the limit, all together not
                await active.send("input.text", text=FIRST)
                await active.send("input.done")
                await active.until("session.done")
                await asyncio.sleep(0.4)
            assert active.types.count("audio.done") == 4

    with serving(tone_engine(voices), socket_idle_s=1) as server:
        asyncio.run(run(server))


@pytest.mark.parametrize("nested", [True, False])
def test_options_without_effect_are_named_also_those_that_nobody_knows(server: RunningServer, nested: bool) -> None:
    unknown = {"flavour": "sweet", "instructions": "like a pirate"}
    of_requests = {"stream": False, "return_download_link": True, "allow_voice_tags": False}
    options = {**of_requests, **unknown, "speed": 1.5}

    async def test(client: Client) -> None:
        await client.send("session.config", **({"session": options} if nested else options))
        await client.send("input.text", text=FIRST)
        await client.send("input.done")
        assert (await client.until("audio.start"))["ignored"] == [*unknown, *of_requests]

    run_session(server, test)


def test_the_contexts_of_a_websocket_are_limited(server: RunningServer, model: RecordingModel) -> None:
    async def test(client: Client) -> None:
        model.gate.close(n_permits=0)
        for n in range(17):
            await client.send("input.text", text="deep", context=str(n))
        assert (await client.until("error"))["error"]["code"] == "queue_full"
        model.gate.permit(100)
        await client.send("input.cancel")
        await client.until("session.done")
        assert client.types.count("audio.done") == 16

    run_session(server, test)


def test_every_message_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/live.md").read_text(encoding="utf-8")
    sent = (
        "audio.start",
        "audio.next",
        "audio.words",
        "audio.phonemes",
        "audio.visemes",
        "audio.notice",
        "audio.done",
        "session.done",
    )
    for name in (*LiveSession._HANDLERS, *RealtimeSession._HANDLERS, *sent):
        assert f"`{name}`" in page
