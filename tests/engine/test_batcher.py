"""Every row gets its own samples, whatever happens to its neighbours, to the worker or to its caller."""

import ast
import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutti
from tests.examples import examples
from tests.fakes import DyingModel, Gate, RecordingModel, has_token
from tutti.batching.cost import CostModel
from tutti.batching.job import Batch, Key
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.playback import Playback
from tutti.engine.row import Row, RowAudio
from tutti.engine.stats import BatchStats
from tutti.errors import DeviceFull, InvalidInput, ModelFailed, QueueFull, TooSlow, WorkerLost
from tutti.model.onnx.model import OnnxModel
from tutti.model.protocol import Model, Ran
from tutti.model.tone import ToneModel
from tutti.model.validation import finish_samples
from tutti.speech import Frames, Samples, Utterance
from tutti.text.vocab import encode
from tutti.weights import INT8_MODEL, Store
from tutti.worker.base import Worker
from tutti.worker.messages import Run
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

CHECKPOINTS = ("kokoro", "kokoro-int8")
POISON, NOISE = 177, 176  # tokens that break the acoustic stage, and that sound as NaN
NEVER = 1e9


def closed_model() -> RecordingModel:
    """A model that waits in its acoustic stage until its gate is opened."""
    return RecordingModel("acoustic", gate=Gate(n_permits=0))


class FragileModel(RecordingModel):
    """Refuses more than `max_rows` rows, fails on POISON and makes NaN of NOISE."""

    def __init__(self, max_rows: int) -> None:
        super().__init__("acoustic", gate=Gate(n_permits=0))
        self.max_rows = max_rows

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        frames = super().acoustic(rows)
        if any(POISON in row.tokens for row in rows):
            raise ModelFailed("poison")
        return frames

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if len(rows) > self.max_rows:
            raise DeviceFull("too many rows")
        sounds = super().vocoder(rows)
        for row, samples in zip(rows, sounds, strict=True):
            if has_token([row], NOISE):
                samples[7] = np.nan
        return [finish_samples(row, samples) for row, samples in zip(rows, sounds, strict=True)]


def utterance(*tokens: int, speed: float = 1.0) -> Utterance:
    return Utterance(np.array([0, *tokens, 0]), np.zeros(256, np.float32), speed)


def row(utterance: Utterance, stream: int = 0, checkpoint: str = "kokoro", **fields: object) -> Row:
    return Row(utterance, checkpoint, stream, "first", Playback(NEVER, 0.0), **fields)  # type: ignore[arg-type]


def alone(row: Utterance) -> Samples:
    model = ToneModel()
    return model.vocoder(model.acoustic([row]))[0]


def new_batcher(worker: Worker, slow: float = 1.0, *, can_prefetch: bool = False, **limits: object) -> Batcher:
    costs: dict[Key, CostModel] = {}

    def cost(key: Key) -> CostModel:
        return costs.setdefault(key, CostModel(SideBySide(4), (1e-4, 1e-4, slow * 1e-5, slow * 1e-5)))

    chosen = Limits(**{"max_start_s": float("inf"), **limits})  # type: ignore[arg-type]
    return Batcher(worker, Scheduler(chosen, cost, Deadline(can_prefetch=can_prefetch)), BatchStats())


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


@given(rows=ROWS, max_rows=st.integers(1, 8), device_rows=st.integers(1, 8), can_prefetch=st.booleans())
@settings(max_examples=examples(60))
def test_each_row_gets_its_own_samples_whatever_fails_or_is_cancelled(
    rows: list[tuple[list[int], float, str, bool]], max_rows: int, device_rows: int, can_prefetch: bool
) -> None:
    async def run() -> None:
        model = FragileModel(max_rows=device_rows)
        worker = ThreadWorker(partial(models, lambda: model))
        batcher = new_batcher(worker, max_rows=max_rows, can_prefetch=can_prefetch)
        await batcher.start()
        tasks = [
            asyncio.ensure_future(batcher.speak(row(utterance(*tokens, speed=speed), i, checkpoint)))
            for i, (tokens, speed, checkpoint, _) in enumerate(rows)
        ]
        await asyncio.sleep(0)
        for i, (*_, leaves) in enumerate(rows):
            if leaves:
                batcher.cancel(i)
        model.gate.open()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for (tokens, speed, _, leaves), end in zip(rows, ended, strict=True):
            if leaves:
                assert isinstance(end, asyncio.CancelledError)
            elif POISON in tokens or NOISE in tokens:
                assert isinstance(end, ModelFailed)
            else:
                assert not isinstance(end, BaseException), end
                assert np.array_equal(end.samples, alone(utterance(*tokens, speed=speed)))
                assert len(end.durations) == len(tokens) + 2
        assert max(model.batch_sizes, default=0) <= min(max_rows, device_rows)
        assert sum(batcher.scheduler.waiting().values()) == 0
        await batcher.close()

    asyncio.run(run())


