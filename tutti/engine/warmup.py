"""Measure the cost of batches on this device by a short sweep at the first start, and store it for the next.

Costs learned from traffic are not stored: they are soon learned again, and the sweep covers more layouts.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path

from tutti.batching import cost
from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.speech import Utterance
from tutti.worker.base import Worker
from tutti.worker.messages import Run

log = logging.getLogger(__name__)

SWEEP_TIMEOUT_S = 600.0  # for one batch of the sweep: its first run may compile
REPEATS = 2  # of each batch; the quicker one counts, since everything else only adds time


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Sets the cost models of one worker."""

    path: Path
    costs: Mapping[Key, CostModel]
    rows: tuple[Utterance, ...]  # of different lengths
    n_rows: tuple[int, ...]  # how many of each run together
    only: str | None = None  # the one checkpoint to measure; others keep what was assumed of them

    async def __call__(self, worker: Worker) -> None:
        """Load the stored costs; measure the checkpoints that have none."""
        costs = cost.load(self.path)
        for key, model in self.costs.items():
            if key in costs:
                model.start_from(costs[key])
        missing = sorted({key.checkpoint for key in self.costs if key not in costs})
        missing = [checkpoint for checkpoint in missing if self.only in (None, checkpoint)]
        ids = count(-1, -1)  # no caller's row has such an id; none twice, since a worker may forget one a moment late
        for checkpoint in missing:
            samples_of_stage = await self._sweep(worker, checkpoint, ids)
            for stage, samples in samples_of_stage.items():
                self.costs[Key(checkpoint, stage)].seed(samples)
            log.info("warm-up sweep checkpoint=%s batches=%d", checkpoint, sum(map(len, samples_of_stage.values())))
        if missing:
            self._save({key: model for key, model in self.costs.items() if key in costs or key.checkpoint in missing})

    def _save(self, costs: Mapping[Key, CostModel]) -> None:
        """Store the costs; if that fails, the next start measures them again."""
        try:
            cost.save(costs, self.path)
        except OSError as exc:
            log.warning("costs cannot be stored in %s: %s", self.path, exc)

    async def _sweep(
        self, worker: Worker, checkpoint: str, ids: Iterator[int]
    ) -> dict[StageName, list[tuple[list[int], float]]]:
        """Run both stages on every number of rows of every length."""
        samples_of_stage: dict[StageName, list[tuple[list[int], float]]] = {"acoustic": [], "vocoder": []}
        for row, n_rows in product(self.rows, self.n_rows):
            runs = [await _measure(worker, checkpoint, {next(ids): row for _ in range(n_rows)}) for _ in range(REPEATS)]
            for stage, samples in samples_of_stage.items():
                samples.append(min((run[stage] for run in runs), key=lambda sample: sample[1]))
        return samples_of_stage


async def _measure(
    worker: Worker, checkpoint: str, rows: Mapping[int, Utterance]
) -> dict[StageName, tuple[list[int], float]]:
    """Run both stages once; return the sizes of the rows and the seconds of each stage."""
    started_s = time.monotonic()
    acoustic = await worker.run(Run(checkpoint, "acoustic", tuple(rows), tuple(rows.values())), SWEEP_TIMEOUT_S)
    between_s = time.monotonic()
    await worker.run(Run(checkpoint, "vocoder", tuple(rows)), SWEEP_TIMEOUT_S)
    done_s = time.monotonic()
    return {
        "acoustic": ([len(row.tokens) for row in rows.values()], between_s - started_s),
        "vocoder": ([int(frames.sum()) for frames in acoustic.durations], done_s - between_s),
    }


@dataclass(frozen=True, slots=True)
class MeasureSecond:
    """Measures the costs of the second worker before it serves, and puts them in force."""

    first: WarmUp
    costs: Mapping[Key, CostModel]  # of the second worker
    path: Path
    marker: Path

    async def __call__(self, worker: Worker) -> None:
        await replace(self.first, path=self.path, costs=self.costs)(worker)
        for key, model in self.first.costs.items():
            model.start_from(self.costs[key].coefficients)
        try:
            self.marker.parent.mkdir(parents=True, exist_ok=True)
            self.marker.touch()
        except OSError as exc:
            log.warning("the next start will compile again, %s cannot be written: %s", self.marker, exc)
