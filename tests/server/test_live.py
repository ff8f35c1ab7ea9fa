"""WS /v1/audio/speech/stream with the `websockets` library: sound along with the text, and an end to it at once."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.fakes import Running, running, tone_engine
from tests.server.harness import RunningServer, serving
from tutti.audio import FORMATS
from tutti.model.tone import ToneModel
from tutti.server.routes.live import LiveSession
from tutti.server.routes.realtime import RealtimeSession
from tutti.speech import Frames, Samples
from tutti.voices import Voices

FIRST, SECOND = "The old bridge stands still. ", "It runs deep under the water tonight. "


class Held(ToneModel):
    """Runs a batch for each turn that it is given, once it is told to hold."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: threading.Semaphore | None = None
        self.n_batches = 0

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if self.turns:
            self.turns.acquire()
        self.n_batches += 1
        return super().vocoder(rows)


@pytest.fixture
def model() -> Held:
    return Held()


@pytest.fixture
def server(voices: Voices, model: Held) -> Iterator[RunningServer]:
    with serving(tone_engine(voices, lambda: model)) as server:
        yield server


@pytest.fixture(scope="module")
def engine(voices: Voices) -> Iterator[Running]:
    with running(tone_engine(voices)) as engine:
        yield engine


def pcm(samples: Samples) -> bytes:
    return (np.clip(np.round(samples * 32767), -32768, 32767)).astype("<i2").tobytes()


