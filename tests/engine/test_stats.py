"""Statistics, the log and Prometheus agree with each other and with what happened."""

import asyncio
import logging
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from tests.fakes import silent_voices, tone_engine
from tutti.engine.engine import Engine
from tutti.speech import SpeechParams

TEXT = "The old bridge stands still under the water tonight. " * 3


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
    assert stats["avg_batch_size"] == pytest.approx(rows / stats["total_batches"])
    assert stats["max_queue_wait_ms"] >= stats["avg_queue_wait_ms"] >= 0
    assert counted(engine, "tutti_rows_total", outcome="spoken") == rows
    assert counted(engine, "tutti_batch_rows_sum", stage="vocoder") == rows
    assert counted(engine, "tutti_first_audio_seconds_count") == 6
    assert counted(engine, "tutti_worker_bytes", worker="0", memory="resident") > 0


def test_labels_are_fixed_sets_without_text_voices_or_callers(tmp_path: Path) -> None:
    page = generate_latest(engine_after(tmp_path).batch_stats.metrics.registry).decode()
    assert "bridge" not in page
    assert "af_heart" not in page


def test_the_log_names_worker_rows_and_class_and_never_the_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="tutti"):
        engine_after(tmp_path, n_texts=1)
    for line in (
        "batch started worker=0 stage=acoustic rows=1",
        "batch completed worker=0",
        "chunk spoken stream=0 class=first",
    ):
        assert line in caplog.text
    assert "bridge" not in caplog.text


def test_a_reset_restarts_the_statistics_but_not_the_metrics(tmp_path: Path) -> None:
    engine = engine_after(tmp_path)
    engine.batch_stats.reset()
    assert engine.stats()["performance"]["total_requests"] == 0
    assert counted(engine, "tutti_rows_total", outcome="spoken") > 0
