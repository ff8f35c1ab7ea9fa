"""Measure what batcher and worker process add to a bare call of the model, and four rows at once against in sequence.

python -m benchmarks.overhead                   2 minutes on a CPU, with the model files
python -m benchmarks.overhead --precision int8  or --backend torch
python -m benchmarks.overhead --tone            seconds, without model files: only the overhead remains

Total time and time inside the model are of the same call, so that noise of the machine falls on both.
"""

import asyncio
import json
import platform
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import progress
from tutti import settings
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.build import CHECKPOINT, prior_costs
from tutti.engine.playback import Playback
from tutti.engine.row import Row
from tutti.engine.stats import BatchStats
from tutti.model.choice import Choice, choose, load
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.speech import Utterance
from tutti.text.vocab import encode
from tutti.weights import MODELS, Store
from tutti.worker.process import ProcessWorker

RESULTS = Path(__file__).parent / "results"
LENGTHS_S = (1.0, 3.0)
PHONEMES = json.loads((Path(__file__).parent / "data" / "phonemes.json").read_text(encoding="utf-8"))
PHONEMES_PER_S = 13


def phonemes_lasting(seconds: float, start: int) -> str:
    """About so many seconds of real phonemes, from this sentence on."""
    n = max(4, round(seconds * PHONEMES_PER_S))
    phonemes = ""
    for i in range(len(PHONEMES)):
        phonemes += PHONEMES[(start + i) % len(PHONEMES)] + " "
        if len(phonemes) >= n:
            break
    return phonemes[: min(n, 500)].strip() or phonemes[:4]


def utterance_lasting(styles: np.ndarray, seconds: float, start: int) -> Utterance:
    tokens = encode(phonemes_lasting(seconds, start))
    return Utterance(tokens, styles[len(tokens) - 3])


async def run_batched(batcher: Batcher, utterances: Sequence[Utterance]) -> float:
    """Seconds until all rows, submitted at once, are spoken."""
    started_s = time.perf_counter()
    rows = [Row(utterance, CHECKPOINT, i, "first", Playback(0.0, inf)) for i, utterance in enumerate(utterances)]
    await asyncio.gather(*map(batcher.speak, rows))
    return time.perf_counter() - started_s


class TimedModel(Model):
    """A model that appends the seconds of each call to a file, where another process can read them."""

    def __init__(self, model: Model, times: Path) -> None:
        self._model = model
        self._times = times.open("ab", buffering=0)
        self.traits, self.warm_up = model.traits, model.warm_up  # type: ignore[method-assign]
        self.enter_thread, self.close = model.enter_thread, model.close  # type: ignore[method-assign]

    def acoustic(self, *args: Any) -> Any:
        with self._timed():
            return self._model.acoustic(*args)

    def vocoder(self, *args: Any) -> Any:
        with self._timed():
            return self._model.vocoder(*args)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started_s = time.perf_counter()
        yield
        self._times.write(struct.pack("d", time.perf_counter() - started_s))


def timed_models(load_models: Callable[[], Mapping[str, Model]], times: Path) -> Mapping[str, Model]:
    return {name: TimedModel(model, times) for name, model in load_models().items()}


def model_seconds(times: Path) -> float:
    """Seconds inside the model so far."""
    return sum(seconds for (seconds,) in struct.iter_unpack("d", times.read_bytes()))


async def measure_overhead(
    batcher: Batcher, times: Path, utterances: Mapping[str, Utterance], rounds: int, step: Callable[[str], None]
) -> dict[str, Any]:
    """One row through the batcher against the model's own time, and four rows at once against four in sequence."""
    results = {}
    for name, row in utterances.items():
        measured = []
        for number in range(rounds + 1):
            step(f"rows of {name}, round {number}")
            before_s = model_seconds(times)
            through_s = await run_batched(batcher, [row])
            inside_s = model_seconds(times) - before_s
            at_once_s = await run_batched(batcher, [row] * 4)
            in_sequence_s = sum([await run_batched(batcher, [row]) for _ in range(4)])
            measured.append((through_s, inside_s, at_once_s, in_sequence_s))
        through, inside, at_once, in_sequence = np.array(measured[1:]).T  # the first round is a warm-up
        results[name] = {
            "model_ms": 1000 * float(np.median(inside)),
            "through_ms": 1000 * float(np.median(through)),
            "added_ms": 1000 * float(np.median(through - inside)),
            "ratio": float(np.median(through / inside)),
            "four_of_turns": float(np.median(at_once / in_sequence)),
        }
    return results


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
