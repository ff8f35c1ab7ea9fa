"""The thin loop: every row gets its own samples, whatever happens to its neighbours, to the worker or to its caller."""

import ast
import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutti
from tutti.batching.cost import CostModel
from tutti.batching.job import Batch, Key
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.row import Ask, Take
from tutti.engine.stats import BatchStats
from tutti.errors import DeviceFull, InvalidInput, ModelFailed, QueueFull, WorkerLost
from tutti.model.onnx.model import OnnxModel
from tutti.model.tone import ToneModel, pitch_hz
from tutti.model.validation import check_samples
from tutti.speech import Frames, Model, Samples, Utterance
from tutti.text.vocab import encode
from tutti.weights import INT8_MODEL, Store
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

CHECKPOINTS = ("kokoro", "kokoro-int8")
POISON, NOISE = 177, 176  # tokens that break the acoustic stage, and that sound as NaN
NEVER = 1e9


class Gated(ToneModel):
    """Waits at a gate before it works, refuses more than so many rows, breaks on poison, remembers its batches."""

    def __init__(self, max_rows: int = 1000) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.batches: list[int] = []
        self.max_rows = max_rows

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        self.gate.wait(60)
        if any(POISON in row.tokens for row in rows):
            raise ModelFailed("poison")
        return super().acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if len(rows) > self.max_rows:
            raise DeviceFull("too many rows")
        self.batches.append(len(rows))
        sounds = super().vocoder(rows)
        for row, samples in zip(rows, sounds, strict=True):
            if pitch_hz(NOISE) in row.f0:
                samples[7] = np.nan
        return [check_samples(row, samples) for row, samples in zip(rows, sounds, strict=True)]


def utterance(*tokens: int, speed: float = 1.0) -> Utterance:
    return Utterance(np.array([0, *tokens, 0]), np.zeros(256, np.float32), speed)


def ask(row: Utterance, stream: int = 0, checkpoint: str = "kokoro", **given: object) -> Ask:
    return Ask(row, checkpoint, stream, "first", NEVER, **given)  # type: ignore[arg-type]


def alone(row: Utterance) -> Samples:
    model = ToneModel()
    return model.vocoder(model.acoustic([row]))[0]


def batcher(worker: Worker, slow: float = 1.0, *, foresees: bool = False, **limits: object) -> Batcher:
    costs: dict[Key, CostModel] = {}

    def cost(key: Key) -> CostModel:
        return costs.setdefault(key, CostModel(SideBySide(4), (1e-4, 1e-4, slow * 1e-5, slow * 1e-5)))

    chosen = Limits(**{"patience": float("inf"), **limits})  # type: ignore[arg-type]
    return Batcher(worker, Scheduler(chosen, cost, Deadline(foresees=foresees)), BatchStats())


def models(model: Callable[[], Model]) -> dict[str, Model]:
    return dict.fromkeys(CHECKPOINTS, model())


ROWS = st.lists(
    st.tuples(
        st.lists(st.integers(1, POISON), min_size=1, max_size=12),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.sampled_from(CHECKPOINTS),
        st.booleans(),
    ),
    min_size=1,
    max_size=24,
)


@given(rows=ROWS, max_rows=st.integers(1, 8), device_rows=st.integers(1, 8), foresees=st.booleans())
@settings(max_examples=60)
def test_each_row_gets_its_own_samples_whoever_is_poison_or_leaves(
    rows: list[tuple[list[int], float, str, bool]], max_rows: int, device_rows: int, foresees: bool
) -> None:
    async def run() -> None:
        model = Gated(max_rows=device_rows)
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_rows=max_rows, foresees=foresees)
        await line.start()
        asked = [
            asyncio.create_task(line.say(ask(utterance(*tokens, speed=speed), i, checkpoint)))
            for i, (tokens, speed, checkpoint, _) in enumerate(rows)
        ]
        await asyncio.sleep(0)
        for task, (*_, leaves) in zip(asked, rows, strict=True):
            if leaves:
                task.cancel()
        model.gate.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        for (tokens, speed, _, leaves), end in zip(rows, ended, strict=True):
            if leaves:
                assert isinstance(end, asyncio.CancelledError)
            elif POISON in tokens or NOISE in tokens:
                assert isinstance(end, ModelFailed)
            else:
                assert not isinstance(end, BaseException), end
                assert np.array_equal(end.samples, alone(utterance(*tokens, speed=speed)))
                assert len(end.durations) == len(tokens) + 2
        assert max(model.batches, default=0) <= min(max_rows, device_rows)
        assert sum(line.scheduler.waiting().values()) == 0
        await line.close()

    asyncio.run(run())


