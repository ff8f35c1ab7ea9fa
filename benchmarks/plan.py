"""The planner against a real engine: p95 of the first audio at 0.5, 0.7 and 0.9 of the capacity that it predicts.

python -m benchmarks.plan                     5 minutes

Everything is real but the model: it takes a fixed time for each pass and each row by sleeping, so that other processes
on the machine hardly change it, and it runs at a higher priority if it may (root): a process that sleeps nearly all of
the time must not wait for a core. The planner knows what `tutti plan --measure` would know: the costs that the engine
has learned from some traffic, and what a lone request takes beside them. Both have the same arrivals and lengths.
Requests around a stall of this process are left out on both sides.
"""

import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.progress import progress
from benchmarks.tone_server import TimedTones
from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.errors import QueueFull
from tutti.model.choice import Choice
from tutti.percentile import percentile
from tutti.plan.devices import DeviceCosts, from_report
from tutti.plan.planner import SETTLED, capacity, outcome, pace_of, simulate
from tutti.plan.simulation import SimulatedStream
from tutti.plan.workload import arrivals, text_like
from tutti.settings import Settings
from tutti.speech import Frames, Model, Samples, SpeechParams, Utterance
from tutti.text.chunk import DEFAULT_PACE
from tutti.text.frontend import G2PThread
from tutti.text.g2p import G2P
from tutti.voices import NAMES, Voices
from tutti.worker.thread import ThreadWorker

RESULTS = Path(__file__).parent / "results"
SECONDS = 8.0
LOADS = (0.5, 0.7, 0.9)
TRAFFIC_PER_S, N_TRAFFIC = 3.0, 45  # from which the engine learns its costs
PASS_S = {"acoustic": 0.02, "vocoder": 0.06}  # large beside what a request takes elsewhere
ROW_S = {"acoustic": 0.01, "vocoder": 0.06}
TARGET_MS = 1500
STALL_S = 0.05  # for which this process did not run: the requests around it are left out on both sides,
BEFORE_S, AFTER_S = 1.5, 2.0  # those that waited, and those that came before the queue had recovered
STALL_EVERY_S = 0.02
PRIORITY = -10  # of this process; it takes a tenth of a core
PARAMS = SpeechParams("af_heart", with_words=False)


