"""Measure live text: a simulated language model writes, the engine speaks along, a simulated player plays.

python -m benchmarks.live --tone                             1 minute, without model files: engine and protocol alone
python -m benchmarks.live --listeners 1,2                    3 minutes on a CPU; --precision int8 is another model

For each listener a text is written at a steady pace, one token at a time. A player starts at the first audio. A gap
counts as ours if the text for it was there before the player ran dry, else as the author's. Before that, the first
clause is spoken as a known text: the least that the engine needs for it. At the end, listeners leave in the middle of a
long text, and the work that the device still does for them is counted.
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

from benchmarks.progress import progress
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
class LiveResult:
    """How one listener's text went, in seconds from its first token."""

    clause_s: float  # the first clause was written
    first_s: float  # the first audio came
    written_s: float  # the last token was written
    done_s: float  # the last audio came
    audio_s: float
    our_gaps_s: tuple[float, ...]
    author_gaps_s: tuple[float, ...]


def tokens(text: str) -> list[str]:
    """Split about as a language model does: words with the space before them, long ones in parts."""
    return [
        word[at : at + 6]
        for word in (text[:1] + text[1:].replace(" ", "\0 ")).split("\0")
        for at in range(0, len(word), 6)
    ]


async def listen(engine: Engine, voice: str, pace: float) -> LiveResult:
    """Let an author write the text at `pace` tokens per second, and play what the engine speaks."""
    started_s = time.monotonic()
    released: list[tuple[int, float]] = []  # so many characters could be spoken at this time
    segmenter = Segmenter()  # does what that of the engine does

    def now() -> float:
        return time.monotonic() - started_s

    async def author() -> AsyncIterator[str]:
        for n, token in enumerate(tokens(TEXT)):
            await asyncio.sleep(max(0.0, n / pace - now()))
            segmenter.add(token)
            if segment := segmenter.take():
                released.append((segment.at + len(segment.text), now()))
            yield token
        released.append((len(TEXT), now()))

    plays_until_s, first_s, audio_s = 0.0, 0.0, 0.0
    our_gaps, author_gaps = [], []
    async with aclosing(engine.stream(author(), SpeechParams(voice))) as speeches:
        async for speech in speeches:
            at_s = now()
            first_s = first_s or at_s
            if plays_until_s and at_s > plays_until_s:
                text_s = next((s for end, s in released if end >= speech.span[1]), at_s)
                (our_gaps if text_s <= plays_until_s else author_gaps).append(at_s - plays_until_s)
            plays_until_s = max(plays_until_s, at_s) + speech.duration_s
            audio_s += speech.duration_s
    return LiveResult(released[0][1], first_s, released[-1][1], now(), audio_s, tuple(our_gaps), tuple(author_gaps))


async def listen_together(engine: Engine, voices: Sequence[str], n: int, pace: float) -> list[LiveResult]:
    """Listeners that start a third of a second apart."""

    async def listen_later(i: int) -> LiveResult:
        await asyncio.sleep(i / 3)
        return await listen(engine, voices[i % len(voices)], pace)

    return await asyncio.gather(*map(listen_later, range(n)))


def first_clause() -> str:
    """The part of the text that is spoken first while it is being written."""
    segmenter = Segmenter()
    for token in tokens(TEXT):
        segmenter.add(token)
        if segment := segmenter.take():
            return segment.text
    return TEXT


async def time_known_clause(engine: Engine, voice: str) -> float:
    """Seconds until the first audio of the first clause if its text is known."""
    started_s = time.monotonic()
    async with aclosing(engine.stream(first_clause(), SpeechParams(voice))) as speeches:
        await anext(speeches)
        return time.monotonic() - started_s


@dataclass(frozen=True, slots=True)
class AfterCancel:
    """What the device did for a listener that had left."""

    batches: int  # started after that
    busy_s: float  # until the device was free


async def cancel_early(engine: Engine, voice: str) -> AfterCancel:
    """Receive the first audio of a long text, and leave."""
    async with aclosing(engine.stream(TEXT * 3, SpeechParams(voice))) as speeches:
        await anext(speeches)
    before, left_s = _n_batches(engine), time.monotonic()
    while engine.workers()["busyWorkers"] or engine.workers()["queueSize"]:
        await asyncio.sleep(0.001)
    return AfterCancel(_n_batches(engine) - before, time.monotonic() - left_s)


def _n_batches(engine: Engine) -> int:
    return int(engine.stats()["performance"]["total_batches"])


