"""Measure how long the scheduler takes to form one batch, and to admit one stream, while thousands of jobs wait.

python -m benchmarks.decisions                  2 minutes: 2,000 jobs, every policy, costs of an H200 and of two cores

The queue keeps its length: every job that leaves is followed by a new one of a stream of its own; some are late, some
are bulk. The same decisions are repeated `--rounds` times. The result is CPU time over all rounds and, for each
decision, of its fastest round ("best"): other processes interrupt some decisions, but not the same ones each time.
"""

import gc
import json
import platform
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.progress import progress
from tutti.batching.job import STAGES, Batch, Job, Key, Priority
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.build import prior_costs
from tutti.errors import QueueFull
from tutti.model.choice import Choice
from tutti.percentile import percentile

RESULTS = Path(__file__).parent / "results"
MODEL = "kokoro"
THREADS = 2
PRIORITIES: tuple[Priority, ...] = ("first", *["next"] * 8, "bulk")  # drawn with equal chance
POLICIES = ("deadline", "fifo", "window", "bypass")


@dataclass(frozen=True, slots=True)
class Device:
    """Costs and limits of one device."""

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
class SteadyLoad:
    """A scheduler with a queue of constant length, on a clock that only batches move."""

    scheduler: Scheduler
    rng: random.Random
    now: float = 0.0
    n_streams: int = 0

    def add(self, jobs: int) -> None:
        for _ in range(jobs):
            self.n_streams += 1
            key = Key(MODEL, self.rng.choice(STAGES))
            deadline_s = self.now + self.rng.uniform(-0.5, 8.0)
            later_s = 0.02 if key.stage == "acoustic" else 0.0
            size = self.rng.randint(20, 500)
            job = Job(key, self.n_streams, self.rng.choice(PRIORITIES), size, deadline_s, later_s, arrived_s=self.now)
            self.scheduler.add(job, self.now)

    def finish(self, batch: Batch) -> None:
        """End a batch after its predicted time, and replace its jobs."""
        self.now += batch.predicted_s
        self.scheduler.finished(batch, batch.predicted_s, self.now)
        self.add(batch.n_rows)


def measure(scheduler: Scheduler, jobs: int, decisions: int) -> list[tuple[float, int]]:
    """CPU seconds of every decision, and the rows of its batch. The same decisions each time."""
    load = SteadyLoad(scheduler, random.Random(1))
    load.add(jobs)
    gc.collect()
    gc.freeze()
    measured: list[tuple[float, int]] = []
    while len(measured) < decisions:
        batches = []
        for prefetch in (False, True):
            started_s = time.process_time()
            batch = scheduler.next_batch(load.now, prefetch=prefetch)
            took_s = time.process_time() - started_s
            if batch is not None:
                batches.append(batch)
                measured.append((took_s, batch.n_rows))
        for batch in batches:
            load.finish(batch)
    gc.unfreeze()
    return measured


def measure_admission(scheduler: Scheduler, jobs: int, streams: int) -> list[tuple[float, int]]:
    """CPU seconds to accept or reject a new stream; 1 for its one row."""
    SteadyLoad(scheduler, random.Random(1)).add(jobs)
    gc.collect()
    gc.freeze()
    measured = []
    for n in range(streams):
        job = Job(Key(MODEL, "acoustic"), -n, "first", 60, deadline_s=0.01 * n, later_s=0.02)
        started_s = time.process_time()
        with suppress(QueueFull):
            scheduler.admit(job, 0.0)
        measured.append((time.process_time() - started_s, 1))
    gc.unfreeze()
    return measured


def summary(rounds: list[list[tuple[float, int]]]) -> dict[str, float]:
    """Milliseconds over all rounds, and of the fastest round of each decision."""
    measured = sorted(1e3 * took_s for decisions in rounds for took_s, _ in decisions)
    best = sorted(1e3 * min(took_s for took_s, _ in repeated) for repeated in zip(*rounds, strict=True))
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
    jobs: Annotated[int, typer.Option(help="Jobs that wait.")] = 2000,
    decisions: Annotated[int, typer.Option(help="Decisions in a round.")] = 1000,
    rounds: Annotated[int, typer.Option(help="Repetitions of the same decisions.")] = 7,
    policies: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(POLICIES),
    out: Annotated[Path, typer.Option(help="Folder of the result file.")] = RESULTS,
) -> None:
    """Print the time of a decision under each policy, and write it to a file."""
    results: dict[str, dict[str, float]] = {}
    cases = [(name, policy) for name in DEVICES for policy in policies.split(",")]
    with progress(len(cases) + len(DEVICES)) as step:
        for name, policy in cases:
            step(f"{name}, {policy}")
            repeated = [measure(DEVICES[name].scheduler(policy, jobs), jobs, decisions) for _ in range(rounds)]
            results[f"{name}, {policy}"] = summary(repeated)
        for name, device in DEVICES.items():
            step(f"{name}, admission")
            repeated = [measure_admission(device.scheduler("deadline", jobs), jobs, 100) for _ in range(rounds)]
            results[f"{name}, admission"] = summary(repeated)
    table = Table("costs, policy", *next(iter(results.values())), title=f"one decision among {jobs} jobs, ms")
    for name, values in results.items():
        table.add_row(name, *(f"{value:.2f}" for value in values.values()))
    Console().print(table)
    report = {"jobs": jobs, "decisions": decisions, "rounds": rounds, "ms": results}
    (out / f"decisions-{platform.machine()}.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
