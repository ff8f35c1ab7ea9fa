"""Fakes that several test files share: models, engines, voices and G2P. None of them needs weights."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tutti.admission.loop_budget import LoopBudget
from tutti.admission.refusals import Refusals
from tutti.admission.ticket import Delivery, Ticket
from tutti.batching.job import StageName
from tutti.engine.build import CHECKPOINT, assemble, chunk_sizes, make_frontend
from tutti.engine.engine import Engine
from tutti.engine.monitor import Monitor
from tutti.engine.request import StreamRequest
from tutti.errors import ModelFailed, NothingToSpeak
from tutti.model.choice import Choice
from tutti.model.light.weights import Int8Matrix, Weights
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel, pitch_hz
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Frames, Samples, Speech, SpeechParams, Timing, Utterance, WordTime
from tutti.text import Pronounce, chunks, vocab
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, InlineStyle, PhonemeWord, Pronunciation, WordStyle
from tutti.text.frontend import G2PThread
from tutti.text.g2p_messages import OpenText
from tutti.text.language import find_language
from tutti.text.user_lexicon import UserLexicon
from tutti.text.vocab import SYMBOLS
from tutti.voices import NAMES, Voices
from tutti.worker.base import Worker
from tutti.worker.thread import ThreadWorker


class Spelling:
    """G2P that needs no lexicon: a word sounds as it is spelled; what has no letter is dropped."""

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Pronunciation:
        words, at = [], 0
        for written in spoken.text.split():
            start = spoken.text.index(written, at)
            at = start + len(written)
            letters = "".join(char for char in written.lower().replace("g", "ɡ") if char.isalpha() and char in SYMBOLS)
            source = spoken.source(start, at)
            if said := given.get(source[0], letters):
                words.append(PhonemeWord(said, source, after=". " if written.endswith(".") else " "))
        return Pronunciation(tuple(words))


def word_styles(spoken: Sequence[Chunk]) -> list[tuple[str, InlineStyle]]:
    """The words, each with its style: that of its row, and what marks change for the word."""
    return [(word.phonemes, _own_style(chunk.inline_style, word.style)) for chunk in spoken for word in chunk.words]


def _own_style(style: InlineStyle, own: WordStyle | None) -> InlineStyle:
    if own is None:
        return style
    rate, pitch, volume = style.rate * own.rate, style.pitch + own.pitch, style.volume * own.volume
    return style._replace(rate=rate, pitch=pitch, volume=volume, emphasis=own.emphasis)


class Gate:
    """Lets a call pass while it is open; while it is closed, one call passes for each permit."""

    def __init__(self, n_permits: int | None = None) -> None:
        """`n_permits`: closed from the start, with so many permits. Default: open."""
        self.arrivals = threading.Semaphore(0)  # released for each call that reaches the gate
        self.n_arrived = 0
        self._n_permits = n_permits
        self._changed = threading.Condition()

    def open(self, *_: object) -> None:
        """Let all calls pass. Ignores arguments, so that it can be a signal handler."""
        self._set(None)

    def close(self, n_permits: int = 0) -> None:
        self._set(n_permits)

    def permit(self, n: int = 1) -> None:
        """Let so many more calls pass."""
        assert self._n_permits is not None, "an open gate needs no permits"
        self._set(self._n_permits + n)

    @contextmanager
    def closed(self) -> Iterator["Gate"]:
        self.close()
        try:
            yield self
        finally:
            self.open()

    def wait(self) -> None:
        """Wait until this call may pass."""
        self.n_arrived += 1
        self.arrivals.release()
        with self._changed:
            assert self._changed.wait_for(lambda: self._n_permits != 0, timeout=300), "the gate was never opened"
            if self._n_permits is not None:
                self._n_permits -= 1

    def _set(self, n_permits: int | None) -> None:
        with self._changed:
            self._n_permits = n_permits
            self._changed.notify_all()


class GatedModel(ToneModel):
    """Waits at its gate in these stages before each call, or only before those that `gated` picks."""

    def __init__(
        self,
        *stages: StageName,
        gate: Gate | None = None,
        gated: Callable[[Any], bool] = lambda rows: True,
    ) -> None:
        super().__init__()
        self.stages = stages or ("vocoder",)
        self.gate = gate or Gate()
        self.gated = gated

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        if "acoustic" in self.stages and self.gated(rows):
            self.gate.wait()
        return super().acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if "vocoder" in self.stages and self.gated(rows):
            self.gate.wait()
        return super().vocoder(rows)


class RecordingModel(GatedModel):
    """Keeps the rows of every call that has passed the gate, and the threads that called."""

    def __init__(self, *stages: StageName, **options: Any) -> None:
        super().__init__(*stages, **options)
        self.acoustic_calls: list[list[Utterance]] = []
        self.vocoder_calls: list[list[Frames]] = []
        self.threads: set[int] = set()

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        frames = super().acoustic(rows)
        self.acoustic_calls.append(list(rows))
        self.threads.add(threading.get_ident())
        return frames

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        samples = super().vocoder(rows)
        self.vocoder_calls.append(list(rows))
        self.threads.add(threading.get_ident())
        return samples

    @property
    def batch_sizes(self) -> list[int]:
        """The number of rows of each vocoder call."""
        return [len(rows) for rows in self.vocoder_calls]


class FailingModel(ToneModel):
    """Fails in the vocoder on the batches that `fails` picks."""

    def __init__(self, fails: Callable[[Sequence[Frames]], bool]) -> None:
        super().__init__()
        self.fails = fails

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if self.fails(rows):
            raise ModelFailed("the test made this batch fail")
        return super().vocoder(rows)


class DyingModel(ToneModel):
    """Kills its process in the vocoder, `n_deaths` times in all; with a token, only on rows that have it.

    The folder counts the deaths, since the process cannot.
    """

    def __init__(self, folder: Path, n_deaths: int = 1_000_000, token: int | None = None) -> None:
        super().__init__()
        self.folder, self.n_deaths, self.token = folder, n_deaths, token

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        is_deadly = self.token is None or has_token(rows, self.token)
        if is_deadly and len(list(self.folder.iterdir())) < self.n_deaths:
            (self.folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().vocoder(rows)


def has_token(rows: Sequence[Frames], token: int) -> bool:
    """Whether the tone of this token sounds in one of the rows."""
    return any(pitch_hz(token) in row.f0 for row in rows)


def silent_voices(folder: Path) -> Voices:
    """Every name, no style: enough for a model that does not listen to styles."""
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    return Voices(folder)


def tone_engine(
    voices: Voices,
    model: Callable[[], Model] = ToneModel,
    pronounce: Pronounce | None = None,
    *,
    worker: Callable[..., Worker] = ThreadWorker,
    n_workers: int = 1,
    capped: bool = False,
    others: Mapping[str, Callable[[], Model]] = {},
    **chosen: Any,
) -> Engine:
    """An engine as `open_engine` would put it together, to be entered by the caller; `others`: more checkpoints."""
    models = {CHECKPOINT: model, **others}
    make = partial(_make_models, models)
    choices = dict.fromkeys(models, Choice("onnx", "cpu", "fp32", vocoder="light"))  # which delivers rows in spans
    settings = Settings(**{"threads": 2, **chosen})
    if settings.g2p_url:
        reader = make_frontend(settings, 1)
    else:
        reader = G2PThread(pronounce or Spelling().pronounce, sizes=chunk_sizes(settings))
    return assemble([worker(make) for _ in range(n_workers)], choices, voices, reader, settings, capped=capped)


def _make_models(models: Mapping[str, Callable[[], Model]]) -> dict[str, Model]:
    return {name: model() for name, model in models.items()}


class FakeEngine:
    """An engine of tones that a test can hold before a chunk or fail at one; it counts opened and cancelled streams."""

    checkpoints = ("kokoro", "kokoro-int8")
    batching_enabled = True
    frontend_ready = True
    passages_at_once = 2

    def __init__(self, voices: Voices) -> None:
        self.voices = voices
        self.refusals, self.loop_budget = Refusals(), LoopBudget()
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

    def first_audio(self, waited_s: float, delivery: Delivery) -> None:
        self.monitor.batch_stats.first_audio(waited_s)

    def count_refusal(self) -> None:
        self.monitor.batch_stats.rejected("first")

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        await asyncio.to_thread(self.may_start.wait)
        self.ready = True

    async def close(self, grace_s: float = 0) -> None:
        self.ready = False

    async def unload(self, caller: str = "") -> int:
        return 1

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

    async def stream(self, request: StreamRequest) -> AsyncGenerator[Speech]:
        facts = {"text": request.text, **asdict(request.params), **request.ticket._asdict(), "pause_s": request.pause_s}
        self.requests.append(facts)
        self.streams_opened.release()
        complete = False
        try:
            for n, speech in enumerate(fake_speeches(self.voices, **facts)):
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
        return G2PThread(Spelling().pronounce).chunks(OpenText(text, language, UserLexicon.of(lexicon or {})))

    def stats(self) -> dict[str, Any]:
        return {
            "queue_status": {"current_size": 0, "worker_running": True},
            "performance": {
                "total_batches": 0,
                "total_requests": len(self.requests),
                "avg_batch_size": 0.0,
                "chunks_by_mode": {},
            },
            "config": {"max_batch_size": 1},
        }

    def workers(self) -> dict[str, Any]:
        counts = {"totalWorkers": 1, "readyWorkers": 1, "busyWorkers": 0, "asleepWorkers": 0}
        return {**counts, "queueSize": 0, "batchingEnabled": True}


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
                words.append(
                    WordTime(text[slice(*word.source)], float(ends_s[first]), float(ends_s[last]), word.source)
                )
                at += len(word.symbols)
        if len(sound):
            yield Speech(sound, tuple(words), chunk.source, chunk.dropped, Timing(0.001, 0.002, 0.003, 0.004, 3))
        n_before += len(sound)
    if n_before == 0:
        raise NothingToSpeak(f"nothing to say, {dropped} symbols dropped", param="input")


def make_fake_engine(folder: Path) -> FakeEngine:
    return FakeEngine(silent_voices(folder))


HEART = SpeechParams("af_heart")


def spoken_with(**params: Any) -> SpeechParams:
    """The usual voice, unless another is given."""
    return replace(HEART, **params)


class Running:
    """An engine in an event loop of its own thread, for tests that are not asynchronous."""

    def __init__(self, engine: Engine, portal: BlockingPortal) -> None:
        self.engine = engine
        self.portal = portal

    def speak(self, text: str, **params: Any) -> Speech:
        return self.portal.call(self.engine.speak, text, spoken_with(**params))

    def stream(self, text: str, *, delivery: Delivery = "live", **params: Any) -> list[Speech]:
        async def all_of_it() -> list[Speech]:
            stream = self.engine.stream(StreamRequest(text, spoken_with(**params), Ticket(delivery=delivery)))
            return [speech async for speech in stream]

        return self.portal.call(all_of_it)


@contextmanager
def running(engine: Engine) -> Iterator[Running]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(engine):
        yield Running(engine, portal)


def without_ranges(packed: Weights) -> Weights:
    """These weights as if nobody had measured the ranges of their inputs."""
    return {name: replace(each, range=None) if isinstance(each, Int8Matrix) else each for name, each in packed.items()}
