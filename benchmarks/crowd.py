"""Measure many listeners on one device: first audio, gaps, overhead of the batcher, share of the bare model's speed.

python -m benchmarks.crowd --weights parts --compile full       3 minutes, a CUDA device; parts: benchmarks.gpu export
python -m benchmarks.crowd --listeners 2 --seconds 60           10 minutes on a CPU

The overhead for one row is the time of a call through batcher and worker process, less the time inside the model in the
same call, so that noise of the machine falls on both. For the bare speed the same model runs in this process, in turns
with the batcher. With --rates, the policies are compared on the same worker afterwards (benchmarks.policies).
"""

import argparse
import asyncio
import gc
import json
import platform
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks import policies
from benchmarks.policies import StreamResult, phonemes_lasting, play
from benchmarks.progress import progress
from tutti.engine.batcher import Batcher
from tutti.engine.build import CHECKPOINT
from tutti.engine.engine import Engine
from tutti.engine.playback import Playback
from tutti.engine.row import FRAME_S, Row
from tutti.model.choice import Choice, load
from tutti.speech import Frames, Model, Utterance
from tutti.text.vocab import encode
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker

ROWS = {"cuda": 64, "cpu": 8}  # in a batch of the bare model


def utterance(styles: np.ndarray, phonemes: str) -> Utterance:
    tokens = encode(phonemes)
    return Utterance(tokens, styles[len(tokens) - 3])


def utterance_lasting(styles: np.ndarray, seconds: float, start: int) -> Utterance:
    return utterance(styles, phonemes_lasting(seconds, start))


def run_bare(model: Model, utterances: Sequence[Utterance]) -> Sequence[Frames]:
    """Run both stages without a batcher."""
    frames = model.acoustic(utterances)
    model.vocoder(frames)
    return frames


async def run_batched(batcher: Batcher, utterances: Sequence[Utterance]) -> float:
    """Seconds until all rows, submitted at once, are spoken."""
    started_s = time.perf_counter()
    rows = [Row(utterance, CHECKPOINT, i, "first", Playback(0.0, inf)) for i, utterance in enumerate(utterances)]
    await asyncio.gather(*map(batcher.speak, rows))
    return time.perf_counter() - started_s


