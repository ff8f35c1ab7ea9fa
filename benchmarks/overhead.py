"""What the batcher and its worker add to a bare call of the model, and what four at once gain over four in turn.

python -m benchmarks.overhead                   this processor, real weights; about two minutes
python -m benchmarks.overhead --tone            the tone model: what is left is the overhead itself

Bare and batched run in turns, so that a noisy machine disturbs both alike.
"""

import asyncio
import json
import platform
import statistics
import time
from collections.abc import Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.policies import said
from tutti import settings
from tutti.batching.batcher import Ask, Batcher
from tutti.batching.cost import Cost, SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.batching.stats import Stats
from tutti.batching.worker import ProcessWorker
from tutti.model import choose, load
from tutti.model.tone import ToneModel
from tutti.opening import CHECKPOINT
from tutti.speech import Model, Utterance
from tutti.text.vocab import encode
from tutti.weights import FP32_MODEL, INT8_MODEL, Store

HERE = Path(__file__).parent
LENGTHS_S = (1.0, 3.0)


def one(home: Path | None, threads: int) -> Mapping[str, Model]:
    if home is None:
        return {CHECKPOINT: ToneModel()}
    choice = choose("onnx")
    path = Store(home).path(FP32_MODEL if choice.weights == "fp32" else INT8_MODEL)
    return {CHECKPOINT: load(path, choice, threads)}


def row(home: Path | None, seconds: float) -> Utterance:
    tokens = encode(said(seconds, 0))
    if home is None:
        return Utterance(tokens, np.zeros(256, np.float32))
    styles = np.fromfile(home / "voices" / "af_heart.bin", np.float32).reshape(510, 256)
    return Utterance(tokens, styles[len(tokens) - 3])


def bare_s(model: Model, utterance: Utterance) -> float:
    started_s = time.perf_counter()
    model.vocoder(model.acoustic([utterance]))
    return time.perf_counter() - started_s


async def batched_s(line: Batcher, utterances: list[Utterance]) -> float:
    started_s = time.perf_counter()
    asks = [Ask(utterance, CHECKPOINT, i, "first", inf) for i, utterance in enumerate(utterances)]
    await asyncio.gather(*map(line.say, asks))
    return time.perf_counter() - started_s


async def measured(home: Path | None, threads: int, rounds: int) -> dict[str, Any]:
    model = one(home, threads)[CHECKPOINT]
    cost = Cost(SideBySide(threads), (0.01, 0.001, 0.01, 0.017))
    limits = Limits(max_rows=2 * threads, patience=inf)
    line = Batcher(ProcessWorker(partial(one, home, threads)), Scheduler(limits, lambda _: cost, Deadline()), Stats())
    await line.start()
    found: dict[str, Any] = {}
    for seconds in LENGTHS_S:
        utterance = row(home, seconds)
        bare, batched, four, turns = [], [], [], []
        for turn in range(rounds + 1):  # the first warms up
            took = (
                await asyncio.to_thread(bare_s, model, utterance),
                await batched_s(line, [utterance]),
                await batched_s(line, [utterance] * 4),
                sum([await batched_s(line, [utterance]) for _ in range(4)]),
            )
            for kept, value in zip((bare, batched, four, turns), took, strict=True):
                kept += [value] * bool(turn)
        found[f"{seconds:g} s"] = {
            "bare_ms": 1000 * statistics.median(bare),
            "batched_ms": 1000 * statistics.median(batched),
            "ratio": statistics.median(b / a for a, b in zip(bare, batched, strict=True)),
            "added_ms": 1000 * statistics.median(b - a for a, b in zip(bare, batched, strict=True)),
            "four_at_once_of_four_in_turn": statistics.median(a / b for a, b in zip(four, turns, strict=True)),
        }
    await line.close()
    return found


def main(
    tone: Annotated[bool, typer.Option("--tone", help="the tone model instead of the real one")] = False,
    rounds: Annotated[int, typer.Option()] = 7,
) -> None:
    chosen, _ = settings.load({})
    found = asyncio.run(measured(None if tone else chosen.home, chosen.threads, rounds))
    table = Table("row", *next(iter(found.values())), title="through the batcher and its process, against a bare call")
    for name, values in found.items():
        table.add_row(name, *(f"{value:.3f}" for value in values.values()))
    Console().print(table)
    name = f"overhead-{'tone' if tone else 'onnx'}-{platform.machine()}.json"
    (HERE / "results" / name).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
