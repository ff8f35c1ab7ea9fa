"""Shared by server tests: a fake engine that a test can hold, and a real server on a free port."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
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
from tutti.server.app import create_app
from tutti.server.run import Server, bind, url_of, uvicorn_config
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Delivery, Frames, Samples, Speech, SpeechParams, Timing, Utterance, WordTime
from tutti.text import chunks, vocab
from tutti.text.chunk import Chunk
from tutti.text.frontend import G2PThread
from tutti.text.language import find_language
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices

SHORT = "deep water"
LONG = "The old bridge stands still under the water tonight and runs deep. " * 4


class FakeEngine:
    """An engine of tones that a test can hold before a chunk or fail at one; it counts opened and cancelled streams."""

    checkpoints = ("kokoro", "kokoro-int8")
    batching_enabled = True
    passages_at_once = 2

    def __init__(self, voices: Voices) -> None:
        self.voices = voices
        self.ready = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.hold_from: int | None = None  # chunks from this number on wait for `release`
        self.fail_at: int | None = None  # the number of the chunk that raises `error`
        self.error: Exception = RuntimeError("the lights went out")
        self.may_start = threading.Event()
        self.may_start.set()
        self.requests: list[dict[str, Any]] = []
        self.streams_opened = threading.Semaphore(0)  # released once for each stream
        self.streams_cancelled = threading.Semaphore(0)  # released for each that ended before its last chunk
        self._released: asyncio.Event | None = None

    @cached_property
    def monitor(self) -> Monitor:
        """The monitor of an engine that never runs: its queues stay empty."""
        return tone_engine(self.voices).monitor

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        await asyncio.to_thread(self.may_start.wait)
        self.ready = True

    async def close(self, grace_s: float = 0) -> None:
        self.ready = False

    def release(self) -> None:
        """Let the held chunks go on."""
        assert self.loop is not None
        assert self._released is not None
        self.loop.call_soon_threadsafe(self._released.set)

    def reset(self) -> None:
        """Restore the state after the start. Held streams must have been released."""
        assert self.loop is not None
        assert self._released is not None
        self.loop.call_soon_threadsafe(self._released.clear)
        self.hold_from = self.fail_at = None
        self.requests.clear()
        for counter in (self.streams_opened, self.streams_cancelled):
            while counter.acquire(blocking=False):
                pass

    async def stream(self, text: str, params: SpeechParams, **options: Any) -> AsyncGenerator[Speech]:
        self.requests.append({"text": text, **asdict(params), **options})
        self.streams_opened.release()
        complete = False
        try:
            for n, speech in enumerate(fake_speeches(self.voices, text, **asdict(params), **options)):
                if self.hold_from is not None and n >= self.hold_from:
                    assert self._released is not None
                    await self._released.wait()
                if self.fail_at is not None and n >= self.fail_at:
                    raise self.error
                await asyncio.sleep(0)
                yield speech
            complete = True
        finally:
            if not complete:
                self.streams_cancelled.release()

    def phonemize(self, text: str, language: str, lexicon: Mapping[str, str] | None = None) -> AsyncIterator[Chunk]:
        return G2PThread(Spelling().pronounce).chunks(text, language, UserLexicon.of(lexicon or {}))

    def stats(self) -> dict[str, Any]:
        return {
            "queue_status": {"current_size": 0, "worker_running": True},
            "performance": {"total_batches": 0, "total_requests": len(self.requests), "avg_batch_size": 0.0},
            "config": {"max_batch_size": 1},
        }

    def workers(self) -> dict[str, Any]:
        return {"totalWorkers": 1, "readyWorkers": 1, "busyWorkers": 0, "queueSize": 0, "batchingEnabled": True}


class GatedModel(ToneModel):
    """Runs one batch for each permit, if it has permits; counts batches and notes the length of every row."""

    def __init__(self) -> None:
        super().__init__()
        self.permits: threading.Semaphore | None = None
        self.at_work = threading.Event()
        self.n_batches = 0
        self.n_frames: list[int] = []

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        self.at_work.set()
        if self.permits:
            self.permits.acquire()
        self.n_batches += 1
        self.n_frames += [row.n_frames for row in rows]
        return super().vocoder(rows)


def fake_speeches(voices: Voices, text: str, *, voice: str, style: str | None = None, speed: float = 1.0,
          language: str | None = None, delivery: Delivery = "live",
          **_: Any) -> Iterator[Speech]:  # fmt: skip
    """Speak a text in tones: each letter lasts one token and has its own pitch."""
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


def expected_samples(server: "RunningServer", text: str, **options: Any) -> Samples:
    """The samples that the fake engine makes of a text, without a server."""
    speeches = fake_speeches(server.engine.voices, text, **{"voice": "af_heart", **options})
    samples: Samples = np.concatenate([speech.samples for speech in speeches])
    return samples


def make_fake_engine(folder: Path) -> FakeEngine:
    return FakeEngine(silent_voices(folder))


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


def assert_error(response: httpx2.Response, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    """Check that the response is an error in the documented form, and return that error."""
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
