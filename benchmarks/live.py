"""A language model writes, tutti speaks along: how soon after the first clause sound comes, and who keeps whom waiting.

python -m benchmarks.live --tone                          the engine and the wire alone
python -m benchmarks.live --listeners 1,2 --precision int8   the real model on this machine

A fake author writes one text for each listener at a steady pace, a token at a time; an engine speaks along. A player
starts at the first sound. A gap is ours where the text for it had come before the player ran dry, else the author's.
Before that, one listener hears the first clause alone, as a text that is known: what the engine needs for it. After
it, listeners leave in the middle of a long text, and what the device still does for them is counted.
"""

import argparse
import asyncio
import json
import platform
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tutti.engine.build import CHECKPOINT, assemble, open_engine
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.settings import Settings, load
from tutti.speech import SpeechParams
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.frontend import G2PThread
from tutti.text.incremental import Segmenter
from tutti.text.vocab import SYMBOLS
from tutti.voices import NAMES, Voices
from tutti.worker.thread import ThreadWorker

HERE = Path(__file__).parent
TEXT = (
    "That is a good question, and the short answer is that it depends on the weather. When Dr. Stone measured the old "
    "bridge in 1987, it stood 3.14 metres above the water. Since then the river has risen twice.\n\nSo today I would "
    "not cross it, unless somebody waits on the other side. Take the road along the hill instead; it is longer, but "
    "you will arrive with dry feet. Would you like me to describe the way? It takes about 25 minutes on foot."
)


@dataclass(frozen=True, slots=True)
class Heard:
    """One listener's seconds, counted from the first token."""

    clause_s: float  # the first stretch was written
    first_s: float  # the first sound came
    written_s: float  # the last token
    done_s: float  # the last sound came
    sounding_s: float
    our_gaps_s: tuple[float, ...]
    author_gaps_s: tuple[float, ...]


def tokens(text: str) -> list[str]:
    """About as a language model cuts: words with the blank before them, long ones in parts."""
    return [
        word[at : at + 6]
        for word in (text[:1] + text[1:].replace(" ", "\0 ")).split("\0")
        for at in range(0, len(word), 6)
    ]


async def listen(engine: Engine, voice: str, pace: float) -> Heard:
    started_s = time.monotonic()
    came: list[tuple[int, float]] = []  # so many characters had been released by then
    shadow = Segmenter()

    def now() -> float:
        return time.monotonic() - started_s

    async def author() -> AsyncIterator[str]:
        for n, token in enumerate(tokens(TEXT)):
            await asyncio.sleep(max(0.0, n / pace - now()))
            shadow.add(token)
            if stretch := shadow.take():
                came.append((stretch.at + len(stretch.text), now()))
            yield token
        came.append((len(TEXT), now()))

    dry_s, first_s, sounding_s = 0.0, 0.0, 0.0
    ours, authors = [], []
    async with aclosing(engine.stream(author(), SpeechParams(voice))) as speeches:
        async for speech in speeches:
            at_s = now()
            first_s = first_s or at_s
            if dry_s and at_s > dry_s:
                text_s = next((s for end, s in came if end >= speech.span[1]), at_s)
                (ours if text_s <= dry_s else authors).append(at_s - dry_s)
            dry_s = max(dry_s, at_s) + speech.duration_s
            sounding_s += speech.duration_s
    return Heard(came[0][1], first_s, came[-1][1], now(), sounding_s, tuple(ours), tuple(authors))


async def crowd(engine: Engine, voices: Sequence[str], n: int, pace: float) -> list[Heard]:
    """Listeners who come a third of a second apart."""

    async def one(i: int) -> Heard:
        await asyncio.sleep(i / 3)
        return await listen(engine, voices[i % len(voices)], pace)

    return await asyncio.gather(*(one(i) for i in range(n)))


def first_clause() -> str:
    """What is sure enough to be spoken first, as the author writes."""
    intake = Segmenter()
    for token in tokens(TEXT):
        intake.add(token)
        if stretch := intake.take():
            return stretch.text
    return TEXT


async def alone(engine: Engine, voice: str) -> float:
    """Seconds until the first clause sounds where nothing has to be waited for."""
    started_s = time.monotonic()
    async with aclosing(engine.stream(first_clause(), SpeechParams(voice))) as speeches:
        await anext(speeches)
        return time.monotonic() - started_s


@dataclass(frozen=True, slots=True)
class Left:
    """What was done for a listener who had left."""

    batches: int  # begun after that
    busy_s: float  # until the device was free


async def leave(engine: Engine, voice: str) -> Left:
    """Hears the first sound of a long text, and leaves."""
    async with aclosing(engine.stream(TEXT * 3, SpeechParams(voice))) as speeches:
        await anext(speeches)
    before, left_s = _n_batches(engine), time.monotonic()
    while engine.workers()["busyWorkers"] or engine.workers()["queueSize"]:
        await asyncio.sleep(0.001)
    return Left(_n_batches(engine) - before, time.monotonic() - left_s)


