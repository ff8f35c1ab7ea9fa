"""Which policy serves the most listeners well: the real model under open load, all policies in one run.

python -m benchmarks.policies                                      this processor; about half an hour
python -m benchmarks.policies --rates 0,0.03 --target-ms 4000       two cores of a slow machine
python -m benchmarks.policies --weights parts --compile full        one CUDA device; parts as of benchmarks.gpu export

Listeners come at random (Poisson), each asks for a text and plays it as it comes. A stream is good if its first audio
comes within the target and its player never runs dry; one that is turned away is not good. The same listeners come to
every policy; `window` and `bypass` wait 50 ms for 4 rows. Needs no more than the model's own libraries, so that it runs
wherever the model does.
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
from types import SimpleNamespace
from typing import Any, cast

from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.errors import QueueFull, TuttiError
from tutti.model.choice import Choice, choose, load
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
GOOD = 0.99
PHONEMES_PER_S = 13
LATE_S = 0.002  # a player has at least this much in its hands


class Prepared:
    """A reader that has read already: a text names sentences by number, "7:4 12" is four words of one and another."""

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def chunks(self, text: str, code: str, *own: object) -> AsyncIterator[Chunk]:
        for chunk in chunked(text):
            yield chunk


def chunked(text: str) -> Iterator[Chunk]:
    """As the front end would cut it."""
    return Chunker().chunks((Pronunciation(words), 0.0) for words in map(_words, text.split(), _places(text)))


def _words(name: str, span: Span) -> tuple[PhonemeWord, ...]:
    number, _, n_words = name.partition(":")
    found = PHONEMES[int(number)].split()[: int(n_words) if n_words else None]
    return tuple(PhonemeWord(one, span, after=". " if i + 1 == len(found) else " ") for i, one in enumerate(found))


def _places(text: str) -> list[Span]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def said(seconds: float, salt: int) -> str:
    """Real phonemes that last about so long."""
    wanted = max(4, round(seconds * PHONEMES_PER_S))
    found = ""
    for i in range(len(PHONEMES)):
        found += PHONEMES[(salt + i) % len(PHONEMES)] + " "
        if len(found) >= wanted:
            break
    return found[: min(wanted, 500)].strip() or found[:4]


@dataclass(frozen=True, slots=True)
class Heard:
    """How one stream went for its listener."""

    refused: bool
    failed: bool
    first_s: float
    gap_s: float  # the longest silence in mid-speech
    audio_s: float

    def good(self, target_s: float) -> bool:
        return not (self.refused or self.failed or self.gap_s) and self.first_s <= target_s


async def listen(
    engine: Engine, text: str, *, whole: bool = False, came: Callable[[float], None] = lambda _audio_s: None
) -> Heard:
    """A player: starts at the first audio, notes how long it ran dry; `came` is told of each piece."""
    asked_s = time.monotonic()
    first_s, dry_s, gap_s, audio_s = 0.0, 0.0, 0.0, 0.0
    try:
        async for speech in engine.stream(text, SpeechParams("af_heart"), delivery="whole" if whole else "live"):
            now = time.monotonic()
            if not first_s:
                first_s, dry_s = now - asked_s, now
            elif now > dry_s + LATE_S:
                gap_s, dry_s = max(gap_s, now - dry_s), now
            dry_s += speech.duration_s
            audio_s += speech.duration_s
            came(speech.duration_s)
    except QueueFull:
        return Heard(True, False, 0.0, 0.0, 0.0)
    except TuttiError:
        return Heard(False, True, 0.0, 0.0, 0.0)
    return Heard(False, False, first_s, gap_s, audio_s)


def texts(seed: int) -> Iterator[str]:
    """What people ask for, without end: an opening of some words, then sentences; most are short, some are long."""
    rng = random.Random(seed)
    opening = (3, 4, 6, 8, None)
    while True:
        first, *rest = (rng.randrange(len(PHONEMES)) for _ in range(1 + rng.choice((0, 1, 1, 2, 4))))
        n_words = rng.choice(opening)
        yield " ".join((f"{first}:{n_words}" if n_words else f"{first}", *map(str, rest)))


async def offered(engine: Engine, rate: float, seconds: float, seed: int) -> list[Heard]:
    """Listeners at this rate for so long, and how it went for each of them; rate 0: one after the other."""
    rng = random.Random(seed)
    if not rate:
        heard, until_s = [], time.monotonic() + seconds
        for text in texts(seed):
            heard.append(await listen(engine, text))
            if time.monotonic() > until_s:
                break
        return heard
    asked = islice(texts(seed), max(4, round(rate * seconds)))
    started_s, at_s, tasks = time.monotonic(), 0.0, []
    for text in asked:
        at_s += rng.expovariate(rate)
        await asyncio.sleep(max(0.0, started_s + at_s - time.monotonic()))
        tasks.append(asyncio.create_task(listen(engine, text)))
    return list(await asyncio.gather(*tasks))


def one(path: Path, choice: Choice, threads: int) -> Mapping[str, Model]:
    return {CHECKPOINT: load(path, choice, threads)}


class Lent:
    """A worker that others use too: it is started and closed by its owner."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass


def open_with(policy: str, worker: Worker, choice: Choice, args: argparse.Namespace) -> Engine:
    rules = SimpleNamespace(
        policy=policy,
        batching=True,
        max_batch_size=4 if policy in ("window", "bypass") else None,
        max_wait_ms=50.0,
        min_wait_ms=2.0,
        early_fire=0.8,
        max_batch_text=None,
        max_batch_frames=None,
        max_queue=1000,
        stream_bypass_chunks=2,
        first_audio_ms=args.target_ms,
        threads=args.threads,
        lexicon=None,
        voice="af_heart",
    )
    lent = cast(Worker, Lent(worker))
    voices = Voices(args.voices)
    return assemble([lent], {CHECKPOINT: choice}, voices, Prepared(), rules, capped=True, cost_file=args.costs)  # type: ignore[arg-type]


