"""Measure how many listeners each policy serves well: the real model under open load.

python -m benchmarks.policies                                      30 minutes on a CPU
python -m benchmarks.policies --rates 0,0.03 --target-ms 4000      10 minutes on two slow cores
python -m benchmarks.policies --weights parts --compile full       a CUDA device; parts as of benchmarks.gpu export

Listeners arrive at random (Poisson); each requests a text and plays it as it arrives. A stream is good if its first
audio comes within the target and its player never runs dry; a rejected one is not good. Every policy gets the same
listeners; `window` and `bypass` wait 50 ms for `--rows` rows (the requirement names 32; 0: as many as `deadline` may
have, 64 on a CUDA device). The results of one H200 in the log are with 4. Needs only the libraries of the model, so
that it runs wherever the model does.
"""

import argparse
import asyncio
import json
import platform
import random
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, cast

from benchmarks.progress import progress
from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.errors import QueueFull, TuttiError
from tutti.model.choice import Choice, choose, load
from tutti.settings import Settings
from tutti.speech import Model, SpeechParams
from tutti.text.aligned_text import Span
from tutti.text.chunk import Chunk, PhonemeWord, Pronunciation
from tutti.text.chunker import Chunker
from tutti.voices import Voices
from tutti.worker.base import Worker
from tutti.worker.process import ProcessWorker

HERE = Path(__file__).parent
PHONEMES = json.loads((HERE / "data" / "phonemes.json").read_text(encoding="utf-8"))
POLICIES = ("window", "bypass", "fifo", "deadline")
GOOD = 0.99  # share of good streams up to which a rate counts as served
PHONEMES_PER_S = 13
BUFFER_S = 0.002  # audio that every player buffers: a shorter gap is not heard


class PhonemeFrontend:
    """A text front end without G2P: a text is a list of sentence numbers; "7:4 12" is four words of 7, and 12."""

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def chunks(self, text: str, code: str, *_: object) -> AsyncIterator[Chunk]:
        for chunk in phoneme_chunks(text):
            yield chunk


def phoneme_chunks(text: str) -> Iterator[Chunk]:
    """The chunks of a list of sentence numbers, as the chunker packs them."""
    matches = re.finditer(r"\S+", text)
    return Chunker().chunks((Pronunciation(_words(match[0], match.span())), 0.0) for match in matches)


def _words(sentence: str, span: Span) -> tuple[PhonemeWord, ...]:
    number, _, n_words = sentence.partition(":")
    words = PHONEMES[int(number)].split()[: int(n_words) if n_words else None]
    return tuple(PhonemeWord(word, span, after=". " if i + 1 == len(words) else " ") for i, word in enumerate(words))


def phonemes_lasting(seconds: float, start: int) -> str:
    """About so many seconds of real phonemes, from this sentence on."""
    n = max(4, round(seconds * PHONEMES_PER_S))
    phonemes = ""
    for i in range(len(PHONEMES)):
        phonemes += PHONEMES[(start + i) % len(PHONEMES)] + " "
        if len(phonemes) >= n:
            break
    return phonemes[: min(n, 500)].strip() or phonemes[:4]


@dataclass(frozen=True, slots=True)
class StreamResult:
    """How one stream went for its listener."""

    refused: bool
    failed: bool
    first_s: float
    gap_s: float  # the longest silence after the first audio
    audio_s: float

    def good(self, target_s: float) -> bool:
        return not (self.refused or self.failed or self.gap_s) and self.first_s <= target_s


async def play(
    engine: Engine, text: str, *, whole: bool = False, on_audio: Callable[[float], None] = lambda _audio_s: None
) -> StreamResult:
    """Request a text and play it from the first audio on; `on_audio` gets the seconds of each part."""
    requested_s = time.monotonic()
    first_s, plays_until_s, gap_s, audio_s = 0.0, 0.0, 0.0, 0.0
    try:
        async for speech in engine.stream(text, SpeechParams("af_heart"), delivery="whole" if whole else "live"):
            now = time.monotonic()
            if not first_s:
                first_s, plays_until_s = now - requested_s, now
            elif now > plays_until_s + BUFFER_S:
                gap_s, plays_until_s = max(gap_s, now - plays_until_s), now
            plays_until_s += speech.duration_s
            audio_s += speech.duration_s
            on_audio(speech.duration_s)
    except QueueFull:
        return StreamResult(True, False, 0.0, 0.0, 0.0)
    except TuttiError:
        return StreamResult(False, True, 0.0, 0.0, 0.0)
    return StreamResult(False, False, first_s, gap_s, audio_s)


