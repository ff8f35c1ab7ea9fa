"""Scoring: the same sounds score the same, different ones are counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.score import broad, phoneme_errors, word_errors, words

PHONEMES = st.text("abdefhijklmnopstuvwzɑɔəɛɪʊʌæθðŋɹʃʒʤʧAIOWY", min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("reading", "written"),
    [
        ("The train leaves at seven oh five A M.", "The train leaves at 7:05 a.m."),
        ("It costs twelve dollars and fifty cents.", "It costs $12.50."),
        ("It is nineteen eighty four.", "It is 1984."),
        ("Call five five five oh one three two.", "Call 555-0132."),
        ("Write to jane at example dot com.", "Write to jane@example.com."),
        ("It was seventy two degrees Fahrenheit.", "It was 72°F."),
        ("The F B I called.", "The FBI called."),
        ("Four point two million dollars.", "$4.2 million."),
        ("Doctor Smith came third.", "Dr. Smith came 3rd."),
        ("Twelve percent of it.", "12% of it"),
        ("Doors open at eight P M.", "Doors open at 8 PM."),
    ],
)
def test_a_recogniser_may_write_figures_for_words(reading: str, written: str) -> None:
    assert words(reading) == words(written)


@pytest.mark.parametrize(
    ("reading", "transcript", "wrong"),
    [
        ("the cat sat on the mat", "the cat sat on a mat", 1),
        ("the cat sat on the mat", "", 6),
        ("the cat", "the cat cat", 1),
        ("ten kilometers away", "10 KM away", 1),
    ],
)
def test_each_wrong_missing_or_extra_word_counts_once(reading: str, transcript: str, wrong: int) -> None:
    assert word_errors([reading], transcript).wrong == wrong


def test_the_nearest_right_reading_counts() -> None:
    readings = ["call me at three oh five", "ring me at five past three"]
    assert all(word_errors(readings, reading).wrong == 0 for reading in readings)


@pytest.mark.parametrize(("reading", "transcript"), [("ten to fourteen", "10-14"), ("six forty five", "6.45")])
def test_ranges_and_clocks_may_be_written_in_figures(reading: str, transcript: str) -> None:
    assert word_errors([reading], transcript).wrong == 0


@given(PHONEMES)
def test_phonemes_have_no_errors_against_themselves_however_stressed(phonemes: str) -> None:
    assert phoneme_errors([phonemes], "ˈ" + " ˌ".join(phonemes) + "ː.").wrong == 0


@given(PHONEMES, PHONEMES)
def test_phoneme_errors_are_at_least_the_difference_in_length(one: str, other: str) -> None:
    errors = phoneme_errors([one], other)
    assert abs(len(broad(one)) - len(broad(other))) <= errors.wrong <= max(len(broad(one)), len(broad(other)))
    assert errors.total == len(broad(one))


@pytest.mark.parametrize(
    ("reading", "written"),
    [
        ("The C E O asked.", "The CEO asked."),
        ("They offered ten thousand yen.", "They offered 10,000 yen."),
        ("Raised twenty five million dollars.", "Raised $25 million."),
        ("One million one reasons.", "1,000,001 reasons."),
        ("Eleven A M E S T.", "11 AM EST."),
        ("Washington, D C.", "Washington, D.C."),
        ("On March twenty fourth.", "On March 24."),
        ("Six thousand R P M.", "6,000 RPM."),
        ("Dot I O any time.", "Dot IO anytime."),
    ],
)
def test_letters_and_large_numbers_have_one_spelling(reading: str, written: str) -> None:
    assert words(reading) == words(written)


def test_a_lost_magnitude_is_one_wrong_word() -> None:
    assert word_errors(["They raised thirty thousand dollars"], "They raised $30").wrong == 1
