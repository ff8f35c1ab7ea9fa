"""When a process counts as late, and when as hung."""

from tutti.server.front.pool import HUNG_BEATS, LATE_BEATS, START_BEATS, Heartbeat


def started() -> Heartbeat:
    beats = Heartbeat()
    beats.asked()
    beats.answered()
    return beats


def ask(beats: Heartbeat, n: int) -> None:
    for _ in range(n):
        beats.asked()


def test_a_process_that_answers_is_neither_late_nor_hung() -> None:
    beats = started()
    for _ in range(100):
        ask(beats, LATE_BEATS)
        assert (beats.answers, beats.is_hung) == (True, False)
        beats.answered()


def test_a_process_that_does_not_answer_is_late_then_hung() -> None:
    beats = started()
    ask(beats, LATE_BEATS + 1)
    assert (beats.answers, beats.is_hung) == (False, False)
    ask(beats, HUNG_BEATS - LATE_BEATS)
    assert beats.is_hung


def test_one_answer_is_enough() -> None:
    beats = started()
    ask(beats, HUNG_BEATS)
    beats.answered()
    assert (beats.answers, beats.is_hung) == (True, False)


def test_the_first_process_is_not_missed_while_it_starts() -> None:
    beats = Heartbeat()
    ask(beats, START_BEATS)
    assert (beats.answers, beats.is_hung) == (True, False)
    beats.asked()
    assert beats.is_hung


def test_another_process_is_missed_until_it_answers_and_has_time_to_start() -> None:
    beats = started()
    beats.lost()
    ask(beats, START_BEATS)
    assert (beats.answers, beats.is_hung) == (False, False)
    beats.answered()
    assert beats.answers