def random_texts(seed: int) -> Iterator[str]:
    """Endless texts: some words of a first sentence, then up to four sentences; most are short."""
    rng = random.Random(seed)
    first_words = (3, 4, 6, 8, None)
    while True:
        first, *rest = (rng.randrange(len(PHONEMES)) for _ in range(1 + rng.choice((0, 1, 1, 2, 4))))
        n_words = rng.choice(first_words)
        yield " ".join((f"{first}:{n_words}" if n_words else f"{first}", *map(str, rest)))


async def open_load(engine: Engine, rate: float, seconds: float, seed: int) -> list[StreamResult]:
    """Let listeners arrive at this rate for so long; rate 0: one after the other."""
    rng = random.Random(seed)
    if not rate:
        results, until_s = [], time.monotonic() + seconds
        for text in random_texts(seed):
            results.append(await play(engine, text))
            if time.monotonic() > until_s:
                break
        return results
    started_s, at_s, tasks = time.monotonic(), 0.0, []
    for text in islice(random_texts(seed), max(4, round(rate * seconds))):
        at_s += rng.expovariate(rate)
        await asyncio.sleep(max(0.0, started_s + at_s - time.monotonic()))
        tasks.append(asyncio.create_task(play(engine, text)))
    return list(await asyncio.gather(*tasks))


def load_models(path: Path, choice: Choice, threads: int) -> Mapping[str, Model]:
    return {CHECKPOINT: load(path, choice, threads)}


class SharedWorker:
    """A worker that several engines use in turn: its owner starts and closes it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass


def engine_with(policy: str, worker: Worker, choice: Choice, args: argparse.Namespace) -> Engine:
    """An engine with this policy around a worker that runs already."""
    settings = Settings(
        policy=policy,
        max_batch_size=args.rows or None if policy in ("window", "bypass") else None,
        first_audio_ms=args.target_ms,
        threads=args.threads,
    )
    shared = cast(Worker, SharedWorker(worker))
    voices, frontend = Voices(args.voices), PhonemeFrontend()
    return assemble([shared], {CHECKPOINT: choice}, voices, frontend, settings, capped=True, cost_file=args.cost_file)


async def measure_policy(
    policy: str, worker: Worker, choice: Choice, args: argparse.Namespace, step: Callable[[str], None]
) -> list[dict[str, Any]]:
    """One policy at rising rates, until two in a row were served badly."""
    rows: list[dict[str, Any]] = []
    async with engine_with(policy, worker, choice, args) as engine:
        target_s = engine.pacing.target_s
        for n, rate in enumerate(args.rates):
            step(f"{policy} at {rate:g}/s")
            engine.batch_stats.reset()
            results = await open_load(engine, rate, args.seconds, args.seed)
            rows.append(summary(policy, rate, results, target_s, engine))
            print(format_row(rows[-1]), flush=True)
            is_bad = [row["good"] < GOOD - 0.1 for row in rows]
            if all(is_bad[-2:]) and (len(is_bad) > 1 or not rate):
                for _ in args.rates[n + 1 :]:
                    step(f"{policy}: other rates skipped")
                break
    return rows


def summary(
    policy: str, rate: float, results: Sequence[StreamResult], target_s: float, engine: Engine
) -> dict[str, Any]:
    first = sorted(result.first_s for result in results if result.first_s)
    stats = engine.stats()["performance"]
    return {
        "policy": policy,
        "rate": rate,
        "most_rows": engine.monitor.settings()["max_batch_size"],
        "streams": len(results),
        "good": sum(result.good(target_s) for result in results) / len(results),
        "refused": sum(result.refused for result in results),
        "failed": sum(result.failed for result in results),
        "dry": sum(result.gap_s > 0 for result in results),
        "longest_gap_s": max(result.gap_s for result in results),
        "first_p50_s": statistics.median(first) if first else None,
        "first_p95_s": first[int(0.95 * (len(first) - 1))] if first else None,
        "audio_s": sum(result.audio_s for result in results),
        "rows_a_batch": stats["avg_batch_size_since_start"],
        "padding": stats["padding_ratio"],
    }


def format_row(row: Mapping[str, Any]) -> str:
    first = "-" if row["first_p95_s"] is None else f"{1000 * row['first_p50_s']:.0f}/{1000 * row['first_p95_s']:.0f} ms"
    dry = f"{row['dry']:4d} dry ({row['longest_gap_s']:.2f} s)"
    return (
        f"{row['policy']:>9} {row['rate']:8.2f}/s {row['streams']:5d} streams {100 * row['good']:5.1f} % good "
        f"{row['refused']:4d} refused {dry} first {first:>14} rows {row['rows_a_batch']:.1f}"
    )


def capacity(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The highest rate up to which 99 % of the streams were good at every rate; none if at no rate."""
    best = None
    for row in rows:
        if row["good"] < GOOD:
            break
        best = row["rate"]
    return best


