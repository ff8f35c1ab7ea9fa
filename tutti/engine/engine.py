"""The straight line from text to speech, and the one door for everything above it."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import astuple, dataclass, replace
from itertools import count
from math import inf
from typing import Any, Self

import numpy as np

from tutti.batching.job import Priority
from tutti.batching.policies import Policy
from tutti.engine.batcher import Batcher
from tutti.engine.monitor import Monitor
from tutti.engine.params import check_params
from tutti.engine.playback import Playback
from tutti.engine.request import Order, Pacing, nothing
from tutti.engine.row import Ask, Take
from tutti.engine.stats import BatchStats
from tutti.engine.word_times import (
    covered_span,
    join,
    shift_span,
    shift_time,
    silence,
    word_times,
    words_starting_within,
)
from tutti.errors import Draining, InvalidInput, NothingToSpeak
from tutti.model.prosody import emotion as find_emotion
from tutti.model.prosody import held_speed, together
from tutti.speech import (
    MAX_PHONEMES,
    SAMPLE_RATE,
    SAMPLES_PER_FRAME,
    Delivery,
    Prosody,
    Speech,
    SpeechParams,
    Utterance,
)
from tutti.text import vocab
from tutti.text.chunk import Chunk
from tutti.text.frontend import TextFrontend
from tutti.text.incremental import Segment, Text, segments
from tutti.text.language import language as find_language
from tutti.text.marks import voices_named
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices, renamed

log = logging.getLogger(__name__)

MAX_TEXT = 2_000_000  # characters; a long novel has about one million
FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE
SAFETY_S = 0.1  # how much before its turn a chunk should be there


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A chunk as far as it has been spoken: its latest stretch, which may be all of it."""

    stretch: Segment
    chunk: Chunk
    take: Take | None  # none for a bare pause
    g2p_s: float = 0.0
    begins_s: float = 0.0  # where in the chunk this stretch begins

    @property
    def then(self) -> asyncio.Future[Take] | None:
        return self.take.then if self.take else None

    @property
    def ends_s(self) -> float:
        return self.begins_s + (len(self.take.samples) / SAMPLE_RATE if self.take else 0.0)

    def following(self, take: Take) -> "Said":
        return Said(self.stretch, self.chunk, take, 0.0, self.ends_s)

    def speech(self) -> Speech:
        """The stretch with the words that begin in it, timed from where the chunk begins; the pause after the last."""
        chunk, take, pause = self.chunk, self.take, silence(0.0 if self.then else self.chunk.pause_s)
        if take is None:
            return Speech(pause, (), chunk.span, chunk.dropped)
        samples = np.concatenate([take.samples, pause]) if len(pause) else take.samples
        words, span = word_times(self.stretch.said, chunk, take.durations), chunk.span
        if self.then or self.begins_s:
            words = words_starting_within(words, self.begins_s or -inf, self.ends_s if self.then else inf)
            span = covered_span(words)
        timing = replace(take.timing, g2p_s=self.g2p_s)
        return shift_span(
            Speech(samples, words, span, () if self.begins_s else chunk.dropped, timing), self.stretch.shift
        )


