"""The report of a verification: markdown for people, JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tutti.files import save
from tutti.verify import Check

HEAD = ("check", "found", "at most", "", "")


@dataclass(frozen=True, slots=True)
class Report:
    """The checks of one model, and notes on what was left out."""

    model: str
    n_sentences: int
    checks: Sequence[Check]
    notes: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (
                check.name,
                *(_number(n, check.unit) for n in (check.found, check.limit)),
                outcome(check.passed),
                check.note,
            )
            for check in self.checks
        ]

    def markdown(self) -> str:
        lines = [HEAD, ("---",) * len(HEAD), *self.rows()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        notes = "".join(f"\n{note}\n" for note in self.notes)
        title = f"# tutti verify: {outcome(self.passed)}"
        return f"{title}\n\n{self.model}; sentences: {self.n_sentences}.\n\n{table}\n{notes}"

    def json(self) -> str:
        checks = [{**asdict(check), "passed": check.passed} for check in self.checks]
        whole = {"passed": self.passed, "model": self.model, "n_sentences": self.n_sentences}
        return json.dumps({**whole, "checks": checks, "notes": list(self.notes)}, indent=1) + "\n"

    def save(self, path: Path) -> None:
        """Write the markdown to `path` and the JSON beside it."""
        save(path.with_suffix(".json"), self.json(), param="out")
        save(path, self.markdown(), param="out")


def outcome(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def _number(value: float, unit: str) -> str:
    return f"{value:.2g} {unit}".strip()
