"""docs/requirements.md quotes no measured figure but those that the benchmarks have written to their result files."""

import re

import pytest

from scripts.figures import FIGURES, PAGE, Figure, with_figures

TEXT = PAGE.read_text("utf-8")
MEASURED = re.compile(r"\d[\d.,]* (?:ms|s|%|requests/s)(?=\W)")
PROMISED = {"0 ms"}  # by construction, not by measurement: no window opens for a lone row


def test_its_figures_are_those_of_the_result_files() -> None:
    assert with_figures(TEXT) == TEXT, "run: python -m scripts.figures"


def test_it_quotes_no_other_figure() -> None:
    """In the columns that say how a requirement is met and what shows it; the first two are the requirement."""
    rest = TEXT
    for figure in FIGURES:
        rest = rest.replace(figure.written(), "")
    rows = [line.split("|")[3:5] for line in rest.splitlines() if line.startswith("| ")]
    assert {found for row in rows for cell in row for found in MEASURED.findall(cell)} <= PROMISED


def test_words_that_the_page_does_not_have_are_an_error() -> None:
    missing = Figure("{} dragons", FIGURES[0].file, lambda _: [3])
    with pytest.raises(ValueError, match="0 times"):
        with_figures(TEXT, [missing])
    assert with_figures("4 dragons", [missing]) == "3 dragons"
