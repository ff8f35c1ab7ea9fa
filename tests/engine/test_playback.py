"""When audio is needed: a listener waits for the author of live text, and plays what it has at its own pace."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.batching.job import Job, Key
from tutti.engine.playback import FRAME_S, Playback
from tutti.engine.row import Row, RowIndex
from tutti.speech import Utterance

SECONDS = st.floats(0.01, 100)


@given(target_s=SECONDS, thinks_s=SECONDS, lasts_s=SECONDS)
def test_the_first_chunk_is_due_a_target_after_its_text(target_s: float, thinks_s: float, lasts_s: float) -> None:
    playback = Playback(requested_s=0.0, target_s=target_s)
    playback.text_arrived(thinks_s)
    assert playback.deadline_s(playback.reserve(lasts_s)) == thinks_s + target_s


@given(target_s=SECONDS, lasts_s=SECONDS, thinks_s=SECONDS, safety_s=st.floats(0, 0.005))
def test_after_a_pause_of_the_author_the_clock_restarts(
    target_s: float, lasts_s: float, thinks_s: float, safety_s: float
) -> None:
    playback = Playback(requested_s=0.0, target_s=target_s, safety_s=safety_s)
    playback.text_arrived(0.0)
    playback.deadline_s(playback.reserve(lasts_s))
    playback.sent(0.0, lasts_s, lasts_s)
    came_s = lasts_s + thinks_s
    playback.text_arrived(came_s)
    due_s = playback.deadline_s(playback.reserve(1.0))
    assert due_s >= came_s
    assert playback.sent(due_s, 1.0, 1.0)


@given(lasts_s=st.floats(2, 100), early_s=st.floats(0, 1))
def test_text_that_comes_in_time_changes_no_deadline(lasts_s: float, early_s: float) -> None:
    playback = Playback(requested_s=0.0, target_s=0.5)
    playback.text_arrived(0.0)
    playback.deadline_s(playback.reserve(lasts_s))
    playback.sent(0.0, lasts_s, lasts_s)
    playback.text_arrived(early_s)
    assert playback.deadline_s(playback.reserve(1.0)) == lasts_s


@given(target_s=SECONDS, lasts_s=SECONDS, begins_s=SECONDS, safety_s=st.floats(0, 1))
def test_deadlines_of_earlier_chunks_follow_the_start_of_playback(
    target_s: float, lasts_s: float, begins_s: float, safety_s: float
) -> None:
    before, after = (Playback(requested_s=0.0, target_s=target_s, safety_s=safety_s) for _ in range(2))
    before.reserve(lasts_s)
    position_s = before.reserve(1.0)
    before.sent(begins_s, lasts_s, lasts_s)
    after.reserve(lasts_s)
    after.sent(begins_s, lasts_s, lasts_s)
    assert before.deadline_s(position_s) == pytest.approx(after.deadline_s(after.reserve(1.0)))


def test_text_that_arrives_while_audio_is_pending_is_due_after_it() -> None:
    playback = Playback(requested_s=0.0, target_s=0.5)
    playback.text_arrived(0.0)
    playback.deadline_s(playback.reserve(2.0))
    playback.text_arrived(0.1)
    assert playback.deadline_s(playback.reserve(1.0)) == 2.5


@given(position_s=SECONDS, now=SECONDS, late_s=st.floats(0.01, 5))
def test_a_chunk_whose_audio_arrives_early_is_heard_at_its_turn_and_a_late_one_at_once(
    position_s: float, now: float, late_s: float
) -> None:
    """Later spans of a chunk are due in step with it, so the promise of the first span must hold."""
    before = Playback(requested_s=now - 1, target_s=0.5)
    assert before.plays_s(0.0, now) == now
    assert before.plays_s(position_s, now) == now + position_s
    playing = Playback(requested_s=0.0, target_s=0.5, started_s=now)
    assert playing.plays_s(position_s, now) == now + position_s
    late = now + position_s + late_s
    assert playing.plays_s(position_s, late) == late


@given(frames=st.lists(st.integers(1, 400), min_size=3, max_size=3), order=st.permutations(range(3)))
def test_a_chunk_is_due_when_what_precedes_it_was_heard_however_long_that_was_thought_to_be(
    frames: list[int], order: list[int]
) -> None:
    async def act() -> None:
        playback = Playback(requested_s=0.0, target_s=0.5)
        utterance = Utterance(np.zeros(20, np.int64), np.zeros(256, np.float32))
        estimated_s = 58 * FRAME_S
        rows = [Row(utterance, "kokoro", 7, "next", playback, playback.reserve(estimated_s), chunk=n) for n in range(3)]
        other = Row(utterance, "kokoro", 8, "next", playback, 1.0, chunk=2)
        index, together, last = RowIndex(), order[:2], order[2]
        jobs = [Job(Key("kokoro", "vocoder"), row.stream, "next", 1, 0.0) for row in (*rows, other)]
        for job, row in zip(jobs, (*rows, other), strict=True):
            index.add(job, row)
        for done in (together, [last]):
            durations = [np.array([frames[chunk]]) for chunk in done]
            index.acoustic_done([index.pop(jobs[chunk]) for chunk in done], durations, 0.0)
            for chunk in done:
                index.add(jobs[chunk], rows[chunk])
        heard_s = [FRAME_S * sum(frames[:chunk]) for chunk in range(3)]
        assert [row.deadline_s for row in rows] == pytest.approx([0.5 + position_s for position_s in heard_s])
        assert playback.pending_s == pytest.approx(FRAME_S * sum(frames))
        assert other.position_s == 1.0, "of another stream"

    asyncio.run(act())
