"""How long a batch will take: four non-negative numbers, learned from every batch that ran.

Padded rows (a GPU):       seconds = c0 + c1 * rows + c2 * padded (or all, if it regroups) + c3 * longest
Rows side by side (CPU):   seconds = c0 + c1 * rows + c3 * longest chain of one lane, and c2 * size of a lone row

Least squares on the relative error with forgetting, solved under "no coefficient is negative": so a prediction is never
negative and never falls when a row grows. What runs is what looks cheap, so a shape that once ran badly would never
be seen again: a few batches as the warm-up found them count for ever as if they had just run.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tutti.batching.job import Key
from tutti.batching.layout import Extent, Features, Layout, extent
from tutti.files import write_file

Coefficients = tuple[float, float, float, float]

FORGET = 0.98  # the last fifty batches count
HELD = tuple(Extent(n, size, n * size) for n in (1, 4) for size in (50, 300))  # of the warm-up, never forgotten
FAINT = 1e-3  # batches: what the first guess weighs beside a warm-up
SWEEPS = 8  # of coordinate descent after each batch; it starts from the last answer
FLOOR_S = 1e-6
VERSION = 2  # of the file; the coefficients of another mean something else


class CostModel:
    """What one stage of one checkpoint takes on one device."""

    def __init__(self, shape: Layout, prior: Coefficients) -> None:
        self.shape = shape
        self.coefficients: Coefficients = prior
        self.error = 0.0  # mean relative error of late
        self.n_seen = 0
        self._hold(prior)
        self._seen = [[0.0] * 4 for _ in range(4)]  # sum of x x', newest weighs most
        self._took = [0.0] * 4  # sum of x y

    def predict(self, sizes: Sequence[int]) -> float:
        """Seconds for these rows in one pass."""
        return self.seconds(extent(sizes))

    def seconds(self, rows: Extent) -> float:
        a, b, c, d = self.shape.features(rows)
        c0, c1, c2, c3 = self.coefficients
        found = max(c0 * a + c1 * b + c2 * c + c3 * d, FLOOR_S)
        part = self.shape.covers(rows)
        return found if part is None else max(found, self.seconds(part))

    def padded(self, rows: Extent) -> int:
        return self.shape.padded(rows)

    def start_from(self, coefficients: Coefficients) -> None:
        """What an earlier start has learned is where this one begins."""
        self.coefficients = coefficients
        self._hold(coefficients)

    def learn(self, sizes: Sequence[int], took_s: float) -> float:
        """Remember one batch; the relative error of what was predicted for it."""
        rows = extent(sizes)
        predicted = self.seconds(rows)
        wrong = abs(predicted - took_s) / max(took_s, FLOOR_S)
        self.error += (min(wrong, 10.0) - self.error) / min(self.n_seen + 1, 50)
        self._remember(rows, max(took_s, FLOOR_S), max(took_s, predicted))
        self._solve(1.0)
        return wrong

    def seed(self, samples: Iterable[tuple[Sequence[int], float]]) -> None:
        """Start from a warm-up sweep."""
        for sizes, took_s in samples:
            took_s = max(took_s, FLOOR_S)
            self._remember(extent(sizes), took_s, took_s)
        for _ in range(100):
            self._solve(FAINT)
        self._hold(self.coefficients)

    def _hold(self, prior: Coefficients) -> None:
        features = [self.shape.features(rows) for rows in HELD]
        self._held = [(x, max(_dot(prior, x), FLOOR_S)) for x in features]

    def _remember(self, rows: Extent, took_s: float, scale_s: float) -> None:
        # Weighed by the greater of both times: neither a stall nor a lucky read of the clock can drown the rest.
        x = [value / scale_s for value in self.shape.features(rows)]
        y = took_s / scale_s
        self.n_seen += 1
        for i, row in enumerate(self._seen):
            for j in range(4):
                row[j] = FORGET * row[j] + x[i] * x[j]
            self._took[i] = FORGET * self._took[i] + x[i] * y

    def _solve(self, hold: float) -> None:
        seen, took, found = [list(row) for row in self._seen], list(self._took), list(self.coefficients)
        for x, held_s in self._held:
            weight = hold / max(held_s, _dot(found, x)) ** 2
            for i in range(4):
                for j in range(4):
                    seen[i][j] += weight * x[i] * x[j]
                took[i] += weight * x[i] * held_s
        for _ in range(SWEEPS):
            for i, row in enumerate(seen):
                rest = took[i] - sum(row[j] * found[j] for j in range(4) if j != i)
                found[i] = max(0.0, rest / row[i])
        self.coefficients = (found[0], found[1], found[2], found[3])


def _dot(coefficients: Sequence[float], features: Features) -> float:
    return sum(c * x for c, x in zip(coefficients, features, strict=True))


def file_name(device: str, weights_sha256: str) -> str:
    """Where the costs of this device with these weights are kept, below the model folder."""
    plain = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:40]
    mark = hashlib.sha256(f"{device}\0{weights_sha256}".encode()).hexdigest()[:12]
    return f"costs-{plain}-{mark}.json"


def save(costs: Mapping[Key, CostModel], path: Path) -> None:
    """Keep the coefficients for the next start; the file is whole or not there."""
    kept = [[*key, cost.coefficients] for key, cost in costs.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps({"version": VERSION, "costs": kept}, indent=1))


def load(path: Path) -> dict[Key, Coefficients]:
    """Coefficients of an earlier run to begin with; nothing if there is no such file or it is not one of ours."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        found: dict[Key, Coefficients] = {}
        if kept["version"] != VERSION:
            return found
        for checkpoint, stage, (c0, c1, c2, c3) in kept["costs"]:
            values = (float(c0), float(c1), float(c2), float(c3))
            if stage in ("acoustic", "vocoder") and all(0.0 <= value < 1e6 for value in values):
                found[Key(str(checkpoint), stage)] = values
        return found
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # a warm-up sweep finds them again
