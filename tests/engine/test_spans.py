"""A row delivered in spans: complete in the end, and cut only if that helps its listener."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tutti.batching.cost import CostModel
from tutti.batching.job import Job, Key
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.playback import Playback
from tutti.engine.row import Row, RowAudio
from tutti.engine.stats import BatchStats
from tutti.model.protocol import Model, Ran
from tutti.model.spans import LIGHT_SPANS, SEARCH_FRAMES, SpanRules
from tutti.model.tone import ToneModel
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Utterance
from tutti.worker.base import Worker
from tutti.worker.messages import Run
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

LONG = Utterance(np.arange(2, 177), np.zeros(256, np.float32))
FRAME_S = 0.01  # what a frame costs, by the cost model; the clock stands still
NEVER_S = 1e9
LITTLE_CONTEXT = SpanRules(first=40, min_row=200, context=4, once=0.1)


@dataclass
class Setup:
    """A batcher whose clock stands at zero, and the spans that its worker was asked for."""

    batcher: Batcher
    spans: list[object]


def with_batcher(act: Callable[[Setup], Awaitable[None]], worker: Worker | None = None) -> None:
    async def run() -> None:
        chosen = worker or ThreadWorker(tones)
        costs: dict[Key, CostModel] = {}

        def cost(key: Key) -> CostModel:
            return costs.setdefault(key, CostModel(SideBySide(1), (0.0, 0.0, FRAME_S, FRAME_S)))

        scheduler = Scheduler(Limits(max_start_s=float("inf")), cost, Deadline())
        setup = Setup(Batcher(chosen, scheduler, BatchStats(), clock=lambda: 0.0), [])
        run_stages = chosen.run

        def noted(run: Run, timeout_s: float) -> asyncio.Future[Ran]:
            setup.spans += [run.spans.get(id) for id in run.ids] if run.stages == "vocoder" else []
            return run_stages(run, timeout_s)

        chosen.run = noted  # type: ignore[method-assign]
        await setup.batcher.start()
        try:
            await act(setup)
        finally:
            await setup.batcher.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def tones() -> dict[str, Model]:
    return {"kokoro": ToneModel()}


def row(deadline_s: float = NEVER_S, *, incremental: bool = True, starts: bool = False, of: Utterance = LONG) -> Row:
    playback = Playback(deadline_s, 0.0, started_s=None if starts else deadline_s)
    return Row(of, "kokoro", 0, "next", playback, span_rules=LIGHT_SPANS if incremental else None, starts_stream=starts)


async def spans_of(setup: Setup, row: Row) -> list[RowAudio]:
    spans = [await setup.batcher.speak(row)]
    while (following := spans[-1].next) is not None:
        spans.append(await following)
    return spans


def whole() -> np.ndarray:
    model = ToneModel()
    return model.vocoder(model.acoustic([LONG]))[0]


def test_the_first_row_of_a_stream_is_delivered_in_spans_that_are_the_whole() -> None:
    async def act(setup: Setup) -> None:
        spans = await spans_of(setup, row(starts=True))
        assert len(spans) > 2
        np.testing.assert_array_equal(np.concatenate([span.samples for span in spans]), whole())
        assert all((span.durations == spans[0].durations).all() for span in spans)

    with_batcher(act)


@pytest.mark.parametrize(
    ("make", "n_spans"),
    [
        (lambda: row(), "one"),  # its whole is in time
        (lambda: row(deadline_s=0.5), "many"),  # the listener has less to hear than the whole takes
        (lambda: row(deadline_s=0.5, incremental=False), "one"),  # not with this checkpoint
        (lambda: row(starts=True, incremental=False), "one"),
        (
            lambda: row(deadline_s=0.0, starts=True, of=replace(LONG, tokens=LONG.tokens[: LIGHT_SPANS.min_row // 8])),
            "one",
        ),  # not worth it
    ],
    ids=["in time", "late", "late, never early", "opening, never early", "short"],
)
def test_a_row_is_cut_only_if_that_helps(make: Callable[[], Row], n_spans: str) -> None:
    async def act(setup: Setup) -> None:
        spans = await spans_of(setup, make())
        assert ("one" if len(spans) == 1 else "many") == n_spans

    with_batcher(act)


def test_the_spans_of_a_stream_that_has_left_are_not_computed() -> None:
    async def act(setup: Setup) -> None:
        first = await setup.batcher.speak(row(starts=True))
        assert first.next is not None
        setup.batcher.cancel(0)
        await spans_of(setup, row(incremental=False))  # behind it in the queue
        assert len(setup.spans) <= 3  # the first span, perhaps the one that ran when it was cancelled, the other row

    with_batcher(act)


@pytest.mark.process
@pytest.mark.parametrize("becomes_fast", [False, True])
def test_a_worker_that_dies_between_two_spans_loses_and_repeats_nothing(becomes_fast: bool) -> None:
    """Also if a row of its length would no longer be cut."""
    worker = ProcessWorker(tones)

    async def act(setup: Setup) -> None:
        spans = [await setup.batcher.speak(row(starts=True))]
        if becomes_fast:
            for queue in setup.batcher.scheduler.queues:
                queue.cost.start_from((0.0, 0.0, 1e-9, 1e-9))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        while (following := spans[-1].next) is not None:
            spans.append(await following)
        np.testing.assert_array_equal(np.concatenate([span.samples for span in spans]), whole())

    with_batcher(act, worker)


@pytest.mark.parametrize("rules", [LIGHT_SPANS, LITTLE_CONTEXT])
def test_on_a_slow_device_later_spans_are_not_mostly_context(rules: SpanRules) -> None:
    slow_s = 1.0  # for each frame: nothing would ever be in time

    async def act(_setup: Setup) -> None:
        cut = row(starts=True)
        cut.span_rules = rules
        cut.acoustic_done(np.array([600]), 0.0)
        cut.choose_spans(600 * slow_s, slow_s, 1.0, 0.0, others_wait=False)
        lengths = []
        while cut.spans:
            start, end = cut.spans[0]
            lengths.append(end - start)
            cut.span_done(np.zeros((end - start) * SAMPLES_PER_FRAME, np.float32), slow_s, 0.0)
        assert sum(lengths) == 600
        assert min(lengths[1:]) >= 3 * rules.context

    with_batcher(act)


@pytest.mark.parametrize(("others", "first_s"), [(False, 0.35), (True, 1.2)])
def test_while_others_wait_a_first_span_lasts_for_two_batches_of_theirs(others: bool, first_s: float) -> None:
    async def act(setup: Setup) -> None:
        scheduler = Scheduler(Limits(cap_s=0.6), setup.batcher.scheduler.cost, Deadline(0.6))
        for stream in (1, 2) if others else (1,):
            scheduler.add(Job(Key("tone", "acoustic"), stream, "next", 60, 9.0), 0.0)
        cut = row(starts=True)
        cut.stream, cut.span_rules = 1, LIGHT_SPANS
        cut.acoustic_done(np.array([400]), 0.0)
        cut.vocoder_job(scheduler, 0.0)
        start, end = cut.spans[0]
        assert start == 0
        assert end - (SEARCH_FRAMES if others else 0) == round(first_s * SAMPLE_RATE / SAMPLES_PER_FRAME)

    with_batcher(act)


def test_the_first_span_starts_a_stream_and_each_span_counts_those_after_it() -> None:
    async def act(setup: Setup) -> None:
        cut = row(starts=True)
        cut.span_rules = LIGHT_SPANS
        cut.acoustic_done(np.array([600]), 0.0)
        jobs = []
        while not jobs or cut.spans:
            job = cut.vocoder_job(setup.batcher.scheduler, 0.0)
            jobs.append((job.starts_stream, job.spans.seconds))
            cut.spans.popleft()
        assert len(jobs) > 2
        assert [starts for starts, _ in jobs] == [True] + [False] * (len(jobs) - 1)
        further_s = [seconds for _, seconds in jobs]
        assert further_s == sorted(further_s, reverse=True)
        assert further_s[0] > 0.0
        assert further_s[-1] == 0.0

    with_batcher(act)
