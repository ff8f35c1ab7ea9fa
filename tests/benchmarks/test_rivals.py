"""The benchmark of rivals: each side is compared with its own phonemes, by the nearest reading."""

import sys
from types import SimpleNamespace

import pytest

from benchmarks import rivals
from benchmarks.passages import Passage
from benchmarks.rivals import num2words_side, percents, score
from benchmarks.score import Errors


def line(text: str, *readings: str, held_out: bool = False) -> Passage:
    return Passage("numbers", text, readings, "announce", held_out)


def by_letters(text: str) -> list[str]:
    """A side that says every word as it is written."""
    return text.lower().split()


def test_a_side_is_judged_by_its_own_phonemes_of_the_expected_words() -> None:
    assert score([line("two cats", "two cats"), line("2 cats", "two cats")], by_letters) == [Errors(0, 2), Errors(1, 2)]


def test_the_nearest_reading_counts() -> None:
    assert score([line("one oh one", "a hundred and one", "one oh one")], by_letters) == [Errors(0, 3)]


def test_percents_are_of_words_and_apart_for_held_out_lines() -> None:
    chosen = [line("a", "a"), line("b", "b", held_out=True), line("c", "c")]
    assert percents(chosen, [Errors(0, 6), Errors(1, 2), Errors(1, 2)]) == {"all": 20.0, "held out": 50.0}


@pytest.mark.parametrize(
    ("language", "text", "spoken"),
    [
        ("en-us", "1,234.5 and 7", "<1234.5> and <7>"),
        ("es", "1.234,5 y 7", "<1234.5> y <7>"),
        ("en-us", "404 of 9", "404 of <9>"),  # num2words cannot say it: the figure stays
    ],
)
def test_figures_are_written_out_as_the_language_groups_them(
    language: str, text: str, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def num2words(n: float, lang: str) -> str:
        assert lang == {"en-us": "en", "es": "es"}[language]
        if n == 404:
            raise OverflowError
        return f"<{n}>"

    monkeypatch.setitem(sys.modules, "num2words", SimpleNamespace(num2words=num2words))
    monkeypatch.setattr(rivals, "espeak_side", lambda _: by_letters)
    assert num2words_side(language)(text) == spoken.split()
