"""Measure what overlapping the stages brings: the same listeners with and without, on a model that only takes its time.

python -m benchmarks.overlap                              1 minute; as long as batches of an H200 take
python -m benchmarks.overlap --slower 4 --listeners 32    a slower device, where this machine is too slow for that

Text front end, streams, batcher and worker process are real. Every listener requests a text, and the next one when it
has received the last. While both stages run, the vocoder takes --shared times as long. Runs alternate, so that noise of
the machine falls on both.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.policies import PhonemeFrontend, StreamResult, play, random_texts
from benchmarks.tone_server import tone_frames
from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import SAMPLES_PER_FRAME, Frames, Model, Samples, Utterance
from tutti.voices import NAMES, Voices
from tutti.worker.process import ProcessWorker

PASS_S, ACOUSTIC_ROW_S, VOCODER_ROW_S = 0.003, 0.00045, 0.00065  # of an H200, about
SLICE_S = 0.002  # after which a stage looks whether the other runs, too


@dataclass(frozen=True, slots=True)
class Costs:
    slower: float
    shared: float
    stages_overlap: bool


class SleepingModel(ToneModel):
    """Each stage takes the seconds of its rows and computes nothing."""

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self.stages_overlap = costs.stages_overlap
        self._costs = costs
        self._running: set[int] = set()  # threads
        self._silence = np.zeros(4000 * SAMPLES_PER_FRAME, np.float32)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        with self._running_stage():
            time.sleep(self._costs.slower * (PASS_S + ACOUSTIC_ROW_S * len(rows)))
        return [tone_frames(row) for row in rows]

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        left_s = self._costs.slower * (PASS_S + VOCODER_ROW_S * len(rows))
        with self._running_stage():
            while left_s > 0.0:
                started_s = time.perf_counter()
                slowdown = self._costs.shared if len(self._running) > 1 else 1.0
                time.sleep(min(SLICE_S, slowdown * left_s))
                left_s -= (time.perf_counter() - started_s) / slowdown
        return [self._silence[: row.n_frames * SAMPLES_PER_FRAME] for row in rows]

    @contextmanager
    def _running_stage(self) -> Iterator[None]:
        self._running.add(threading.get_ident())
        yield
        self._running.discard(threading.get_ident())


def make_models(costs: Costs) -> dict[str, Model]:
    return {CHECKPOINT: SleepingModel(costs)}


def make_engine(costs: Costs, folder: Path) -> Engine:
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    worker = ProcessWorker(partial(make_models, costs))
    settings = Settings(first_audio_ms=200 * costs.slower)
    choices = {CHECKPOINT: Choice("torch", "cuda", "fp16")}
    cost_file = folder / f"costs-{costs.stages_overlap}.json"
    return assemble([worker], choices, Voices(folder), PhonemeFrontend(), settings, capped=True, cost_file=cost_file)


async def run(engine: Engine, n_listeners: int, seconds: float) -> dict[str, float]:
    results: list[StreamResult] = []
    until_s = time.monotonic() + seconds

    async def listener(seed: int) -> None:
        await asyncio.sleep(random.Random(seed).uniform(0.0, 0.2))
        for text in random_texts(seed):
            if time.monotonic() > until_s:
                return
            results.append(await play(engine, text))
            if results[-1].refused:
                await asyncio.sleep(0.2)

    engine.batch_stats.reset()
    started_s, started_cpu_s = time.monotonic(), time.process_time()
    await asyncio.gather(*map(listener, range(n_listeners)))
    took_s = time.monotonic() - started_s
    first = sorted(result.first_s for result in results if result.first_s)
    stats = engine.stats()["performance"]
    return {
        "audio_s_per_s": sum(result.audio_s for result in results) / took_s,
        "streams_per_s": len(first) / took_s,
        "refused": sum(result.refused for result in results),
        "failed": sum(result.failed for result in results),
        "dry": sum(result.gap_s > 0 for result in results),
        "first_p50_ms": 1000 * statistics.median(first),
        "first_p95_ms": 1000 * first[int(0.95 * (len(first) - 1))],
        "rows_a_batch": stats["avg_batch_size_since_start"],
        "acoustic_batches": stats["batches_by_stage"]["acoustic"],
        "vocoder_batches": stats["batches_by_stage"]["vocoder"],
        "busy": {stage: round(busy_s / took_s, 2) for stage, busy_s in stats["busy_s_by_stage"].items()},
        "cpu": (time.process_time() - started_cpu_s) / took_s,
    }


async def measure(args: argparse.Namespace, folder: Path) -> None:
    engines = {overlap: make_engine(Costs(args.slower, args.shared, overlap), folder) for overlap in (False, True)}
    async with engines[False], engines[True]:
        for n_listeners in map(int, args.listeners.split(",")):
            for overlap in (False, True) * args.rounds:
                report = await run(engines[overlap], n_listeners, args.seconds)
                name = "overlapping" if overlap else "one at a time"
                print(f"{n_listeners:4d} listeners, {name:>13}: {json.dumps(report)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listeners", default="1,8,128", help="numbers of them, with commas")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--slower", type=float, default=1.0, help="than an H200")
    parser.add_argument("--shared", type=float, default=1.2, help="times the vocoder's seconds beside the other stage")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-overlap-") as folder:
        asyncio.run(measure(args, Path(folder)))


if __name__ == "__main__":
    main()
