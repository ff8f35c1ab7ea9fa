"""STREAMING_BYPASS_CHUNKS: what it changes under each policy."""

import re

import pytest

from tests.batching.fakes import new_job, new_scheduler, run
from tests.fakes import running, tone_engine
from tutti.batching.job import Priority
from tutti.settings import load
from tutti.voices import Voices

TEXT = "The old bridge stands still under the water tonight and runs deep. " * 12


@pytest.mark.parametrize("n_chunks", [0, 1, 2, 3])
def test_under_bypass_so_many_chunks_of_a_stream_run_at_once_and_alone(voices: Voices, n_chunks: int) -> None:
    chosen, _ = load({}, {"STREAMING_BYPASS_CHUNKS": str(n_chunks), "TUTTI_POLICY": "bypass"})
    options = {"policy": chosen.policy, "stream_bypass_chunks": chosen.stream_bypass_chunks}
    with running(tone_engine(voices, **options, min_wait_ms=0, max_wait_ms=0)) as engine:
        assert len(engine.stream(TEXT)) > 4
        metrics = engine.engine.batch_stats.metrics.registry
        labels = {"stage": "acoustic", "reason": "bypass"}
        assert (metrics.get_sample_value("tutti_batch_fire_total", labels) or 0) == n_chunks


@pytest.mark.parametrize("n_chunks", [0, 1, 3])
def test_so_many_chunks_have_the_class_first_in_the_log(
    voices: Voices, caplog: pytest.LogCaptureFixture, n_chunks: int
) -> None:
    with running(tone_engine(voices, stream_bypass_chunks=n_chunks)) as engine, caplog.at_level("INFO", "tutti"):
        engine.stream(TEXT)
    classes = dict(re.findall(r"chunk spoken .*chunk=(\d+) class=(\w+)", caplog.text))
    assert len(classes) > 4
    assert [classes[str(n)] for n in range(len(classes))] == ["first"] * n_chunks + ["next"] * (len(classes) - n_chunks)


def test_under_deadline_the_number_changes_no_batch() -> None:
    """The order follows from when each chunk is needed; the first one is always needed first."""
    # Some are late.
    sizes = [(100, 3.0), (40, 0.5), (700, 2.0), (90, 0.9), (300, 0.2), (100, 5.0), (60, 0.21), (80, -1.0)] * 3

    def batches(priority: Priority) -> list[list[int]]:
        scheduler, now, formed = new_scheduler(), 0.0, []
        jobs = [new_job(size, deadline_s, priority) for size, deadline_s in sizes]
        for job in jobs:
            scheduler.add(job, 0.0)
        while sum(map(len, formed)) < len(jobs):
            batch, now = run(scheduler, now)
            formed.append([jobs.index(job) for job in batch.jobs])
        return formed

    assert batches("first") == batches("next")
