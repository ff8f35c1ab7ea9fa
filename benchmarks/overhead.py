"""What the batcher and its worker add to a bare call of the model, and what four at once gain over four in turn.

python -m benchmarks.overhead                   this processor, real weights; about two minutes
python -m benchmarks.overhead --precision int8  or --backend torch
python -m benchmarks.overhead --tone            the tone model: what is left is the overhead itself

Both times are of the same call, the whole and the part inside the model, so that a noisy machine disturbs both alike.
"""

import asyncio
import json
import platform
import tempfile
from collections.abc import Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.crowd import clocked, overhead, row
from tutti import settings
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.build import CHECKPOINT, prior_costs
from tutti.engine.stats import BatchStats
from tutti.model.choice import Choice, choose, load
from tutti.model.tone import ToneModel
from tutti.speech import Model
from tutti.weights import MODELS, Store
from tutti.worker.process import ProcessWorker

HERE = Path(__file__).parent
LENGTHS_S = (1.0, 3.0)


def one(home: Path | None, choice: Choice, threads: int) -> Mapping[str, Model]:
    if home is None:
        return {CHECKPOINT: ToneModel()}
    path = Store(home).path(MODELS[choice.weights])
    return {CHECKPOINT: load(path, choice, threads)}


async def measured(home: Path | None, choice: Choice, threads: int, rounds: int) -> dict[str, Any]:
    notes = Path(tempfile.mkdtemp()) / "model-s"
    costs = prior_costs({CHECKPOINT: choice}, threads)
    limits = Limits(max_rows=2 * threads, patience=inf)
    worker = ProcessWorker(partial(clocked, partial(one, home, choice, threads), notes))
    line = Batcher(worker, Scheduler(limits, costs.__getitem__, Deadline()), BatchStats())
    styles = np.zeros((510, 256), np.float32)
    if home is not None:
        styles = np.fromfile(home / "voices" / "af_heart.bin", np.float32).reshape(510, 256)
    await line.start()
    found = await overhead(line, notes, {f"{seconds:g} s": row(styles, seconds, 0) for seconds in LENGTHS_S}, rounds)
    await line.close()
    return found


def main(
    backend: Annotated[str, typer.Option(help="onnx or torch")] = "onnx",
    precision: Annotated[str, typer.Option(help="fp32 or int8")] = "fp32",
    tone: Annotated[bool, typer.Option("--tone", help="the tone model instead of the real one")] = False,
    rounds: Annotated[int, typer.Option()] = 7,
) -> None:
    chosen, _ = settings.load({})
    choice = choose(backend, "cpu", precision)
    found = asyncio.run(measured(None if tone else chosen.home, choice, chosen.threads, rounds))
    table = Table(
        "row",
        *next(iter(found.values())),
        title="one row through the batcher, around the model's own time",
    )
    for name, values in found.items():
        table.add_row(name, *(f"{value:.3f}" for value in values.values()))
    Console().print(table)
    name = f"overhead-{'tone' if tone else f'{backend}-{precision}'}-{platform.machine()}.json"
    (HERE / "results" / name).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