class Client:
    """A client that keeps apart what belongs to each context."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self.sound: dict[str | None, bytearray] = {}
        self._current: str | None = None

    async def say(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def until(self, *types: str) -> dict[str, Any]:
        while True:
            received = await self.socket.recv()
            if isinstance(received, bytes):
                self.sound.setdefault(self._current, bytearray()).extend(received)
                continue
            event: dict[str, Any] = json.loads(received)
            self.events.append(event)
            if event["type"] in ("audio.start", "audio.next"):
                self._current = event["context"]
            if event["type"] in types:
                return event

    async def until_sound(self) -> bytes:
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


def talk(server: RunningServer, test: Callable[[Client], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with client(server, **options) as connected:
            await test(connected)

    asyncio.run(run())


def test_the_first_sentence_sounds_before_the_second_is_written(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        for piece in ("The old br", "idge stands", " still. It"):
            await client.say("input.text", text=piece)
        await client.say("input.text", text=" ")
        first = await client.until_sound()  # nobody has written more
        for piece in ("runs deep under ", "the water tonight. "):
            await client.say("input.text", text=piece)
        await client.say("input.done")
        await client.until("session.done")
        heard = first + client.sound[None]
        assert heard == pcm(engine.speak(FIRST).samples) + pcm(engine.speak(SECOND).samples)
        assert client.types == ["audio.start", "audio.words", "audio.words", "audio.done", "session.done"]
        assert client.events[0] == {"type": "audio.start", "context": None, "format": "pcm", "sample_rate": 24000}
        words = [word for event in client.events[1:3] for word in event["words"]]
        text = FIRST + SECOND
        assert [word["word"] for word in words] == text.split()
        assert [text[word["from"] : word["to"]] for word in words] == text.split()
        starts = [word["start"] for word in words]
        assert starts == sorted(starts)
        assert client.events[-2]["duration"] == pytest.approx(len(heard) / 48_000, abs=0.01)

    talk(server, test)


def test_texts_follow_each_other_and_contexts_sound_side_by_side(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        for context, text in (("a", FIRST), ("b", SECOND), ("a", SECOND)):
            await client.say("input.text", text=text, context=context)
            await client.say("input.done", context=context)
        await client.until("session.done")
        first, second = (pcm(engine.speak(text).samples) for text in (FIRST, SECOND))
        assert client.sound == {"a": first + second, "b": second}
        assert client.types.count("audio.done") == 3

    talk(server, test)


def test_a_cancel_drops_what_was_not_yet_said(server: RunningServer, model: Held, engine: Running) -> None:
    async def test(client: Client) -> None:
        model.turns = threading.Semaphore(1)
        await client.say("input.text", text=(FIRST + SECOND) * 40)
        await client.until_sound()
        n_before = model.n_batches
        await client.say("input.cancel")
        done = await client.until("audio.done")
        assert done["cancelled"]
        assert (await client.until("session.done"))["type"] == "session.done"
        model.turns.release(100)
        model.turns = None
        # The next text is said as if nothing had been, and no more than the batch that ran was computed.
        await client.say("input.text", text=FIRST)
        await client.say("input.done")
        await client.until_sound()
        assert model.n_batches <= n_before + 2
        await client.until("session.done")
        assert not client.events[-2]["cancelled"]

    talk(server, test)


def test_what_was_cancelled_says_so_before_its_name_sounds_again(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        await client.say("input.text", text=FIRST * 20, context="a")
        await client.until("audio.start")
        await client.say("input.cancel", context="a")
        await client.say("input.text", text=SECOND, context="a")
        await client.say("input.done", context="a")
        assert (await client.until("audio.done", "session.done"))["cancelled"]
        client.sound.clear()
        await client.until("audio.done")
        assert client.sound["a"] == pcm(engine.speak(SECOND).samples)

    talk(server, test)


def test_who_hangs_up_is_forgotten(server: RunningServer, model: Held) -> None:
    async def test(client: Client) -> None:
        model.turns = threading.Semaphore(1)
        await client.say("input.text", text=(FIRST + SECOND) * 40)
        await client.until_sound()

    talk(server, test)
    while server.app.state.service.lifecycle.n_active:
        assert server.get("/healthz").status_code == 200
    n_before = model.n_batches
    assert model.turns
    model.turns.release(100)
    assert server.speak(response_format="pcm").status_code == 200
    assert model.n_batches <= n_before + 2


def test_a_listener_who_does_not_read_holds_up_the_making(server: RunningServer, model: Held) -> None:
    async def test(client: Client) -> None:
        text = (FIRST + SECOND) * 200
        await client.say("input.text", text=text)
        await client.say("input.done")
        await client.until_sound()
        n_made = -1
        while n_made != model.n_batches:  # no more is made while nobody reads
            n_made = model.n_batches
            await asyncio.sleep(0.2)
        await client.until("session.done")
        assert model.n_batches > 2 * n_made

    talk(server, test, max_queue=1)


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "pcm"])
def test_every_format_is_a_whole_file(server: RunningServer, format: str) -> None:
    async def test(client: Client) -> None:
        await client.say("session.config", response_format=format)
        await client.say("input.text", text=FIRST + SECOND)
        await client.say("input.done")
        await client.until("session.done")
        assert client.events[0]["format"] == format
        whole = server.speak(input=FIRST + SECOND, response_format=format, stream=True).content
        assert client.sound[None][:4] == whole[:4]
        assert len(client.sound[None]) == pytest.approx(len(whole), rel=0.25)

    talk(server, test)


def test_a_flush_says_what_has_come(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        await client.say("input.text", text="deep water")
        await client.say("input.flush")
        assert pcm(engine.speak("deep water").samples).startswith(await client.until_sound())
        await client.say("input.done")
        await client.until("session.done")

    talk(server, test)


def test_a_pause_in_the_text_says_what_has_come(server: RunningServer, engine: Running) -> None:
    async def test(client: Client) -> None:
        await client.say("session.config", flush_after_ms=50)
        await client.say("input.text", text="deep water.")
        assert pcm(engine.speak("deep water.").samples).startswith(await client.until_sound())

    talk(server, test)


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
def test_what_is_wrong_is_told_and_the_next_message_is_heard(
    server: RunningServer, sent: Any, code: str, param: str
) -> None:
    async def test(client: Client) -> None:
        for message in (json.dumps(sent), "{not json", b"binary"):
            await client.socket.send(message)
        errors = [(await client.until("error"))["error"] for _ in range(3)]
        assert [error["code"] for error in errors] == [code, "invalid_input", "invalid_input"]
        assert errors[0]["param"] == param
        await client.say("input.text", text=FIRST)
        await client.say("input.done")
        await client.until("session.done")
        assert client.sound[None]

    talk(server, test)


def test_each_text_ends_once_also_one_without_words(server: RunningServer) -> None:
    async def test(client: Client) -> None:
        await client.say("input.text", text=" … ", context="a")
        await client.say("input.done", context="a")
        await client.until("session.done")
        assert client.types == ["error", "session.done"]
        assert client.events[0]["error"]["code"] == "nothing_to_speak"
        assert client.events[0]["context"] == "a"
        await client.say("input.done")
        await client.until("session.done")  # nothing was open

    talk(server, test)


def test_a_socket_passes_the_same_door(voices: Voices) -> None:
    async def refused(server: RunningServer, **options: Any) -> InvalidStatus:
        with pytest.raises(InvalidStatus) as caught:
            async with client(server, **options):
                pass
        return caught.value

    async def run(server: RunningServer) -> None:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            error = await refused(server, additional_headers=headers)
            assert error.response.status_code == 401
            assert json.loads(error.response.body)["error"]["code"] == "invalid_api_key"
        right = {"Authorization": "Bearer right", "X-Request-ID": "mine"}
        error = await refused(server, additional_headers={**right, "Origin": "https://elsewhere.example"})
        assert error.response.status_code == 403
        async with client(server, additional_headers=right) as known:
            assert known.socket.response
            assert known.socket.response.headers["x-request-id"] == "mine"
            await known.say("input.text", text=FIRST)
            await known.say("input.done")
            await known.until("session.done")
            for text in (FIRST, FIRST):
                await known.say("input.text", text=text, context="b")
                await known.say("input.done", context="b")
            assert (await known.until("error"))["error"]["code"] == "rate_limited"
        async with client(server, subprotocols=["realtime", "openai-insecure-api-key.right"]) as known:
            assert known.socket.subprotocol == "realtime"  # the key does not come back
        async with client(server, additional_headers=right) as known:
            with pytest.raises(ConnectionClosed):  # noqa: PT012 - the server may close at either
                await known.say("input.text", text="x" * (1 << 23))
                await known.until("session.done")

    with serving(tone_engine(voices), api_keys="right", rate_requests=2) as server:
        asyncio.run(run(server))
        counted = server.get("/metrics").text
        assert (
            'tutti_http_answers_total{method="WS",outcome="done",route="/v1/audio/speech/stream",status="101"}'
            in counted
        )


def test_draining_lets_what_was_begun_end_and_nothing_begin(voices: Voices, model: Held) -> None:
    async def run(server: RunningServer) -> None:
        model.turns = threading.Semaphore(0)
        async with client(server) as begun:
            await begun.say("input.text", text=FIRST, context="a")
            await begun.say("input.done", context="a")
            lifecycle = server.app.state.service.lifecycle
            while lifecycle.n_active == 0:
                await asyncio.sleep(0)
            assert server.engine.batchers  # the engine itself
            server.app.state.service.lifecycle.draining = True
            await begun.say("input.text", text=SECOND, context="b")
            assert (await begun.until("error"))["error"]["code"] == "draining"
            with pytest.raises(InvalidStatus) as caught:
                async with client(server):
                    pass
            assert caught.value.response.status_code == 503
            model.turns.release(10)
            await begun.until("session.done")
            assert begun.sound["a"]
        assert lifecycle.n_active == 0

    with serving(tone_engine(voices, lambda: model)) as server:
        asyncio.run(run(server))


def test_a_server_that_goes_closes_idle_sockets(voices: Voices) -> None:
    async def run(server: RunningServer) -> None:
        async with client(server) as idle:
            server.uvicorn.should_exit = True
            with pytest.raises(ConnectionClosed) as closed:
                await idle.until("session.done")
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1012

    with serving(tone_engine(voices)) as server:
        asyncio.run(run(server))


def test_wishes_that_cannot_be_met_are_named(server: RunningServer) -> None:
    async def test(client: Client) -> None:
        await client.say("session.config", instructions="like a pirate")
        await client.say("input.text", text=FIRST)
        await client.say("input.done")
        assert (await client.until("audio.start"))["ignored"] == ["instructions"]

    talk(server, test)


def test_one_socket_cannot_open_contexts_without_end(server: RunningServer, model: Held) -> None:
    async def test(client: Client) -> None:
        model.turns = threading.Semaphore(0)
        for n in range(17):
            await client.say("input.text", text="deep", context=str(n))
        assert (await client.until("error"))["error"]["code"] == "queue_full"
        model.turns.release(100)
        await client.say("input.cancel")
        await client.until("session.done")
        assert client.types.count("audio.done") == 16

    talk(server, test)


def test_the_page_names_every_message() -> None:
    page = (Path(__file__).parents[2] / "docs/live.md").read_text(encoding="utf-8")
    told = ("audio.start", "audio.next", "audio.words", "audio.done", "session.done")
    for name in (*LiveSession._HANDLERS, *RealtimeSession._HANDLERS, *told):
        assert f"`{name}`" in page
