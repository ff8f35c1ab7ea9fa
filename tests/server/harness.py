"""Shared by server tests: a real server on a free port, and what its answers must look like."""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tests.fakes import FakeEngine, fake_speeches
from tutti.server.app import create_app
from tutti.server.run import Server, bind, url_of
from tutti.server.uvicorn_setup import uvicorn_config
from tutti.settings import Settings
from tutti.speech import Samples

SHORT = "deep water"
LONG = "The old bridge stands still under the water tonight and runs deep. " * 4


def expected_samples(server: "RunningServer", text: str, **options: Any) -> Samples:
    """The samples that the fake engine makes of a text, without a server."""
    speeches = fake_speeches(server.engine.voices, text, **{"voice": "af_heart", **options})
    samples: Samples = np.concatenate([speech.samples for speech in speeches])
    return samples


@dataclass
class RunningServer:
    """A server that listens on a free port, with its engine and its clients."""

    url: str
    engine: FakeEngine
    app: FastAPI
    uvicorn: Server
    thread: threading.Thread
    loop: asyncio.AbstractEventLoop
    clients: list[httpx2.Client] = field(default_factory=list)

    def client(self, **options: Any) -> httpx2.Client:
        client = httpx2.Client(base_url=self.url, timeout=60, **options)
        self.clients.append(client)
        return client

    def post(self, path: str, json: Any = None, **options: Any) -> httpx2.Response:
        return self.clients[0].post(path, json=json, **options)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.clients[0].get(path, **options)

    def speak(self, **body: Any) -> httpx2.Response:
        return self.post("/v1/audio/speech", {"input": SHORT, **body})

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws", 1)

    @property
    def host_port(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Block the event loop of the server: all that is sent meanwhile has arrived when the loop runs again."""
        blocked, resume = threading.Event(), threading.Event()
        self.loop.call_soon_threadsafe(lambda: (blocked.set(), resume.wait()))
        assert blocked.wait(60)
        try:
            yield
        finally:
            resume.set()


@contextmanager
def serving(engine: Any, **options: Any) -> Iterator[RunningServer]:
    """Run the application behind a real uvicorn, as `tutti serve` does."""
    with tempfile.TemporaryDirectory(prefix="tutti-") as data:
        settings = Settings(**{"port": 0, "grace_s": 0, "data": Path(data), **options})
        with _run_server(engine, settings) as server:
            yield server


@contextmanager
def _run_server(engine: Any, settings: Settings) -> Iterator[RunningServer]:
    warm = threading.Event()
    with bind(settings) as sock:
        app = create_app(engine, settings, CollectorRegistry(), on_warm=lambda _: warm.set())
        uvicorn = Server(uvicorn_config(app, settings), app.state.service.lifecycle, settings.grace_s)
        started = threading.Event()
        loops: list[asyncio.AbstractEventLoop] = []

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            serve = asyncio.create_task(uvicorn.serve(sockets=[sock]))
            while not uvicorn.started:
                await asyncio.sleep(0)
            started.set()
            await serve

        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        assert started.wait(60)
        if not isinstance(engine, FakeEngine) or engine.may_start.is_set():
            assert warm.wait(60)
        server = RunningServer(url_of(sock), engine, app, uvicorn, thread, loops[0])
        server.client()
        try:
            yield server
        finally:
            for client in server.clients:
                client.close()
            if isinstance(engine, FakeEngine):
                engine.may_start.set()
            uvicorn.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread or process does."""
    while not condition():
        time.sleep(0.005)


def assert_error(response: httpx2.Response, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    """Check that the response is an error in the documented form, and return that error."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error", "detail"}
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert body["detail"] == {"error": error["code"], "message": error["message"], "type": error["type"]}
    assert error["message"]
    assert (error["code"], error["param"]) == (code, param)
    return dict(error)
