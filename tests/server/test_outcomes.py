"""What is counted of an answer: how it ended, and its first byte."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.fakes import FailingModel, FakeEngine, silent_voices, tone_engine
from tests.server.harness import LONG
from tutti.server.app import create_app
from tutti.settings import Settings

SPEECH = {"input": LONG, "response_format": "mp3"}
STREAMS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/audio/speech", SPEECH),
    ("/v1/audio/speech", {**SPEECH, "stream_format": "sse"}),
    ("/dev/captioned_speech", SPEECH),
    ("/dev/dialogue", {"turns": [{"voice": "af_sky", "text": LONG}], "response_format": "mp3"}),
    ("/tts/stream", {"text": LONG}),
    ("/v1/text-to-speech/af_heart/stream", {"text": LONG}),
    ("/v1/text-to-speech/af_heart/stream/with-timestamps", {"text": LONG}),
    ("/v1/text-to-dialogue/stream", {"inputs": [{"text": LONG, "voice_id": "af_heart"}]}),
    ("/v1/speak", {"text": LONG}),
    ("/tts/bytes", {"transcript": LONG}),
    ("/tts/sse", {"transcript": LONG}),
]
LIVE = [{"type": "input.text", "text": LONG}, {"type": "input.done"}]
REALTIME = [
    {
        "type": "response.create",
        "response": {"input": [{"type": "message", "content": [{"type": "input_text", "text": LONG}]}]},
    }
]
SOCKETS: list[tuple[str, list[dict[str, Any]], str]] = [
    ("/v1/audio/speech/stream", LIVE, "session.done"),
    ("/v1/realtime", REALTIME, "response.done"),
    ("/tts/websocket", [{"context_id": "c", "transcript": LONG}], '"done":true'),
]


@dataclass
class Caller:
    """Calls the application as a server would, without one."""

    app: Any
    registry: CollectorRegistry
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def post(self, path: str, body: Any, leaves: Callable[[dict[str, Any]], bool] | None = None) -> None:
        """Post JSON; the client leaves at the first message for which `leaves` is true."""
        requests = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
        await self._call(_scope("http", path), requests, leaves, {"type": "http.disconnect"})

    async def leave_at_once(self, path: str, body: Any, has_begun: Callable[[], bool]) -> None:
        """Post JSON, and leave when the work has begun, before any byte."""

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop()
            while not has_begun():
                await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)

        requests = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
        await self.app(_scope("http", path), receive, send)

    async def open_socket(self, path: str, messages: list[dict[str, Any]], last: str = "") -> None:
        """Send messages over a WebSocket, and leave when an event of type `last` comes."""
        texts = [{"type": "websocket.receive", "text": json.dumps(message)} for message in messages]

        def leaves(message: dict[str, Any]) -> bool:
            return last in message.get("text", "")

        scope = _scope("websocket", path)
        await self._call(scope, [{"type": "websocket.connect"}, *texts], leaves, {"type": "websocket.disconnect"})

    async def _call(
        self,
        scope: dict[str, Any],
        messages: list[dict[str, Any]],
        leaves: Callable[[dict[str, Any]], bool] | None,
        leave: dict[str, Any],
    ) -> None:
        incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in messages:
            incoming.put_nowait(message)

        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)
            if leaves is not None and leaves(message):
                incoming.put_nowait(leave)

        await self.app(scope, incoming.get, send)

    def answers(self) -> dict[tuple[str, str], float]:
        """How many answers there were, by status and outcome."""
        counts: dict[tuple[str, str], float] = {}
        for sample in self._samples("tutti_http_answers_total"):
            key = sample.labels["status"], sample.labels["outcome"]
            counts[key] = counts.get(key, 0.0) + sample.value
        return {key: count for key, count in counts.items() if count}

    def n_first_bytes(self) -> float:
        return float(sum(sample.value for sample in self._samples("tutti_http_first_byte_seconds_count")))

    def first_byte_s(self) -> float:
        return float(sum(sample.value for sample in self._samples("tutti_http_first_byte_seconds_sum")))

    def _samples(self, name: str) -> list[Any]:
        return [sample for metric in self.registry.collect() for sample in metric.samples if sample.name == name]


def _scope(kind: str, path: str) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"x-request-id", b"mine")]
    names = {"type": kind, "path": path, "raw_path": path.encode(), "headers": headers, "subprotocols": []}
    more = {"method": "POST"} if kind == "http" else {}
    return {**names, **more, "query_string": b"", "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1)}


@asynccontextmanager
async def calling(engine: Any, folder: Path) -> AsyncIterator[Caller]:
    registry = CollectorRegistry()
    app = create_app(engine, Settings(data=folder), registry, wait_warm=True)
    async with app.router.lifespan_context(app):
        yield Caller(app, registry)


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_a_stream_that_ended_with_an_error_is_cut(
    fake_engine: FakeEngine, tmp_path: Path, path: str, body: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        fake_engine.fail_at = 1
        async with calling(fake_engine, tmp_path) as caller:
            await caller.post(path, body)
            assert caller.answers() == {("200", "cut"): 1}

    with caplog.at_level(logging.INFO, "tutti"):
        asyncio.run(run())
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("cut id=mine code=internal_error") == 1
    assert "outcome=cut:internal_error" in caplog.text


@pytest.mark.parametrize(("path", "messages", "last"), SOCKETS)
@pytest.mark.parametrize("fails", [True, False])
def test_a_socket_on_which_a_text_failed_is_not_done(
    tmp_path: Path, path: str, messages: list[dict[str, Any]], last: str, *, fails: bool
) -> None:
    async def run() -> None:
        engine = tone_engine(silent_voices(tmp_path), lambda: FailingModel(lambda _: fails))
        async with calling(engine, tmp_path) as caller:
            await caller.open_socket(path, messages, last)
            assert caller.answers() == {("101", "cut" if fails else "done"): 1}

    asyncio.run(run())


def test_each_answer_with_a_first_byte_is_observed_once_and_no_other(fake_engine: FakeEngine, tmp_path: Path) -> None:
    async def run() -> None:
        async with calling(fake_engine, tmp_path) as caller:
            await caller.post("/v1/audio/speech", SPEECH)
            await caller.post("/v1/audio/speech", {**SPEECH, "voice": "nobody"})
            await caller.post("/v1/audio/speech", SPEECH, lambda message: bool(message.get("body")))
            await caller.post("/made/up", {})
            await caller.open_socket("/v1/audio/speech/stream", LIVE[1:], "session.done")
            before_s = caller.first_byte_s()
            await caller.open_socket("/made/up", [])
            assert caller.first_byte_s() > before_s  # it is refused with 403: that answer has a first byte
            fake_engine.hold_from = 0
            for body in (SPEECH, {**SPEECH, "stream": False}):
                n_requests = len(fake_engine.requests)
                await caller.leave_at_once(
                    "/v1/audio/speech",
                    body,
                    lambda n=n_requests: len(fake_engine.requests) > n,  # type: ignore[misc]
                )
            answers = caller.answers()
            assert answers["499", "left"] == 2
            assert sum(answers.values()) == 8
            assert caller.n_first_bytes() == 6

    asyncio.run(run())
