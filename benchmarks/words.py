"""How true word times are: those of the engine against three that hear the speech and know nothing of the model.

    python -m benchmarks.words                       44 texts, six voices
    python -m benchmarks.words --speed 0.7

aligner   a forced alignment of the phonemes that were meant (PocketSphinx, steps of 10 ms)
whisper   the word times of Whisper base, where it wrote the word as we did (from attention, steps of 20 ms)
silence   where the level itself falls and rises again around pauses; only words beside one
"""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.aligner import aligned
from benchmarks.listen import Whisper
from benchmarks.sentences import sentences, spread
from tutti import settings
from tutti.engine.build import open_engine
from tutti.speech import SAMPLE_RATE, Samples, SpeechParams, WordTime
from tutti.verify.recogniser import LEAD_S, for_listening
from tutti.weights import Precision

VOICES = "af_heart,am_michael,bf_emma,bm_george,af_bella,am_puck"
RESULTS = Path(__file__).parent / "results"
MORE = (
    '"Come in," she said, "and close the door."',
    "Yes.",
    "No, thank you.",
    "Wait! Who goes there?",
    "He asked (quietly, as always) whether anyone had seen the blue umbrella; nobody had.",
    "One. Two. Three. Go!",
    "Stop, look, and listen - then cross the road.",
    "When the last train had gone and the lamps along the platform went out one by one, the old man folded his "
    "newspaper, picked up the small brown suitcase that had stood beside him since noon, and walked slowly towards "
    "the town, where nobody was waiting for him.",
)
STEP_S = 0.005  # in which the level is taken
SILENT_DB = -40.0  # under the loudest step
PAUSE_S = 0.15  # shorter silence is a stop consonant
NEAR_S = 0.1  # a pause whose border we miss by more is not counted, since it may be another's; the aligner misses none


@dataclass(frozen=True, slots=True)
class Said:
    """A text as the engine spoke it: its words, and the phonemes of each."""

    text: str
    voice: str
    samples: Samples
    words: tuple[WordTime, ...]
    phonemes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Miss:
    """How many seconds a word's start or end is late."""

    by: str
    edge: str  # start or end
    voice: str
    word: str
    late_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """Many misses, in milliseconds."""

    by: str
    edge: str
    voice: str
    words: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    bias_ms: float


Edges = Iterator[tuple[int, str, float]]  # which word, start or end, when


def by_aligner(said: Said) -> Edges:
    for n, (start_s, end_s) in enumerate(aligned(for_listening(said.samples, SAMPLE_RATE), said.phonemes) or ()):
        yield n, "start", start_s - LEAD_S
        yield n, "end", end_s - LEAD_S


def by_whisper(said: Said, ears: Whisper) -> Edges:
    heard = ears.words(for_listening(said.samples, SAMPLE_RATE))
    ours, theirs = [_plain(word.word) for word in said.words], [_plain(word) for word, _, _ in heard]
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            _, start_s, end_s = heard[block.b + i]
            yield block.a + i, "start", start_s - LEAD_S
            yield block.a + i, "end", end_s - LEAD_S


def by_silence(said: Said) -> Edges:
    """A pause belongs to the nearest border between two words; one inside of a word, as in a price, to none."""
    borders = [0.0, *((a.end_s + b.start_s) / 2 for a, b in itertools.pairwise(said.words))]
    borders.append(len(said.samples) / SAMPLE_RATE)
    for from_s, to_s in silences(said.samples):
        after = min(range(len(borders)), key=lambda n: abs(borders[n] - (from_s + to_s) / 2))
        if not from_s - NEAR_S < borders[after] < to_s + NEAR_S:
            continue
        if after > 0:
            yield after - 1, "end", from_s
        if after < len(said.words):
            yield after, "start", to_s


