"""Where stages overlap, a batch of each runs at the same time: every row still ends once, and blame is exact."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.engine.test_batcher import alone, new_batcher, row, utterance
from tests.examples import examples
from tutti.batching.job import StageName
from tutti.batching.policies import Fifo
from tutti.engine.batcher import Batcher
from tutti.engine.row import RowAudio
from tutti.errors import ModelFailed, RowsLost, TuttiError, WorkerLost
from tutti.model.protocol import Ran
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Samples, Utterance
from tutti.worker.messages import Run, Status

POISON, DEADLY = 150, 151  # tokens of rows that fail, and that kill the worker, in the stage that a test chooses
SETTLE_S = 0.003  # for timers of batches that take a tenth of a millisecond

Call = tuple[str, list[int], dict[int, Utterance], asyncio.Future[Any]]


class SteppedWorker:
    """A worker whose calls end when a test says so; acoustic calls run beside the others."""

    def __init__(self) -> None:
        self.status = Status("ready", stages_overlap=True)
        self.queues: dict[StageName, deque[Call]] = {"acoustic": deque(), "vocoder": deque()}
        self.fails_in: StageName = "vocoder"
        self.frames: dict[int, Frames] = {}
        self.tokens: dict[int, set[int]] = {}
        self.n_deaths = 0
        self._forgotten: set[int] = set()
        self._model = ToneModel()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def run(self, run: Run, _timeout_s: float) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        rows = dict(zip(run.ids, run.utterances, strict=run.stages != "vocoder"))
        self.tokens |= {id: set(each.tokens.tolist()) for id, each in rows.items()}
        stage: StageName = "acoustic" if run.stages == "acoustic" else "vocoder"
        self.queues[stage].append((run.stages, list(run.ids), rows, future))
        return future

    def forget(self, ids: Sequence[int]) -> None:
        self._forgotten.update(ids)
        self._drop_forgotten()

    @property
    def running(self) -> list[StageName]:
        """The stages with a call that nobody has cancelled."""
        for calls in self.queues.values():
            while calls and calls[0][3].cancelled() and calls[0][0] != "acoustic":
                calls.popleft()
        return [stage for stage, calls in self.queues.items() if calls]

    def end(self, stage: StageName) -> None:
        """The first call of this stage ends: as its rows say, well, with an error, or with the death of the worker."""
        kind, ids, rows, future = self.queues[stage][0]
        tokens = set().union(*(self.tokens[id] for id in ids))
        if kind in (self.fails_in, "both") and DEADLY in tokens:
            self.die()
            return
        self.queues[stage].popleft()
        result: Any
        if kind == "vocoder" and (gone := [id for id in ids if id not in self.frames]):
            result = RowsLost(f"rows {gone} are not here")
        elif kind in (self.fails_in, "both") and POISON in tokens:
            result = ModelFailed("poison")
        elif kind == "vocoder":
            result = Ran(samples=[self._samples(self.frames.pop(id)) for id in ids])
        else:
            frames = dict(zip(ids, self._model.acoustic(list(rows.values())), strict=True))
            durations = [frames[id].durations for id in ids]
            if kind == "both":
                result = Ran(durations, [self._samples(frames[id]) for id in ids], 1e-4, 1e-4)
            else:
                result = Ran(durations)
                if not future.cancelled():
                    self.frames |= frames
        self._drop_forgotten()
        self._resolve(future, result)

    def die(self) -> None:
        """All calls that run are lost, those behind them run later, and all frames are gone."""
        self.n_deaths += 1
        self.frames.clear()
        for calls in self.queues.values():
            if calls:
                self._resolve(calls.popleft()[3], WorkerLost("the worker died"))

    def _resolve(self, future: asyncio.Future[Any], result: Any) -> None:
        if future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _drop_forgotten(self) -> None:
        """Forget a row after all calls that were sent before."""
        needed = {id for calls in self.queues.values() for _, ids, _, _ in calls for id in ids}
        for id in self._forgotten - needed:
            self.frames.pop(id, None)
        self._forgotten &= needed

    def _samples(self, frames: Frames) -> Samples:
        return self._model.vocoder([frames])[0]


def with_batcher(act: Callable[[Batcher, SteppedWorker], Awaitable[None]], max_rows: int = 2) -> None:
    async def run() -> None:
        worker = SteppedWorker()
        batcher = new_batcher(worker, can_prefetch=True, max_rows=max_rows)  # type: ignore[arg-type]
        await batcher.start()
        await act(batcher, worker)
        await batcher.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def settle() -> None:
    await asyncio.sleep(SETTLE_S)


async def end_all(worker: SteppedWorker, order: Sequence[StageName] = ("vocoder", "acoustic")) -> None:
    """Let everything run to its end."""
    await settle()
    while running := worker.running:
        worker.end(next(stage for stage in order if stage in running))
        await settle()


async def start_both_stages(batcher: Batcher, worker: SteppedWorker) -> list[Any]:
    """Four rows: two in the vocoder, two in the acoustic stage."""
    futures = [batcher.speak(row(utterance(5 + i), i)) for i in range(4)]
    await settle()
    worker.end("acoustic")
    await settle()
    assert [worker.queues[stage][0][0] for stage in ("vocoder", "acoustic")] == ["vocoder", "acoustic"]
    return futures


def test_the_next_acoustic_batch_runs_beside_the_vocoder_and_each_is_applied_when_it_ends() -> None:
    async def act(batcher: Batcher, worker: SteppedWorker) -> None:
        futures = await start_both_stages(batcher, worker)
        worker.end("acoustic")
        await settle()
        assert not any(future.done() for future in futures)
        assert [ids for _, ids, _, _ in worker.queues["vocoder"]] == [[0, 1], [2, 3]], "the next one is sent ahead"
        worker.end("vocoder")
        await settle()
        assert [future.done() for future in futures] == [True, True, False, False]
        await end_all(worker)
        for i, future in enumerate(futures):
            assert np.array_equal(future.result().samples, alone(utterance(5 + i)))

    with_batcher(act)


@pytest.mark.parametrize("other", ["policy", "worker"])
def test_with_another_policy_or_worker_stages_do_not_overlap(other: str) -> None:
    async def act(batcher: Batcher, worker: SteppedWorker) -> None:
        if other == "policy":
            batcher.use(Fifo())
        else:
            worker.status = Status("ready")
        futures = [batcher.speak(row(utterance(5 + i), i)) for i in range(4)]
        await settle()
        worker.end("acoustic")
        await settle()
        assert len(batcher._device.running) == 1
        if other == "policy":
            assert sum(map(len, worker.queues.values())) == 1, "nor is the next batch sent"
        await end_all(worker)
        assert all(isinstance(future.result(), RowAudio) for future in futures)

    with_batcher(act)


@pytest.mark.parametrize("stage", ["acoustic", "vocoder"])
@pytest.mark.parametrize("killer", [0, 2], ids=["in the vocoder", "in the acoustic stage"])
def test_rows_that_ran_beside_a_killer_end_well(stage: StageName, killer: int) -> None:
    """In the other stage or in its own batch: only the row that kills the worker fails, after its second death."""

    async def act(batcher: Batcher, worker: SteppedWorker) -> None:
        futures = await start_both_stages(batcher, worker)
        worker.fails_in = stage
        next(each for each in batcher._rows.values() if each.id == killer).utterance = utterance(DEADLY)
        worker.die()
        await end_all(worker)
        for i, future in enumerate(futures):
            if i == killer:
                assert isinstance(future.exception(), WorkerLost)
            else:
                assert np.array_equal(future.result().samples, alone(utterance(5 + i)))
        assert worker.n_deaths == 2
        assert not worker.frames
        futures = await start_both_stages(batcher, worker)  # and they overlap again
        await end_all(worker)
        assert all(isinstance(future.result(), RowAudio) for future in futures)

    with_batcher(act)


def test_while_a_lost_row_is_here_the_worker_has_one_call() -> None:
    async def act(batcher: Batcher, worker: SteppedWorker) -> None:
        futures = await start_both_stages(batcher, worker)
        worker.die()
        futures += [batcher.speak(row(utterance(7), 10 + i)) for i in range(20)]
        while any(each.n_lost for each in batcher._rows.values()):
            await settle()
            calls = [call for queue in worker.queues.values() for call in queue if not call[3].cancelled()]
            assert len(calls) == 1
            worker.end(worker.running[0])
            await asyncio.sleep(0)
        await end_all(worker)
        assert all(isinstance(future.result(), RowAudio) for future in futures)

    with_batcher(act)


def test_rows_whose_frames_are_gone_start_again_while_the_other_stage_goes_on() -> None:
    """A worker that was replaced between two batches answers RowsLost, which is nobody's fault."""

    async def act(batcher: Batcher, worker: SteppedWorker) -> None:
        futures = await start_both_stages(batcher, worker)
        worker.frames.clear()
        worker.end("vocoder")
        await settle()
        assert worker.queues["acoustic"][0][1] == [2, 3]
        assert not worker.queues["acoustic"][0][3].cancelled()
        await end_all(worker, ("acoustic", "vocoder"))
        assert all(isinstance(future.result(), RowAudio) for future in futures)
        assert not worker.frames

    with_batcher(act)


