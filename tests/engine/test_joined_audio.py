"""Joins between chunks with the real weights: silence at every edge, no louder and no softer than before."""

import asyncio
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tutti.admission.ticket import Ticket
from tutti.engine.build import open_engine
from tutti.engine.request import StreamRequest
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Samples, Speech, SpeechParams

pytestmark = pytest.mark.weights

TEXT = """He counted the steps every morning, and wrote the number down.

If the wind came from the west, the lamp room hummed.
"""
EDGE = SAMPLE_RATE // 100
PHRASE = SAMPLE_RATE // 50


@pytest.fixture(scope="module")
def speeches(home: Path) -> list[Speech]:
    async def spoken() -> list[Speech]:
        async with open_engine(Settings(home=home, precision="fp32", offline=True)) as engine:
            request = StreamRequest(TEXT, SpeechParams("am_michael"), Ticket(delivery="whole"))
            return [speech async for speech in engine.stream(request)]

    return asyncio.run(spoken())


def level_db(samples: Samples) -> float:
    """Of what is spoken, without the pauses."""
    pieces = samples[: len(samples) // PHRASE * PHRASE].reshape(-1, PHRASE)
    power = (pieces.astype(np.float64) ** 2).mean(1)
    return float(10 * np.log10(power[power > 10**-4.5].mean()))


def test_chunks_begin_and_end_in_silence_so_no_join_can_click(speeches: list[Speech]) -> None:
    assert len(speeches) > 1
    for speech in speeches:
        assert np.abs(speech.samples[:EDGE]).max() < 1e-3
        assert np.abs(speech.samples[-EDGE:]).max() < 1e-3


def test_no_chunk_is_louder_than_the_one_before_by_more_than_sentences_are(speeches: list[Speech]) -> None:
    levels = [level_db(speech.samples) for speech in speeches]
    assert np.abs(np.diff(levels)).max() <= 1.5  # clauses inside a chunk differ by 1 dB, one in ten by 2.5


def test_the_pause_at_a_join_is_one_that_a_speaker_would_make(speeches: list[Speech]) -> None:
    ends = np.cumsum([speech.duration_s for speech in speeches])
    for before, after in pairwise(speeches):
        assert 0.2 < after.words[0].start_s - before.words[-1].end_s < 1.8
    assert speeches[-1].words[-1].end_s < ends[-1]
