"""The event log keeps the newest events in order, and has each event of the batching once."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FailingModel, silent_voices, tone_engine
from tutti.engine.stats import AudioSent, BatchEnded, BatchStarted, EventCounted, EventLog, FirstAudio, LogEvent
from tutti.model.protocol import Model
from tutti.speech import SpeechParams

TEXT = "The old bridge stands still under the water tonight. " * 3


def logged(folder: Path, n_failures: int = 0, n_texts: int = 6) -> tuple[list[LogEvent], dict[str, int]]:
    failures = iter([True] * n_failures)

    def model() -> Model:
        return FailingModel(lambda rows: next(failures, False))

    async def run() -> tuple[list[LogEvent], dict[str, int]]:
        async with tone_engine(silent_voices(folder), model) as engine:
            speeches = (engine.speak(TEXT, SpeechParams("af_heart")) for _ in range(n_texts))
            await asyncio.gather(*speeches, return_exceptions=n_failures > 0)
        return engine.batch_stats.events.since(0), engine.stats()["performance"]["outcomes"]

    return asyncio.run(run())


@given(length=st.integers(1, 20), n=st.integers(0, 60), start=st.integers(0, 60))
def test_the_newest_events_are_returned_in_order(length: int, n: int, start: int) -> None:
    log = EventLog(length)
    events = [AudioSent(float(i), 1.0, True) for i in range(n)]
    for event in events:
        log.add(event)
    start = min(start, n)
    assert log.since(start) == events[max(start, n - length) :]


@pytest.mark.parametrize("n_texts", [1, 6])  # one alone runs both stages in one call
def test_every_batch_starts_once_and_then_ends_once(tmp_path: Path, n_texts: int) -> None:
    events, _ = logged(tmp_path, n_texts=n_texts)
    started = [event.number for event in events if isinstance(event, BatchStarted)]
    assert sorted(event.number for event in events if isinstance(event, BatchEnded)) == started
    assert started == list(range(1, len(started) + 1))


def test_a_failed_batch_ends_once_too(tmp_path: Path) -> None:
    events, outcomes = logged(tmp_path, n_failures=1)
    started = {event.number: i for i, event in enumerate(events) if isinstance(event, BatchStarted)}
    ended = {event.number: i for i, event in enumerate(events) if isinstance(event, BatchEnded)}
    assert len(started) == sum(isinstance(event, BatchStarted) for event in events)
    assert started.keys() == ended.keys() == set(range(1, len(started) + 1))
    assert all(started[number] < ended[number] for number in started)
    broken = [event for event in events if isinstance(event, BatchEnded) and event.outcome != "done"]
    assert [(event.outcome, event.took_s) for event in broken] == [("failed", None)]
    assert outcomes.get("retried", 0) >= 2 or outcomes["failed"] == 1


def test_rows_first_audio_and_speech_are_logged_once(tmp_path: Path) -> None:
    events, outcomes = logged(tmp_path)
    passed = Counter[str]()
    for event in events:
        if isinstance(event, BatchStarted):
            passed[event.batch.key.stage] += event.batch.n_rows
    assert passed["acoustic"] == passed["vocoder"] == outcomes["spoken"]
    assert sum(isinstance(event, FirstAudio) for event in events) == 6
    assert sum(event.n for event in events if isinstance(event, EventCounted)) == sum(outcomes.values())
    assert sum(isinstance(event, AudioSent) for event in events) >= outcomes["spoken"]
