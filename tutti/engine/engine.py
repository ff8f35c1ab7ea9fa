"""The engine: checks a request, opens its stream, and reports the state of its workers."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

from tutti.admission.loop_budget import LoopBudget
from tutti.admission.refusals import Asking, Refusals
from tutti.admission.start_delay import Start
from tutti.admission.ticket import Delivery, Ticket
from tutti.batching.policies import Policy
from tutti.engine.batcher import Batcher
from tutti.engine.monitor import Monitor
from tutti.engine.playback import Pacing
from tutti.engine.request import (
    DEFAULT_LANGUAGE,
    CheckedRequest,
    LexiconChecker,
    StreamRequest,
    check_request,
    check_voices,
)
from tutti.engine.stats import BatchStats
from tutti.engine.stream import PreparedText, Stream
from tutti.engine.word_times import NO_SPEECH, carrying, join, nothing_to_speak
from tutti.errors import Draining, WrongState
from tutti.speech import Speech, SpeechParams
from tutti.tasks import cancel_all, wait_for_all
from tutti.text.chunk import Chunk
from tutti.text.frontend import TextFrontend
from tutti.text.g2p_messages import OpenText
from tutti.text.language import check_spoken, find_language, language_of_model, request_language
from tutti.text.options import DEFAULT_OPTIONS, TextOptions
from tutti.text.user_lexicon import UserLexicon
from tutti.text.vocab import STAND_INS
from tutti.voices import Voices
from tutti.worker.base import Worker

log = logging.getLogger(__name__)
UNLOAD_TRIES = 3
IN_USE_S = 30.0  # after a stream of another caller the models stay loaded; larger protects users that pause longer


@dataclass(frozen=True, slots=True)
class TextDefaults:
    """How the operator wants texts to be read, where a request says nothing."""

    lexicon: Callable[[], UserLexicon] | None = None  # returns the present pronunciations
    options: TextOptions = DEFAULT_OPTIONS
    missing_symbols: Mapping[str, frozenset[str]] = field(default_factory=dict)  # that a checkpoint does not have
    stand_ins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # for symbols beyond Kokoro's
    languages: Mapping[str, str] = field(default_factory=dict)  # codes, of checkpoints of others


class Engine:
    """Text in, speech out, in order: `stream()` yields it, `speak()` joins it. Enter it, or start and close it."""

    def __init__(
        self,
        batchers: Sequence[Batcher],
        voices: Voices,
        frontend: TextFrontend,
        batch_stats: BatchStats,
        *,
        checkpoints: Sequence[str],
        pacing: Pacing,
        text_defaults: TextDefaults | None = None,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        """`policies` can be tried instead of the one in use."""
        self.voices = voices
        self.frontend = frontend
        self.batch_stats = batch_stats
        self.pacing = pacing
        self.checkpoints = tuple(checkpoints)  # the first is the default
        self.batchers = tuple(batchers)
        self.monitor = Monitor(self.batchers, batch_stats, policies or {}, pacing, self.checkpoints[0])
        self._text_defaults = text_defaults or TextDefaults()
        self._lexicons = LexiconChecker()
        self.ready = False
        self.draining = False
        self._numbers = count()
        self.n_streams = 0  # that run
        self._stream_ended = asyncio.Event()
        self._spoken_s: dict[str, float] = {}  # when the last stream of each caller ended, the oldest first
        self._idle: asyncio.Task[None] | None = None  # unloads the models after a while

    async def start(self) -> None:
        """Return when the model is warm."""
        starting = [asyncio.create_task(part.start()) for part in self._parts]
        try:
            await asyncio.gather(*starting)
        except BaseException:
            await cancel_all(starting)
            await wait_for_all(part.close() for part in self._parts)  # else their processes would go on
            raise
        self.ready = True
        self.loop_budget.start_measuring()
        self.monitor.log_cost()
        self._start_idle()

    async def unload(self, caller: str = "") -> int:
        """Give the memory of the models back until the next stream; return how many workers did so.

        Raises WrongState while something is being spoken, or was a moment ago for another caller: one that
        unloads again and again would make all others wait for the model.
        """
        if self.n_streams:
            raise WrongState("something is being spoken; unload the models when it has ended")
        since_s = time.monotonic() - IN_USE_S
        if any(ended_s > since_s for other, ended_s in self._spoken_s.items() if other != caller):
            raise WrongState(f"others use the models; they can be unloaded {IN_USE_S:g} s after their last request")
        return await self._unload_workers()

    async def close(self, grace_s: float = 0.0) -> None:
        """Refuse new streams; let those in progress end within the grace time."""
        self.draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self.n_streams:
                    self._stream_ended.clear()
                    await self._stream_ended.wait()
        self.ready = False
        self.loop_budget.stop_measuring()
        self._stop_idle()
        await wait_for_all(part.close() for part in self._parts)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def _parts(self) -> tuple[TextFrontend | Batcher, ...]:
        """What starts and closes with the engine."""
        return (self.frontend, *self.batchers)

    @property
    def batching_enabled(self) -> bool:
        return self.batchers[0].scheduler.limits.max_rows > 1

    @property
    def loop_budget(self) -> LoopBudget:
        """What may begin in a turn of the event loop; its batchers share it."""
        return self.batchers[0].loop_budget

    @property
    def refusals(self) -> Refusals:
        """What was refused a moment ago; its batchers share it."""
        return self.batchers[0].refusals

    @property
    def frontend_ready(self) -> bool:
        """Whether texts are read; False while the G2P process hangs or is being replaced."""
        return self.frontend.ready

    @property
    def passages_at_once(self) -> int:
        """How many passages of a book fill the device."""
        return max(2, self.pacing.whole_ahead // 2)

    async def stream(self, request: StreamRequest) -> AsyncGenerator[Speech]:
        """Yield speech chunk by chunk; the next chunks are made while the caller plays this one.

        Offsets count from the start of the whole text. Closing the generator cancels all work for it.

        QueueFull is raised if the first audio would not be there within `max_start_s` of its ticket; by default that
        depends on the delivery and on the speed of the device. If the ticket says when the request arrived, the caller
        says by `first_audio` when it could send the first audio, else that is when it is yielded.
        """
        checked = self._check(request)
        is_silent, n_dropped = True, 0
        unspoken = NO_SPEECH  # what those without audio name, for the next one that has some
        with ExitStack() as scope:
            stream, start = await self._open_counted(scope, checked)
            async with aclosing(stream.speeches(start)) as speeches:
                async for speech in speeches:
                    n_dropped += len(speech.dropped)
                    speech = carrying(unspoken, speech)
                    if not len(speech.samples):
                        unspoken = speech
                        continue
                    unspoken, is_silent = NO_SPEECH, False
                    yield speech
                    del speech  # not held until the next one is there
        if n_dropped:
            log.info("unspoken stream=%d symbols=%d", stream.number, n_dropped)
            self.batch_stats.metrics.unspoken.inc(n_dropped)
        if is_silent:
            raise nothing_to_speak(unspoken)
        if unspoken.dropped or unspoken.notices:
            yield unspoken  # without samples: the text ends with what cannot be spoken

    async def speak(self, text: str, params: SpeechParams, *, caller: str = "") -> Speech:
        """Speak the whole text and return it as one speech."""
        request = StreamRequest(text, params, Ticket(caller, "whole"))
        return join([speech async for speech in self.stream(request)])

    async def prepare(self, text: str, params: SpeechParams, *, caller: str = "") -> PreparedText:
        """Check a request and turn its text into rows for the model, without queueing them.

        For a caller that knows all of its texts and forms the batches itself.
        """
        checked = self._check(StreamRequest(text, params, Ticket(caller, "bulk")))
        stream = await self._open_stream(checked, self.batchers[0])
        return await stream.prepare()

    def _check(self, request: StreamRequest) -> CheckedRequest:
        voices = self.voices.seen_by(request.ticket.caller).of_model(request.params.model)
        return check_request(request, self.checkpoints, voices, self._text_defaults.options)

    async def _open_counted(self, scope: ExitStack, checked: CheckedRequest) -> tuple[Stream, Start]:
        """Open a stream at the worker with the least work; it counts from its first step until `counted` is closed."""
        ticket = checked.request.ticket
        await self.loop_budget.turn("stream")
        scope.enter_context(self._running(ticket.caller))  # now: no unload begins while it is opened
        batcher = self.monitor.next_batcher()
        if batcher.worker.status.state in ("asleep", "starting"):
            await batcher.worker.wake()  # here: the time does not count as that of a batch
        if ticket.delivery == "live" and isinstance(checked.request.text, str):
            left_s = ticket.left_s(self.pacing.target_s, time.monotonic())
            batcher.check_wait(Asking(checked.checkpoint, ticket.caller, ticket.max_start_s), left_s)
        start = Start(batcher.start_delay)  # the next one that asks sees it
        scope.callback(start.end)
        return await self._open_stream(checked, batcher), start

    async def _open_stream(self, checked: CheckedRequest, batcher: Batcher) -> Stream:
        """The stream of a request; raise for a voice or a lexicon that is not there."""
        text, params = checked.request.text, checked.params
        voices = self.voices.seen_by(checked.request.ticket.caller).of_model(checked.checkpoint)
        voice = voices.get(params.voice, params.style)
        voice_names = await check_voices(text, params.voice_names, voices) if isinstance(text, str) else None
        code = checked.language or find_language(voice.language).code
        code = language_of_model(code, self._text_defaults.languages.get(checked.checkpoint))
        check_spoken(code, checked.checkpoint, self._text_defaults.languages)
        options = checked.options._replace(model_language=self._text_defaults.languages.get(checked.checkpoint, ""))
        if languages := voices.languages(voice_names):
            options = options._replace(voice_languages=languages)
        checked = replace(checked, options=options)
        return Stream(
            next(self._numbers),
            checked,
            voice,
            code,
            await self._lexicon(params.lexicon),
            self.pacing,
            voices,
            self.frontend,
            batcher,
            self.batch_stats,
            self._text_defaults.missing_symbols.get(checked.checkpoint, frozenset()),
            self._text_defaults.stand_ins.get(checked.checkpoint, STAND_INS),
        )

    async def phonemize(
        self, text: str, language: str, lexicon: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Chunk]:
        """The text in phonemes, chunk by chunk."""
        code, detect_language = request_language(language, DEFAULT_LANGUAGE)
        options = self._text_defaults.options._replace(detect_language=detect_language)
        words = await self._lexicon(lexicon or {})
        async for chunk in self.frontend.chunks(OpenText(text, code, words, options=options)):
            yield chunk

    def first_audio(self, waited_s: float, delivery: Delivery) -> None:
        """Record how long a request has waited since it arrived until the first bytes of its audio could be sent."""
        self.batch_stats.first_audio(waited_s, in_time=waited_s <= self.pacing.target(delivery))

    def count_refusal(self) -> None:
        """Count a stream that was refused before it was asked for here."""
        self.batch_stats.rejected("first")

    def predicted_wait_s(self, delivery: Delivery = "live") -> float:
        """Seconds that a new request would wait before its work begins, on top of the time it needs on an idle server.

        While no worker is ready it does not count the time until one is: see `workers`.
        """
        return self.monitor.predicted_wait_s(delivery)

    def busy_ratio(self) -> float:
        """Share of the last 10 s in which the devices had a batch, the mean over all workers; from 0 to 1."""
        return self.monitor.busy_ratio()

    def stats(self) -> dict[str, Any]:
        """Statistics of the batching, with the field names of the HTTP API."""
        return self.monitor.stats()

    def workers(self) -> dict[str, Any]:
        """State of the workers, with the field names of the HTTP API."""
        return self.monitor.workers()

    async def _lexicon(self, pronunciations: Mapping[str, str]) -> UserLexicon | None:
        """The request's pronunciations over those of the operator."""
        operator = self._text_defaults.lexicon() if self._text_defaults.lexicon else None
        if not pronunciations:
            return operator
        requested = await self._lexicons.build(pronunciations)
        return operator | requested if operator else requested

    @contextmanager
    def _running(self, caller: str) -> Iterator[None]:
        """Count a stream for `close` and `unload`."""
        if self.draining:
            raise Draining("the engine is closing and accepts no new requests")
        self.n_streams += 1
        self._stop_idle()
        try:
            yield
        finally:
            self.n_streams -= 1
            self._note_spoken(caller, time.monotonic())
            self._stream_ended.set()
            if not self.n_streams and not self.draining:
                self._start_idle()

    def _start_idle(self) -> None:
        """Unload the models if no stream begins for a while."""
        if (idle_s := self.pacing.idle_unload_s) is not None:
            self._idle = asyncio.create_task(self._unload_after(idle_s), name="tutti-idle")

    def _stop_idle(self) -> None:
        if self._idle:
            self._idle.cancel()
            self._idle = None

    async def _unload_after(self, idle_s: float) -> None:
        await asyncio.sleep(idle_s)
        log.info("unloading idle_s=%g", idle_s)
        await self._unload_workers()

    def _note_spoken(self, caller: str, now: float) -> None:
        self._spoken_s.pop(caller, None)
        self._spoken_s[caller] = now
        while next(iter(self._spoken_s.values())) < now - IN_USE_S:
            del self._spoken_s[next(iter(self._spoken_s))]

    async def _unload_workers(self) -> int:
        return sum(await asyncio.gather(*(self._unload(batcher.worker) for batcher in self.batchers)))

    async def _unload(self, worker: Worker) -> bool:
        """Try more than once: the last call of a stream that was closed may come late, and keeps the worker."""
        for _ in range(UNLOAD_TRIES):
            if self.n_streams or await worker.unload():
                break
        return worker.status.state == "asleep"
