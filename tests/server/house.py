"""What server tests share: a tone engine whose pace a test can hold, and a real server on a free port."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tutti.engine import Engine
from tutti.model.tone import ToneModel
from tutti.server.app import app
from tutti.server.direct import Direct
from tutti.server.run import Server, address, bound, configured
from tutti.settings import Settings
from tutti.speech import Speech
from tutti.text.chunk import Reading, Word
from tutti.text.spoken import Spoken
from tutti.text.vocab import SYMBOLS
from tutti.voices import NAMES, Voices

SHORT = "deep water"
LONG = "The old bridge stands still under the water tonight and runs deep. " * 12


class Spelling:
    """G2P that needs no lexicon: a word sounds as it is spelled."""

    def pronounce(self, spoken: Spoken, code: str, given: Mapping[int, str] = {}) -> Reading:
        words, at = [], 0
        for written in spoken.text.split():
            start = spoken.text.index(written, at)
            at = start + len(written)
            letters = "".join(char for char in written.lower().replace("g", "ɡ") if char.isalpha() and char in SYMBOLS)
            span = spoken.span(start, at)
            if said := given.get(span[0], letters):
                words.append(Word(said, span, after=". " if written.endswith(".") else " "))
        return Reading(tuple(words))


class Stage(Direct):
    """The tone engine, with a hand on its curtain: hold it before any chunk, break it at one, see who left."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.hold_from: int | None = None  # chunks from this one on wait for `let_go`
        self.break_at: int | None = None
        self.error: Exception = RuntimeError("the lights went out")
        self.may_start = threading.Event()
        self.may_start.set()
        self.n_streams = 0
        self.asked: list[dict[str, Any]] = []
        self.closed = threading.Semaphore(0)  # one for each stream that ended before its last chunk
        self.opened = threading.Semaphore(0)
        self._go: asyncio.Event | None = None

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._go = asyncio.Event()
        await asyncio.to_thread(self.may_start.wait)
        await super().start()

    def let_go(self) -> None:
        assert self.loop is not None
        assert self._go is not None
        self.loop.call_soon_threadsafe(self._go.set)

    async def stream(self, text: str, **asked: Any) -> AsyncGenerator[Speech]:  # type: ignore[override]
        self.n_streams += 1
        self.asked.append({"text": text, **asked})
        self.opened.release()
        inner = super().stream(text, **asked)
        whole = False
        try:
            n = 0
            while True:
                if self.break_at is not None and n >= self.break_at:
                    raise self.error
                if self.hold_from is not None and n >= self.hold_from:
                    assert self._go is not None
                    await self._go.wait()
                try:
                    speech = await anext(inner)
                except StopAsyncIteration:
                    break
                yield speech
                n += 1
            whole = True
        finally:
            await inner.aclose()
            if not whole:
                self.closed.release()


def make_stage(folder: Path) -> Stage:
    for name in NAMES:
        if not (folder / f"{name}.bin").exists():
            np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    return Stage(Engine(ToneModel(lanes=2), Voices(folder), Spelling()))


@dataclass
class House:
    """A server that runs."""

    url: str
    stage: Stage
    app: FastAPI
    server: Server
    thread: threading.Thread
    clients: list[httpx2.Client] = field(default_factory=list)

    def client(self, **options: Any) -> httpx2.Client:
        made = httpx2.Client(base_url=self.url, timeout=60, **options)
        self.clients.append(made)
        return made

    def post(self, path: str, json: Any = None, **options: Any) -> httpx2.Response:
        return self.clients[0].post(path, json=json, **options)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.clients[0].get(path, **options)

    def speak(self, **body: Any) -> httpx2.Response:
        return self.post("/v1/audio/speech", {"input": SHORT, **body})

    @property
    def host_port(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)


@contextmanager
def serving(stage: Stage, **chosen: Any) -> Iterator[House]:
    """The application behind a real uvicorn, as `tutti serve` runs it."""
    settings = Settings(**{"port": 0, "grace_s": 0, **chosen})
    warm = threading.Event()
    with bound(settings) as sock:
        application = app(stage, settings, CollectorRegistry(), on_warm=lambda _: warm.set())
        server = Server(configured(application, settings), application.state.service.gate, settings.grace_s)
        started = threading.Event()

        async def run() -> None:
            serve = asyncio.create_task(server.serve(sockets=[sock]))
            while not server.started:
                await asyncio.sleep(0)
            started.set()
            await serve

        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        assert started.wait(60)
        if stage.may_start.is_set():
            assert warm.wait(60)
        house = House(address(sock), stage, application, server, thread)
        house.client()
        try:
            yield house
        finally:
            for client in house.clients:
                client.close()
            stage.may_start.set()
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def shaped(response: httpx2.Response, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    """The error, after checking that it looks as every error must."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error", "detail"}
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert body["detail"] == error["message"]
    assert error["message"]
    assert (error["code"], error["param"]) == (code, param)
    return dict(error)