@given(
    streams=st.lists(st.integers(0, 3), min_size=1, max_size=20),
    stages=st.lists(st.sampled_from(["acoustic", "vocoder"]), max_size=40),
)
@settings(max_examples=examples(25), deadline=None)
def test_rows_of_a_stream_end_in_their_order(streams: list[int], stages: list[StageName]) -> None:
    async def act(batcher: Batcher, worker: SteppedWorker) -> None:
        ended: dict[int, list[int]] = {stream: [] for stream in streams}
        for number, stream in enumerate(streams):
            future = batcher.speak(row(utterance(5), stream))
            future.add_done_callback(lambda _, stream=stream, number=number: ended[stream].append(number))  # type: ignore[misc]
        for stage in stages:
            await settle()
            if stage in worker.running:
                worker.end(stage)
        await end_all(worker)
        assert sum(map(len, ended.values())) == len(streams)
        assert all(numbers == sorted(numbers) for numbers in ended.values())

    with_batcher(act)


class OverlapMachine(RuleBasedStateMachine):
    """Rows come, are left, fail, kill the worker, and both stages end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.worker = SteppedWorker()
        self.batcher = new_batcher(self.worker, can_prefetch=True, max_rows=3)  # type: ignore[arg-type]
        self.runner.run(self.batcher.start())
        self.rows: list[tuple[int, asyncio.Future[RowAudio]]] = []
        self.ends: list[int] = []

    @rule(
        token=st.sampled_from([5, 6, 7, 8, 5, 6, 7, 8, POISON, DEADLY]),
        stream=st.integers(0, 3),
        n=st.sampled_from([1, 2, 5]),
    )
    def speak(self, token: int, stream: int, n: int) -> None:
        for _ in range(n):
            self.runner.run(self._speak(token, stream))

    async def _speak(self, token: int, stream: int) -> None:
        number = len(self.rows)
        self.ends.append(0)
        future = self.batcher.speak(row(utterance(token), stream))
        future.add_done_callback(lambda _: self.ends.__setitem__(number, self.ends[number] + 1))
        self.rows.append((token, future))
        await settle()

    @rule(stream=st.integers(0, 3))
    def leave(self, stream: int) -> None:
        self.runner.run(self._act(lambda: self.batcher.cancel(stream)))

    @rule(stage=st.sampled_from(["acoustic", "vocoder"]))
    def end_call(self, stage: StageName) -> None:
        if stage in self.worker.running:
            self.runner.run(self._act(lambda: self.worker.end(stage)))

    @rule(stage=st.sampled_from(["acoustic", "vocoder"]))
    def rows_fail_in(self, stage: StageName) -> None:
        self.worker.fails_in = stage

    async def _act(self, act: Callable[[], object]) -> None:
        act()
        await settle()

    @invariant()
    def no_row_ends_twice_and_no_lane_has_more_than_the_next_call(self) -> None:
        assert max(self.ends, default=0) <= 1
        for calls in self.worker.queues.values():
            assert len([call for call in calls if not call[3].cancelled()]) <= 2

    def teardown(self) -> None:
        self.runner.run(end_all(self.worker))
        for (token, future), n_ends in zip(self.rows, self.ends, strict=True):
            assert n_ends == 1, token
            if future.cancelled():
                continue
            if token in (POISON, DEADLY):
                error = future.exception()
                assert isinstance(error, TuttiError) or isinstance(future.result(), RowAudio)
            else:
                assert np.array_equal(future.result().samples, alone(utterance(token)))
        assert not self.batcher._rows
        assert not self.worker.frames, "rows that ended leave no frames"
        assert sum(self.batcher.scheduler.waiting().values()) == 0
        self.runner.run(self.batcher.close())
        self.runner.close()


TestOverlapMachine = OverlapMachine.TestCase
TestOverlapMachine.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