@pytest.mark.parametrize("other_stream", [False, True])
def test_audio_is_handed_over_before_the_rest_of_its_stream_is_sent_but_after_what_others_wait_for(
    other_stream: bool,
) -> None:
    async def run() -> list[str]:
        events: list[str] = []

        class NotedWorker(ThreadWorker):
            def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
                events.append("sent")
                return super().run(run, timeout_s)

        model = closed_model()
        batcher = new_batcher(NotedWorker(partial(models, lambda: model)))
        await batcher.start()
        first = batcher.speak(row(utterance(1), stream=1, starts_stream=True))
        await asyncio.to_thread(model.gate.arrivals.acquire)
        follows = batcher.speak(row(utterance(2), stream=2 if other_stream else 1, starts_stream=other_stream))
        first.add_done_callback(lambda _: events.append("heard"))
        model.gate.open()
        await asyncio.gather(first, follows)
        await batcher.close()
        return events

    events = asyncio.run(run())
    assert events[:3] == (["sent", "sent", "heard"] if other_stream else ["sent", "heard", "sent"])


def test_rows_that_wait_together_leave_together_and_checkpoints_never_mix() -> None:
    async def run() -> list[int]:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)))
        await batcher.start()
        first = asyncio.ensure_future(batcher.speak(row(utterance(5))))
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        rest = [asyncio.ensure_future(batcher.speak(row(utterance(7), i, CHECKPOINTS[i % 2]))) for i in range(8)]
        await asyncio.sleep(0)
        model.gate.open()
        audios = await asyncio.gather(first, *rest)
        await batcher.close()
        assert {audio.timing.batch_rows for audio in audios[1:]} <= {4, 5}
        return model.batch_sizes

    assert sum(asyncio.run(run())) == 9


def test_a_row_cancelled_while_queued_costs_nothing() -> None:
    async def run() -> int:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1)
        await batcher.start()
        stays = asyncio.ensure_future(batcher.speak(row(utterance(5))))
        leaves = [asyncio.ensure_future(batcher.speak(row(utterance(7), i))) for i in range(1, 50)]
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        for i in range(1, 50):
            batcher.cancel(i)
        await asyncio.gather(*leaves, return_exceptions=True)
        assert sum(batcher.scheduler.waiting().values()) == 0
        model.gate.open()
        await stays
        await batcher.close()
        return sum(model.batch_sizes)

    assert asyncio.run(run()) == 1


def test_a_full_queue_refuses_new_streams_with_a_retry_time() -> None:
    async def run() -> None:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_waiting=10)
        await batcher.start()
        accepted: list[asyncio.Future[RowAudio]] = []
        refused: list[QueueFull] = []
        for stream in range(1000):
            try:
                accepted.append(batcher.speak(row(utterance(7), stream, starts_stream=True)))
            except QueueFull as full:
                refused.append(full)
            assert sum(batcher.scheduler.waiting().values()) <= 10
        model.gate.open()
        await asyncio.gather(*accepted)
        assert len(accepted) + len(refused) == 1000
        assert all(full.retry_after_s > 0 for full in refused)
        assert len(accepted) >= 10
        await batcher.close()

    asyncio.run(run())


@pytest.mark.process
@pytest.mark.parametrize(("n_deaths", "spoken"), [(1, True), (9, False)])
def test_rows_run_again_once_when_their_worker_dies(tmp_path: Path, n_deaths: int, spoken: bool) -> None:
    async def run() -> list[object]:
        worker = ProcessWorker(partial(models, partial(DyingModel, tmp_path, n_deaths)), backoff_s=lambda _: 0.0)
        batcher = new_batcher(worker)
        await batcher.start()
        tasks = [batcher.speak(row(utterance(3 + i), i)) for i in range(5)]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.close()
        return list(ended)

    for i, end in enumerate(asyncio.run(run())):
        if spoken:
            assert np.array_equal(end.samples, alone(utterance(3 + i)))  # type: ignore[attr-defined]
        else:
            assert isinstance(end, WorkerLost)


@pytest.mark.process
def test_a_prefetched_batch_is_not_blamed_for_the_death_of_the_worker(tmp_path: Path) -> None:
    async def run() -> list[object]:
        worker = ProcessWorker(partial(models, partial(DyingModel, tmp_path, token=POISON)), backoff_s=lambda _: 0.0)
        batcher = new_batcher(worker, max_rows=1, can_prefetch=True)
        await batcher.start()
        tasks = [batcher.speak(row(utterance(tokens), i)) for i, tokens in enumerate((POISON, 5, 6, 7))]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.close()
        return list(ended)

    poison, *others = asyncio.run(run())
    assert isinstance(poison, WorkerLost)
    for i, end in enumerate(others):
        assert isinstance(end, RowAudio)
        assert np.array_equal(end.samples, alone(utterance(5 + i)))


