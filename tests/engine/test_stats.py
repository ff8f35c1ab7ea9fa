"""Statistics, the log and Prometheus agree with each other and with what happened."""

import asyncio
import logging
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest

from tests.batching.fakes import new_job
from tests.fakes import DyingModel, Gate, RecordingModel, has_token, running, silent_voices, tone_engine
from tutti.batching.job import STAGES, Batch, Key
from tutti.batching.layout import SideBySide
from tutti.engine.engine import Engine
from tutti.engine.stats import BatchStats, LogRate
from tutti.errors import ModelFailed
from tutti.speech import Frames, Samples, SpeechParams
from tutti.text.vocab import encode
from tutti.voices import Voices
from tutti.worker.process import ProcessWorker

TEXT = "The old bridge stands still under the water tonight. " * 3
LONG = "the old stone bridge stands still over the deep dark water that runs under it all night and all day without end"


class PoisonedModel(RecordingModel):
    """Fails in the vocoder on every batch that has the bad token."""

    bad = -1

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if has_token(rows, self.bad):
            raise ModelFailed("poison")
        return super().vocoder(rows)


def vocoder_batch(n_rows: int) -> Batch:
    jobs = tuple(new_job(100) for _ in range(n_rows))
    return Batch(Key("kokoro", "vocoder"), jobs, "free", 0.1, SideBySide(2), "vocoder")


def counted(engine: Engine, name: str, **labels: str) -> float:
    return engine.batch_stats.metrics.registry.get_sample_value(name, labels) or 0.0


def engine_after(folder: Path, n_texts: int = 6) -> Engine:
    async def run() -> Engine:
        async with tone_engine(silent_voices(folder)) as engine:
            await asyncio.gather(*(engine.speak(TEXT, SpeechParams("af_heart")) for _ in range(n_texts)))
        return engine

    return asyncio.run(run())


def test_every_row_is_counted_once_in_all_three_places(tmp_path: Path) -> None:
    engine = engine_after(tmp_path)
    stats = engine.stats()["performance"]
    rows = sum(int(size) * n for size, n in stats["batch_size_histogram"].items())
    assert stats["total_requests"] == rows == stats["outcomes"]["spoken"] >= 6
    assert stats["total_batches"] == sum(stats["batch_size_histogram"].values()) == stats["batches_by_stage"]["vocoder"]
    assert sum(stats["fires"].values()) == sum(stats["batches_by_stage"].values())
    assert stats["avg_batch_size_since_start"] == pytest.approx(rows / stats["total_batches"])
    assert stats["max_queue_wait_ms"] >= stats["avg_queue_wait_ms"] >= 0
    assert counted(engine, "tutti_rows_total", outcome="spoken") == rows
    assert counted(engine, "tutti_batch_rows_sum", stage="vocoder") == rows
    assert counted(engine, "tutti_first_audio_seconds_count") == 6
    assert counted(engine, "tutti_worker_bytes", worker="0", memory="resident") > 0


def test_a_row_whose_audio_comes_in_spans_is_one_request_and_one_chunk(voices: Voices) -> None:
    """Each span is a row of a vocoder pass; the request is counted when its audio is complete."""
    with running(tone_engine(voices)) as engine:  # with the light vocoder's spans
        assert len(engine.stream(LONG)) > 2, "nothing was cut"
        stats = engine.engine.stats()["performance"]
        assert sum(int(size) * n for size, n in stats["batch_size_histogram"].items()) > 2
        assert stats["total_requests"] == stats["outcomes"]["spoken"] == 1
        assert stats["chunks_by_mode"] == {"bypassed": 0, "batched": 1, "direct": 0}
        assert counted(engine.engine, "tutti_chunks_total", mode="batched") == 1