class TimedModel:
    """A model that appends the seconds of each call to a file, where another process can read them."""

    def __init__(self, model: Model, times: Path) -> None:
        self._model = model
        self._times = times.open("ab", buffering=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

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
    return {name: cast(Model, TimedModel(model, times)) for name, model in load_models().items()}


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


def load_warm(path: Path, choice: Choice, threads: int) -> Model:
    model = load(path, choice, threads)
    if warm_up := getattr(model, "warm_up", None):
        warm_up()
    return model


async def bare_speed(model: Model, styles: np.ndarray, n_rows: int, seconds: float) -> float:
    """Seconds of audio per second of the bare model, in batches of such rows as the listeners request."""
    chunks = (chunk for text in policies.random_texts(7) for chunk in policies.phoneme_chunks(text))
    utterances = [utterance(styles, chunk.phonemes) for chunk in islice(chunks, n_rows)]
    await asyncio.to_thread(run_bare, model, utterances)
    audio_s, started_s = 0.0, time.perf_counter()
    while time.perf_counter() < started_s + seconds:
        frames = await asyncio.to_thread(run_bare, model, utterances)
        audio_s += sum(row.n_frames for row in frames) * FRAME_S
    return audio_s / (time.perf_counter() - started_s)


async def run_listeners(
    engine: Engine, n_listeners: int, seconds: float, *, plays: bool
) -> tuple[list[StreamResult], float]:
    """Let every listener request the next text when it has played (or only received) the last one.

    Returns all results, and the seconds of audio per second after the first second.
    """
    results: list[StreamResult] = []
    started_s = time.monotonic()
    steady_audio_s = 0.0

    def on_audio(audio_s: float) -> None:
        nonlocal steady_audio_s
        if started_s + 1.0 <= time.monotonic() < started_s + seconds:
            steady_audio_s += audio_s

    async def listener(seed: int) -> None:
        rng = random.Random(seed)
        if plays:
            await asyncio.sleep(rng.uniform(0, 3))
        for text in policies.random_texts(seed):
            if time.monotonic() > started_s + seconds:
                return
            requested_s = time.monotonic()
            result = await play(engine, text, whole=not plays, on_audio=on_audio)
            results.append(result)
            if plays:
                played_s = requested_s + result.first_s + result.audio_s + rng.uniform(0, 1)
                await asyncio.sleep(max(0.0, min(played_s, started_s + seconds) - time.monotonic()))

    await asyncio.gather(*map(listener, range(n_listeners)))
    return results, steady_audio_s / (seconds - 1.0)


async def measure(
    load_bare: Callable[[], Model], worker: Worker, choice: Choice, args: argparse.Namespace
) -> dict[str, Any]:
    """Overhead, listeners that play, and twice as many that only receive; each result is written at once."""
    report: dict[str, Any] = {}

    def record(name: str, value: Any) -> None:
        report[name] = value
        print(f"[{time.monotonic() - args.started_s:6.1f} s] {name}: {json.dumps(value)}", flush=True)
        (args.out / f"crowd-{choice.device}-{platform.machine()}.json").write_text(json.dumps(report, indent=1) + "\n")

    styles = np.fromfile(args.voices / "af_heart.bin", np.float32).reshape(510, 256)
    utterances = {f"{seconds:g} s": utterance_lasting(styles, seconds, 3) for seconds in (1.0, 5.0)}
    n_steps = len(utterances) * (args.rounds + 1) + 6
    with progress(n_steps) as step:
        async with policies.engine_with("deadline", worker, choice, args) as engine:
            # Before the model is loaded here too: the process of a server never has it.
            overhead = await measure_overhead(engine.batchers[0], args.times, utterances, args.rounds, step)
            record("overhead", overhead)
            step("loading the bare model")
            model = await asyncio.to_thread(load_bare)
            gc.freeze()  # as the server does: with PyTorch loaded here too, a garbage collection takes 80 ms
            step(f"{args.listeners} listeners")
            results, _ = await run_listeners(engine, args.listeners, args.seconds, plays=True)
            record("listeners", summary(results, args.listeners))
            for number in (1, 2):
                engine.batch_stats.reset()
                step("bare model")
                alone = await bare_speed(model, styles, ROWS[choice.device], args.seconds / 3)
                step("sustained load")
                _, sustained = await run_listeners(engine, 2 * args.listeners, args.seconds / 3, plays=False)
                record(f"sustained {number}", {
                    "bare_audio_s_per_s": alone,
                    "batcher_audio_s_per_s": sustained,
                    "ratio": sustained / alone,
                    "rows_a_batch": engine.stats()["performance"]["avg_batch_size_since_start"],
                    "busy_s": engine.stats()["performance"]["busy_s_by_stage"],
                })  # fmt: skip
    return report


def summary(results: Sequence[StreamResult], n_listeners: int) -> dict[str, float]:
    first = sorted(result.first_s for result in results if result.first_s)
    return {
        "listeners": n_listeners,
        "streams": len(results),
        "refused": sum(result.refused for result in results),
        "dry": sum(result.gap_s > 0 for result in results),
        "first_p50_ms": 1000 * statistics.median(first),
        "first_p95_ms": 1000 * first[int(0.95 * (len(first) - 1))],
    }


def main() -> None:
    parser = policies.make_parser(__doc__)
    parser.set_defaults(rates="", seconds=15.0)
    parser.add_argument("--listeners", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15, help="of the overhead")
    args, path, choice = policies.parse_arguments(parser)
    args.started_s = time.monotonic()
    args.times = Path(tempfile.mkdtemp()) / "model-seconds"

    async def run() -> None:
        load_models = partial(policies.load_models, path, choice, args.threads)
        worker = ProcessWorker(partial(timed_models, load_models, args.times))
        await worker.start()
        print(f"[{time.monotonic() - args.started_s:6.1f} s] worker ready", flush=True)
        try:
            await measure(partial(load_warm, path, choice, args.threads), worker, choice, args)
            if args.rates:
                args.seconds = args.seconds / 3
                policies.save_report(await policies.measure_policies(worker, choice, args), choice, args)
        finally:
            await worker.close()

    asyncio.run(run())


if __name__ == "__main__":
    main()