def plot(rows_by_policy: Mapping[str, Sequence[Mapping[str, Any]]], to: Path, title: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for policy, rows in rows_by_policy.items():
        axes.plot([row["rate"] for row in rows], [row["rate"] * row["good"] for row in rows], marker="o", label=policy)
    axes.set_xlabel("streams offered each second")
    axes.set_ylabel("good streams each second")
    axes.set_title(title)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(to)


async def measure_policies(worker: Worker, choice: Choice, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """All policies, one after the other, on the same worker."""
    names = args.policies.split(",")
    with progress(len(names) * len(args.rates)) as step:
        return {name: await measure_policy(name, worker, choice, args, step) for name in names}


def make_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, help="model.onnx, or a folder of parts; default: of the settings")
    parser.add_argument("--voices", type=Path, help="folder; default: beside the weights")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--rows", type=int, default=32, help="for which window and bypass wait; 0: as many as deadline")
    parser.add_argument("--rates", default="0.1,0.2,0.3,0.4,0.5,0.6", help="streams per second; 0: in turn")
    parser.add_argument("--seconds", type=float, default=60.0, help="of arrivals at each rate")
    parser.add_argument("--target-ms", type=float, help="to the first audio")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--compile", default="off")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    return parser


def parse_arguments(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, Path, Choice]:
    """The options, the model file, and the backend that runs it."""
    args = parser.parse_args()
    args.rates = [float(rate) for rate in args.rates.split(",") if rate]
    args.out.mkdir(parents=True, exist_ok=True)
    choice = choose(args.backend, "auto", "auto", args.compile)
    args.cost_file = Path(tempfile.mkdtemp()) / "costs.json"  # shared by the policies of this run
    path = args.weights
    if path is None:
        from tutti import settings
        from tutti.weights import MODELS, Store

        home = settings.load({})[0].home
        args.voices = args.voices or home / "voices"
        path = Store(home).path(MODELS[choice.weights])
    elif path.is_dir():
        from benchmarks.gpu import join_parts

        args.voices = args.voices or path
        path = join_parts(path)
    return args, path, choice


def save_report(
    rows_by_policy: Mapping[str, Sequence[Mapping[str, Any]]], choice: Choice, args: argparse.Namespace
) -> None:
    """Print the capacities, write everything as JSON, and plot it if matplotlib is installed."""
    capacities = {policy: capacity(rows) for policy, rows in rows_by_policy.items()}
    print("\nstreams per second, 99 % good: " + ", ".join(f"{policy} {rate}" for policy, rate in capacities.items()))
    path = args.out / f"policies-{choice.device}-{platform.machine()}.json"
    report = {"choice": asdict(choice), "capacity": capacities, "seconds": args.seconds, "runs": rows_by_policy}
    path.write_text(json.dumps(report, indent=1) + "\n")
    if find_spec("matplotlib"):
        plot(rows_by_policy, path.with_suffix(".svg"), f"goodput by policy, {choice.device}")


def main() -> None:
    args, path, choice = parse_arguments(make_parser(__doc__))

    async def run() -> dict[str, list[dict[str, Any]]]:
        worker = ProcessWorker(partial(load_models, path, choice, args.threads))
        await worker.start()
        try:
            return await measure_policies(worker, choice, args)
        finally:
            await worker.close()

    save_report(asyncio.run(run()), choice, args)


if __name__ == "__main__":
    main()
