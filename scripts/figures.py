"""Write the measured figures that docs/requirements.md quotes from the result files of the benchmarks.

python -m scripts.figures           after a benchmark has written its result: rewrite the page
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """Words of the page around figures, and where these are in a result file."""

    words: str  # a format string; each {} is a figure
    file: str
    values: Callable[[Any], Sequence[float]]

    def written(self) -> str:
        return self.words.format(*self.values(json.loads((RESULTS / self.file).read_text("utf-8"))))

    @property
    def pattern(self) -> str:
        """Matches the words with any figures."""
        return r"\d[\d.,]*".join(map(re.escape, re.split(r"\{[^}]*\}", self.words)))


FIGURES = (
    Figure(
        "{:.1f} and {:.1f} ms for a row of 1 and of 5 s on an H200 (`benchmarks/results/crowd-cuda-x86_64.json`)",
        "crowd-cuda-x86_64.json",
        lambda result: [result["overhead"][row]["added_ms"] for row in ("1 s", "5 s")],
    ),
    Figure(
        "(`benchmarks/results/bench-8-h200.json`: first audio p95 {:.0f} ms, {} listeners heard a gap)",
        "bench-8-h200.json",
        lambda result: [1000 * result["first_s"]["p95"], result["listeners_stalled"]],
    ),
    Figure(
        "on an H200, {} requests at once: first byte {:.0f} ms and whole answer {:.0f} ms (p95), {:.0f} requests/s, "
        "{:.0f} % of the connections reused",
        "client-h200.json",
        lambda result: [
            *(result["many"][name] for name in ("at_once", "first_byte_ms_p95", "total_ms_p95", "requests_s")),
            100 * result["many"]["reuse_rate"],
        ],
    ),
    Figure(
        "{:.0f} % off at most (`benchmarks/results/plan-aarch64.json`)",
        "plan-aarch64.json",
        lambda result: [max(100 * abs(1 - load["ratio"]) for load in result["loads"])],
    ),
)


def with_figures(page: str, figures: Sequence[Figure] = FIGURES) -> str:
    """The page with the figures of the result files; raise ValueError if it has not all their words once."""
    for figure in figures:
        written = figure.written()
        page, n = re.subn(figure.pattern, lambda _, written=written: written, page)  # type: ignore[misc]
        if n != 1:
            raise ValueError(f"{PAGE.name} has these words {n} times: {figure.words}")
    return page


def main() -> None:
    PAGE.write_text(with_figures(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