def test_rows_that_wait_together_leave_together_and_checkpoints_never_mix() -> None:
    async def run() -> list[int]:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)))
        await line.start()
        first = asyncio.create_task(line.say(ask(utterance(5))))
        while line.worker.status.state != "busy":
            await asyncio.sleep(0)
        rest = [asyncio.create_task(line.say(ask(utterance(7), i, CHECKPOINTS[i % 2]))) for i in range(8)]
        await asyncio.sleep(0)
        model.gate.set()
        takes = await asyncio.gather(first, *rest)
        await line.close()
        assert {take.timing.batch_rows for take in takes[1:]} <= {4, 5}
        return model.batches

    assert sum(asyncio.run(run())) == 9


def test_who_leaves_while_queued_costs_nothing() -> None:
    async def run() -> int:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1)
        await line.start()
        stays = asyncio.create_task(line.say(ask(utterance(5))))
        leaves = [asyncio.create_task(line.say(ask(utterance(7), i))) for i in range(1, 50)]
        while line.worker.status.state != "busy":
            await asyncio.sleep(0)
        for task in leaves:
            task.cancel()
        await asyncio.gather(*leaves, return_exceptions=True)
        assert sum(line.scheduler.waiting().values()) == 0
        model.gate.set()
        await stays
        await line.close()
        return sum(model.batches)

    assert asyncio.run(run()) == 1


def test_a_full_queue_refuses_new_streams_and_says_when_to_come_again() -> None:
    async def run() -> None:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_waiting=10)
        await line.start()
        accepted: list[asyncio.Task[Take]] = []
        refused: list[QueueFull] = []
        for stream in range(1000):
            one = ask(utterance(7), stream)
            try:
                line.admit(one)
            except QueueFull as full:
                refused.append(full)
            else:
                accepted.append(asyncio.create_task(line.say(one)))
            assert sum(line.scheduler.waiting().values()) <= 10
        model.gate.set()
        await asyncio.gather(*accepted)
        assert len(accepted) + len(refused) == 1000
        assert all(full.retry_after_s > 0 for full in refused)
        assert len(accepted) >= 10
        await line.close()

    asyncio.run(run())