def test_the_worker_has_the_next_batch_while_the_event_loop_is_busy() -> None:
    """So that other work of the loop does not leave the device idle."""

    async def run() -> None:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=2, can_prefetch=True)
        await batcher.start()
        tasks = [asyncio.ensure_future(batcher.speak(row(utterance(5), i))) for i in range(6)]
        while batcher.scheduler.waiting()["first"] != 2:  # one batch runs, the next is prefetched
            await asyncio.sleep(0)
        # These block the thread of the event loop: only the worker can go on.
        assert model.gate.arrivals.acquire(timeout=60)
        model.gate.open()
        assert model.gate.arrivals.acquire(timeout=60)
        for audio in await asyncio.gather(*tasks):
            assert np.array_equal(audio.samples, alone(utterance(5)))
        await batcher.close()

    asyncio.run(run())


def test_a_lone_row_runs_both_stages_in_one_call() -> None:
    """Rows that arrive meanwhile share a batch after it."""

    async def run() -> None:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), can_prefetch=True)
        await batcher.start()
        first = asyncio.ensure_future(batcher.speak(row(utterance(5), 0)))
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        others = [asyncio.ensure_future(batcher.speak(row(utterance(5), i))) for i in (1, 2)]
        await asyncio.sleep(0)
        model.gate.open()
        for audio in await asyncio.gather(first, *others):
            assert np.array_equal(audio.samples, alone(utterance(5)))
        assert model.batch_sizes == [1, 2]
        await batcher.close()

    asyncio.run(run())


def test_rows_that_would_wait_for_each_other_share_the_first_stage_only() -> None:
    def cost(key: Key) -> CostModel:
        if key.stage == "acoustic":
            return CostModel(SideBySide(1), (1e-3, 0.0, 0.0, 1e-5))
        return CostModel(SideBySide(2), (0.0, 0.0, 1e-3, 0.02))

    async def run() -> RecordingModel:
        model = closed_model()
        rules = Scheduler(Limits(max_start_s=float("inf")), cost, Deadline(cap_s=0.6))
        batcher = Batcher(ThreadWorker(partial(models, lambda: model)), rules, BatchStats())
        await batcher.start()
        first = asyncio.ensure_future(batcher.speak(row(utterance(5), 0)))
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        texts = [utterance(*[5] * n) for n in (10, 60)]
        others = [asyncio.ensure_future(batcher.speak(row(text, i))) for i, text in enumerate(texts, 1)]
        await asyncio.sleep(0)
        model.gate.open()
        await asyncio.gather(first, *others)
        await batcher.close()
        return model

    model = asyncio.run(run())
    assert [len(rows) for rows in model.acoustic_calls] == [1, 2]
    assert model.batch_sizes == [1, 1, 1]


def test_rows_are_ranked_again_when_their_listener_starts() -> None:
    async def run() -> list[int]:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1)
        await batcher.start()
        ended: list[int] = []

        playbacks = [Playback(NEVER, 0.0, safety_s=25.0) for _ in range(4)]

        async def speak(stream: int, position_s: float) -> None:
            await batcher.speak(Row(utterance(5), "kokoro", stream, "next", playbacks[stream], position_s))
            ended.append(stream)

        tasks = [asyncio.create_task(speak(stream, 10.0 * stream)) for stream in range(4)]
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        playbacks[3].started_s = NEVER
        batcher.move_deadlines(3)
        model.gate.open()
        await asyncio.gather(*tasks)
        await batcher.close()
        return ended

    assert asyncio.run(run()) == [0, 3, 1, 2]


def test_rows_are_ranked_again_when_the_chunk_before_them_is_shorter_than_was_thought() -> None:
    async def run() -> list[tuple[int, int]]:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1)
        await batcher.start()
        ended: list[tuple[int, int]] = []
        playbacks = [Playback(NEVER, 0.0, safety_s=0.0) for _ in range(2)]

        async def speak(stream: int, chunk: int, position_s: float) -> None:
            spoken = Row(utterance(*[5] * 48), "kokoro", stream, "next", playbacks[stream], position_s, chunk=chunk)
            await batcher.speak(spoken)
            ended.append((stream, chunk))

        estimated_s = 2.9 * 50 * 0.025  # the tones take 2 frames for each token
        tasks = [asyncio.create_task(speak(*row)) for row in ((0, 0, 0.0), (0, 1, estimated_s), (1, 0, 3.0))]
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        model.gate.open()
        await asyncio.gather(*tasks)
        await batcher.close()
        return ended

    assert asyncio.run(run()) == [(0, 0), (0, 1), (1, 0)]


