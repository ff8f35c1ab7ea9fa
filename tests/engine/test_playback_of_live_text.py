"""Who listens to a text that is still being written waits for its author, and that is nobody's lateness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.engine.playback import Playback

SECONDS = st.floats(0.01, 100)


@given(target_s=SECONDS, thinks_s=SECONDS, lasts_s=SECONDS)
def test_the_first_chunk_is_due_a_target_after_its_text(target_s: float, thinks_s: float, lasts_s: float) -> None:
    playback = Playback(asked_s=0.0, target_s=target_s)
    playback.text_came(thinks_s)
    assert playback.due_s(lasts_s) == thinks_s + target_s


@given(target_s=SECONDS, lasts_s=SECONDS, thinks_s=SECONDS, safety_s=st.floats(0, 0.005))
def test_after_a_silence_of_the_author_our_time_begins_anew(
    target_s: float, lasts_s: float, thinks_s: float, safety_s: float
) -> None:
    playback = Playback(asked_s=0.0, target_s=target_s, safety_s=safety_s)
    playback.text_came(0.0)
    playback.due_s(lasts_s)
    playback.sent(0.0, lasts_s, lasts_s)
    came_s = lasts_s + thinks_s
    playback.text_came(came_s)
    due_s = playback.due_s(1.0)
    assert due_s >= came_s
    assert playback.sent(due_s, 1.0, 1.0)


@given(lasts_s=st.floats(2, 100), early_s=st.floats(0, 1))
def test_text_that_comes_in_time_changes_no_deadline(lasts_s: float, early_s: float) -> None:
    playback = Playback(asked_s=0.0, target_s=0.5)
    playback.text_came(0.0)
    playback.due_s(lasts_s)
    playback.sent(0.0, lasts_s, lasts_s)
    playback.text_came(early_s)
    assert playback.due_s(1.0) == lasts_s


@given(target_s=SECONDS, lasts_s=SECONDS, begins_s=SECONDS, safety_s=st.floats(0, 1))
def test_what_was_due_before_the_first_sound_is_due_as_if_it_came_after(
    target_s: float, lasts_s: float, begins_s: float, safety_s: float
) -> None:
    before, after = (Playback(asked_s=0.0, target_s=target_s, safety_s=safety_s) for _ in range(2))
    before.due_s(lasts_s)
    told_s = before.due_s(1.0) - before.early_s(begins_s)
    after.due_s(lasts_s)
    after.sent(begins_s, lasts_s, lasts_s)
    assert told_s == pytest.approx(after.due_s(1.0))


def test_text_that_comes_while_other_text_is_on_its_way_waits_behind_it() -> None:
    playback = Playback(asked_s=0.0, target_s=0.5)
    playback.text_came(0.0)
    playback.due_s(2.0)
    playback.text_came(0.1)
    assert playback.due_s(1.0) == 2.5
