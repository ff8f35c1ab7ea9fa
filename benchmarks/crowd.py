"""Many listeners on one device: first audio, gaps, what the batcher costs, and how much of the bare speed is left.

python -m benchmarks.crowd --weights parts --compile full       one CUDA device; parts as of benchmarks.gpu export
python -m benchmarks.crowd --listeners 2 --seconds 60           this processor

What the batcher and its process add to one user's row is the time of the whole less that inside the model, of the same
call, so that a noisy machine disturbs both alike. For the bare speed the same model runs in this process, in turns with
the other. With --rates, the policies are compared on the same worker afterwards (benchmarks.policies).
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
from benchmarks.policies import Heard, listen, said
from tutti.engine.batcher import Batcher
from tutti.engine.build import CHECKPOINT
from tutti.engine.engine import Engine
from tutti.engine.row import Ask
from tutti.model.choice import Choice, load
from tutti.speech import Frames, Model, Utterance
from tutti.text.vocab import encode
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker

ROWS = 64


def spoken(styles: np.ndarray, phonemes: str) -> Utterance:
    tokens = encode(phonemes)
    return Utterance(tokens, styles[len(tokens) - 3])


def row(styles: np.ndarray, seconds: float, salt: int) -> Utterance:
    return spoken(styles, said(seconds, salt))


def bare(model: Model, rows: Sequence[Utterance]) -> tuple[float, Sequence[Frames]]:
    """Seconds of a bare call, and its frames."""
    started_s = time.perf_counter()
    frames = model.acoustic(rows)
    model.vocoder(frames)
    return time.perf_counter() - started_s, frames


async def batched(line: Batcher, rows: Sequence[Utterance]) -> float:
    started_s = time.perf_counter()
    await asyncio.gather(*(line.say(Ask(one, CHECKPOINT, i, "first", inf)) for i, one in enumerate(rows)))
    return time.perf_counter() - started_s


class Clocked:
    """A model that notes how long it is inside each call, where another process can read it."""

    def __init__(self, model: Model, notes: Path) -> None:
        self._model = model
        self._notes = notes.open("ab", buffering=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def acoustic(self, *rows: Any) -> Any:
        with self._clock():
            return self._model.acoustic(*rows)

    def vocoder(self, *rows: Any) -> Any:
        with self._clock():
            return self._model.vocoder(*rows)

    @contextmanager
    def _clock(self) -> Iterator[None]:
        started_s = time.perf_counter()
        yield
        self._notes.write(struct.pack("d", time.perf_counter() - started_s))


def clocked(make: Callable[[], Mapping[str, Model]], notes: Path) -> Mapping[str, Model]:
    return {name: cast(Model, Clocked(model, notes)) for name, model in make().items()}


def noted_s(notes: Path) -> float:
    """Seconds inside of the model so far."""
    return sum(seconds for (seconds,) in struct.iter_unpack("d", notes.read_bytes()))


async def overhead(line: Batcher, notes: Path, rows: Mapping[str, Utterance], rounds: int) -> dict[str, Any]:
    """One user: the batcher and its process around the model's own time; and four at once against four in turn."""
    found = {}
    for name, one in rows.items():
        through, inside, four, turns = [], [], [], []
        for turn in range(rounds + 1):
            before_s = noted_s(notes)
            through_s = await batched(line, [one])
            inside_s = noted_s(notes) - before_s
            values = (
                through_s,
                inside_s,
                await batched(line, [one] * 4),
                sum([await batched(line, [one]) for _ in range(4)]),
            )
            for kept, value in zip((through, inside, four, turns), values, strict=True):
                kept += [value] * bool(turn)
        found[name] = {
            "model_ms": 1000 * statistics.median(inside),
            "through_ms": 1000 * statistics.median(through),
            "added_ms": 1000 * statistics.median(a - b for a, b in zip(through, inside, strict=True)),
            "ratio": statistics.median(a / b for a, b in zip(through, inside, strict=True)),
            "four_of_turns": statistics.median(a / b for a, b in zip(four, turns, strict=True)),
        }
    return found


def warm(path: Path, choice: Choice, threads: int) -> Model:
    model = load(path, choice, threads)
    if warm_up := getattr(model, "warm_up", None):
        warm_up()
    return model