def test_the_mean_rows_of_the_latest_batches_forget_what_was_long_ago() -> None:
    stats = BatchStats()
    for n_rows, n_batches in ((4, 100), (1, 50), (2, 50)):
        for _ in range(n_batches):
            stats.started("0", vocoder_batch(n_rows), 0.0)
    figures = stats.as_dict()
    assert figures["avg_batch_size"] == pytest.approx(1.5)  # of the last hundred
    assert figures["avg_batch_size_since_start"] == pytest.approx(550 / 200)
    stats.reset()
    assert (stats.as_dict()["avg_batch_size"], stats.as_dict()["avg_batch_size_since_start"]) == (0.0, 0.0)


def test_labels_are_fixed_sets_without_text_voices_or_callers(tmp_path: Path) -> None:
    page = generate_latest(engine_after(tmp_path).batch_stats.metrics.registry).decode()
    assert "bridge" not in page
    assert "af_heart" not in page


def test_the_log_names_worker_checkpoint_rows_and_class_and_never_the_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="tutti"):
        engine_after(tmp_path, n_texts=1)
    for line in (
        r"batch started worker=0 stage=acoustic rows=1 reason=free checkpoint=kokoro",
        r"batch completed worker=0 stage=vocoder ok=1/1 checkpoint=kokoro",
        r"chunk spoken id=- stream=0 chunk=0 class=first mode=batched rows=1 took=[\d.]+ms queue=[\d.]+ms",
    ):
        assert re.search(line, caplog.text), line
    assert "bridge" not in caplog.text


@pytest.mark.parametrize(("batching", "state", "max_rows"), [(True, "on", 6), (False, "off", 1)])
def test_the_start_says_in_one_line_what_was_chosen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, batching: bool, state: str, max_rows: int
) -> None:
    with caplog.at_level(logging.INFO, logger="tutti"):
        tone_engine(
            silent_voices(tmp_path), n_workers=2, batching=batching, max_batch_size=6,
            policy="window", stream_bypass_chunks=4, first_audio_ms=250,
        )  # fmt: skip
    (line,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("engine ")]
    assert line == (
        f"engine batching={state} policy=window max_rows={max_rows} bypass_chunks=4 first_audio=250ms workers=2 "
        "models=kokoro(onnx device=cpu precision=fp32)"
    )


@pytest.mark.parametrize("n_workers", [1, 2])
def test_when_the_models_are_loaded_the_log_says_what_they_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, n_workers: int
) -> None:
    async def run() -> None:
        async with tone_engine(silent_voices(tmp_path), n_workers=n_workers):
            pass

    with caplog.at_level(logging.INFO, logger="tutti"):
        asyncio.run(run())
    cost = rf"models loaded workers={n_workers} memory=[1-9]\d*MB device_memory=0MB sentence=\d+ms"
    assert re.search(cost, caplog.text)


def test_a_batch_with_a_bad_row_is_counted_as_failed_and_named_with_its_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad, gate = encode("x")[1], Gate(n_permits=0)
    poisoned = PoisonedModel("acoustic", gate=gate)
    poisoned.bad = int(bad)

    async def run() -> Engine:
        async with tone_engine(silent_voices(tmp_path), lambda: poisoned, max_batch_size=8) as engine:
            running = asyncio.create_task(engine.speak("bridge", SpeechParams("af_heart")))
            while not gate.n_arrived:
                await asyncio.sleep(0.005)
            texts = [engine.speak(text, SpeechParams("af_heart")) for text in ("deep", "water", "x", "still", "old")]
            spoken = asyncio.gather(*texts, return_exceptions=True)
            while sum(engine.batchers[0].scheduler.waiting().values()) < 5:
                await asyncio.sleep(0.005)
            gate.open()
            results = await spoken
            await running
            assert [isinstance(result, ModelFailed) for result in results] == [False, False, True, False, False]
        return engine

    with caplog.at_level(logging.INFO, logger="tutti"):
        engine = asyncio.run(run())
    failed = re.findall(r"batch failed, (.*) worker=0 stage=\w+ ok=0/(\d+) checkpoint=kokoro: poison", caplog.text)
    assert failed[-1] == ("its row fails", "1")
    assert {then for then, _ in failed[:-1]} == {"its halves run apart"}
    assert sum(counted(engine, "tutti_batches_total", stage=stage, outcome="failed") for stage in STAGES) == len(failed)
    assert len(failed) > 1
    retried = sum(int(rows) for then, rows in failed if then == "its halves run apart")
    assert counted(engine, "tutti_retried_total", why="bisected") == retried
    assert counted(engine, "tutti_rows_total", outcome="failed") == 1
    stats = engine.stats()["performance"]
    assert stats["batches_by_outcome"]["failed"] == len(failed)
    done = sum(counted(engine, "tutti_batches_total", stage=stage, outcome="done") for stage in STAGES)
    assert stats["batches_by_outcome"]["done"] == done
    assert sum(stats["batches_by_outcome"].values()) == sum(stats["batches_by_stage"].values())


