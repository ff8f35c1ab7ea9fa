"""Overhead over the bare model: time, first audio, start and memory, against the official graph in the same run.

python -m benchmarks.speed                      about half an hour on two cores
python -m benchmarks.speed --rounds 0           the long text for the memory figures alone
python -m benchmarks.speed --words 0            everything but the long text
"""

import asyncio
import itertools
import json
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import onnxruntime as ort
import psutil
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tutti import open_engine, settings
from tutti import text as front
from tutti.admission.ticket import Ticket
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.model.choice import resolve_precision
from tutti.speech import SAMPLE_RATE, SpeechParams, Utterance
from tutti.text.chunk import Chunk
from tutti.text.g2p import G2P
from tutti.text.vocab import encode
from tutti.voices import Voice, Voices
from tutti.weights import MODELS, Store

HERE = Path(__file__).parent
PROSE = (HERE / "data" / "prose.txt").read_text(encoding="utf-8")
VOICE = "af_heart"


def prose(n_words: int) -> str:
    """This many words: the story repeated, each time as another chapter."""
    chapters = (f"Chapter {i}.\n\n{PROSE}\n\n" for i in itertools.count(1))
    words: list[str] = []
    for chapter in chapters:
        words += chapter.replace("\n\n", " \n\n ").split(" ")
        if len(words) >= n_words:
            return " ".join(words[:n_words])
    raise AssertionError("chapters never end")


class BareGraph:
    """The unchanged official graph, one row after the other on all cores."""

    def __init__(self, path: Path, threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._names = [value.name for value in self._session.get_inputs()]

    def __call__(self, row: Utterance) -> float:
        """Run one row; return the seconds of audio."""
        inputs = (row.tokens[None], row.style[None], np.array([row.speed], np.float32))
        (audio,) = self._session.run(None, dict(zip(self._names, inputs, strict=True)))
        return float(audio.size) / SAMPLE_RATE


def row(chunk: Chunk, voice: Voice) -> Utterance:
    tokens = encode(chunk.phonemes)
    return Utterance(tokens, voice.style(len(tokens) - 2))


async def first_and_whole(engine: Engine, text: str, *, whole: bool) -> tuple[float, float, float]:
    """Seconds to the first audio, to the end, and of audio."""
    started = time.perf_counter()
    first, audio_s = 0.0, 0.0
    request = StreamRequest(text, SpeechParams(VOICE), Ticket(delivery="whole" if whole else "live"))
    async for speech in engine.stream(request):
        first = first or time.perf_counter() - started
        audio_s += speech.duration_s
    return first, time.perf_counter() - started, audio_s


async def compare_with_bare(
    engine: Engine, bare: BareGraph, chosen: settings.Settings, rounds: int, progress: Progress
) -> dict[str, float]:
    """Text to samples through the engine, against the same rows through the bare graph, in turns.

    The total is timed with delivery="whole", the first audio with delivery="live".
    """
    voice, g2p = Voices(chosen.home / "voices").get(VOICE), G2P(chosen.home)
    task = progress.add_task("engine against bare graph", total=2 * rounds)
    ours, theirs, firsts = [], [], []
    for turn in range(rounds + 1):  # the first turn warms up
        started = time.perf_counter()
        audio_s = sum(bare(row(chunk, voice)) for chunk in front.chunks(PROSE, "en-us", g2p.pronounce) if chunk.words)
        if turn:
            theirs.append((time.perf_counter() - started) / audio_s)
            progress.advance(task)
        _, whole_s, audio_s = await first_and_whole(engine, PROSE, whole=True)
        first_s, streamed_s, _ = await first_and_whole(engine, PROSE, whole=False)
        if turn:
            ours.append(whole_s / audio_s)
            firsts.append(first_s / streamed_s)
            progress.advance(task)
    return {
        "bare_s_per_audio_s": statistics.median(theirs),
        "engine_s_per_audio_s": statistics.median(ours),
        "ratio": statistics.median(a / b for a, b in zip(ours, theirs, strict=True)),
        "first_sound_share_of_whole": statistics.median(firsts),
    }


@contextmanager
def memory_samples() -> Iterator[list[float]]:
    """Resident megabytes of this process, sampled every 20 ms."""
    samples: list[float] = []
    done = threading.Event()
    process = psutil.Process()

    def sample() -> None:
        while not done.wait(0.02):
            samples.append(process.memory_info().rss / 1e6)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


async def memory(engine: Engine, n_words: int, progress: Progress) -> dict[str, float]:
    """The peak resident size in each quarter of a long text; its audio is not stored."""
    text = prose(n_words)
    task = progress.add_task(f"{n_words} words", total=len(text))
    quarters = [0.0] * 4
    with memory_samples() as samples:
        async for speech in engine.stream(StreamRequest(text, SpeechParams(VOICE), Ticket(delivery="whole"))):
            quarter = min(3, 4 * speech.span[1] // len(text))
            quarters[quarter] = max([quarters[quarter], *samples])
            samples.clear()
            progress.update(task, completed=max(speech.span[1], progress.tasks[task].completed))
    return {"peak_mb": max(quarters), **{f"quarter_{i}_mb": mb for i, mb in enumerate(quarters, 1)}}


START = """
import time; t = time.perf_counter()
import tutti; imported = time.perf_counter() - t
import asyncio; from tutti import cli, open_engine, settings
async def ready():
    async with open_engine(settings.load({})[0]): print(imported, time.perf_counter() - t)
asyncio.run(ready())
"""


def start_times(rounds: int, home: Path, precision: str) -> dict[str, float]:
    """Seconds of a new interpreter to `import tutti`, and to a model that is ready."""
    environ = {"TUTTI_HOME": str(home), "TUTTI_PRECISION": precision, "TUTTI_OFFLINE": "1", "PATH": ""}
    runs = []
    for _ in range(rounds):
        result = subprocess.run([sys.executable, "-c", START], env=environ, capture_output=True, text=True, check=True)
        runs.append([float(value) for value in result.stdout.split()])
    imports, readies = zip(*runs, strict=True)
    return {"import_s": statistics.median(imports), "model_ready_s": statistics.median(readies)}


def main(
    precision: Annotated[Literal["auto", "fp32", "int8"], typer.Option()] = "auto",
    words: Annotated[int, typer.Option(help="Length of the text for the memory figures.")] = 5000,
    rounds: Annotated[int, typer.Option()] = 3,
) -> None:
    chosen, _ = settings.load({"precision": precision, "backend": "onnx"})
    resolved = resolve_precision(precision)

    async def measure() -> dict[str, float]:
        # Memory first, while nothing but the engine has been in this process.
        results: dict[str, float] = {}
        async with open_engine(chosen) as engine:
            if words:
                results |= await memory(engine, words, progress)
            if rounds:
                bare = BareGraph(Store(chosen.home).path(MODELS[resolved]), chosen.threads)
                results |= await compare_with_bare(engine, bare, chosen, rounds, progress)
        return results

    with Progress(console=Console(stderr=True)) as progress:
        results = asyncio.run(measure())
        if rounds:
            results |= start_times(rounds, chosen.home, resolved)
    table = Table("measure", resolved, title=f"{platform.machine()}, {chosen.threads} threads")
    for name, value in results.items():
        table.add_row(name, f"{value:.3f}" if value < 100 else f"{value:.0f}")
    Console().print(table)
    (HERE / "results").mkdir(exist_ok=True)
    path = HERE / "results" / f"speed-{resolved}-{platform.machine()}.json"
    earlier = json.loads(path.read_text()) if path.exists() else {}  # the long text may have been run separately
    path.write_text(json.dumps(earlier | results, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