async def bare_speed(model: Model, styles: np.ndarray, seconds: float) -> float:
    """Audio seconds a second of the model alone, rows that the listeners ask for."""
    chunks = islice((chunk for text in policies.texts(7) for chunk in policies.chunked(text)), ROWS)
    rows = [spoken(styles, chunk.phonemes) for chunk in chunks]
    await asyncio.to_thread(bare, model, rows)
    audio_s, started_s = 0.0, time.perf_counter()
    while time.perf_counter() < started_s + seconds:
        _, frames = await asyncio.to_thread(bare, model, rows)
        audio_s += sum(one.n_frames for one in frames) / 40
    return audio_s / (time.perf_counter() - started_s)


async def crowd(engine: Engine, n_listeners: int, seconds: float, *, plays: bool) -> tuple[list[Heard], float]:
    """Listeners who each ask again when they have heard (or only received) what they asked for.

    And the audio seconds that came each second, without the first one and the time after the last question.
    """
    heard: list[Heard] = []
    started_s = time.monotonic()
    steady_s = 0.0

    def came(audio_s: float) -> None:
        nonlocal steady_s
        if started_s + 1.0 <= time.monotonic() < started_s + seconds:
            steady_s += audio_s

    async def listener(seed: int) -> None:
        rng = random.Random(seed)
        if plays:
            await asyncio.sleep(rng.uniform(0, 3))
        for text in policies.texts(seed):
            if time.monotonic() > started_s + seconds:
                return
            asked_s = time.monotonic()
            one = await listen(engine, text, whole=not plays, came=came)
            heard.append(one)
            if plays:
                done_s = min(asked_s + one.first_s + one.audio_s + rng.uniform(0, 1), started_s + seconds)
                await asyncio.sleep(max(0.0, done_s - time.monotonic()))

    await asyncio.gather(*map(listener, range(n_listeners)))
    return heard, steady_s / (seconds - 1.0)


async def measured(
    bare_model: Callable[[], Model], worker: Worker, choice: Choice, args: argparse.Namespace
) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def step(name: str, value: Any) -> None:
        found[name] = value
        print(f"[{time.monotonic() - args.began_s:6.1f} s] {name}: {json.dumps(value)}", flush=True)
        (args.out / f"crowd-{choice.device}-{platform.machine()}.json").write_text(json.dumps(found, indent=1) + "\n")

    styles = np.fromfile(args.voices / "af_heart.bin", np.float32).reshape(510, 256)
    async with policies.open_with("deadline", worker, choice, args) as engine:
        rows = {f"{seconds:g} s": row(styles, seconds, 3) for seconds in (1.0, 5.0)}
        # Before the model is loaded here too: a server's own process never has it.
        step("overhead", await overhead(engine.batchers[0], args.notes, rows, args.rounds))
        model = await asyncio.to_thread(bare_model)
        gc.freeze()  # as the server does: with PyTorch loaded here too, a look for garbage takes 80 ms
        heard, _ = await crowd(engine, args.listeners, args.seconds, plays=True)
        first = sorted(one.first_s for one in heard if one.first_s)
        step("listeners", {
            "listeners": args.listeners,
            "streams": len(heard),
            "refused": sum(one.refused for one in heard),
            "dry": sum(one.gap_s > 0 for one in heard),
            "first_p50_ms": 1000 * statistics.median(first),
            "first_p95_ms": 1000 * first[int(0.95 * (len(first) - 1))],
        })  # fmt: skip
        for turn in (1, 2):
            engine.batch_stats.reset()
            alone = await bare_speed(model, styles, args.seconds / 3)
            _, sustained = await crowd(engine, 2 * args.listeners, args.seconds / 3, plays=False)
            step(f"sustained {turn}", {
                "bare_audio_s_per_s": alone,
                "batcher_audio_s_per_s": sustained,
                "ratio": sustained / alone,
                "rows_a_batch": engine.stats()["performance"]["avg_batch_size"],
                "busy_s": engine.stats()["performance"]["busy_s_by_stage"],
            })  # fmt: skip
    return found


def main() -> None:
    parser = policies.arguments(__doc__)
    parser.set_defaults(rates="", seconds=15.0)
    parser.add_argument("--listeners", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    args, path, choice = policies.parsed(parser)
    args.began_s = time.monotonic()
    args.notes = Path(tempfile.mkdtemp()) / "model-s"

    async def run() -> None:
        worker = ProcessWorker(partial(clocked, partial(policies.one, path, choice, args.threads), args.notes))
        await worker.start()
        print(f"[{time.monotonic() - args.began_s:6.1f} s] worker ready", flush=True)
        try:
            await measured(partial(warm, path, choice, args.threads), worker, choice, args)
            if args.rates:
                args.seconds = args.seconds / 3
                policies.kept(await policies.compared(worker, choice, args), choice, args)
        finally:
            await worker.close()

    asyncio.run(run())


if __name__ == "__main__":
    main()
