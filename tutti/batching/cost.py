"""Predicted seconds of a batch: four non-negative coefficients, learned from every batch that ran.

Padded rows (GPU):        seconds = c0 + c1 * rows + c2 * padded size (or total, if regrouped) + c3 * longest
Rows side by side (CPU):  seconds = c0 + c1 * rows + c3 * longest chain on one core, and c2 * size of a lone row

Recursive least squares on the relative error with forgetting, under the constraint that no coefficient is negative:
a prediction is never negative and never falls when a row grows. A layout that once looked expensive would never run
again and never be corrected, so a few batches of the warm-up are never forgotten (anchors). What they keep is the
proportion between layouts: their seconds follow the speed of the batches that run, since the warm-up may have been
measured while the machine was busy.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import exp, log
from pathlib import Path

from tutti.batching.job import STAGES, Key
from tutti.batching.layout import Layout, RowSizes, row_sizes
from tutti.files import write_file

Coefficients = tuple[float, float, float, float]

FORGETTING = 0.98  # weight of all earlier batches after each new one: about the last 50 count
ANCHORS = tuple(RowSizes(n, size, n * size) for n in (1, 4) for size in (50, 300))  # of the warm-up, never forgotten
SPEED_OVER = 20  # batches over which the speed against the warm-up is averaged; larger is smoother, and follows later
MAX_SPEED_CHANGE = 10.0  # that one batch may show: a stall or a glitch of the clock shows more
PRIOR_WEIGHT = 1e-3  # of the prior beside the batches of a warm-up, each of which has weight 1
# Device seconds over which the speed against the present predictions is averaged. Costs are learned over 50 batches,
# which take minutes on a slow device. Larger reacts later to a device that others slow down, smaller to single batches.
RECENT_S = 10.0
ITERATIONS = 8  # of coordinate descent after each batch, from the last solution; more converges closer, and costs time
MIN_S = 1e-6  # smallest prediction
VERSION = 2  # of the file; coefficients of another version mean something else


class CostModel:
    """Predicted seconds of one stage of one checkpoint on one device."""

    def __init__(self, layout: Layout, prior: Coefficients) -> None:
        self.layout = layout
        self.coefficients: Coefficients = prior
        # Answers that hold until the next batch.
        self._per_row: dict[tuple[float, ...], float] = {}
        self._alone: dict[int, float] = {}  # seconds of a row of this size
        self.error = 0.0  # mean relative error of recent predictions
        self.n_learned = 0
        self.recent_s = 0.0  # that the batches of the last RECENT_S took
        self._recent_x = [0.0] * 4  # the sum of their features
        self._set_anchors(prior)
        self._xx = [[0.0] * 4 for _ in range(4)]  # sum of x x', recent batches weigh most
        self._xy = [0.0] * 4  # sum of x y

    def predict(self, sizes: Sequence[int]) -> float:
        """Seconds for these rows in one pass; those of a row alone are asked for many times a request."""
        if len(sizes) != 1:
            return self.seconds(row_sizes(sizes))
        if (known := self._alone.get(sizes[0])) is None:
            known = self._alone[sizes[0]] = self.seconds(row_sizes(sizes))
        return known

    def seconds(self, rows: RowSizes) -> float:
        a, b, c, d = self.layout.features(rows)
        c0, c1, c2, c3 = self.coefficients
        seconds = max(c0 * a + c1 * b + c2 * c + c3 * d, MIN_S)
        bound = self.layout.lower_bound(rows)
        return seconds if bound is None else max(seconds, self.seconds(bound))

    @property
    def recent_predicted_s(self) -> float:
        """What the batches of `recent_s` would take by the present coefficients; those of then do not matter."""
        return _dot(self.coefficients, self._recent_x)

    def in_memory(self, rows: RowSizes) -> int:
        return self.layout.in_memory(rows)

    def per_row(self, size: int, max_rows: int, max_s: float, max_in_memory: float) -> float:
        """Seconds of one row in the fullest batch of such rows that the limits allow."""
        limits = size, max_rows, max_s, max_in_memory
        if (known := self._per_row.get(limits)) is None:
            known = self._per_row[limits] = self._find_per_row(*limits)
        return known

    def _find_per_row(self, size: int, max_rows: int, max_s: float, max_in_memory: float) -> float:
        best, n = self.predict((size,)), 2
        while n <= max_rows:
            rows = RowSizes(n, size, size * n)
            seconds = self.seconds(rows)
            if seconds > max_s or self.in_memory(rows) > max_in_memory:
                break
            best, n = min(best, seconds / n), n * 2
        return best

    def start_from(self, coefficients: Coefficients) -> None:
        """Continue from the coefficients of an earlier start, or of another model; forget all batches."""
        self._set(coefficients)
        self._set_anchors(coefficients)
        self._xx, self._xy = [[0.0] * 4 for _ in range(4)], [0.0] * 4

    def learn(self, sizes: Sequence[int], took_s: float) -> float:
        """Update the coefficients with one batch; return the relative error of its prediction."""
        rows = row_sizes(sizes)
        predicted = self.seconds(rows)
        error = abs(predicted - took_s) / max(took_s, MIN_S)
        self.error += (min(error, 10.0) - self.error) / min(self.n_learned + 1, 50)
        self._follow_speed(rows, max(took_s, MIN_S))
        self._remember(rows, min(took_s, MAX_SPEED_CHANGE * predicted))
        self._accumulate(rows, max(took_s, MIN_S), max(took_s, predicted))
        self._solve(1.0)
        return error

    def seed(self, samples: Iterable[tuple[Sequence[int], float]]) -> None:
        """Start from the batches of a warm-up sweep."""
        for sizes, took_s in samples:
            took_s = max(took_s, MIN_S)
            self._accumulate(row_sizes(sizes), took_s, took_s)
        for _ in range(100):
            self._solve(PRIOR_WEIGHT)
        self._set_anchors(self.coefficients)

    def _set_anchors(self, coefficients: Coefficients) -> None:
        features = [self.layout.features(rows) for rows in ANCHORS]
        self._warm = coefficients
        self._anchors = [(x, max(_dot(coefficients, x), MIN_S)) for x in features]
        self._slower, self._n_compared = 0.0, 0  # log of the present seconds over those of the warm-up; batches

    def _follow_speed(self, rows: RowSizes, took_s: float) -> None:
        """Compare a batch with what it would have taken by the warm-up."""
        warm_s = max(_dot(self._warm, self.layout.features(rows)), MIN_S)
        slower = log(min(max(took_s / warm_s, 1 / MAX_SPEED_CHANGE), MAX_SPEED_CHANGE))
        self._n_compared = min(self._n_compared + 1, SPEED_OVER)
        self._slower += (slower - self._slower) / self._n_compared

    def _remember(self, rows: RowSizes, took_s: float) -> None:
        """Add a batch to the recent ones."""
        bound, kept = self.layout.lower_bound(rows), max(0.0, 1.0 - took_s / RECENT_S)
        all_x = [self.layout.features(each) for each in (rows, bound) if each is not None]
        x = max(all_x, key=lambda x: _dot(self.coefficients, x))
        self.recent_s = kept * self.recent_s + took_s
        self._recent_x = [kept * old + new for old, new in zip(self._recent_x, x, strict=True)]

    def _accumulate(self, rows: RowSizes, took_s: float, scale_s: float) -> None:
        # Scaled by the larger of both times, so that neither a stall nor a clock glitch outweighs the rest.
        x = [value / scale_s for value in self.layout.features(rows)]
        y = took_s / scale_s
        self.n_learned += 1
        for i, row in enumerate(self._xx):
            for j in range(4):
                row[j] = FORGETTING * row[j] + x[i] * x[j]
            self._xy[i] = FORGETTING * self._xy[i] + x[i] * y

    def _solve(self, anchor_weight: float) -> None:
        """Coordinate descent on the normal equations, each coefficient clipped at zero."""
        xx, xy, solution = [list(row) for row in self._xx], list(self._xy), list(self.coefficients)
        speed = exp(self._slower)
        for x, warm_s in self._anchors:
            anchor_s = speed * warm_s
            weight = anchor_weight / max(anchor_s, _dot(solution, x)) ** 2
            for i in range(4):
                for j in range(4):
                    xx[i][j] += weight * x[i] * x[j]
                xy[i] += weight * x[i] * anchor_s
        for _ in range(ITERATIONS):
            for i, row in enumerate(xx):
                rest = xy[i] - sum(row[j] * solution[j] for j in range(4) if j != i)
                solution[i] = max(0.0, rest / row[i])
        self._set((solution[0], solution[1], solution[2], solution[3]))

    def _set(self, coefficients: Coefficients) -> None:
        self.coefficients = coefficients
        self._per_row.clear()
        self._alone.clear()


def slower_than_predicted(costs: Collection[CostModel]) -> float:
    """How many times what is predicted for them now the recent batches of all stages took."""
    predicted_s = sum(cost.recent_predicted_s for cost in costs)
    return sum(cost.recent_s for cost in costs) / max(predicted_s, MIN_S)


def _dot(coefficients: Sequence[float], features: Sequence[float]) -> float:
    return sum(c * x for c, x in zip(coefficients, features, strict=True))


def file_name(device: str, weights_sha256: str) -> str:
    """Name of the file with the costs of this device and these weights, in the model folder."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{device}\0{weights_sha256}".encode()).hexdigest()[:12]
    return f"costs-{slug}-{digest}.json"


def save(costs: Mapping[Key, CostModel], path: Path) -> None:
    """Store the coefficients for the next start."""
    entries = [[*key, cost.coefficients] for key, cost in costs.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps({"version": VERSION, "costs": entries}, indent=1))


def load(path: Path) -> dict[Key, Coefficients]:
    """Read the coefficients of an earlier start; empty if the file is missing, damaged or of another version."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        costs: dict[Key, Coefficients] = {}
        if stored["version"] != VERSION:
            return costs
        for checkpoint, stage, (c0, c1, c2, c3) in stored["costs"]:
            values = (float(c0), float(c1), float(c2), float(c3))
            if stage in STAGES and all(0.0 <= value < 1e6 for value in values):
                costs[Key(str(checkpoint), stage)] = values
        return costs
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # a warm-up sweep measures them again
