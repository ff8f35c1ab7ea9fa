"""Who has left costs nothing; and an engine counts a stream from its first step to its last."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from benchmarks.virtual import TextsAtOnce, VirtualLoop
from tests.engine.stepped import RunnerWorker
from tests.examples import examples
from tests.fakes import HEART, silent_voices, spoken_with, tone_engine
from tutti.admission.ticket import Delivery, Ticket
from tutti.batching.cost import CostModel
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.errors import WorkerLost, WrongState
from tutti.settings import Settings
from tutti.text.chunk import Chunk
from tutti.text.frontend import DueTime, never
from tutti.text.g2p_messages import OpenText
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices

SHORT, LONG = "Deep water runs. ", "deep water runs under the old bridge and " * 8 + "stands still. "


async def until(condition: Callable[[], bool], *, meanwhile: Callable[[], object] = lambda: None) -> None:
    async with asyncio.timeout(60):
        while not condition():
            meanwhile()
            await asyncio.sleep(0.001)


def test_no_call_starts_for_a_stream_that_has_left_though_nobody_took_a_span_of_its_next_chunk(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CostModel, "learn", lambda *_: None)  # this worker takes no time, and is not worth cutting rows

    async def scenario() -> None:
        worker = RunnerWorker()
        async with tone_engine(voices, worker=lambda make: worker, capped=True) as engine:

            def is_ahead() -> bool:
                """The second chunk goes on with a later span, while the listener has only the first chunk."""
                runs = [call.run for call in worker.calls]
                return any(start and id > 0 for run in runs for id, (start, _) in run.spans.items())

            stream = engine.stream(StreamRequest(SHORT + LONG, HEART))
            first = asyncio.create_task(anext(stream))
            await until(first.done, meanwhile=worker.end_any)
            await until(is_ahead, meanwhile=worker.end_any)
            await stream.aclose()
            assert len(worker.calls) == 1, "the one that runs"
            for _ in range(20):
                worker.end_any()
                await asyncio.sleep(0.001)
                assert not worker.calls
            assert not worker.frames

    asyncio.run(scenario())


class HeldTexts(TextsAtOnce):
    """Begins to read a text when a test says so."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.released: dict[str, asyncio.Event] = {}

    async def chunks(self, text: OpenText, due_s: DueTime = never) -> AsyncGenerator[Chunk]:
        await self.released.setdefault(text.text.strip(), asyncio.Event()).wait()
        async for chunk in super().chunks(text, due_s):
            yield chunk


class TotalsMachine(RuleBasedStateMachine):
    """Streams are opened, read, spoken and left in any order."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.worker = RunnerWorker()
        self.texts = HeldTexts()
        self.listeners: list[tuple[str, asyncio.Task[None]]] = []
        self.runner.run(self._start())

    async def _start(self) -> None:
        self.engine = tone_engine(silent_voices(Path(self.folder.name)), worker=lambda make: self.worker)
        self.engine.frontend = self.texts
        await self.engine.start()

    def act(self, act: Callable[[], object]) -> None:
        async def settled() -> None:
            act()
            await asyncio.sleep(1.0)

        self.runner.run(settled())

    @rule(caller=st.sampled_from(["one", "two"]), is_long=st.booleans(), delivery=st.sampled_from(["live", "whole"]))
    def open(self, caller: str, is_long: bool, delivery: Delivery) -> None:
        text = f"{SHORT * (8 if is_long else 1)}{'a' * (1 + len(self.listeners))}."

        async def listen() -> None:
            with suppress(WorkerLost):  # by `die`
                request = StreamRequest(text, spoken_with(seed=seed), Ticket(caller=caller, delivery=delivery))
                async for _ in self.engine.stream(request):
                    pass

        def start() -> None:
            task = asyncio.create_task(listen())
            task.add_done_callback(lambda _: self.worker.left_seeds.add(seed))
            self.listeners.append((text, task))

        seed = len(self.listeners)
        self.act(start)

    @precondition(lambda self: self.listeners)
    @rule(data=st.data(), leaves=st.booleans())
    def read_or_leave(self, data: st.DataObject, leaves: bool) -> None:
        text, task = data.draw(st.sampled_from(self.listeners))
        self.act(task.cancel if leaves else self.texts.released[text].set)

    @rule()
    def end_call(self) -> None:
        self.act(self.worker.end_any)

    @rule()
    def die(self) -> None:
        self.act(self.worker.die)

    @invariant()
    def every_total_counts_the_streams_that_are_open(self) -> None:
        is_open = [text for text, task in self.listeners if not task.done()]
        (batcher,) = self.engine.batchers
        assert self.engine.n_streams == len(is_open)
        n_unread = sum(not self.texts.released[text].is_set() for text in is_open)
        assert batcher.start_delay.n_starting == batcher.start_delay._n_reading == n_unread
        assert len(batcher.scheduler.streams._callers) == len(is_open)
        assert {row.stream for row in batcher._rows.open} <= batcher.scheduler.streams._callers.keys()

    @invariant()
    def no_call_starts_for_a_stream_that_has_left(self) -> None:
        assert not self.worker.started_for_left

    def teardown(self) -> None:
        try:
            for event in self.texts.released.values():
                self.act(event.set)
            while not all(task.done() for _, task in self.listeners):
                self.act(self.worker.end_any)
            self.act(self.worker.end_any)
            self.every_total_counts_the_streams_that_are_open()
            assert not self.engine.batchers[0]._rows.open
            assert not self.worker.frames
            self.runner.run(self.engine.close())
        finally:
            self.runner.close()
            self.folder.cleanup()


TestTotals = TotalsMachine.TestCase
TestTotals.settings = settings(max_examples=examples(20), stateful_step_count=20, deadline=None)


class HeldLexicons:
    """A lexicon that takes as long as a test wants."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.released = asyncio.Event()
        monkeypatch.setattr(engine._lexicons, "build", self._build)

    async def _build(self, pronunciations: Any) -> UserLexicon:
        await self.released.wait()
        return UserLexicon.of(pronunciations)


def test_streams_that_are_being_opened_are_seen_by_the_next_one_and_by_who_would_unload(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst cannot pass the check uncounted, nor does an unload begin under a stream."""
    n_seen: list[int] = []

    async def scenario() -> None:
        worker = RunnerWorker()
        async with tone_engine(voices, worker=lambda make: worker, capped=True) as engine:
            (batcher,) = engine.batchers
            lexicons, with_lexicon = HeldLexicons(engine, monkeypatch), spoken_with(lexicon={"tutti": "tˈuti"})
            monkeypatch.setattr(batcher, "check_wait", lambda *_: n_seen.append(batcher.start_delay.n_starting))
            streams = [engine.stream(StreamRequest(SHORT, with_lexicon, Ticket(caller="one"))) for _ in range(4)]
            firsts = [asyncio.create_task(anext(stream)) for stream in streams]
            await until(lambda: len(n_seen) == 4)
            assert n_seen == [0, 1, 2, 3]
            assert engine.n_streams == batcher.start_delay.n_starting == 4
            with pytest.raises(WrongState, match="being spoken"):
                await engine.unload("one")
            firsts[0].cancel()
            await asyncio.gather(firsts[0], return_exceptions=True)
            assert engine.n_streams == batcher.start_delay.n_starting == 3
            lexicons.released.set()
            await until(lambda: all(first.done() for first in firsts), meanwhile=worker.end_any)
            assert (engine.n_streams, batcher.start_delay.n_starting) == (3, 0)
            for stream in streams:
                await stream.aclose()
            assert (engine.n_streams, batcher.start_delay.n_starting) == (0, 0)

    asyncio.run(scenario())
