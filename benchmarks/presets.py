"""Measure what the preset `throughput` and further model processes gain: the engine as the server has it.

python -m benchmarks.presets                     6 minutes on two cores, with the real weights
python -m benchmarks.presets --callers 64        on a GPU

Each caller asks for texts of 1 to 5 sentences, one after the other; every configuration gets the same texts, in turns.
`whole`: nobody listens (whole answers). `live`: streams, played as they arrive. Beside other work on the machine only
the seconds of a core for a second of speech hold, and ratios within one round.
"""

import asyncio
import json
import platform
import random
import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from benchmarks.load_client import MAX_SENTENCES, SENTENCES
from benchmarks.policies import play
from benchmarks.progress import progress
from tutti.engine.build import open_engine
from tutti.engine.engine import Engine
from tutti.settings import load

RESULTS = Path(__file__).parent / "results"
CONFIGURATIONS = {
    "default": {},
    "throughput": {"preset": "throughput"},
    "2 workers": {"workers": "2"},
}


def cores_s() -> float:
    """Seconds of the cores that this process and its children have used."""
    times = [process.cpu_times() for process in (psutil.Process(), *psutil.Process().children(recursive=True))]
    return sum(each.user + each.system for each in times)


async def measure(engine: Engine, callers: int, texts_each: int, *, whole: bool) -> dict[str, float]:
    async def call(number: int) -> list[Any]:
        rng = random.Random(number)
        texts = [" ".join(rng.sample(SENTENCES, rng.randint(1, MAX_SENTENCES))) for _ in range(texts_each)]
        return [await play(engine, text, whole=whole) for text in texts]

    await play(engine, "This one is not measured.", whole=whole)
    engine.batch_stats.reset()
    started_s, before_s = time.monotonic(), cores_s()
    results = [result for each in await asyncio.gather(*map(call, range(callers))) for result in each]
    took_s, used_s = time.monotonic() - started_s, cores_s() - before_s
    audio_s = sum(result.audio_s for result in results)
    return {
        "audio_per_s": audio_s / took_s,
        "cores_s_per_audio_s": used_s / audio_s,
        "first_p50_s": statistics.median(result.first_s for result in results if result.first_s),
        "with_gaps": sum(result.gap_s > 0 for result in results),
        "refused": sum(result.refused for result in results),
        "rows_a_batch": engine.stats()["performance"]["avg_batch_size_since_start"],
        "models_mb": sum(batcher.worker.status.memory.resident_bytes for batcher in engine.batchers) / 1e6,
    }


def main(
    callers: Annotated[int, typer.Option(help="At a time.")] = 8,
    texts: Annotated[int, typer.Option(help="Of each caller.")] = 3,
    rounds: Annotated[int, typer.Option(help="Of all configurations.")] = 3,
    only: Annotated[str, typer.Option(help="Names of configurations, separated by commas.")] = ",".join(CONFIGURATIONS),
    out: Annotated[Path | None, typer.Option(help="Result file.")] = None,
) -> None:
    """Print the medians of the rounds, and write every round to a file."""
    rows: dict[str, dict[str, list[dict[str, float]]]] = {"whole": {}, "live": {}}
    names = only.split(",")

    async def run(name: str) -> None:
        async with open_engine(load(CONFIGURATIONS[name])[0], for_server=True) as engine:
            for delivery, of_delivery in rows.items():
                row = await measure(engine, callers, texts, whole=delivery == "whole")
                of_delivery.setdefault(name, []).append({key: round(value, 4) for key, value in row.items()})
                print(f"{delivery:6} {name:11} {of_delivery[name][-1]}", flush=True)

    with progress(rounds * len(names)) as step:
        for number in range(rounds):
            for name in names:
                step(f"round {number}: {name}")
                asyncio.run(run(name))
    for delivery, of_delivery in rows.items():
        for name, each in of_delivery.items():
            medians = {key: round(statistics.median(row[key] for row in each), 3) for key in each[0]}
            print(f"{delivery:6} {name:11} {medians}")
    to = out or RESULTS / f"presets-{platform.machine()}.json"
    report = {"callers": callers, "texts_each": texts, "rounds": rows}
    to.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
