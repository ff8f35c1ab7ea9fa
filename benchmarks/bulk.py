"""Throughput of `tutti bulk`, files and index included, against the bare engine, whose audio nobody encodes.

python -m benchmarks.bulk                     a minute: tones, a fixed time for each row
python -m benchmarks.bulk --model int8        the real model on a few texts: ten minutes on two busy cores

Both run twice in turns in one process, so that a change of the machine's load affects both. For the real model the CPU
seconds count, which other processes change less than the clock.
"""

import asyncio
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.progress import progress
from tutti.bulk.local_run import speak_shards
from tutti.bulk.output import OutputFolder, RunSummary
from tutti.bulk.shards import shards
from tutti.bulk.speaking import BulkOptions
from tutti.bulk.table import read_rows
from tutti.engine.build import CHECKPOINT, assemble, open_engine
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import Frames, Model, Samples, SpeechParams
from tutti.text.frontend import G2PThread
from tutti.text.g2p import G2P
from tutti.voices import NAMES, Voices
from tutti.worker.thread import ThreadWorker

RESULTS = Path(__file__).parent / "results"
PARAMS = SpeechParams("af_heart", pcm_volume=1.0, with_words=False)
PROSE = "the old harbour lights were burning low when seven ships came slowly home across a quiet silver sea"
PASS_S, ROW_S = 0.002, 0.010  # of the tones' vocoder: a pass, and each of its rows
AT_ONCE = 64  # texts that the bare engine has at a time: more than fills its batches
ROUNDS = 2


class FixedCostTones(ToneModel):
    """Takes the same time for each row, and computes next to nothing: other processes do not change it."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        time.sleep(PASS_S + ROW_S * len(rows))
        return super().vocoder(rows)


def texts(n: int) -> list[str]:
    """Sentences of 4 to 13 words."""
    words = PROSE.split()
    return [" ".join(words[(n * 7 + i) % len(words)] for i in range(4 + n % 10)).capitalize() + "." for n in range(n)]


def tone_models() -> dict[str, Model]:
    return {CHECKPOINT: FixedCostTones()}


def tone_engine(folder: Path) -> Engine:
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    settings = Settings(threads=2)
    frontend = G2PThread(G2P(settings.home).pronounce)
    choices = {CHECKPOINT: Choice("onnx", "cpu", "int8")}
    return assemble([ThreadWorker(tone_models)], choices, Voices(folder), frontend, settings, capped=False)


async def bare(engine: Engine, said: Sequence[str]) -> float:
    """Speak all texts as bulk work of the engine; return the seconds of audio."""
    left, audio_s = iter(said), 0.0

    async def caller() -> None:
        nonlocal audio_s
        for text in left:
            async for speech in engine.stream(text, PARAMS, delivery="bulk"):
                audio_s += speech.duration_s

    async with engine:
        await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return audio_s


def bulk(engine: Engine, table: Path, out: Path, batch_rows: int) -> float:
    """The same with files and an index; return the seconds of audio."""
    options = BulkOptions(PARAMS, shard_rows=128, batch_rows=batch_rows)
    folder = OutputFolder(out)
    folder.create()
    work = list(shards(read_rows(table), options.shard_rows))
    asyncio.run(speak_shards(engine, iter(work), options, folder, lambda _: None))
    total: RunSummary = folder.write_whole_index(len(work), sum(len(shard.rows) for shard in work))
    assert not total.n_failed
    return total.audio_s


def measured(run: Callable[[], float]) -> dict[str, float]:
    started_s, cpu_s = time.perf_counter(), time.process_time()
    audio_s = run()
    return {"wall_s": time.perf_counter() - started_s, "cpu_s": time.process_time() - cpu_s, "audio_s": audio_s}


def runs(make_engine: Callable[[], Engine], n_rows: int, folder: Path, batch_rows: int) -> Iterator[tuple[str, dict]]:
    said = texts(n_rows)
    table = folder / "texts.jsonl"
    table.write_text("".join(json.dumps({"text": text}) + "\n" for text in said))
    for n in range(ROUNDS):
        yield "engine", measured(lambda: asyncio.run(bare(make_engine(), said)))
        yield "bulk", measured(lambda n=n: bulk(make_engine(), table, folder / f"out{n}", batch_rows))
    first, *others = [sorted((folder / f"out{n}" / "shards").iterdir()) for n in range(ROUNDS)]
    for other in others:
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in other], "other bytes"


def main(
    model: Annotated[Literal["tone", "int8"], typer.Option(help="Tones of a fixed cost, or the real model.")] = "tone",
    rows: Annotated[int | None, typer.Option(help="Texts; default: 600 of the tones, 12 of the model.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result.")] = RESULTS,
) -> None:
    """Print a table, and write the figures to a file."""
    n_rows = rows or (600 if model == "tone" else 12)
    sums: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as path, progress(2 * ROUNDS) as step:
        folder = Path(path)
        settings = Settings(precision="int8", threads=2)
        make_engine = partial(tone_engine, folder / "voices") if model == "tone" else partial(open_engine, settings)
        step("engine")
        for name, figures in runs(make_engine, n_rows, folder, batch_rows=8):
            step("bulk" if name == "engine" else "engine")
            total = sums.setdefault(name, dict.fromkeys(figures, 0.0))
            for key, value in figures.items():
                total[key] += value
    clock = "wall_s" if model == "tone" else "cpu_s"
    rates = {name: figures["audio_s"] / figures[clock] for name, figures in sums.items()}
    table = Table("", "audio, s", "clock, s", "CPU, s", "rate", title=f"{model}: {n_rows} rows, {ROUNDS} rounds")
    for name, figures in sums.items():
        numbers = [f"{figures[key]:.1f}" for key in ("audio_s", "wall_s", "cpu_s")]
        table.add_row(name, *numbers, f"{rates[name]:.2f}")
    Console().print(table)
    ratio = rates["bulk"] / rates["engine"]
    print(f"bulk has {ratio:.3f} of the engine's rate, by {clock}; all files of both rounds are equal")
    report = {"model": model, "rows": n_rows, "rounds": ROUNDS, "by": clock, "machine": platform.machine()}
    name = f"bulk-{model}-{platform.machine()}.json"
    (out / name).write_text(json.dumps({**report, "runs": sums, "ratio": ratio}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
