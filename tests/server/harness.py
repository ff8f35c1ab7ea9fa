"""What server tests share: a tone engine whose pace a test can hold, and a real server on a free port."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tests.fakes import Spelling, silent_voices, tone_engine
from tutti.engine.monitor import Monitor
from tutti.errors import NothingToSpeak
from tutti.model.tone import ToneModel
from tutti.server.app import app
from tutti.server.run import Server, address, bound, configured
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Delivery, Samples, Speech, SpeechParams, Timing, Utterance, WordTime
from tutti.text import chunks, vocab
from tutti.text.chunk import Chunk
from tutti.text.frontend import G2PThread
from tutti.text.language import language as find_language
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices

SHORT = "deep water"
LONG = "The old bridge stands still under the water tonight and runs deep. " * 4


class Stage:
    """An engine of tones, with a hand on its curtain: hold it before any chunk, break it at one, see who left."""

    checkpoints = ("kokoro", "kokoro-int8")

    def __init__(self, voices: Voices) -> None:
        self.voices = voices
        self.ready = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.hold_from: int | None = None  # chunks from this one on wait for `let_go`
        self.break_at: int | None = None
        self.error: Exception = RuntimeError("the lights went out")
        self.may_start = threading.Event()
        self.may_start.set()
        self.asked: list[dict[str, Any]] = []
        self.opened = threading.Semaphore(0)  # one for each stream
        self.closed = threading.Semaphore(0)  # one for each that ended before its last chunk
        self._go: asyncio.Event | None = None

    @cached_property
    def monitor(self) -> Monitor:
        """Of an engine that never runs: nobody waits there."""
        return tone_engine(self.voices).monitor

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._go = asyncio.Event()
        await asyncio.to_thread(self.may_start.wait)
        self.ready = True

    async def close(self, grace_s: float = 0) -> None:
        self.ready = False

    def let_go(self) -> None:
        assert self.loop is not None
        assert self._go is not None
        self.loop.call_soon_threadsafe(self._go.set)

    def reset(self) -> None:
        """As after the start; what was held has been let go."""
        assert self.loop is not None
        assert self._go is not None
        self.loop.call_soon_threadsafe(self._go.clear)
        self.hold_from = self.break_at = None
        self.asked.clear()
        for told in (self.opened, self.closed):
            while told.acquire(blocking=False):
                pass

    async def stream(self, text: str, params: SpeechParams, **asked: Any) -> AsyncGenerator[Speech]:
        self.asked.append({"text": text, **asdict(params), **asked})
        self.opened.release()
        whole = False
        try:
            for n, speech in enumerate(tones(self.voices, text, **asdict(params), **asked)):
                if self.hold_from is not None and n >= self.hold_from:
                    assert self._go is not None
                    await self._go.wait()
                if self.break_at is not None and n >= self.break_at:
                    raise self.error
                await asyncio.sleep(0)
                yield speech
            whole = True
        finally:
            if not whole:
                self.closed.release()

    def phonemize(self, text: str, language: str, lexicon: Mapping[str, str] | None = None) -> AsyncIterator[Chunk]:
        return G2PThread(Spelling().pronounce).chunks(text, language, UserLexicon.of(lexicon or {}))

    def stats(self) -> dict[str, Any]:
        return {
            "queue_status": {"current_size": 0, "worker_running": True},
            "performance": {"total_batches": 0, "total_requests": len(self.asked), "avg_batch_size": 0.0},
            "config": {"max_batch_size": 1},
        }

    def workers(self) -> dict[str, Any]:
        return {"totalWorkers": 1, "readyWorkers": 1, "busyWorkers": 0, "queueSize": 0, "batchingEnabled": True}


def tones(voices: Voices, text: str, *, voice: str, style: str | None = None, speed: float = 1.0,
          language: str | None = None, delivery: Delivery = "live",
          **_: Any) -> Iterator[Speech]:  # fmt: skip
    """What the engine says: each word as long as its letters, at the pitch of each."""
    speaker = voices.get(voice, style)
    code = find_language(language or speaker.language).code
    model, n_before, dropped = ToneModel(), 0, 0
    for chunk in chunks(text, code, Spelling().pronounce, whole_text=delivery != "live"):
        pause = np.zeros(round(chunk.pause_s * SAMPLE_RATE), np.float32)
        dropped += len(chunk.dropped)
        words: list[WordTime] = []
        sound = pause
        if chunk.words:
            tokens = vocab.encode(chunk.phonemes)
            (frames,) = model.acoustic([Utterance(tokens, speaker.style(len(tokens) - 2), speed)])
            ends_s = n_before / SAMPLE_RATE + np.cumsum(frames.durations) * 0.025
            sound = np.concatenate([*model.vocoder([frames]), pause])
            at = 0
            for word in chunk.words:
                first, last = at + len(word.before), at + len(word.before) + len(word.phonemes)
                words.append(WordTime(text[slice(*word.span)], float(ends_s[first]), float(ends_s[last]), word.span))
                at += len(word.symbols)
        if len(sound):
            yield Speech(sound, tuple(words), chunk.span, chunk.dropped, Timing(0.001, 0.002, 0.003, 0.004, 3))
        n_before += len(sound)
    if n_before == 0:
        raise NothingToSpeak(f"nothing to say, {dropped} symbols dropped", param="input")


def spoken(house: "House", text: str, **asked: Any) -> Samples:
    """What the engine says, without a server."""
    said: Samples = np.concatenate(
        [s.samples for s in tones(house.stage.voices, text, **{"voice": "af_heart", **asked})]
    )
    return said


def make_stage(folder: Path) -> Stage:
    return Stage(silent_voices(folder))


@dataclass
class House:
    """A server that runs."""

    url: str
    stage: Stage
    app: FastAPI
    server: Server
    thread: threading.Thread
    loop: asyncio.AbstractEventLoop
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
    def asleep(self) -> Iterator[None]:
        """The server stands still meanwhile: what is sent now is all there when it wakes, however slow the sender."""
        held, go = threading.Event(), threading.Event()
        self.loop.call_soon_threadsafe(lambda: (held.set(), go.wait()))
        assert held.wait(60)
        try:
            yield
        finally:
            go.set()


@contextmanager
def serving(stage: Any, **chosen: Any) -> Iterator[House]:
    """The application behind a real uvicorn, as `tutti serve` runs it."""
    with tempfile.TemporaryDirectory(prefix="tutti-") as data:
        settings = Settings(**{"port": 0, "grace_s": 0, "data": Path(data), **chosen})
        with _served(stage, settings) as house:
            yield house


@contextmanager
def _served(stage: Any, settings: Settings) -> Iterator[House]:
    warm = threading.Event()
    with bound(settings) as sock:
        application = app(stage, settings, CollectorRegistry(), on_warm=lambda _: warm.set())
        server = Server(configured(application, settings), application.state.service.gate, settings.grace_s)
        started = threading.Event()
        loops: list[asyncio.AbstractEventLoop] = []

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            serve = asyncio.create_task(server.serve(sockets=[sock]))
            while not server.started:
                await asyncio.sleep(0)
            started.set()
            await serve

        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        assert started.wait(60)
        if not isinstance(stage, Stage) or stage.may_start.is_set():
            assert warm.wait(60)
        house = House(address(sock), stage, application, server, thread, loops[0])
        house.client()
        try:
            yield house
        finally:
            for client in house.clients:
                client.close()
            if isinstance(stage, Stage):
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
