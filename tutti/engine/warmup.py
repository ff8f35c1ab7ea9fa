"""What batches cost on this device: found by a short sweep at the first start, and kept for the next.

What traffic teaches is not kept: it is soon learned again, and the sweep saw shapes that traffic may never show.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tutti.batching import cost
from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.speech import Utterance
from tutti.worker.base import Worker

log = logging.getLogger(__name__)

SWEEP_S = 600.0  # one batch of the sweep: the first run of a shape may compile
TIMES = 2  # each shape, of which the quicker counts: the first is cold, and whatever else the machine does only adds


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The costs of one worker's checkpoints."""

    path: Path
    costs: Mapping[Key, CostModel]
    rows: tuple[Utterance, ...]  # of different lengths
    n_rows: tuple[int, ...]  # how many of each run together

    async def __call__(self, worker: Worker) -> None:
        """Takes what is known; sweeps over the checkpoints of which nothing is."""
        known = cost.load(self.path)
        for key, learned in self.costs.items():
            if key in known:
                learned.start_from(known[key])
        unknown = sorted({key.checkpoint for key in self.costs if key not in known})
        for checkpoint in unknown:
            seen = await self._sweep(worker, checkpoint)
            for stage, samples in seen.items():
                self.costs[Key(checkpoint, stage)].seed(samples)
            log.info("warm-up sweep checkpoint=%s batches=%d", checkpoint, sum(map(len, seen.values())))
        if unknown:
            self._keep()

    def _keep(self) -> None:
        """For the next start. A disk that cannot be written to costs the next start a sweep, and no more."""
        try:
            cost.save(self.costs, self.path)
        except OSError as exc:
            log.warning("costs are not kept in %s: %s", self.path, exc)

    async def _sweep(self, worker: Worker, checkpoint: str) -> dict[StageName, list[tuple[list[int], float]]]:
        """Both stages on every number of rows of every length."""
        seen: dict[StageName, list[tuple[list[int], float]]] = {"acoustic": [], "vocoder": []}
        for row, n_rows in product(self.rows, self.n_rows):
            passes = [await _timed(worker, checkpoint, [row] * n_rows) for _ in range(TIMES)]
            for stage, found in seen.items():
                found.append(min((one[stage] for one in passes), key=lambda sample: sample[1]))
        return seen


async def _timed(
    worker: Worker, checkpoint: str, rows: Sequence[Utterance]
) -> dict[StageName, tuple[list[int], float]]:
    ids = range(-len(rows), 0)  # no caller's row has such an id
    started_s = time.monotonic()
    durations = await worker.acoustic(checkpoint, list(zip(ids, rows, strict=True)), SWEEP_S)
    read_s = time.monotonic()
    await worker.vocoder(checkpoint, ids, SWEEP_S)
    done_s = time.monotonic()
    return {
        "acoustic": ([len(row.tokens) for row in rows], read_s - started_s),
        "vocoder": ([int(frames.sum()) for frames in durations], done_s - read_s),
    }
