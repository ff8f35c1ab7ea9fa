"""What batches cost on this device: known from the last start, or found by a short sweep, and kept for the next."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tutti.batching import cost
from tutti.batching.cost import Cost
from tutti.batching.job import Key, StageName
from tutti.batching.worker import Worker
from tutti.speech import Utterance

log = logging.getLogger(__name__)

SWEEP_S = 600.0  # one batch of the sweep: the first run of a shape may compile


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The costs of one worker's checkpoints."""

    path: Path
    costs: Mapping[Key, Cost]
    rows: tuple[Utterance, ...]  # of different lengths
    n_rows: tuple[int, ...]  # how many of each run together

    async def __call__(self, worker: Worker) -> None:
        """Takes what is known; sweeps over the checkpoints of which nothing is."""
        known = cost.load(self.path)
        for key, learned in self.costs.items():
            if key in known:
                learned.start_from(known[key])
        for checkpoint in sorted({key.checkpoint for key in self.costs if key not in known}):
            seen = await self._sweep(worker, checkpoint)
            for stage, samples in seen.items():
                self.costs[Key(checkpoint, stage)].seed(samples)
            log.info("warm-up sweep checkpoint=%s batches=%d", checkpoint, sum(map(len, seen.values())))
        self.keep()

    def keep(self) -> None:
        """For the next start. A disk that cannot be written to costs the next start a sweep, and no more."""
        try:
            cost.save(self.costs, self.path)
        except OSError as exc:
            log.warning("costs are not kept in %s: %s", self.path, exc)

    async def _sweep(self, worker: Worker, checkpoint: str) -> dict[StageName, list[tuple[list[int], float]]]:
        """Both stages on every number of rows of every length; the first, untimed, wakes the device."""
        seen: dict[StageName, list[tuple[list[int], float]]] = {"acoustic": [], "vocoder": []}
        await _timed(worker, checkpoint, self.rows[:1], seen)
        seen = {"acoustic": [], "vocoder": []}
        for row in self.rows:
            for n_rows in self.n_rows:
                await _timed(worker, checkpoint, [row] * n_rows, seen)
        return seen


async def _timed(
    worker: Worker,
    checkpoint: str,
    rows: Sequence[Utterance],
    seen: dict[StageName, list[tuple[list[int], float]]],
) -> None:
    ids = range(-len(rows), 0)  # no caller's row has such an id
    started_s = time.monotonic()
    durations = await worker.acoustic(checkpoint, list(zip(ids, rows, strict=True)), SWEEP_S)
    read_s = time.monotonic()
    await worker.vocoder(checkpoint, ids, SWEEP_S)
    done_s = time.monotonic()
    seen["acoustic"].append(([len(row.tokens) for row in rows], read_s - started_s))
    seen["vocoder"].append(([int(frames.sum()) for frames in durations], done_s - read_s))
