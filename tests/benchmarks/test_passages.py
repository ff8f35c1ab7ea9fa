"""The benchmark of passages: its data, its count of wrong words, and the limit that the front end must keep."""

from pathlib import Path

import pytest

from benchmarks.passages import Passage, count_errors, judge, passages, phonemize
from benchmarks.score import Errors


def test_a_third_of_150_passages_is_held_out() -> None:
    chosen = passages()
    assert len(chosen) == 150
    assert sum(one.held_out for one in chosen) == 49  # every third of each category
    assert all(one.text and one.readings for one in chosen)


@pytest.mark.parametrize(("data", "n_lines"), [("written", 300), ("written3", 102)])
def test_a_third_of_the_written_lines_is_held_out_in_each_category(data: str, n_lines: int) -> None:
    chosen = passages(data)
    assert len(chosen) == n_lines
    for category in {one.category for one in chosen}:
        members = [one.held_out for one in chosen if one.category == category]
        assert members == [False, False, True] * (len(members) // 3)


@pytest.mark.parametrize("language", ["es", "fr", "it", "pt-br", "hi", "ja", "zh"])
def test_each_other_language_has_100_written_lines_of_which_every_third_is_held_out(language: str) -> None:
    chosen = passages(f"written-{language}")
    assert len(chosen) == len({one.text for one in chosen}) == 100
    assert {one.language for one in chosen} == {language}
    for category in {one.category for one in chosen}:
        members = [one.held_out for one in chosen if one.category == category]
        assert members == [n % 3 == 2 for n in range(len(members))]


def test_the_nasal_at_the_end_of_a_japanese_word_is_one_sound() -> None:
    line = Passage("numbers", "3.14", ("",), "announce", False, "ja")
    (result,) = judge([line], [{"spoken": ["santen"], "readings": [["saɴ", "teɴ"]]}])
    assert result.errors == Errors(0, 2)


@pytest.mark.parametrize(
    ("spoken", "n_wrong"),
    [
        (["wˈʌn", "fˈIv", "θɹˈi"], 0),
        (["wˈʌnfˌIv", "θɹˈi"], 0),  # borders of words and stress are not counted
        (["wˈʌn", "θɹˈi"], 1),
        (["wˈʌn", "fˈiv", "θɹˈi"], 1),
        (["wˈʌn", "mˈInəs", "fˈIv", "θɹˈi"], 1),
        ([], 3),
    ],
)
def test_wrong_missing_and_extra_words_are_counted(spoken: list[str], n_wrong: int) -> None:
    assert count_errors(["wˈʌn", "fˈIv", "θɹˈi"], spoken) == Errors(n_wrong, 3)


@pytest.mark.weights
def test_at_most_three_percent_of_the_words_are_wrong(home: Path) -> None:
    results = judge(passages(), phonemize(passages(), home))
    for part in (results, [result for result in results if result.passage.held_out]):
        assert sum((result.errors for result in part), Errors()).percent <= 3
