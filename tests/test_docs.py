"""The documentation as a whole: links lead somewhere, the log has one short, dated file for each experiment."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LOG = DOCS / "log"
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
        *DOCS.rglob("*.md"),
    )
}
EXPERIMENTS = sorted(path for path in LOG.glob("*.md") if path.name != "README.md")
HALF_A_PAGE = 36  # lines
LINE = 120  # characters of prose


def without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(page: Path, text: str) -> list[str]:
    dead = []
    prose = re.sub(r"`[^`]*`", "", without_code(text))
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        known = path.is_file() and path.suffix == ".md"
        if not path.exists() or (anchor and (not known or anchor not in anchors(path.read_text("utf-8")))):
            dead.append(link)
    return dead


@pytest.mark.parametrize("name", PAGES)
def test_its_links_and_anchors_lead_somewhere(name: str) -> None:
    assert dead_links(ROOT / name, PAGES[name]) == []


def test_a_dead_link_or_anchor_is_found() -> None:
    text = "[a](gpu.md) [b](gpu.md#what-to-expect) [c](missing.md) [d](gpu.md#missing) [e](https://example.com/x)"
    assert dead_links(DOCS / "page.md", text) == ["missing.md", "gpu.md#missing"]


@pytest.mark.parametrize("name", PAGES)
def test_its_prose_has_short_lines(name: str) -> None:
    """But for tables and for what is nothing but a link."""
    lines = [line for line in without_code(PAGES[name]).splitlines() if not line.lstrip().startswith(("|", "[", "- ["))]
    assert [line for line in lines if len(line) > LINE] == []


@pytest.mark.parametrize("name", PAGES)
def test_the_test_files_that_it_names_exist(name: str) -> None:
    """A name without a folder on the page on reliability is one of tests/faults."""
    if name == "CHANGELOG.md":  # of any time
        return
    paths = re.findall(r"`((?:tests|benchmarks|scripts)/[\w./-]+)`", PAGES[name])
    if name == "docs/reliability.md":
        paths += [f"tests/faults/{file}" for file in re.findall(r"`(test_\w+\.py)`", PAGES[name])]
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_is_dated_and_half_a_page(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d-[a-z0-9-]+", path.stem)
    assert text.startswith("# ")
    assert text.count("\n# ") == 0, "one experiment"
    assert len(text.splitlines()) <= HALF_A_PAGE


def test_the_index_of_the_log_has_each_experiment_once() -> None:
    listed = re.findall(r"^- \[[^]]+\]\((.+)\)$", (LOG / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [path.name for path in EXPERIMENTS]