class FixedCostTones(TimedTones):
    """A fixed time for each pass and each of its rows; the samples cost nothing."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.0)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        time.sleep(PASS_S["acoustic"] + ROW_S["acoustic"] * len(rows))
        return super().acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        time.sleep(PASS_S["vocoder"] + ROW_S["vocoder"] * len(rows))
        return super().vocoder(rows)


def models() -> dict[str, Model]:
    return {CHECKPOINT: FixedCostTones()}


def make_engine(folder: Path) -> Engine:
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    settings = Settings(threads=2, first_audio_ms=TARGET_MS)
    choices = {CHECKPOINT: Choice("onnx", "cpu", "int8")}
    return assemble(
        [ThreadWorker(models)], choices, Voices(folder), G2PThread(G2P(settings.home).pronounce), settings,
        capped=True, cost_file=folder / "costs.json",
    )  # fmt: skip


async def first_audio_s(engine: Engine, text: str) -> tuple[float, float]:
    """Seconds to the first audio of a text, and those of them on the device and in its queue; infinite if refused."""
    started_s, first_s, device_s = time.perf_counter(), float("inf"), 0.0
    try:
        async for speech in engine.stream(text, PARAMS):
            if first_s == float("inf"):
                timing = speech.timing
                device_s = timing.queue_s + timing.acoustic_s + timing.vocoder_s
                first_s = time.perf_counter() - started_s
    except QueueFull:
        pass
    return first_s, device_s


async def real_waits(engine: Engine, streams: Sequence[SimulatedStream], start_s: float) -> list[float]:
    """Send a text like each stream at its time."""
    texts = [text_like(sum(stream.chunks)) for stream in streams]

    async def send(stream: SimulatedStream, text: str) -> float:
        await asyncio.sleep(start_s + stream.arrived_s - time.perf_counter())
        return (await first_audio_s(engine, text))[0]

    return await asyncio.gather(*(send(stream, text) for stream, text in zip(streams, texts, strict=True)))


async def watch_stalls(stalls: list[tuple[float, float]]) -> None:
    """Note from when to when this process did not run though it should have: what others do to a real run."""
    while True:
        due_s = time.perf_counter() + STALL_EVERY_S
        await asyncio.sleep(STALL_EVERY_S)
        if (now_s := time.perf_counter()) - due_s > STALL_S:
            stalls.append((due_s, now_s))


def settled(waits: Sequence[float], p: float) -> float:
    return percentile(sorted(waits), p) or 0.0


async def run(folder: Path, minutes: float) -> tuple[DeviceCosts, list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    async with make_engine(folder) as engine:
        with progress(3 + len(LOADS)) as step:
            step("some traffic")
            before = arrivals(TRAFFIC_PER_S, N_TRAFFIC, SECONDS, DEFAULT_PACE, seed=2)
            await real_waits(engine, before, time.perf_counter())
            step("lone requests")
            lone = [await first_audio_s(engine, text_like(3.0)) for _ in range(6)]
            overhead_s = median(total_s - device_s for total_s, device_s in lone[1:])
            report = {
                "max_batch_size": engine.monitor.settings()["max_batch_size"],
                "models": engine.monitor.costs(),
            }
            device = replace(from_report(report, "tones", overhead_s), target_s=engine.pacing.target_s)
            step("capacity")
            top = await asyncio.to_thread(capacity, device, SECONDS, device.target_s)
            for load in LOADS:
                rate = load * top
                step(f"{load:g} of the capacity")
                streams = arrivals(rate, max(60, int(60 * minutes * rate)), SECONDS, pace_of(device))
                simulation = await asyncio.to_thread(simulate, device, streams)
                stalls: list[tuple[float, float]] = []
                watching = asyncio.create_task(watch_stalls(stalls))
                start_s = time.perf_counter() + 3.0
                waits = await real_waits(engine, streams, start_s)
                watching.cancel()
                first = int(SETTLED * len(streams))
                pairs = [
                    (stream.wait_s + device.overhead_s, wait_s)
                    for stream, wait_s in list(zip(streams, waits, strict=True))[first:]
                    if not any(a - BEFORE_S < start_s + stream.arrived_s < b + AFTER_S for a, b in stalls)
                ]
                planned, real = ([pair[side] for pair in pairs] for side in (0, 1))
                rows.append(
                    {
                        "load": load,
                        "rate": rate,
                        "n": len(pairs),
                        "left_out": len(streams) - first - len(pairs),
                        "planned_p50_s": settled(planned, 50),
                        "real_p50_s": settled(real, 50),
                        "planned_p95_s": settled(planned, 95),
                        "real_p95_s": settled(real, 95),
                        "planned_busy": outcome(device, rate, streams, simulation).busy,
                        "refused": sum(wait == float("inf") for wait in real) / max(1, len(real)),
                        "stalls_ms": [round(1000 * (b - a)) for a, b in stalls],
                    }
                )
    return device, rows


def main(
    minutes: Annotated[float, typer.Option(help="Of arrivals at each load.")] = 1.2,
    out: Annotated[Path, typer.Option(help="Folder of the result.")] = RESULTS,
) -> None:
    """Print a table, and write the figures to a file."""
    with suppress(PermissionError):
        os.nice(PRIORITY)
    with tempfile.TemporaryDirectory() as folder:
        device, rows = asyncio.run(run(Path(folder), minutes))
    names = ("planned_p50_s", "real_p50_s", "planned_p95_s", "real_p95_s")
    heads = [f"{name[:-2].replace('_', ' ')}, ms" for name in names]
    table = Table("load", "requests/s", "n", *heads, "planned / real p95", "left out")
    for row in rows:
        row["ratio"] = row["planned_p95_s"] / row["real_p95_s"]
        times = [f"{1000 * row[name]:.0f}" for name in names]
        table.add_row(
            f"{row['load']:g}",
            f"{row['rate']:.2f}",
            str(row["n"]),
            *times,
            f"{row['ratio']:.2f}",
            str(row["left_out"]),
        )
    Console().print(table)
    worst = max(abs(row["ratio"] - 1) for row in rows)
    print(
        f"the planner is at most {worst:.0%} off; a request takes {1000 * device.overhead_s:.1f} ms beside its batches"
    )
    facts = {"seconds": SECONDS, "device": {**asdict(device), "_models": None}, "loads": rows, "worst": worst}
    (out / f"plan-{platform.machine()}.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
