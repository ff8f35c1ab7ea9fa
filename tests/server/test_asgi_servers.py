"""The application under ASGI servers other than ours: they await the startup, and cancel the task of a lost client."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tests.fakes import FakeEngine
from tests.server.harness import LONG
from tutti.server.app import create_app
from tutti.settings import Settings


def scope(path: str) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    names = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": headers}
    return {**names, "query_string": b"", "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1)}


def test_a_length_that_is_no_number_is_a_bad_request(fake_engine: FakeEngine, tmp_path: Path) -> None:
    """Ours refuses it before; another server may pass it on."""
    sent = list[Any]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        app = create_app(fake_engine, Settings(data=tmp_path), CollectorRegistry(), wait_warm=True)
        asked = scope("/tts")
        asked["headers"] = [*asked["headers"], (b"content-length", b"12x")]
        async with app.router.lifespan_context(app):
            await app(asked, receive, send)

    asyncio.run(run())
    assert sent[0]["status"] == 400
    assert "12x" in json.loads(sent[1]["body"])["error"]["message"]


async def cancel_after_the_first_audio(app: FastAPI, *, draining: bool) -> None:
    """Start a stream, and cancel its task as a server does; raises what the application raises."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": json.dumps({"text": LONG}).encode(), "more_body": False})
    started = asyncio.Event()

    async def send(message: Any) -> None:
        if message.get("body"):
            started.set()

    request = asyncio.create_task(app(scope("/tts/stream"), messages.get, send))
    await started.wait()
    app.state.service.lifecycle.draining = draining
    request.cancel()
    await request


def answers(registry: CollectorRegistry, outcome: str) -> float:
    labels = {"method": "POST", "route": "/tts/stream", "status": "200", "outcome": outcome}
    return registry.get_sample_value("tutti_http_answers_total", labels) or 0.0


def test_a_task_that_the_server_cancels_is_a_client_that_left(fake_engine: FakeEngine, tmp_path: Path) -> None:
    async def run() -> None:
        fake_engine.hold_from = 1
        registry = CollectorRegistry()
        app = create_app(fake_engine, Settings(data=tmp_path), registry, wait_warm=True)
        async with app.router.lifespan_context(app):
            with pytest.raises(asyncio.CancelledError):
                await cancel_after_the_first_audio(app, draining=False)
            assert answers(registry, "left") == 1
            assert fake_engine.streams_cancelled.acquire(timeout=60)
            await cancel_after_the_first_audio(app, draining=True)
            assert (answers(registry, "left"), answers(registry, "cut")) == (1, 1)

    asyncio.run(run())


def test_the_startup_can_wait_for_the_engine(fake_engine: FakeEngine, tmp_path: Path) -> None:
    async def run(*, wait_warm: bool) -> bool:
        fake_engine.ready = False
        app = create_app(fake_engine, Settings(data=tmp_path), wait_warm=wait_warm)
        async with app.router.lifespan_context(app):
            return fake_engine.ready

    assert asyncio.run(run(wait_warm=True))
    assert not asyncio.run(run(wait_warm=False))


def test_a_startup_that_waits_fails_with_the_engine(fake_engine: FakeEngine, tmp_path: Path) -> None:
    async def fail() -> None:
        raise OSError("no such device")

    async def run() -> None:
        fake_engine.start = fail  # type: ignore[method-assign]
        app = create_app(fake_engine, Settings(data=tmp_path), on_warm=lambda _: None, wait_warm=True)
        async with app.router.lifespan_context(app):
            pytest.fail("the application started without its engine")

    with pytest.raises(OSError, match="no such device"):
        asyncio.run(run())