def _n_batches(engine: Engine) -> int:
    return int(engine.stats()["performance"]["total_batches"])


def summed(listeners: int, pace: float, heard: Sequence[Heard], alone_s: float) -> dict[str, Any]:
    def ms(values: Sequence[float]) -> dict[str, float]:
        return {"p50": round(1000 * statistics.median(values), 1), "max": round(1000 * max(values), 1)}

    return {
        "listeners": listeners,
        "tokens_s": pace,
        "first_clause_ms": ms([one.clause_s for one in heard]),
        "clause_to_sound_ms": ms([one.first_s - one.clause_s for one in heard]),
        "clause_alone_ms": round(1000 * alone_s, 1),
        "times_alone": round(statistics.median(one.first_s - one.clause_s for one in heard) / alone_s, 2),
        "first_sound_ms": ms([one.first_s for one in heard]),
        "text_written_ms": ms([one.written_s for one in heard]),
        "audio_s": round(sum(one.sounding_s for one in heard), 1),
        "our_gaps": sum(len(one.our_gaps_s) for one in heard),
        "our_gaps_s": round(sum(map(sum, (one.our_gaps_s for one in heard))), 3),
        "author_gaps": sum(len(one.author_gaps_s) for one in heard),
        "author_gaps_s": round(sum(map(sum, (one.author_gaps_s for one in heard))), 3),
    }


def shown(rows: Sequence[dict[str, Any]]) -> str:
    head = (
        "listeners",
        "first clause ms",
        "clause to sound ms",
        "of it alone",
        "first sound ms",
        "text written ms",
        "gaps ours/author",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        times = ("first_clause_ms", "clause_to_sound_ms", "first_sound_ms", "text_written_ms")
        cells = [f"{row[name]['p50']:.0f} (max {row[name]['max']:.0f})" for name in times]
        cells.insert(2, f"{row['times_alone']:.2f} x {row['clause_alone_ms']:.0f}")
        gaps = f"{row['our_gaps']} ({row['our_gaps_s']:.2f} s) / {row['author_gaps']} ({row['author_gaps_s']:.2f} s)"
        lines.append(f"| {row['listeners']} | {' | '.join(cells)} | {gaps} |")
    return "\n".join(lines)


def spelled(spoken: AlignedText, code: str, given: Any = ()) -> Pronunciation:
    """For tones: a word sounds as it is written."""
    words, at = [], 0
    for written in spoken.text.split():
        start = spoken.text.index(written, at)
        at = start + len(written)
        if letters := "".join(char for char in written.lower() if char.isalpha() and char in SYMBOLS):
            words.append(PhonemeWord(letters, spoken.span(start, at)))
    return Pronunciation(tuple(words))


def tone_engine(folder: Path, settings: Settings) -> Engine:
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    worker = ThreadWorker(partial(dict, {CHECKPOINT: ToneModel()}))
    choices = {CHECKPOINT: Choice("onnx", "cpu", "fp32")}
    return assemble([worker], choices, Voices(folder), G2PThread(spelled), settings, capped=False)


async def measured(engine: Engine, args: argparse.Namespace) -> dict[str, Any]:
    rows = []
    async with engine:
        await crowd(engine, NAMES[:1], 1, 1000)  # once for the lexicon and the caches
        alone_s = statistics.median([await alone(engine, NAMES[0]) for _ in range(5)])
        for listeners in map(int, args.listeners.split(",")):
            heard = await crowd(engine, NAMES[:8], listeners, args.tokens)
            rows.append(summed(listeners, args.tokens, heard, alone_s))
        left = [await leave(engine, NAMES[0]) for _ in range(5)]
    cancelled = {
        "batches_begun": [one.batches for one in left],
        "device_busy_ms": [round(1000 * one.busy_s, 1) for one in left],
    }
    return {"rows": rows, "cancelled": cancelled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tone", action="store_true", help="tones instead of the model")
    parser.add_argument("--listeners", default="1,4,16", help="at once")
    parser.add_argument("--tokens", type=float, default=30.0, help="that the author writes in a second")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "int8"))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    settings, _ = load({"precision": args.precision})
    with tempfile.TemporaryDirectory() as folder:
        engine = tone_engine(Path(folder), settings) if args.tone else open_engine(settings, for_server=True)
        found = asyncio.run(measured(engine, args))
    print(shown(found["rows"]))
    print("after a listener left: batches begun", *found["cancelled"]["batches_begun"], end="; ")
    print("device busy for ms", *found["cancelled"]["device_busy_ms"])
    name = f"live-{'tone' if args.tone else args.precision}-{platform.machine()}.json"
    (args.out / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