def test_closing_fails_the_rows_that_wait() -> None:
    async def run() -> None:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1, can_prefetch=True)
        await batcher.start()
        waiting = [asyncio.ensure_future(batcher.speak(row(utterance(5), i))) for i in range(4)]
        while batcher.worker.status.state != "busy":
            await asyncio.sleep(0)
        threading.Timer(0.0, model.gate.open).start()
        await batcher.close()
        assert all(isinstance(end, WorkerLost) for end in await asyncio.gather(*waiting, return_exceptions=True))

    asyncio.run(run())


@pytest.mark.parametrize("place", ["next_batch", "prefetch", "finished"])
def test_after_a_defect_in_the_scheduler_waiting_rows_fail_and_later_ones_are_served(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1, can_prefetch=True)

        name = "finished" if place == "finished" else "next_batch"
        works = getattr(batcher.scheduler, name)

        def broken(*args: object, **options: object) -> Batch | None:
            if place == "prefetch" and not options.get("prefetch"):
                return works(*args, **options)
            if not batcher.scheduler.waiting()["first"]:
                return None
            raise IndexError("a defect")

        setattr(batcher.scheduler, name, broken)
        await batcher.start()
        tasks = [asyncio.ensure_future(batcher.speak(row(utterance(5), i))) for i in range(4)]
        if place == "finished":  # with the next batch at the worker already
            while batcher.scheduler.waiting()["first"] != 2:
                await asyncio.sleep(0)
            model.gate.open()
        async with asyncio.timeout(60):  # a row without an outcome would wait for ever
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, ModelFailed) for end in ended)
        model.gate.open()
        assert np.array_equal((await batcher.speak(row(utterance(6), 9))).samples, alone(utterance(6)))
        async with asyncio.timeout(60):  # the statistics follow the samples
            while batcher.backlog_s > 1e-9:
                await asyncio.sleep(0)
        await batcher.close()

    asyncio.run(run())
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    assert "a defect" in caplog.text


@pytest.mark.weights
def test_fifteen_of_sixteen_real_rows_are_whole_beside_a_poisoned_one(home: Path) -> None:
    store = Store(home)
    make = partial(real, store.path(INT8_MODEL))
    styles = np.fromfile(home / "voices" / "af_heart.bin", np.float32).reshape(510, 256)
    clean = [Utterance(encode("hˈI."), styles[i], 4.0) for i in range(16)]  # fast: short audio costs less
    poisoned = [*clean]
    poisoned[11] = Utterance(clean[11].tokens, np.full(256, np.nan, np.float32))

    async def run(rows: list[Utterance]) -> list[RowAudio | BaseException]:
        batcher = new_batcher(ProcessWorker(make), slow=1e4, max_rows=16)
        await batcher.start()
        futures = [batcher.speak(row(each, i)) for i, each in enumerate(rows)]
        ended = await asyncio.gather(*futures, return_exceptions=True)
        await batcher.close()
        return ended

    for i, (good, end) in enumerate(zip(asyncio.run(run(clean)), asyncio.run(run(poisoned)), strict=True)):
        assert isinstance(good, RowAudio)
        if i == 11:
            assert isinstance(end, InvalidInput)
        else:
            assert isinstance(end, RowAudio)
            assert np.array_equal(end.durations, good.durations)
            assert np.abs(end.samples - good.samples).max() < 1e-5  # another number of threads adds in another order


def real(path: Path) -> dict[str, Model]:
    return {"kokoro": OnnxModel(path, "int8", 2)}


def test_only_the_monotonic_clock_is_read() -> None:
    """Setting the wall clock changes nothing here."""
    folder = Path(tutti.__file__).parent
    for path in (path for name in ("batching", "engine", "worker", "text") for path in (folder / name).rglob("*.py")):
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


def test_a_stream_that_can_no_longer_start_in_time_is_refused_and_the_others_are_spoken() -> None:
    async def run() -> None:
        model = closed_model()
        batcher = new_batcher(ThreadWorker(partial(models, lambda: model)), max_rows=1)
        await batcher.start()
        first, *others = [row(utterance(1, n), n, starts_stream=True) for n in range(1, 4)]
        spoken = [batcher.speak(each) for each in (first, *others)]
        job = others[0].job
        assert job is not None
        job.give_up_s = 0.0
        model.gate.open()
        ends = await asyncio.gather(*spoken, return_exceptions=True)
        assert [type(end) for end in ends] == [RowAudio, TooSlow, RowAudio]
        assert sum(model.batch_sizes) == 2, "no pass is made for it"
        assert sum(batcher.scheduler.waiting().values()) == 0
        await batcher.close()

    asyncio.run(run())
