"""Write the measured figures that README and the pages of docs/ quote from the result files of the benchmarks.

python -m scripts.figures           after a benchmark has written its result: rewrite the pages

scripts/figures.txt has the words of each page around its figures, and says where these are in the result files:
`{crowd-cuda-x86_64 > listeners > first_p95_ms:.0f}`. A name in a list is that of an element, `*` is all of them, and a
word before the file is a function of `FUNCTIONS`. docs/numbers.md has all figures, other pages quote some.
"""

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LIST = ROOT / "scripts" / "figures.txt"
PLACE = re.compile(r"\{([^{}:]+):([^{}]*)\}")
AMOUNTS = ("numbers", "dates", "times", "money", "units")  # kinds of sentences in benchmarks/data/english.tsv


@dataclass(frozen=True, slots=True)
class Figure:
    """Words of a page around figures."""

    page: str
    words: str

    def values(self) -> list[str]:
        return [format(value_at(place), form) for place, form in PLACE.findall(self.words)]

    def written(self) -> str:
        values = iter(self.values())
        return PLACE.sub(lambda _: next(values), self.words)

    @property
    def pattern(self) -> str:
        """Matches the words with any figures, also where a line ends between them."""
        literal = PLACE.sub("\0", self.words).split("\0")
        return r"\d[\d.,]*".join("(" + r"\s+".join(map(re.escape, part.split(" "))) + ")" for part in literal)

    def write_into(self, text: str) -> str:
        """The page with these figures; raise ValueError if it has not the words once."""

        def filled(match: re.Match[str]) -> str:
            first, *rest = match.groups()
            return str(first) + "".join(value + part for value, part in zip(self.values(), rest, strict=True))

        text, n = re.subn(self.pattern, filled, text)
        if n != 1:
            raise ValueError(f"{self.page} has these words {n} times: {self.words}")
        return text


def value_at(place: str) -> Any:
    """The value at `function file > name > name`, or at that without a function."""
    first, *names = (name.strip() for name in place.split(">"))
    function, _, file = first.rpartition(" ")
    value = result(file)
    for at, name in enumerate(names):
        if name == "*":
            value = [element[names[at + 1]] for element in value]
            break
        value = value[name] if isinstance(value, dict) else named(value, name)
    return FUNCTIONS[function](value) if function else value


def named(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """The first element that has the name, or the number, as one of its values."""
    return next(row for row in rows if name in map(str, row.values()))


@cache
def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def amounts(side: Any) -> float:
    """Percent of words that one side got wrong, in sentences with numbers, dates, times, money or units."""
    with (ROOT / "benchmarks/data/english.tsv").open(encoding="utf-8") as file:
        kinds = {row["text"]: row["category"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    rows = [row for row in side["rows"] if kinds[row["text"]] in AMOUNTS]
    return float(100 * sum(row["wrong"] for row in rows) / sum(row["of"] for row in rows))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "median": median,
    "largest": max,
    "least": min,
    "sum": sum,
    "count": len,
    "percent": lambda value: 100 * value,
    "less": lambda value: -value,
    "ms": lambda value: 1000 * value,
    "off": lambda ratios: max(100 * abs(1 - ratio) for ratio in ratios),
    "amounts": amounts,
}


def figures(text: str) -> list[Figure]:
    """Of each page the words on a line of their own, below the name of the page."""
    found, page = [], ""
    for line in text.splitlines():
        if line.startswith("# "):
            page = line.removeprefix("# ")
        elif line:
            found.append(Figure(page, line))
    return found


FIGURES = figures(LIST.read_text("utf-8"))
PAGES = tuple(dict.fromkeys(figure.page for figure in FIGURES))


def with_figures(text: str, of_page: Sequence[Figure]) -> str:
    for figure in of_page:
        text = figure.write_into(text)
    return text


def of(page: str) -> list[Figure]:
    return [figure for figure in FIGURES if figure.page == page]


def main() -> None:
    for page in PAGES:
        path = ROOT / page
        path.write_text(with_figures(path.read_text("utf-8"), of(page)), "utf-8")


if __name__ == "__main__":
    main()