class Engine:
    """Text in, speech out, in order: `stream()` is the path, `speak()` joins it. Enter it, or start and close it."""

    def __init__(
        self,
        batchers: Sequence[Batcher],
        voices: Voices,
        frontend: TextFrontend,
        batch_stats: BatchStats,
        *,
        checkpoints: Sequence[str],
        pacing: Pacing,
        own: Callable[[], UserLexicon] | None = None,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        """`own` gives the operator's pronunciations as they stand now; `policies` can be tried beside the one set."""
        self.voices = voices
        self.frontend = frontend
        self.batch_stats = batch_stats
        self.pacing = pacing
        self.checkpoints = tuple(checkpoints)  # the first is the one when none is asked for
        self.batchers = tuple(batchers)
        self.monitor = Monitor(self.batchers, batch_stats, policies or {}, pacing.target_s, pacing.first_chunks)
        self._own = own
        self.ready = False
        self.draining = False
        self._streams = count()
        self._n_running = 0
        self._quiet = asyncio.Event()

    async def start(self) -> None:
        """Returns when the model is warm."""
        await asyncio.gather(self.frontend.start(), *(batcher.start() for batcher in self.batchers))
        self.ready = True

    async def close(self, grace_s: float = 0.0) -> None:
        """No new work from now on; streams under way may end within the grace time."""
        self.draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._n_running:
                    self._quiet.clear()
                    await self._quiet.wait()
        self.ready = False
        await asyncio.gather(self.frontend.close(), *(batcher.close() for batcher in self.batchers))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def batching_enabled(self) -> bool:
        return self.batchers[0].scheduler.limits.max_rows > 1

    @property
    def passages_at_once(self) -> int:
        """How many passages of a book to speak at once, so that the batches are full."""
        return max(2, self.pacing.whole_ahead // 2)

    async def stream(
        self,
        text: Text,
        params: SpeechParams,
        *,
        caller: str = "",
        delivery: Delivery = "live",
        pause_s: float | None = None,
    ) -> AsyncGenerator[Speech]:
        """Yield speech chunk by chunk; the next chunks are made while the caller plays this one.

        `text` may be an iterator of pieces of any size (text that is still being written): each sentence is spoken as
        soon as no later piece can change it; a piece that is None, or `pause_s` without any piece, speaks what is
        there. Offsets count from the start of the whole text. `caller` names who shares the device fairly with others.
        Closing the generator cancels all work for it.
        """
        if isinstance(text, str) and len(text) > MAX_TEXT:
            raise InvalidInput(f"the text has {len(text)} characters; at most {MAX_TEXT} fit in one go", param="input")
        check_params(params)
        speed, prosody = params.speed, Prosody(params.pitch, params.pitch_range, params.energy)
        if params.emotion is not None:
            preset = find_emotion(params.emotion)
            speed, prosody = held_speed(speed * preset.speed), together(prosody, preset.prosody)
        speaker = self.voices.get(params.voice, params.style)
        for name in voices_named(text) if isinstance(text, str) else ():
            self.voices.get(renamed(name, params.voice_names))
        bulk, patient = delivery == "bulk", delivery != "live"
        order = Order(
            text=text,
            pause_s=pause_s,
            voice=speaker,
            code=find_language(params.language or speaker.language).code,
            speed=speed,
            prosody=prosody,
            own=self._words(params.lexicon),
            names=params.voice_names,
            seed=params.seed,
            checkpoint=self._checkpoint(params.model),
            caller=caller,
            bulk=bulk,
            patient=patient,
            early=not patient and self._checkpoint(params.model) in self.pacing.early,
            target_s=self.pacing.target(delivery),
            ahead=self.pacing.whole_ahead if patient else self.pacing.ahead,
            stream=next(self._streams),
        )
        silent = True
        dropped: list[str] = []
        async with self._counted(), aclosing(self._speeches(order)) as speeches:
            async for speech in speeches:
                dropped += speech.dropped
                if len(speech.samples):
                    silent = False
                    yield speech
        if silent:
            raise NothingToSpeak(nothing(dropped), param="input")

    async def speak(self, text: str, params: SpeechParams, *, caller: str = "") -> Speech:
        """Speak the whole text and return it as one speech."""
        return join([speech async for speech in self.stream(text, params, caller=caller, delivery="whole")])

    def phonemize(self, text: str, language: str, lexicon: Mapping[str, str] | None = None) -> AsyncIterator[Chunk]:
        """The text as the model will read it, chunk by chunk."""
        return self.frontend.chunks(text, find_language(language).code, self._words(lexicon))

    # -- the way of one request ----------------------------------------------------------------------------------

    async def _speeches(self, order: Order) -> AsyncGenerator[Speech]:
        """Chunks are submitted ahead of the caller, and handed over in their order."""
        playback = Playback(time.monotonic(), order.target_s, SAFETY_S)
        coming: asyncio.Queue[tuple[asyncio.Task[Said], float] | None] = asyncio.Queue()
        room = asyncio.Semaphore(1 + order.ahead)
        tasks: set[asyncio.Future[Any]] = set()
        batcher = min(self.batchers, key=lambda batcher: (not batcher.ready, batcher.backlog_s))
        submitting = asyncio.create_task(self._submit(order, playback, batcher, coming, room, tasks))
        tasks.add(submitting)
        heard_first = False
        n_samples = 0
        try:
            while (next_one := await coming.get()) is not None:
                task, likely_s = next_one
                said = await task
                tasks.discard(task)
                chunk_s = n_samples / SAMPLE_RATE
                while True:
                    speech, then = said.speech(), said.then
                    now = time.monotonic()
                    soon = True
                    if not heard_first and said.take:
                        heard_first = True
                        soon = now - playback.asked_s <= order.target_s
                        self.batch_stats.first_audio(now - playback.asked_s, in_time=soon)
                        if not order.patient:
                            batcher.hasten(order.stream, playback.early_s(now))
                    in_time = playback.sent(now, speech.duration_s, speech.duration_s if then else likely_s)
                    self.batch_stats.heard(speech.duration_s, in_time=in_time or order.bulk, soon=soon)
                    n_samples += len(speech.samples)
                    if then is not None:
                        tasks.add(then)
                    yield shift_time(speech, chunk_s)
                    if then is None:
                        break
                    likely_s -= speech.duration_s
                    said = said.following(await then)
                    tasks.discard(then)
                room.release()
            await submitting  # raises what stopped it
        finally:
            for task_left in tasks:
                task_left.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _submit(
        self,
        order: Order,
        playback: Playback,
        batcher: Batcher,
        coming: "asyncio.Queue[tuple[asyncio.Task[Said], float] | None]",
        room: asyncio.Semaphore,
        tasks: set[asyncio.Future[Any]],
    ) -> None:
        """Reads on as long as there is room, and sends each chunk on its way."""
        n_sent = 0
        try:
            async with aclosing(self._chunks(order, playback)) as chunks:
                async for stretch, chunk, g2p_s in chunks:
                    await room.acquire()
                    ask, likely_s = self._ask(order, chunk, playback, n_sent)
                    if ask is not None and n_sent == 0:
                        batcher.admit(ask)
                    n_sent += ask is not None
                    task = asyncio.create_task(self._say(stretch, chunk, ask, batcher, g2p_s))
                    tasks.add(task)
                    coming.put_nowait((task, likely_s))
        finally:
            coming.put_nowait(None)

    async def _chunks(self, order: Order, playback: Playback) -> AsyncGenerator[tuple[Segment, Chunk, float]]:
        """The text as it comes, in chunks; each with the stretch it is read from and the seconds that took."""
        async with aclosing(segments(order.text, MAX_TEXT, order.pause_s)) as texts:
            async for stretch in texts:
                playback.text_came(time.monotonic())
                if stretch.pause_s:
                    yield stretch, Chunk((), stretch.pause_s), 0.0
                async with aclosing(
                    _timed(self.frontend.chunks(stretch.said, order.code, order.own, order.patient))
                ) as chunks:
                    async for chunk, g2p_s in chunks:
                        yield stretch, chunk, g2p_s

    def _ask(self, order: Order, chunk: Chunk, playback: Playback, n_sent: int) -> tuple[Ask | None, float]:
        """The chunk as a row with its deadline, none for a bare pause; and how long it will sound, by estimate."""
        if not chunk.words:
            playback.due_s(chunk.pause_s)
            return None, chunk.pause_s
        kind: Priority = "bulk" if order.bulk else "first" if n_sent < self.pacing.first_chunks else "next"
        row = self._utterance(order, chunk)
        start, end = chunk.span
        ask = Ask(
            row, order.checkpoint, order.stream, kind, 0.0, order.caller, end - start, order.early, opens=n_sent == 0
        )
        likely_s = ask.likely_frames * FRAME_S + chunk.pause_s
        return replace(ask, deadline_s=playback.due_s(likely_s)), likely_s

    def _utterance(self, order: Order, chunk: Chunk) -> Utterance:
        """The chunk as a row, in the order's manner and what its marks change of it."""
        tokens = vocab.encode(chunk.phonemes)
        manner = chunk.manner
        voice = order.voice if manner.voice is None else self.voices.get(renamed(manner.voice, order.names))
        return Utterance(
            tokens,
            voice.style(min(len(tokens) - 2, MAX_PHONEMES)),
            held_speed(order.speed * manner.rate),
            order.seed,
            together(order.prosody, Prosody(pitch=manner.pitch)),
        )

    async def _say(self, stretch: Segment, chunk: Chunk, ask: Ask | None, batcher: Batcher, g2p_s: float) -> Said:
        """One chunk through the model, or its first stretch."""
        if ask is None:
            return Said(stretch, chunk, None)
        take = await batcher.say(ask)
        log.info(
            "chunk spoken stream=%d class=%s rows=%d queue=%.1fms acoustic=%.1fms vocoder=%.1fms",
            ask.stream, ask.kind, take.timing.batch_rows, *(1000 * s for s in astuple(take.timing)[1:4]),
        )  # fmt: skip
        return Said(stretch, chunk, take, g2p_s)

    # -- the books -----------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """What the batching did, as the requirement documents name it."""
        limits = self.batchers[0].scheduler.limits
        waiting = [batcher.scheduler.waiting() for batcher in self.batchers]
        return {
            "queue_status": {
                "current_size": sum(sum(kinds.values()) for kinds in waiting),
                "by_class": {kind: sum(kinds[kind] for kinds in waiting) for kind in waiting[0]},
                "backlog_s": max(batcher.backlog_s for batcher in self.batchers),
                "worker_running": self.workers()["readyWorkers"] > 0,
            },
            "performance": self.batch_stats.as_dict(),
            "config": {
                "policy": self.monitor.policy,
                "max_batch_size": limits.max_rows,
                "max_queue_size": limits.max_waiting,
                "first_audio_ms": 1000 * self.pacing.target_s,
                "bypass_chunks": self.pacing.first_chunks,
            },
        }

    def workers(self) -> dict[str, Any]:
        """How the workers fare, as the requirement documents name it."""
        states = [batcher.worker.status.state for batcher in self.batchers]
        return {
            "totalWorkers": len(states),
            "readyWorkers": sum(batcher.ready for batcher in self.batchers),
            "busyWorkers": states.count("busy"),
            "queueSize": sum(sum(batcher.scheduler.waiting().values()) for batcher in self.batchers),
            "batchingEnabled": self.batching_enabled,
        }

    def _words(self, lexicon: Mapping[str, str] | None) -> UserLexicon | None:
        """The operator's pronunciations, under those of the request."""
        own = self._own() if self._own else None
        if not lexicon:
            return own
        asked = UserLexicon.of(lexicon)
        return own | asked if own else asked

    def _checkpoint(self, name: str | None) -> str:
        if name is None:
            return self.checkpoints[0]
        if name not in self.checkpoints:
            raise InvalidInput(f"no model {name!r} here; there is {', '.join(self.checkpoints)}", param="model")
        return name

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        if self.draining:
            raise Draining("the engine is closing and takes no new work")
        self._n_running += 1
        try:
            yield
        finally:
            self._n_running -= 1
            self._quiet.set()


async def _timed(chunks: AsyncIterator[Chunk]) -> AsyncGenerator[tuple[Chunk, float]]:
    """Each chunk with the seconds that its reading took."""
    started_s = time.monotonic()
    async for chunk in chunks:
        yield chunk, time.monotonic() - started_s
        started_s = time.monotonic()