class Mortal(ToneModel):
    """Kills its own process on poison, so many times as its folder has room for graves."""

    def __init__(self, graves: Path, lives: int) -> None:
        super().__init__()
        self.graves, self.lives = graves, lives

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if len(list(self.graves.iterdir())) < self.lives:
            (self.graves / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().vocoder(rows)


@pytest.mark.parametrize(("lives", "spoken"), [(1, True), (9, False)])
def test_rows_run_again_once_when_their_worker_dies(tmp_path: Path, lives: int, spoken: bool) -> None:
    async def run() -> list[object]:
        worker = ProcessWorker(partial(models, partial(Mortal, tmp_path, lives)), backoff_s=lambda _: 0.0)
        line = batcher(worker)
        await line.start()
        asked = [line.say(ask(utterance(3 + i), i)) for i in range(5)]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        await line.close()
        return list(ended)

    for i, end in enumerate(asyncio.run(run())):
        if spoken:
            assert np.array_equal(end.samples, alone(utterance(3 + i)))  # type: ignore[attr-defined]
        else:
            assert isinstance(end, WorkerLost)


class Deadly(ToneModel):
    """Kills its own process whenever poison shall sound."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if any(pitch_hz(POISON) in row.f0 for row in rows):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().vocoder(rows)


def test_who_was_to_run_next_is_not_blamed_for_the_worker_s_death() -> None:
    async def run() -> list[object]:
        worker = ProcessWorker(partial(models, Deadly), backoff_s=lambda _: 0.0)
        line = batcher(worker, max_rows=1, foresees=True)
        await line.start()
        asked = [line.say(ask(utterance(tokens), i)) for i, tokens in enumerate((POISON, 5, 6, 7))]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        await line.close()
        return list(ended)

    poison, *others = asyncio.run(run())
    assert isinstance(poison, WorkerLost)
    for i, end in enumerate(others):
        assert isinstance(end, Take)
        assert np.array_equal(end.samples, alone(utterance(5 + i)))


def test_the_device_goes_on_while_the_event_loop_is_busy() -> None:
    """What runs next is with the worker already, so whatever else the loop does keeps no listener waiting."""

    async def run() -> None:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_rows=2, foresees=True)
        await line.start()
        asked = [asyncio.create_task(line.say(ask(utterance(5), i))) for i in range(6)]
        while line.worker.status.state != "busy":
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        read, begun = model.acoustic, threading.Semaphore(0)

        def noted(rows: Sequence[Utterance]) -> list[Frames]:
            begun.release()
            return read(rows)

        model.acoustic = noted  # type: ignore[method-assign]
        model.gate.set()
        assert begun.acquire(timeout=60)  # in the loop's own thread: nothing else runs there meanwhile
        for take in await asyncio.gather(*asked):
            assert np.array_equal(take.samples, alone(utterance(5)))
        await line.close()

    asyncio.run(run())


def test_what_the_worker_goes_on_to_by_itself_is_asked_for_next_and_alone() -> None:
    """It makes that sound in any case: whoever came meanwhile would wait for it twice."""

    async def run() -> None:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), foresees=True)
        await line.start()
        first = asyncio.create_task(line.say(ask(utterance(5), 0)))
        while line.worker.status.state != "busy":
            await asyncio.sleep(0)
        others = [asyncio.create_task(line.say(ask(utterance(5), i))) for i in (1, 2)]
        await asyncio.sleep(0)
        model.gate.set()
        for take in await asyncio.gather(first, *others):
            assert np.array_equal(take.samples, alone(utterance(5)))
        assert model.batches == [1, 2]
        await line.close()

    asyncio.run(run())


def test_a_listener_who_has_begun_is_served_before_one_who_needs_it_later() -> None:
    async def run() -> list[int]:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1)
        await line.start()
        ended: list[int] = []

        async def say(stream: int, deadline_s: float) -> None:
            await line.say(Ask(utterance(5), "kokoro", stream, "next", NEVER + deadline_s))
            ended.append(stream)

        asked = [asyncio.create_task(say(stream, 10.0 * stream)) for stream in range(4)]
        while line.worker.status.state != "busy":
            await asyncio.sleep(0)
        line.hasten(3, 25.0)
        model.gate.set()
        await asyncio.gather(*asked)
        await line.close()
        return ended

    assert asyncio.run(run()) == [0, 3, 1, 2]


def test_who_waits_when_it_closes_is_told() -> None:
    async def run() -> None:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1, foresees=True)
        await line.start()
        waiting = [asyncio.create_task(line.say(ask(utterance(5), i))) for i in range(4)]
        while line.worker.status.state != "busy":
            await asyncio.sleep(0)
        threading.Timer(0.0, model.gate.set).start()
        await line.close()
        assert all(isinstance(end, WorkerLost) for end in await asyncio.gather(*waiting, return_exceptions=True))

    asyncio.run(run())


@pytest.mark.parametrize("place", ["next_batch", "next_batch_ahead", "freed"])
def test_a_defect_in_the_scheduler_is_told_to_all_who_wait_and_the_next_are_served(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        model = Gated()
        line = batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1, foresees=True)

        def broken(*_: object) -> Batch | None:
            if not line.scheduler.waiting()["first"]:
                return None
            raise IndexError("a defect")

        setattr(line.scheduler, place, broken)
        await line.start()
        asked = [asyncio.create_task(line.say(ask(utterance(5), i))) for i in range(4)]
        if place == "freed":  # with the next batch in the worker's hands already
            while line.scheduler.waiting()["first"] != 2:
                await asyncio.sleep(0)
            model.gate.set()
        async with asyncio.timeout(60):  # where nobody is told, they would wait for ever
            ended = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(end, ModelFailed) for end in ended)
        model.gate.set()
        assert np.array_equal((await line.say(ask(utterance(6), 9))).samples, alone(utterance(6)))
        assert line.backlog_s == pytest.approx(0.0)
        await line.close()

    asyncio.run(run())
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    assert "a defect" in caplog.text


@pytest.mark.weights
def test_fifteen_of_sixteen_real_rows_are_whole_beside_a_poisoned_one(home: Path) -> None:
    store = Store(home)
    make = partial(real, store.path(INT8_MODEL))
    styles = np.fromfile(home / "voices" / "af_heart.bin", np.float32).reshape(510, 256)
    clean = [Utterance(encode("hˈI."), styles[i]) for i in range(16)]
    poisoned = [*clean]
    poisoned[11] = Utterance(clean[11].tokens, np.full(256, np.nan, np.float32))

    async def run(rows: list[Utterance]) -> list[Take | BaseException]:
        line = batcher(ProcessWorker(make), slow=1e4, max_rows=16)
        await line.start()
        ended = await asyncio.gather(*(line.say(ask(row, i)) for i, row in enumerate(rows)), return_exceptions=True)
        await line.close()
        return ended

    for i, (good, end) in enumerate(zip(asyncio.run(run(clean)), asyncio.run(run(poisoned)), strict=True)):
        assert isinstance(good, Take)
        if i == 11:
            assert isinstance(end, InvalidInput)
        else:
            assert isinstance(end, Take)
            assert np.array_equal(end.durations, good.durations)
            assert np.abs(end.samples - good.samples).max() < 1e-5  # another number of threads adds in another order


def real(path: Path) -> dict[str, Model]:
    return {"kokoro": OnnxModel(path, "int8", 2)}


def test_only_the_monotonic_clock_is_read() -> None:
    """Fault 21: whoever sets the wall clock changes nothing here."""
    for path in Path(tutti.__file__).parent.joinpath("batching").glob("*.py"):
        tree = ast.parse(path.read_text())
        read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not read & {"time_ns", "now", "utcnow", "today"}, path
        assert not any(
            isinstance(node, ast.Attribute)
            and node.attr == "time"
            and isinstance(node.value, ast.Name)
            and node.value.id == "time"
            for node in ast.walk(tree)
        ), path
