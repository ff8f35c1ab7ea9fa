"""Who has left costs nothing; and an engine counts a stream from its first step to its last."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.stepped import RunnerWorker
from tests.fakes import HEART, spoken_with, tone_engine
from tutti.batching.cost import CostModel
from tutti.engine.engine import Engine
from tutti.errors import WrongState
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices
from tutti.worker.messages import RunVocoder

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
                requests = [call.request for call in worker.calls if isinstance(call.request, RunVocoder)]
                return any(start and id > 0 for request in requests for id, (start, _) in request.spans.items())

            stream = engine.stream(SHORT + LONG, HEART)
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
            streams = [engine.stream(SHORT, with_lexicon, caller="one") for _ in range(4)]
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
