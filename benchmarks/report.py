"""Error rates by category: a table, the worst sentences, a file."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.score import Errors
from benchmarks.sentences import Sentence


@dataclass(frozen=True, slots=True)
class PhonemeResult:
    """A sentence after a front end, and its phoneme errors."""

    sentence: Sentence
    phonemes: str
    errors: Errors


@dataclass(frozen=True, slots=True)
class WordResult:
    """A sentence spoken by one voice, its transcript, and its word errors."""

    sentence: Sentence
    voice: str
    phonemes: str
    heard: str
    errors: Errors


def by_category(rows: Sequence[PhonemeResult | WordResult]) -> dict[str, Errors]:
    """The errors of each category, and of all."""
    sums: dict[str, Errors] = defaultdict(Errors)
    for row in rows:
        sums[row.sentence.category] += row.errors
    return {**sums, "all": sum(sums.values(), Errors())}


def table(title: str, rows: Mapping[str, Sequence[PhonemeResult | WordResult]]) -> Table:
    """Percent by category, one column for each side, and the difference of tutti and its rival."""
    sums = {side: by_category(of_side) for side, of_side in rows.items()}
    compared = {"tutti", "rival"} <= sums.keys()
    out = Table("category", title=title)
    for heading in (*sums, *(["difference"] if compared else []), "n"):
        out.add_column(heading, justify="right")
    for category, first in next(iter(sums.values())).items():
        cells = [f"{of_side[category].percent:.1f}" for of_side in sums.values()]
        if compared:
            cells.append(f"{sums['tutti'][category].percent - sums['rival'][category].percent:+.1f}")
        out.add_row(category, *cells, str(first.total), style="bold" if category == "all" else None)
    return out


def interval(ours: list[WordResult], theirs: list[WordResult], rounds: int = 2000) -> tuple[float, float]:
    """The 95 % confidence interval of the difference in percentage points, by paired bootstrap."""
    pairs = zip(ours, theirs, strict=True)
    counts = np.array([[a.errors.wrong, a.errors.total, b.errors.wrong, b.errors.total] for a, b in pairs])
    resampled = counts[np.random.default_rng(0).integers(len(counts), size=(rounds, len(counts)))].sum(axis=1)
    difference = 100 * (resampled[:, 0] / resampled[:, 1] - resampled[:, 2] / resampled[:, 3])
    low, high = np.percentile(difference, [2.5, 97.5])
    return float(low), float(high)


def show_worst(console: Console, side: str, rows: Sequence[PhonemeResult | WordResult], n: int) -> None:
    """Print the sentences with most errors: text, phonemes, and the transcript or the right phonemes."""
    for row in sorted(rows, key=lambda row: -row.errors.wrong)[:n]:
        if row.errors.wrong == 0:
            break
        voice = f", {row.voice}" if isinstance(row, WordResult) else ""
        compared = f"heard  {row.heard}" if isinstance(row, WordResult) else f"should {row.sentence.phonemes[0]}"
        kind = "words" if isinstance(row, WordResult) else "phonemes"
        lines = (
            f"{side}: {row.errors.wrong} {kind} wrong, {row.sentence.category}{voice}",
            f"text   {row.sentence.text}",
            f"said   {row.phonemes}",
            compared,
        )
        console.print("\n  ".join(lines), markup=False, highlight=False, soft_wrap=True)


def save(
    path: Path, setting: dict[str, object], phonemes: dict[str, list[PhonemeResult]], words: dict[str, list[WordResult]]
) -> None:
    """Write all results, so that two runs can be compared line by line."""
    results = {
        "setting": setting,
        "phonemes": {side: _summary(rows) for side, rows in phonemes.items()},
        "words": {side: _summary(rows) for side, rows in words.items()},
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _summary(rows: Sequence[PhonemeResult | WordResult]) -> dict[str, object]:
    percent = {category: round(errors.percent, 2) for category, errors in by_category(rows).items()}
    each = [
        {**{k: v for k, v in asdict(row).items() if k not in ("sentence", "errors")}, **_errors(row)} for row in rows
    ]
    return {"percent": percent, "rows": each}


def _errors(row: PhonemeResult | WordResult) -> dict[str, object]:
    return {"text": row.sentence.text, "wrong": row.errors.wrong, "of": row.errors.total}