@pytest.mark.process
def test_a_batch_whose_worker_died_is_counted_as_lost(tmp_path: Path) -> None:
    (tmp_path / "voices").mkdir()
    (tmp_path / "deaths").mkdir()
    dying = partial(DyingModel, tmp_path / "deaths", 1)

    async def run() -> Engine:
        async with tone_engine(silent_voices(tmp_path / "voices"), dying, worker=ProcessWorker) as engine:
            assert len((await engine.speak("deep water", SpeechParams("af_heart"))).samples)
        return engine

    engine = asyncio.run(run())
    assert sum(counted(engine, "tutti_batches_total", stage=stage, outcome="lost") for stage in STAGES) == 1
    assert counted(engine, "tutti_retried_total", why="worker_lost") == 1
    assert counted(engine, "tutti_rows_total", outcome="spoken") == 1


def test_under_a_window_early_and_timeout_fires_are_counted_apart(tmp_path: Path) -> None:
    model = RecordingModel("acoustic", gate=Gate())

    async def run() -> Engine:
        # A batch of four is full at three rows; two rows wait for the end of the window.
        window = {"policy": "window", "max_batch_size": 4, "early_fire": 0.75, "max_wait_ms": 300, "min_wait_ms": 5000}
        async with tone_engine(silent_voices(tmp_path), lambda: model, **window) as engine:
            for n_texts in (3, 2):
                texts = [engine.speak(word, SpeechParams("af_heart")) for word in ("deep", "water", "still")[:n_texts]]
                await asyncio.gather(*texts)
        return engine

    engine = asyncio.run(run())
    stats = engine.stats()["performance"]
    for field, reason in (("early_fires", "early"), ("timeout_fires", "window")):
        fired = [counted(engine, "tutti_batch_fire_total", stage=stage, reason=reason) for stage in STAGES]
        assert stats[field] == sum(fired)
        assert fired[0] == 1  # of the acoustic stage


def test_a_reset_restarts_the_statistics_but_not_the_metrics(tmp_path: Path) -> None:
    engine = engine_after(tmp_path)
    engine.batch_stats.reset()
    assert engine.stats()["performance"]["total_requests"] == 0
    assert counted(engine, "tutti_rows_total", outcome="spoken") > 0


@given(st.lists(st.floats(0.0, 5.0), max_size=100), st.integers(1, 10))
def test_no_second_has_more_lines_than_allowed_and_a_quiet_one_has_all(times: list[float], per_s: int) -> None:
    now = 0.0
    rate = LogRate("batch", lambda: now, per_s)
    passed: dict[int, int] = {}
    for now in sorted(times):
        passed[int(now)] = passed.get(int(now), 0) + rate.passes()
    for second, n in passed.items():
        assert n == min(per_s, sum(int(at) == second for at in times))


def test_it_says_how_many_lines_it_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = 7.0
    rate = LogRate("batch", lambda: now, 2)
    with caplog.at_level(logging.INFO):
        assert [rate.passes() for _ in range(5)] == [True, True, False, False, False]
        now = 8.0
        assert rate.passes()
    assert "batch lines left out=3" in caplog.text
