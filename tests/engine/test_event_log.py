"""The tape holds the newest moments in their order, and what the batching did stands on it, each thing once."""

import asyncio
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import silent_voices, tone_engine
from tutti.engine.event_log import AudioSent, BatchEnded, BatchStarted, EventCounted, EventLog, FirstAudio, Moment
from tutti.errors import ModelFailed
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Samples, SpeechParams

TEXT = "The old bridge stands still under the water tonight. " * 3


class Moody(ToneModel):
    """Fails on the first batch of sounds."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = False

    def vocoder(self, rows: list[Frames]) -> list[Samples]:  # type: ignore[override]
        if not self.failed:
            self.failed = True
            raise ModelFailed("a bad day")
        return super().vocoder(rows)


def noted(folder: Path, model: type[ToneModel] = ToneModel, n_texts: int = 6) -> tuple[list[Moment], dict[str, int]]:
    async def run() -> tuple[list[Moment], dict[str, int]]:
        async with tone_engine(silent_voices(folder), model) as engine:
            asked = (engine.speak(TEXT, SpeechParams("af_heart")) for _ in range(n_texts))
            await asyncio.gather(*asked, return_exceptions=model is Moody)
        return engine.batch_stats.events.since(0), engine.stats()["performance"]["outcomes"]

    return asyncio.run(run())


@given(length=st.integers(1, 20), n=st.integers(0, 60), asked=st.integers(0, 60))
def test_it_gives_back_the_newest_in_order(length: int, n: int, asked: int) -> None:
    tape = EventLog(length)
    moments = [AudioSent(float(i), 1.0, True) for i in range(n)]
    for moment in moments:
        tape.note(moment)
    asked = min(asked, n)
    assert tape.since(asked) == moments[max(asked, n - length) :]


def test_every_batch_begins_once_and_ends_once_after_that(tmp_path: Path) -> None:
    moments, outcomes = noted(tmp_path, Moody)
    began = {moment.number: i for i, moment in enumerate(moments) if isinstance(moment, BatchStarted)}
    ended = {moment.number: i for i, moment in enumerate(moments) if isinstance(moment, BatchEnded)}
    assert len(began) == sum(isinstance(moment, BatchStarted) for moment in moments)
    assert began.keys() == ended.keys() == set(range(1, len(began) + 1))
    assert all(began[number] < ended[number] for number in began)
    broken = [moment for moment in moments if isinstance(moment, BatchEnded) and moment.outcome != "done"]
    assert [(moment.outcome, moment.took_s) for moment in broken] == [("failed", None)]
    assert outcomes.get("retried", 0) >= 2 or outcomes["failed"] == 1


def test_rows_first_audio_and_speech_stand_on_it_once(tmp_path: Path) -> None:
    moments, outcomes = noted(tmp_path)
    passed = Counter[str]()
    for moment in moments:
        if isinstance(moment, BatchStarted):
            passed[moment.batch.key.stage] += moment.batch.rows
    assert passed["acoustic"] == passed["vocoder"] == outcomes["spoken"]
    assert sum(isinstance(moment, FirstAudio) for moment in moments) == 6
    assert sum(moment.n for moment in moments if isinstance(moment, EventCounted)) == sum(outcomes.values())
    assert sum(isinstance(moment, AudioSent) for moment in moments) >= outcomes["spoken"]
