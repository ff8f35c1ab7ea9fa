"""How long the scheduler thinks about one batch while thousands of jobs wait.

python -m benchmarks.decisions                  2,000 jobs, every policy, costs of an H200 and of two cores; two minutes

The line is always as long as at the start: whoever leaves is followed by somebody new, some late already, some bulk,
every job of a stream of its own. The same decisions are made `--rounds` times. Their processor time is told as it was,
and each decision at its best, since a machine that others use too interrupts any of them, but not the same each time.
"""

import gc
import json
import platform
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tutti.batching.job import Batch, Job, Key, Priority
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.build import prior_costs
from tutti.engine.monitor import STAGES
from tutti.model.choice import Choice
from tutti.percentile import percentile

RESULTS = Path(__file__).parent / "results"
MODEL = "kokoro"
THREADS = 2
KINDS: tuple[Priority, ...] = ("first", *["next"] * 8, "bulk")
POLICIES = ("deadline", "fifo", "window", "bypass")


@dataclass(frozen=True, slots=True)
class Device:
    choice: Choice
    max_rows: int
    cap_s: float

    def policy(self, name: str) -> Policy:
        if name == "deadline":
            return Deadline(self.cap_s, can_prefetch=self.choice.device == "cuda")
        return {"fifo": Fifo(), "window": Window(), "bypass": Bypass()}[name]

    def scheduler(self, policy: str, jobs: int) -> Scheduler:
        limits = Limits(max_rows=self.max_rows, cap_s=self.cap_s, max_waiting=2 * jobs)
        return Scheduler(limits, prior_costs({MODEL: self.choice}, THREADS).__getitem__, self.policy(policy))


DEVICES = {
    "an H200": Device(Choice("torch", "cuda", "fp16", "full"), 64, 0.08),
    "two cores": Device(Choice("onnx", "cpu", "fp32"), 2 * THREADS, 0.6),
}


@dataclass
class Line:
    """A scheduler with many who wait, and a clock that only the batches move."""

    scheduler: Scheduler
    rng: random.Random
    now: float = 0.0
    n: int = 0

    def grow(self, jobs: int) -> None:
        for _ in range(jobs):
            self.n += 1
            key = Key(MODEL, self.rng.choice(STAGES))
            due_s = self.now + self.rng.uniform(-0.5, 8.0)
            later_s = 0.02 if key.stage == "acoustic" else 0.0
            size = self.rng.randint(20, 500)
            job = Job(key, self.n, self.rng.choice(KINDS), size, due_s, later_s, arrived_s=self.now)
            self.scheduler.add(job, self.now)

    def ran(self, batch: Batch) -> None:
        """It took as long as was thought, and others came in the meantime."""
        self.now += batch.predicted_s
        self.scheduler.finished(batch, batch.predicted_s, self.now)
        self.grow(batch.n_rows)


def thoughts(scheduler: Scheduler, jobs: int, decisions: int) -> list[tuple[float, int]]:
    """Processor seconds of every decision, and the rows of its batch. The same decisions each time."""
    line = Line(scheduler, random.Random(1))
    line.grow(jobs)
    gc.collect()
    gc.freeze()
    found: list[tuple[float, int]] = []
    while len(found) < decisions:
        batches = []
        for decide in (scheduler.next_batch, scheduler.next_batch_ahead):
            began_s = time.process_time()
            batch = decide(line.now)
            took_s = time.process_time() - began_s
            if batch is not None:
                batches.append(batch)
                found.append((took_s, batch.n_rows))
        for batch in batches:
            line.ran(batch)
    gc.unfreeze()
    return found


def summed_up(rounds: list[list[tuple[float, int]]]) -> dict[str, float]:
    """Milliseconds: of all rounds, and of each decision's best."""
    measured = sorted(1e3 * took_s for of_round in rounds for took_s, _ in of_round)
    best = sorted(1e3 * min(took_s for took_s, _ in same) for same in zip(*rounds, strict=True))
    rows = [rows for _, rows in rounds[0]]
    return {
        "rows": sum(rows) / len(rows),
        "most rows": max(rows),
        "p50": percentile(measured, 50) or 0.0,
        "p99": percentile(measured, 99) or 0.0,
        "best p50": percentile(best, 50) or 0.0,
        "best p99": percentile(best, 99) or 0.0,
        "best worst": best[-1],
    }


def main(
    jobs: Annotated[int, typer.Option(help="who wait")] = 2000,
    decisions: Annotated[int, typer.Option(help="in a round")] = 1000,
    rounds: Annotated[int, typer.Option()] = 7,
    policies: Annotated[str, typer.Option(help="separated by commas")] = ",".join(POLICIES),
) -> None:
    found: dict[str, dict[str, float]] = {}
    cases = [(device, policy) for device in DEVICES for policy in policies.split(",")]
    for device, policy in track(cases, "deciding", transient=True):
        same = [thoughts(DEVICES[device].scheduler(policy, jobs), jobs, decisions) for _ in range(rounds)]
        found[f"{device}, {policy}"] = summed_up(same)
    table = Table("costs, policy", *next(iter(found.values())), title=f"one decision among {jobs} jobs, ms")
    for name, values in found.items():
        table.add_row(name, *(f"{value:.2f}" for value in values.values()))
    Console().print(table)
    told = {"jobs": jobs, "decisions": decisions, "rounds": rounds, "ms": found}
    (RESULTS / f"decisions-{platform.machine()}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