async def measured(policy: str, worker: Worker, choice: Choice, args: argparse.Namespace) -> list[dict[str, Any]]:
    """One policy at rising rates, until it has failed twice."""
    found: list[dict[str, Any]] = []
    async with open_with(policy, worker, choice, args) as engine:
        target_s = engine.pacing.target_s
        for rate in args.rates:
            engine.batch_stats.reset()
            heard = await offered(engine, rate, args.seconds, args.seed)
            first = sorted(one.first_s for one in heard if one.first_s)
            done = engine.stats()["performance"]
            row = {
                "policy": policy,
                "rate": rate,
                "streams": len(heard),
                "good": sum(one.good(target_s) for one in heard) / len(heard),
                "refused": sum(one.refused for one in heard),
                "failed": sum(one.failed for one in heard),
                "dry": sum(one.gap_s > 0 for one in heard),
                "longest_gap_s": max(one.gap_s for one in heard),
                "first_p50_s": statistics.median(first) if first else None,
                "first_p95_s": first[int(0.95 * (len(first) - 1))] if first else None,
                "audio_s": sum(one.audio_s for one in heard),
                "rows_a_batch": done["avg_batch_size"],
                "padding": done["padding_ratio"],
            }
            found.append(row)
            print(line(row), flush=True)
            poor = [row["good"] < GOOD - 0.1 for row in found]
            if all(poor[-2:]) and (len(poor) > 1 or not rate):
                break
    return found


def line(row: Mapping[str, Any]) -> str:
    first = "-" if row["first_p95_s"] is None else f"{1000 * row['first_p50_s']:.0f}/{1000 * row['first_p95_s']:.0f} ms"
    dry = f"{row['dry']:4d} dry ({row['longest_gap_s']:.2f} s)"
    return (
        f"{row['policy']:>9} {row['rate']:8.2f}/s {row['streams']:5d} streams {100 * row['good']:5.1f} % good "
        f"{row['refused']:4d} refused {dry} first {first:>14} rows {row['rows_a_batch']:.1f}"
    )


def capacity(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The highest rate of those tried at which 99 % were good, with everything below it good too; none if none was."""
    best = None
    for row in rows:
        if row["good"] < GOOD:
            break
        best = row["rate"]
    return best


def plot(found: Mapping[str, Sequence[Mapping[str, Any]]], to: Path, title: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for policy, rows in found.items():
        axes.plot([row["rate"] for row in rows], [row["rate"] * row["good"] for row in rows], marker="o", label=policy)
    axes.set_xlabel("streams offered each second")
    axes.set_ylabel("good streams each second")
    axes.set_title(title)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(to)


async def compared(worker: Worker, choice: Choice, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """All policies, one after the other, on the same worker."""
    return {policy: await measured(policy, worker, choice, args) for policy in args.policies.split(",")}


def worker_for(path: Path, choice: Choice, args: argparse.Namespace) -> ProcessWorker:
    return ProcessWorker(partial(one, path, choice, args.threads))


def arguments(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, help="model.onnx, or the folder of its parts; none = of the settings")
    parser.add_argument("--voices", type=Path)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--rates", default="0.1,0.2,0.3,0.4,0.5,0.6")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--target-ms", type=float, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--compile", default="off")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    return parser


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, Path, Choice]:
    """What was asked for, the model file, and who runs it."""
    args = parser.parse_args()
    args.rates = [float(rate) for rate in args.rates.split(",") if rate]
    args.out.mkdir(parents=True, exist_ok=True)
    choice = choose(args.backend, "auto", "auto", args.compile)
    args.costs = Path(tempfile.mkdtemp()) / "costs.json"  # the same for every policy, of this run alone
    path = args.weights
    if path is None:
        from tutti import settings
        from tutti.weights import MODELS, Store

        home = settings.load({})[0].home
        args.voices = args.voices or home / "voices"
        path = Store(home).path(MODELS[choice.weights])
    elif path.is_dir():
        from benchmarks.gpu import joined

        args.voices = args.voices or path
        path = joined(path)
    return args, path, choice


def kept(found: Mapping[str, Sequence[Mapping[str, Any]]], choice: Choice, args: argparse.Namespace) -> None:
    """The capacities in one line, and everything as JSON and as a picture."""
    best = {policy: capacity(rows) for policy, rows in found.items()}
    print("\nstreams a second at 99 % good: " + ", ".join(f"{policy} {rate}" for policy, rate in best.items()))
    path = args.out / f"policies-{choice.device}-{platform.machine()}.json"
    report = {"choice": asdict(choice), "capacity": best, "seconds": args.seconds, "runs": found}
    path.write_text(json.dumps(report, indent=1) + "\n")
    if find_spec("matplotlib"):
        plot(found, path.with_suffix(".svg"), f"goodput by policy, {choice.device}")


def main() -> None:
    args, path, choice = parsed(arguments(__doc__))

    async def run() -> dict[str, list[dict[str, Any]]]:
        worker = worker_for(path, choice, args)
        await worker.start()
        try:
            return await compared(worker, choice, args)
        finally:
            await worker.close()

    kept(asyncio.run(run()), choice, args)


if __name__ == "__main__":
    main()
