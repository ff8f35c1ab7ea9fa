"""WS /v1/realtime with OpenAI's library."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from tests.fakes import RecordingModel, Running, running, tone_engine
from tests.server.harness import RunningServer, serving
from tests.server.test_live import pcm
from tutti.engine.word_times import join
from tutti.voices import Voices

pytestmark = [pytest.mark.server, pytest.mark.process]  # the library asks `uname` for the processor

TEXT = "The old bridge stands still. It runs deep under the water tonight."
Test = Callable[[AsyncRealtimeConnection], Awaitable[None]]


@pytest.fixture
def model() -> RecordingModel:
    return RecordingModel()


@pytest.fixture
def server(voices: Voices, model: RecordingModel) -> Iterator[RunningServer]:
    with serving(tone_engine(voices, lambda: model), api_keys="right") as server:
        yield server


@pytest.fixture(scope="module")
def engine(voices: Voices) -> Iterator[Running]:
    with running(tone_engine(voices)) as engine:
        yield engine


@asynccontextmanager
async def connected(
    server: RunningServer, model: str = "gpt-realtime", key: str = "right"
) -> AsyncIterator[AsyncRealtimeConnection]:
    base = server.url + "/v1"
    async with (
        AsyncOpenAI(base_url=base, api_key=key, websocket_base_url=base.replace("http", "ws")) as client,
        client.realtime.connect(model=model) as connection,
    ):
        yield connection


def run_session(server: RunningServer, test: Test, **options: Any) -> None:
    async def run() -> None:
        async with connected(server, **options) as connection:
            await test(connection)

    asyncio.run(run())


def message(text: str) -> Any:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


async def until(connection: AsyncRealtimeConnection, *types: str) -> list[Any]:
    events: list[Any] = []
    while not events or events[-1].type not in types:
        events.append(await connection.recv())
    return events


def audio_of(events: list[Any]) -> bytes:
    return b"".join(base64.b64decode(event.delta) for event in events if event.type == "response.output_audio.delta")


def test_a_text_is_spoken(server: RunningServer, engine: Running) -> None:
    async def test(connection: AsyncRealtimeConnection) -> None:
        created = (await until(connection, "session.created"))[-1]
        assert created.session.audio.output.voice == "af_heart"
        output: Any = {"voice": "cedar", "format": {"type": "audio/pcm", "rate": 24000}, "speed": 1.2}
        await connection.session.update(session={"type": "realtime", "audio": {"output": output}})
        updated = (await until(connection, "session.updated"))[-1]
        assert updated.session.audio.output.voice == "am_fenrir"
        assert updated.session.audio.output.speed == 1.2
        await connection.response.create(response={"input": [message(TEXT)], "metadata": {"of": "mine"}})
        events = await until(connection, "response.done")
        assert audio_of(events) == pcm(join(engine.stream(TEXT, speed=1.2, voice="am_fenrir")).samples)
        kinds = [event.type for event in events]
        assert list(dict.fromkeys(kind for kind in kinds if "transcript" not in kind)) == [
            "response.created", "response.output_item.added", "response.content_part.added",
            "response.output_audio.delta", "response.output_audio.done", "response.content_part.done",
            "response.output_item.done", "response.done",
        ]  # fmt: skip
        assert len({event.response_id for event in events if hasattr(event, "response_id")}) == 1
        done = events[-1].response
        assert (done.status, done.metadata) == ("completed", {"of": "mine"})
        assert done.output[0].content[0].transcript == TEXT

    run_session(server, test)


def test_items_of_the_conversation_are_spoken_once(server: RunningServer, engine: Running) -> None:
    async def test(connection: AsyncRealtimeConnection) -> None:
        await connection.conversation.item.create(item=message("deep water"))
        await connection.response.create()
        assert audio_of(await until(connection, "response.done")) == pcm(engine.speak("deep water").samples)
        await connection.response.create()
        failed = (await until(connection, "response.done"))[-1].response
        assert failed.status == "failed"
        assert failed.status_details.error.code == "nothing_to_speak"

    run_session(server, test, model="kokoro")


def test_an_item_is_confirmed_without_what_is_not_known(server: RunningServer) -> None:
    async def test(connection: AsyncRealtimeConnection) -> None:
        item = {**message("deep water"), "id": "mine"}
        await connection.send({"type": "conversation.item.create", "item": {**item, "other": 9 * [message("x")]}})
        confirmed = (await until(connection, "conversation.item.done"))[-1].item
        assert (confirmed.id, confirmed.role, confirmed.content[0].text) == ("mine", "user", "deep water")
        assert not hasattr(confirmed, "other")
        await connection.send({"type": "conversation.item.create", "item": {**item, "id": 501 * "i"}})
        assert (await until(connection, "error"))[-1].error.param == "item"

    run_session(server, test)


def test_after_a_cancel_the_next_is_complete(server: RunningServer, model: RecordingModel, engine: Running) -> None:
    async def test(connection: AsyncRealtimeConnection) -> None:
        model.gate.close(n_permits=1)
        await connection.response.create(response={"input": [message(TEXT * 40)]})
        await until(connection, "response.output_audio.delta")
        await connection.response.create(response={"input": [message(TEXT)]})
        assert (await until(connection, "error"))[-1].error.code == "conversation_already_has_active_response"
        n_before = len(model.vocoder_calls)
        await connection.response.cancel()
        assert (await until(connection, "response.done"))[-1].response.status == "cancelled"
        model.gate.permit(100)
        await connection.response.create(response={"input": [message("deep water")]})
        events = await until(connection, "response.done")
        assert audio_of(events) == pcm(engine.speak("deep water").samples)
        assert len(model.vocoder_calls) <= n_before + 2
        await connection.response.cancel()
        assert (await until(connection, "error"))[-1].error.code == "response_cancel_not_active"

    run_session(server, test)


def test_out_of_band_responses_run_in_parallel(server: RunningServer, engine: Running) -> None:
    async def test(connection: AsyncRealtimeConnection) -> None:
        texts = ["deep water", "old stone bridge", "still tonight"]
        for text in texts:
            await connection.response.create(response={"input": [message(text)], "conversation": "none"})
        events: list[Any] = []
        for _ in texts:
            events += await until(connection, "response.done")
        names = [event.response.id for event in events if event.type == "response.created"]
        for name, text in zip(names, texts, strict=True):
            own = [event for event in events if getattr(event, "response_id", None) == name]
            assert audio_of(own) == pcm(engine.speak(text).samples)

    run_session(server, test)


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "type"),
        ({"type": "session.update", "session": {"audio": {"output": {"voice": "af_hart"}}}}, "voice"),
        ({"type": "session.update", "session": {"audio": {"output": {"speed": 9}}}}, "session.audio.output.speed"),
        ({"type": "session.update", "session": {"audio": {"output": {"format": {"type": "audio/x"}}}}},
         "session.audio.output.format"),
        ({"type": "response.create", "response": {"input": [{"type": "message", "content": [{"audio": ""}]}]}},
         "response.input"),
        ({"type": "response.create", "response": 5}, "response"),
        ({"type": "conversation.item.create"}, "item"),
    ],
)  # fmt: skip
def test_an_invalid_message_does_not_end_the_session(server: RunningServer, sent: Any, param: str) -> None:
    async def test(connection: AsyncRealtimeConnection) -> None:
        await connection.send({**sent, "event_id": "mine"})
        error = (await until(connection, "error"))[-1].error
        assert (error.param, error.event_id) == (param, "mine")
        await connection.response.create(response={"input": [message("deep water")]})
        assert (await until(connection, "response.done"))[-1].response.status == "completed"

    run_session(server, test)


def test_an_unknown_model_and_a_wrong_key_are_refused(server: RunningServer) -> None:
    from websockets.exceptions import ConnectionClosedError, InvalidStatus

    async def test(connection: AsyncRealtimeConnection) -> None:
        assert (await until(connection, "error"))[-1].error.code == "model_not_found"
        with pytest.raises(ConnectionClosedError):
            await connection.recv()

    run_session(server, test, model="whale")
    with pytest.raises(InvalidStatus, match="401"):
        run_session(server, test, key="wrong")
