"""Measure what batcher and worker process add to a bare call of the model, and four rows at once against in sequence.

python -m benchmarks.overhead                   2 minutes on a CPU, with the model files
python -m benchmarks.overhead --precision int8  or --backend torch
python -m benchmarks.overhead --tone            seconds, without model files: only the overhead remains

Total time and time inside the model are of the same call, so that noise of the machine falls on both.
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

from benchmarks.crowd import measure_overhead, timed_models, utterance_lasting
from benchmarks.progress import progress
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

RESULTS = Path(__file__).parent / "results"
LENGTHS_S = (1.0, 3.0)


def load_models(home: Path | None, choice: Choice, threads: int) -> Mapping[str, Model]:
    """The model in this folder, or tones."""
    if home is None:
        return {CHECKPOINT: ToneModel()}
    return {CHECKPOINT: load(Store(home).path(MODELS[choice.weights]), choice, threads)}


async def measure(home: Path | None, choice: Choice, threads: int, rounds: int) -> dict[str, Any]:
    times = Path(tempfile.mkdtemp()) / "model-seconds"
    costs = prior_costs({CHECKPOINT: choice}, threads)
    limits = Limits(max_rows=2 * threads, max_start_s=inf)
    worker = ProcessWorker(partial(timed_models, partial(load_models, home, choice, threads), times))
    batcher = Batcher(worker, Scheduler(limits, costs.__getitem__, Deadline()), BatchStats())
    styles = np.zeros((510, 256), np.float32)
    if home is not None:
        styles = np.fromfile(home / "voices" / "af_heart.bin", np.float32).reshape(510, 256)
    utterances = {f"{seconds:g} s": utterance_lasting(styles, seconds, 0) for seconds in LENGTHS_S}
    with progress(1 + len(utterances) * (rounds + 1)) as step:
        step("loading the model")
        await batcher.start()
        results = await measure_overhead(batcher, times, utterances, rounds, step)
        await batcher.close()
    return results


def main(
    backend: Annotated[str, typer.Option(help="onnx or torch")] = "onnx",
    precision: Annotated[str, typer.Option(help="fp32 or int8")] = "fp32",
    tone: Annotated[bool, typer.Option("--tone", help="The tone model instead of the real one.")] = False,
    rounds: Annotated[int, typer.Option(help="Repetitions; medians are reported.")] = 7,
    out: Annotated[Path, typer.Option(help="Folder of the result file.")] = RESULTS,
) -> None:
    """Print the overhead for rows of each length, and write it to a file."""
    options, _ = settings.load({})
    choice = choose(backend, "cpu", precision)
    results = asyncio.run(measure(None if tone else options.home, choice, options.threads, rounds))
    table = Table("row", *next(iter(results.values())), title="one row through the batcher, and inside the model")
    for name, values in results.items():
        table.add_row(name, *(f"{value:.3f}" for value in values.values()))
    Console().print(table)
    name = f"overhead-{'tone' if tone else f'{backend}-{precision}'}-{platform.machine()}.json"
    (out / name).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
