"""A row that sounds stretch by stretch: whole in the end, and only where somebody would wait or hear a gap."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tutti.batching.cost import CostModel
from tutti.batching.job import Key
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.row import Ask, Take
from tutti.engine.stats import BatchStats
from tutti.model.onnx.incremental.spans import MIN_FRAMES
from tutti.model.tone import ToneModel
from tutti.speech import Model, Utterance
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

LONG = Utterance(np.arange(2, 177), np.zeros(256, np.float32))
FRAME_S = 0.01  # what a frame costs, by the cost model; the clock stands still
NEVER_S = 1e9


@dataclass
class Line:
    """A batcher whose clock stands at zero, and what its worker was asked to sound."""

    batcher: Batcher
    spans: list[object]


def on_a_line(act: Callable[[Line], Awaitable[None]], worker: Worker | None = None) -> None:
    async def run() -> None:
        chosen = worker or ThreadWorker(tones)
        costs: dict[Key, CostModel] = {}

        def cost(key: Key) -> CostModel:
            return costs.setdefault(key, CostModel(SideBySide(1), (0.0, 0.0, FRAME_S, FRAME_S)))

        scheduler = Scheduler(Limits(patience=float("inf")), cost, Deadline())
        line = Line(Batcher(chosen, scheduler, BatchStats(), clock=lambda: 0.0), [])
        vocoder = chosen.vocoder

        async def noted(checkpoint: str, ids: list[int], timeout_s: float, spans: dict[int, object]) -> object:
            line.spans += [spans.get(id) for id in ids]
            return await vocoder(checkpoint, ids, timeout_s, spans)  # type: ignore[arg-type]

        chosen.vocoder = noted  # type: ignore[method-assign, assignment]
        await line.batcher.start()
        try:
            await act(line)
        finally:
            await line.batcher.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def tones() -> dict[str, Model]:
    return {"kokoro": ToneModel()}


def ask(deadline_s: float = NEVER_S, *, early: bool = True, opens: bool = False, row: Utterance = LONG) -> Ask:
    return Ask(row, "kokoro", 0, "next", deadline_s, early=early, opens=opens)


async def takes(line: Line, asked: Ask) -> list[Take]:
    found = [await line.batcher.say(asked)]
    while (then := found[-1].then) is not None:
        found.append(await then)
    return found


def whole() -> np.ndarray:
    model = ToneModel()
    return model.vocoder(model.acoustic([LONG]))[0]


def test_an_opening_row_sounds_in_stretches_that_are_the_whole() -> None:
    async def act(line: Line) -> None:
        found = await takes(line, ask(opens=True))
        assert len(found) > 2
        np.testing.assert_array_equal(np.concatenate([take.samples for take in found]), whole())
        assert all((take.durations == found[0].durations).all() for take in found)

    on_a_line(act)


@pytest.mark.parametrize(
    ("asked", "n_takes"),
    [
        (ask(), "one"),  # its whole is in time
        (ask(deadline_s=0.5), "many"),  # the listener has less to hear than the whole takes
        (ask(deadline_s=0.5, early=False), "one"),  # not with this checkpoint
        (ask(opens=True, early=False), "one"),
        (
            ask(deadline_s=0.0, opens=True, row=replace(LONG, tokens=LONG.tokens[: MIN_FRAMES // 8])),
            "one",
        ),  # not worth it
    ],
    ids=["in time", "late", "late, never early", "opening, never early", "short"],
)
def test_a_row_is_parted_only_where_that_helps(asked: Ask, n_takes: str) -> None:
    async def act(line: Line) -> None:
        found = await takes(line, asked)
        assert ("one" if len(found) == 1 else "many") == n_takes

    on_a_line(act)


def test_what_nobody_waits_for_any_more_is_not_made() -> None:
    async def act(line: Line) -> None:
        first = await line.batcher.say(ask(opens=True))
        assert first.then is not None
        first.then.cancel()
        await takes(line, ask(early=False))  # behind it in the line
        assert len(line.spans) <= 3  # the first stretch, perhaps the one that ran when its listener left, the other

    on_a_line(act)


def test_a_worker_that_dies_between_two_stretches_loses_nothing() -> None:
    worker = ProcessWorker(tones)

    async def act(line: Line) -> None:
        found = [await line.batcher.say(ask(opens=True))]
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        while (then := found[-1].then) is not None:
            found.append(await then)
        np.testing.assert_array_equal(np.concatenate([take.samples for take in found]), whole())

    on_a_line(act, worker)