def silences(samples: Samples) -> list[tuple[float, float]]:
    """From when to when nothing is heard, the beginning and the end included."""
    n = round(STEP_S * SAMPLE_RATE)
    steps = samples[: len(samples) // n * n].reshape(-1, n)
    level = np.sqrt((steps**2).mean(axis=1))
    loud = level > level.max() * 10 ** (SILENT_DB / 20)
    runs, at = [], 0
    for silent, group in itertools.groupby(~loud):
        length = len(list(group))
        if silent and (length * STEP_S >= PAUSE_S or at in (0, len(loud) - length)):
            runs.append((at * STEP_S, (at + length) * STEP_S))
        at += length
    return runs


def misses(said: Said, ears: Whisper) -> Iterator[Miss]:
    for by, edges in (
        ("aligner", by_aligner(said)),
        ("whisper", by_whisper(said, ears)),
        ("silence", by_silence(said)),
    ):
        for n, edge, true_s in edges:
            word = said.words[n]
            yield Miss(by, edge, said.voice, word.word, (word.start_s if edge == "start" else word.end_s) - true_s)


def row(by: str, edge: str, voice: str, found: Sequence[Miss]) -> Row:
    late_ms = 1000 * np.array([miss.late_s for miss in found])
    wrong_ms = np.abs(late_ms)
    figures = wrong_ms.mean(), np.median(wrong_ms), np.percentile(wrong_ms, 95), late_ms.mean()
    return Row(by, edge, voice, len(found), *(round(float(ms), 1) for ms in figures))


def rows(found: Sequence[Miss]) -> list[Row]:
    """All voices together, and by the aligner each of them."""
    made = []
    for by, edge in itertools.product(("aligner", "whisper", "silence"), ("start", "end")):
        mine = [miss for miss in found if (miss.by, miss.edge) == (by, edge)]
        for voice in ("all", *(sorted({miss.voice for miss in mine}) if by == "aligner" else ())):
            if some := [miss for miss in mine if voice in ("all", miss.voice)]:
                made.append(row(by, edge, voice, some))
    return made


async def speak(texts: Sequence[str], voices: Sequence[str], speed: float, chosen: settings.Settings) -> list[Said]:
    spoken = []
    async with open_engine(chosen) as engine:
        for text, voice in zip(texts, itertools.cycle(voices)):
            speech = await engine.speak(text, SpeechParams(voice, speed=speed))
            language = "en-gb" if voice.startswith("b") else "en-us"
            words = [word async for chunk in engine.phonemize(text, language) for word in chunk.words if word.phonemes]
            read = ["".join(word.phonemes for word in same) for _, same in itertools.groupby(words, lambda w: w.span)]
            assert len(read) == len(speech.words), text
            spoken.append(Said(text, voice, speech.samples, speech.words, tuple(read)))
    return spoken


def _plain(word: str) -> str:
    return re.sub(r"[^\w']", "", word.lower())


def shown(made: Sequence[Row]) -> Table:
    table = Table("by", "edge", "voice", "words", "mean ms", "median", "p95", "bias", box=None)
    for one in made:
        table.add_row(*(f"{value:+.1f}" if name == "bias_ms" else str(value) for name, value in asdict(one).items()))
    return table


def main(
    precision: Annotated[Precision, typer.Option()] = "fp32",
    voices: Annotated[str, typer.Option(help="names with commas between")] = VOICES,
    n_sentences: Annotated[int, typer.Option("--sentences", help="of the test set, beside those here")] = 36,
    speed: Annotated[float, typer.Option()] = 1.0,
    worst: Annotated[int, typer.Option(help="how many of the worst words to show")] = 8,
    home: Annotated[Path | None, typer.Option(help="where weights and recognisers lie")] = None,
    out: Annotated[Path, typer.Option()] = RESULTS,
) -> None:
    """The errors of our word times, in milliseconds; bias is positive where we are late."""
    console = Console()
    chosen, _ = settings.load({"home": home, "precision": precision})
    ears = Whisper(chosen.home / "recognisers")
    texts = [*(sentence.text for sentence in spread(sentences(), n_sentences)), *MORE]
    found: list[Miss] = []
    for said in track(asyncio.run(speak(texts, voices.split(","), speed, chosen)), "listening", console=console):
        found += misses(said, ears)
    made = rows(found)
    console.print(shown(made))
    for miss in sorted((m for m in found if m.by == "aligner"), key=lambda m: -abs(m.late_s))[:worst]:
        console.print(f"{1000 * miss.late_s:+6.0f} ms  {miss.edge:5}  {miss.voice}  {miss.word}", highlight=False)
    about: dict[str, Any] = {"precision": precision, "speed": speed, "texts": len(texts), "voices": voices}
    name = f"words-{precision}{'' if speed == 1 else f'-{speed:g}'}.json"
    (out / name).write_text(json.dumps({**about, "rows": [asdict(one) for one in made]}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)
