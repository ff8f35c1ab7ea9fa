"""The batches at a worker: the running ones, and the next ones behind them; and what they cost, at the first start."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from math import exp, inf
from pathlib import Path
from typing import NamedTuple

from tutti.batching import cost
from tutti.batching.cost import CostModel
from tutti.batching.job import Batch, Key, StageName
from tutti.batching.scheduler import PREFETCH_AT
from tutti.engine.row import Row
from tutti.model.protocol import Ran
from tutti.speech import Utterance
from tutti.worker.base import Worker
from tutti.worker.messages import Run

HANG_FACTOR = 10.0  # a batch that takes this many times its predicted seconds hangs
MIN_HANG_S = 30.0  # but no batch hangs sooner: the machine may be busy
# A batch that runs for longer than OVERDUE_S, and than OVERDUE_FACTOR times its predicted seconds, is overdue: its
# worker may hang. Smaller names one that is merely slow, on a busy machine; it is ended only much later.
OVERDUE_S, OVERDUE_FACTOR = 5.0, 3.0
BUSY_OVER_S = 10.0  # time constant of the busy share of a worker; larger is smoother, and reacts later
STAGE_ORDER: tuple[StageName, ...] = ("vocoder", "acoustic")  # in the order in which they are filled
SWEEP_TIMEOUT_S = 600.0  # for one batch of the sweep: its first run may compile
REPEATS = 2  # of each batch; the quicker one counts, since everything else only adds time
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Sets the cost models of one worker by a short sweep at the first start, and stores them for the next.

    Costs learned from traffic are not stored: they are soon learned again, and the sweep covers more layouts.
    """

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


@dataclass(slots=True, eq=False)
class BatchCall:
    """A batch that was sent to the worker, and its result."""

    batch: Batch
    result: asyncio.Future[Ran]
    started_s: float = inf  # when it began to run
    prefetch_s: float = inf  # from when on the next one may be formed
    device_start_s: float = 0.0  # the seconds of the device before it

    @property
    def stage(self) -> StageName:
        return self.batch.key.stage


class Measurement(NamedTuple):
    """How long a batch took, from which nothing was learned yet."""

    batch: Batch
    took_s: float
    device_s: float  # its share of the device
    started_s: float | None = None  # if that was not recorded


class BusyShare:
    """Share of the last seconds in which something ran; older time is forgotten exponentially."""

    def __init__(self, over_s: float, now: float) -> None:
        self._over_s = over_s
        self._at_s = now
        self._busy = False
        self._busy_s = self._known_s = 0.0  # both decayed

    def set(self, now: float, *, busy: bool) -> None:
        """Something starts to run, or nothing runs any more."""
        self._busy_s, self._known_s = self._until(now)
        self._at_s, self._busy = max(now, self._at_s), busy

    def ratio(self, now: float) -> float:
        """From 0 to 1; what runs now counts until now."""
        busy_s, known_s = self._until(now)
        return busy_s / known_s if known_s else 0.0

    def _until(self, now: float) -> tuple[float, float]:
        decay = exp(-max(0.0, now - self._at_s) / self._over_s)
        new_s = self._over_s * (1.0 - decay)
        return self._busy_s * decay + new_s * self._busy, self._known_s * decay + new_s


class Device:
    """One batch runs, or one of each stage where stages overlap; behind each there may be the next of its stage.

    Batches that run at the same time share the seconds of the device, so the sum of their shares is the time that
    passed.
    """

    def __init__(self, worker: Worker, has_ended: Callable[[], None], now: float) -> None:
        """`has_ended` is called whenever a batch has."""
        self.running: dict[StageName, BatchCall] = {}
        self.waiting: dict[StageName, BatchCall] = {}  # sent to the worker, which runs them next
        self._worker, self._has_ended = worker, has_ended
        self._busy = BusyShare(BUSY_OVER_S, now)
        self._device_s = 0.0  # seconds of the device that each batch would have if it had run all the time
        self._at_s = 0.0

    def send(self, batch: Batch, rows: Sequence[Row]) -> BatchCall:
        """Enqueue a batch at the worker."""
        timeout_s = max(MIN_HANG_S, HANG_FACTOR * (batch.predicted_s + sum(job.later_s for job in batch.jobs)))
        run = Run(batch.key.checkpoint, batch.stages, tuple(row.id for row in rows))
        if batch.stages == "vocoder":
            run = run._replace(spans={row.id: row.span for row in rows if row.span})
        else:
            run = run._replace(utterances=tuple(row.utterance for row in rows))
        result = self._worker.run(run, timeout_s)
        result.add_done_callback(lambda _: self._has_ended())
        return BatchCall(batch, result)

    def begin(self, call: BatchCall, now: float) -> None:
        """The worker runs this batch from now on."""
        self.waiting.pop(call.stage, None)
        self._advance(now)
        self.running[call.stage] = call
        self._busy.set(now, busy=True)
        call.started_s, call.device_start_s = now, self._device_s
        call.prefetch_s = now + PREFETCH_AT * call.batch.predicted_s

    def end(self, call: BatchCall, now: float) -> float:
        """The batch has ended; return its share of the seconds of the device."""
        self._advance(now)
        del self.running[call.stage]
        self._busy.set(now, busy=bool(self.running))
        for other in self.running.values():  # its rows may be what the next batch of the other stage waits for
            other.prefetch_s = min(other.prefetch_s, other.started_s + PREFETCH_AT * other.batch.predicted_s)
        return self._device_s - call.device_start_s

    def runs(self, stage: StageName | None) -> BatchCall | None:
        """The batch that runs, of this stage or of any."""
        return self.running.get(stage) if stage else next(iter(self.running.values()), None)

    def waits(self, stage: StageName | None) -> BatchCall | None:
        """The batch that runs next, of this stage or of any."""
        return self.waiting.get(stage) if stage else next(iter(self.waiting.values()), None)

    def is_overdue(self, now: float) -> bool:
        """Whether a batch runs for much longer than it should."""
        return any(
            now > each.started_s + max(OVERDUE_S, OVERDUE_FACTOR * each.batch.predicted_s)
            for each in self.running.values()
            if not each.result.done()
        )

    def ended(self) -> list[BatchCall]:
        """Batches whose results are there: the good ones first, then in the order in which they began."""
        calls = [call for call in self.running.values() if call.result.done()]
        return sorted(calls, key=lambda call: (call.result.exception() is not None, call.started_s))

    def drop_waiting(self, stages: Collection[StageName]) -> list[BatchCall]:
        """Take back the batches of these stages that have not begun."""
        calls = [self.waiting.pop(stage) for stage in list(self.waiting) if stage in stages]
        for call in calls:
            call.result.cancel()
        return calls

    def clear(self, now: float) -> None:
        """Drop all batches, and the results that are still to come."""
        for call in (*self.running.values(), *self.waiting.values()):
            call.result.cancel()
        self.running.clear()
        self.waiting.clear()
        self._busy.set(now, busy=False)

    def busy_ratio(self, now: float) -> float:
        """Share of the last seconds in which a batch ran."""
        return self._busy.ratio(now)

    def _advance(self, now: float) -> None:
        if self.running:
            self._device_s += (now - self._at_s) / len(self.running)
        self._at_s = now
