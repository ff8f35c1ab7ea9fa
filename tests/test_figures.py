"""README and docs/ quote the figures of the result files of the benchmarks, and docs/numbers.md quotes all."""

import re

import pytest

from scripts.figures import FIGURES, PAGES, ROOT, Figure, of, value_at, with_figures

REQUIREMENTS = "docs/contributing/requirements.md"
NUMBERS = "docs/numbers.md"
MEASURED = re.compile(r"\d[\d.,]* (?:ms|s|%|requests/s)(?=\W)")
PROMISED = {"0 ms"}  # by construction, not by measurement: no window opens for a lone row


@pytest.mark.parametrize("page", PAGES)
def test_its_figures_are_those_of_the_result_files(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert with_figures(text, of(page)) == text, "run: python -m scripts.figures"


def test_the_page_of_numbers_has_no_row_without_a_figure_of_a_file() -> None:
    text = (ROOT / NUMBERS).read_text("utf-8")
    for figure in of(NUMBERS):
        text = text.replace(figure.written(), "")
    rest = re.sub(r"^\|.*\n\|[-|]+\n", "", text, flags=re.MULTILINE)  # but for the heads of tables
    assert [line for line in rest.splitlines() if line.startswith("|")] == []


def test_the_page_of_numbers_names_the_files() -> None:
    text = (ROOT / NUMBERS).read_text("utf-8")
    files = {file for figure in of(NUMBERS) for file in re.findall(r"\{(?:\w+ )?(\S+) >", figure.words)}
    named = {name.replace("*", "") for name in re.findall(r"`([\w*-]+)\.json`", text)}
    assert [file for file in files if not any(file.startswith(name) for name in named)] == []


def test_the_tables_of_the_readme_are_of_the_result_files() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    heads = re.compile(r"^\|.*\n\|[-|]+$\n", re.MULTILINE)
    rows = [line for line in heads.sub("", text[text.index("| | tutti |") :]).splitlines() if line.startswith("|")]
    assert sorted(rows) == sorted(figure.written() for figure in of("README.md") if figure.words.startswith("| "))


def test_the_requirements_quote_no_other_figure() -> None:
    """In the columns that say how a requirement is met and what shows it; the first two are the requirement."""
    rest = (ROOT / REQUIREMENTS).read_text("utf-8")
    for figure in of(REQUIREMENTS):
        rest = rest.replace(figure.written(), "")
    rows = [line.split("|")[3:5] for line in rest.splitlines() if line.startswith("| ")]
    assert {found for row in rows for cell in row for found in MEASURED.findall(cell)} <= PROMISED


def test_words_that_the_page_does_not_have_are_an_error() -> None:
    missing = Figure("page", "{count bystander > inputs:} dragons and {bystander > requests:} cats")
    with pytest.raises(ValueError, match="0 times"):
        with_figures("4 dragons", [missing])
    assert with_figures("4 dragons and\n3 cats", [missing]) == "215 dragons and\n20 cats"


def test_a_value_is_found_by_names_and_functions() -> None:
    assert value_at("http-load-h200 > loads > 2x > streams_per_s") == pytest.approx(306.6, abs=0.1)
    assert value_at("least plan-aarch64 > loads > * > ratio") < value_at("largest plan-aarch64 > loads > * > ratio")
    assert len({(figure.page, figure.words) for figure in FIGURES}) == len(FIGURES)
