"""Whatever raises in the batcher, every caller is told; who has left costs nothing; and all totals are sums.

The clock is virtual: time passes when nothing else is left to do.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from benchmarks.virtual import VirtualLoop
from tests.engine.stepped import Defect, Defects, RunnerWorker
from tests.engine.test_batcher import alone, utterance
from tests.examples import examples
from tutti.admission.loop_budget import ROWS_PER_TURN
from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline, Fifo
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.device import OVERDUE_FACTOR, OVERDUE_S
from tutti.engine.playback import Playback
from tutti.engine.row import Row, RowAudio
from tutti.engine.stats import BatchStats, EventLog
from tutti.errors import TuttiError
from tutti.model.spans import LIGHT_SPANS
from tutti.speech import Samples

PARTS = ("scheduler", "stats", "row", "worker")
SHORT, LONG = 3, 90  # tokens of a row; the long one is cut into spans
PASSES_S = 0.2  # in a step: longer than any batch takes


class LooseRow(Row):
    """A row whose methods can be replaced."""


class LoosePlayback(Playback):
    """The same for the clock of its listener."""


@dataclass(eq=False)
class Caller:
    """Who waits for a row, span by span."""

    row: Row
    future: asyncio.Future[RowAudio]
    heard: list[Samples] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.future.add_done_callback(self._hear)

    def _hear(self, future: asyncio.Future[RowAudio]) -> None:
        if not future.cancelled() and not future.exception():
            audio = future.result()
            self.heard.append(audio.samples)
            if audio.next is not None:
                self.future = audio.next
                self.future.add_done_callback(self._hear)


def new_batcher(worker: RunnerWorker, max_rows: int = 3) -> Batcher:
    costs: dict[Key, CostModel] = {}

    def cost(key: Key) -> CostModel:
        return costs.setdefault(key, CostModel(SideBySide(1), (1e-3, 1e-3, 0.0, 1e-3)))

    limits = Limits(max_rows=max_rows, max_start_s=inf)
    clock = asyncio.get_running_loop().time
    stats = BatchStats(events=EventLog(clock=clock))
    return Batcher(worker, Scheduler(limits, cost, Deadline(can_prefetch=True)), stats, clock=clock)


def test_a_worker_whose_batch_takes_much_longer_than_predicted_is_not_ready_until_it_ends() -> None:
    async def scenario() -> None:
        worker = RunnerWorker()
        batcher = new_batcher(worker)
        await batcher.start()
        batcher.speak(Row(utterance(*[5] * 60), "kokoro", 0, "first", Playback(0.0, 0.0)))
        await asyncio.sleep(OVERDUE_S - 0.1)
        (running,) = batcher._device.running.values()
        assert OVERDUE_FACTOR * running.batch.predicted_s < OVERDUE_S
        assert batcher.ready, "it may be slow"
        await asyncio.sleep(0.2)
        assert not batcher.ready
        worker.end_any()
        await asyncio.sleep(0)
        assert batcher.ready
        await batcher.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


def test_rows_that_were_to_be_handed_over_in_a_later_turn_are_told_of_a_bug_too() -> None:
    n_rows = ROWS_PER_TURN + 2

    async def scenario() -> None:
        worker = RunnerWorker()
        batcher = new_batcher(worker, max_rows=n_rows)
        await batcher.start()
        batcher.use(Fifo())
        playback = Playback(0.0, 0.0)
        futures = [batcher.speak(Row(utterance(*[5] * SHORT), "kokoro", n, "first", playback)) for n in range(n_rows)]
        await asyncio.sleep(PASSES_S)
        worker.end_any()
        await asyncio.sleep(PASSES_S)
        (running,) = batcher._device.running.values()
        assert running.batch.n_rows == n_rows
        n_spoken = 0

        def spoken(_: Any) -> None:
            nonlocal n_spoken
            n_spoken += 1
            if n_spoken > ROWS_PER_TURN:
                raise Defect

        batcher._stats.spoken = spoken  # type: ignore[method-assign]
        worker.end_any()
        await asyncio.sleep(PASSES_S)
        assert n_spoken == ROWS_PER_TURN + 1
        assert all(future.done() for future in futures)
        await batcher.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("policy", [Deadline(can_prefetch=True), Fifo()])
def test_two_results_that_come_together_are_both_applied_at_once(policy: Deadline | Fifo) -> None:
    """The event loop was busy while the worker ran the next batch."""

    async def scenario() -> None:
        worker = RunnerWorker()
        batcher = new_batcher(worker)
        await batcher.start()
        for n in range(9):  # of one stream: what continues it can wait until its audio is handed over
            batcher.speak(Row(utterance(*[5] * 60), "kokoro", 0, "next", Playback(0.0, 100.0), float(n)))
        await asyncio.sleep(PASSES_S)
        while len(worker.calls) < 2 or worker.calls[0].run.stages != "vocoder":
            worker.end("vocoder")
            await asyncio.sleep(PASSES_S)
        batcher.use(policy)
        worker.end_any()
        for _ in range(9):  # turns, in which no time passes
            await asyncio.sleep(0)
        assert all(not each.result.done() for each in batcher._device.running.values())
        assert worker.calls, "the next one"
        await batcher.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("raises", ["scheduler.cancel", "stats.ended"])
@pytest.mark.parametrize("leaves", [True, False], ids=["left", "failed"])
def test_rows_leave_no_frames_though_something_raises_when_they_end(raises: str, leaves: bool) -> None:
    async def scenario() -> None:
        worker, defects = RunnerWorker(), Defects()
        batcher = new_batcher(worker)
        await batcher.start()
        defects.spread("scheduler.cancel", batcher.scheduler, "cancel")
        defects.spread("stats.ended", batcher._stats, "ended")
        rows = [Row(utterance(*[5] * n), "kokoro", 0, "first", Playback(0.0, 0.0)) for n in (60, 50, 3)]
        futures = [batcher.speak(row) for row in rows]
        await asyncio.sleep(PASSES_S)
        worker.end_any()
        await asyncio.sleep(PASSES_S)
        assert worker.frames.keys() == {row.id for row in rows}, "they wait for the vocoder, or are there"
        defects.arm(raises, 0, is_late=False)
        if leaves:
            batcher.cancel(0)
        worker.fails = not leaves
        for _ in range(6):
            await asyncio.sleep(PASSES_S)
            worker.end_any()
        await asyncio.sleep(PASSES_S)
        assert not worker.frames
        assert all(future.done() for future in futures)
        await batcher.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


class DefectMachine(RuleBasedStateMachine):
    """Rows come and are left, the worker answers and dies, and any call of any part may raise."""

    has_defects = True

    @initialize(stages_overlap=st.booleans())
    def begin(self, stages_overlap: bool) -> None:
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.defects = Defects()
        self.callers: list[Caller] = []
        self.left: set[int] = set()  # streams
        self.stages_overlap = stages_overlap
        self.forgets = True  # unless the worker itself may have raised when it was to forget
        self.hides_calls = False  # a worker that has a call and raises has told nobody of it
        self.runner.run(self._start())

    async def _start(self) -> None:
        self.n_accepted = 0
        self.worker = RunnerWorker(stages_overlap=self.stages_overlap)
        self.batcher = new_batcher(self.worker)
        await self.batcher.start()
        self.defects.spread("worker", self.worker, "run", "forget")
        self.defects.spread("stats", self.batcher._stats)

    @property
    def listening(self) -> list[int]:
        """The streams that wait for audio."""
        return sorted({each.row.stream for each in self.callers if not each.future.done()})

    def act(self, *acts: Callable[[], object]) -> None:
        """Do it, each act in a turn of the event loop, and let what follows from it happen."""

        async def settled() -> None:
            scheduler = self.batcher.scheduler
            if "add" not in vars(scheduler):  # a new one, after a defect
                self.defects.spread("scheduler", scheduler)
            for act in acts:
                act()
                await asyncio.sleep(0)
            await asyncio.sleep(PASSES_S)

        self.runner.run(settled())

    @rule(stream=st.integers(0, 9), n_tokens=st.sampled_from([SHORT, SHORT, LONG]), n=st.sampled_from([1, 1, 4, 8]))
    def speak(self, stream: int, n_tokens: int, n: int) -> None:
        if stream not in self.left:
            self.act(lambda: [self._speak(stream, n_tokens) for _ in range(n)])

    def _speak(self, stream: int, n_tokens: int) -> None:
        is_first = not any(each.row.stream == stream for each in self.callers)
        playback = LoosePlayback(asyncio.get_running_loop().time(), 1.0)
        tokens = [1 + (stream + i) % 100 for i in range(n_tokens)]
        row = LooseRow(
            utterance(*tokens), "kokoro", stream, "first", playback, span_rules=LIGHT_SPANS, starts_stream=is_first
        )
        self.defects.spread("row", row)
        self.defects.spread("row", playback)
        try:
            future = self.batcher.speak(row)
        except (Defect, TuttiError):
            return  # this caller was told at once
        self.callers.append(Caller(row, future))
        self.n_accepted += 1

    @precondition(lambda self: self.listening)
    @rule(data=st.data(), n_turns=st.none() | st.integers(0, 2))
    def leave(self, data: st.DataObject, n_turns: int | None) -> None:
        """At any time, or so many turns of the event loop after a call has ended, whose result is not applied yet."""
        stream = data.draw(st.sampled_from(self.listening))
        self.left.add(stream)

        def leave() -> None:
            self.batcher.cancel(stream)
            self.worker.left |= {each.row.id for each in self.callers if each.row.stream == stream}

        if n_turns is None:
            self.act(leave)
        else:
            self.act(self.worker.end_any, *[lambda: None] * n_turns, leave)

    @rule(stage=st.sampled_from(["acoustic", "vocoder"]))
    def end_call(self, stage: StageName) -> None:
        self.act(lambda: self.worker.end(stage))

    @rule()
    def end_calls(self) -> None:
        self.act(self.worker.end_any)

    @rule()
    def die(self) -> None:
        self.act(self.worker.die)

    @rule(policy=st.sampled_from([Deadline(can_prefetch=True), Fifo()]))
    def use(self, policy: Any) -> None:
        if not self.has_defects:  # an operator's change that raises is the operator's answer
            self.act(lambda: self.batcher.use(policy))

    @rule(part=st.sampled_from(PARTS), n_before=st.integers(0, 12), is_late=st.booleans())
    def break_part(self, part: str, n_before: int, is_late: bool) -> None:
        if self.has_defects:
            self.defects.arm(part, n_before, is_late=is_late)
            self.hides_calls |= part == "worker" and is_late
            self.forgets &= part != "worker"

    @invariant()
    def no_call_starts_for_a_stream_that_has_left(self) -> None:
        assert not self.worker.started_for_left

    @invariant()
    def every_total_is_the_sum_over_what_is_open(self) -> None:
        batcher = self.batcher
        on_device = [*batcher._device.running.values(), *batcher._device.waiting.values()]
        n_waiting = sum(batcher.scheduler.waiting().values()) if not self._is_armed() else None
        assert set(batcher._rows.open) == {each.row for each in self.callers if not each.future.done()}
        if n_waiting is not None:
            assert len(batcher._rows) == n_waiting + sum(each.batch.n_rows for each in on_device)
        known = {id(each.result) for each in on_device}
        calls = {id(call.future) for call in self.worker.calls if not call.future.cancelled()}
        assert known <= calls if self.hides_calls else known == calls
        assert not batcher._measurements
        assert (
            not self.forgets or self.worker.frames.keys() <= {row.id for row in batcher._rows.open} | self.worker.named
        )
        self.check_statistics()

    def check_statistics(self) -> None:
        """Nothing is certain of them when one of their own calls may have raised."""

    def _is_armed(self) -> bool:
        return self.defects._n_before >= 0

    @rule(part=st.sampled_from(["", *PARTS]), is_late=st.booleans())
    def close(self, part: str, is_late: bool) -> None:
        """All are told at once, and so is whoever comes later; and the worker ends."""
        self.defects.arm(part if self.has_defects else "", 0, is_late=is_late)
        with suppress(Defect):
            self.runner.run(self.batcher.close())
        self.defects.arm("", -1, is_late=False)
        assert self.worker.status.state == "closed"
        assert all(each.future.done() for each in self.callers)
        self.act(lambda: self._speak(0, SHORT))
        assert all(each.future.done() for each in self.callers)
        self.callers.clear()  # the next batcher counts its rows anew
        self.runner.run(self._start())

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            try:
                self.all_end()
            finally:
                self.runner.close()

    def all_end(self) -> None:
        self.defects.arm("", -1, is_late=False)
        self.act(lambda: self._speak(10, SHORT))
        last = self.callers[-1]
        for _ in range(1000):
            if not self.worker.calls:
                break
            self.act(self.worker.end_any)
        assert len(last.heard) == 1, "after a defect the work goes on"
        for caller in self.callers:
            assert caller.future.done()
            if not caller.future.cancelled() and not caller.future.exception():
                assert np.array_equal(np.concatenate(caller.heard), alone(caller.row.utterance))
        assert not self.batcher._rows.open
        assert not len(self.batcher._rows)
        assert not self.forgets or not self.worker.frames, "rows that ended leave no frames"
        assert not self.batcher._device.running
        assert sum(self.batcher.scheduler.waiting().values()) == 0
        self.runner.run(self.batcher.close())


class SoundMachine(DefectMachine):
    """The same without a defect: nobody who stays is refused or fails, but by the death of the worker."""

    has_defects = False

    def check_statistics(self) -> None:
        stats, running = self.batcher._stats, self.batcher._device.running.values()
        assert stats._running.keys() == {each.batch for each in running}
        outcomes = stats.as_dict()["outcomes"]
        n_ended = sum(outcomes.get(outcome, 0) for outcome in ("spoken", "failed", "cancelled"))
        assert n_ended + len(self.batcher._rows.open) == self.n_accepted


TestDefects = DefectMachine.TestCase
TestDefects.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
TestWithoutDefects = SoundMachine.TestCase
TestWithoutDefects.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