def summary(listeners: int, pace: float, results: Sequence[LiveResult], known_s: float) -> dict[str, Any]:
    def ms(values: Sequence[float]) -> dict[str, float]:
        return {"p50": round(1000 * statistics.median(values), 1), "max": round(1000 * max(values), 1)}

    clause_to_sound = [result.first_s - result.clause_s for result in results]
    our_gaps = [gap_s for result in results for gap_s in result.our_gaps_s]
    author_gaps = [gap_s for result in results for gap_s in result.author_gaps_s]
    return {
        "listeners": listeners,
        "tokens_s": pace,
        "first_clause_ms": ms([result.clause_s for result in results]),
        "clause_to_sound_ms": ms(clause_to_sound),
        "clause_alone_ms": round(1000 * known_s, 1),
        "times_alone": round(statistics.median(clause_to_sound) / known_s, 2),
        "first_sound_ms": ms([result.first_s for result in results]),
        "text_written_ms": ms([result.written_s for result in results]),
        "audio_s": round(sum(result.audio_s for result in results), 1),
        "our_gaps": len(our_gaps),
        "our_gaps_s": round(sum(our_gaps), 3),
        "author_gaps": len(author_gaps),
        "author_gaps_s": round(sum(author_gaps), 3),
    }


def format_table(rows: Sequence[dict[str, Any]]) -> str:
    head = (
        "listeners",
        "first clause written, ms",
        "clause to audio, ms",
        "x known clause, ms",
        "first audio, ms",
        "text written, ms",
        "gaps: ours / author's",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        times = ("first_clause_ms", "clause_to_sound_ms", "first_sound_ms", "text_written_ms")
        cells = [f"{row[name]['p50']:.0f} (max {row[name]['max']:.0f})" for name in times]
        cells.insert(2, f"{row['times_alone']:.2f} x {row['clause_alone_ms']:.0f}")
        gaps = f"{row['our_gaps']} ({row['our_gaps_s']:.2f} s) / {row['author_gaps']} ({row['author_gaps_s']:.2f} s)"
        lines.append(f"| {row['listeners']} | {' | '.join(cells)} | {gaps} |")
    return "\n".join(lines)


def spell(spoken: AlignedText, code: str, given: Any = ()) -> Pronunciation:
    """G2P for the tone model: every letter is a phoneme."""
    words, at = [], 0
    for written in spoken.text.split():
        start = spoken.text.index(written, at)
        at = start + len(written)
        if letters := "".join(char for char in written.lower() if char.isalpha() and char in SYMBOLS):
            words.append(PhonemeWord(letters, spoken.span(start, at)))
    return Pronunciation(tuple(words))


def tone_engine(folder: Path, settings: Settings) -> Engine:
    """An engine around the tone model; `folder` gets voices without a style."""
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    worker = ThreadWorker(partial(dict, {CHECKPOINT: ToneModel()}))
    choices = {CHECKPOINT: Choice("onnx", "cpu", "fp32", vocoder="light")}
    return assemble([worker], choices, Voices(folder), G2PThread(spell), settings, capped=False)


async def measure(engine: Engine, args: argparse.Namespace) -> dict[str, Any]:
    rows = []
    counts = [int(n) for n in args.listeners.split(",")]
    with progress(3 + len(counts)) as step:
        step("starting")
        async with engine:
            await listen_together(engine, NAMES[:1], 1, 1000)  # warm-up of lexicon and caches
            step("first clause as a known text")
            known_s = statistics.median([await time_known_clause(engine, NAMES[0]) for _ in range(5)])
            for n in counts:
                step(f"{n} listeners")
                results = await listen_together(engine, NAMES[:8], n, args.tokens)
                rows.append(summary(n, args.tokens, results, known_s))
            step("listeners that leave")
            cancelled = [await cancel_early(engine, NAMES[0]) for _ in range(5)]
    after_cancel = {
        "batches_begun": [result.batches for result in cancelled],
        "device_busy_ms": [round(1000 * result.busy_s, 1) for result in cancelled],
    }
    return {"rows": rows, "cancelled": after_cancel}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tone", action="store_true", help="the tone model instead of the real one")
    parser.add_argument("--listeners", default="1,4,16", help="at once, one run for each number")
    parser.add_argument("--tokens", type=float, default=30.0, help="that the author writes per second")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "int8"))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    settings, _ = load({"precision": args.precision})
    with tempfile.TemporaryDirectory() as folder:
        engine = tone_engine(Path(folder), settings) if args.tone else open_engine(settings, for_server=True)
        report = asyncio.run(measure(engine, args))
    print(format_table(report["rows"]))
    print("after a listener left: batches started", *report["cancelled"]["batches_begun"], end="; ")
    print("device busy for ms", *report["cancelled"]["device_busy_ms"])
    name = f"live-{'tone' if args.tone else args.precision}-{platform.machine()}.json"
    (args.out / name).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
